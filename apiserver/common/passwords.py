"""Hashes passwords with scrypt, at a cost that OWASP recommends: 32 MiB, and a third of a second.

A hash is the text `scrypt$<n>$<r>$<p>$<salt>$<digest>`, with salt and digest in base64.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
import re
import secrets
from base64 import b64decode, b64encode
from dataclasses import dataclass

#: Least characters of a password.
SHORTEST = 8
#: Most characters of the name of a user who logs in with a password.
LONGEST_NAME = 200
#: The form of access keys, here and on ClearML's own servers.
_KEY = re.compile(r"[0-9A-Z]{20,}")

#: The parameters n, r and p of scrypt. n, the cost, is a power of two; memory and time grow with it.
COST, _R, _P = 2**15, 8, 3
_SALT, _DIGEST = 16, 32
#: Limits on what a stored hash may cost to compute, in bytes and in n * r * p. A hash beyond them is a mistake.
_MOST_MEMORY = 2**28
_MOST_WORK = 2**26


@dataclass(frozen=True, slots=True)
class _Hash:
    n: int
    r: int
    p: int
    salt: bytes
    digest: bytes

    def of(self, password: str) -> bytes:
        return hashlib.scrypt(
            password.encode("utf-8", "surrogatepass"),
            salt=self.salt,
            n=self.n,
            r=self.r,
            p=self.p,
            maxmem=_MOST_MEMORY,
            dklen=len(self.digest),
        )

    def __str__(self) -> str:
        salt, digest = (b64encode(part).decode() for part in (self.salt, self.digest))
        return f"scrypt${self.n}${self.r}${self.p}${salt}${digest}"


def check_name(name: str) -> None:
    """ValueError unless a user with this name may log in with a password."""
    if not name.strip() or ":" in name or len(name) > LONGEST_NAME:
        raise ValueError(f"to have a password, a user needs a name of up to {LONGEST_NAME} characters without a colon")
    if _KEY.fullmatch(name):
        raise ValueError("to have a password, a user needs a name that does not look like an access key")


def hash_password(password: str, cost: int = COST) -> str:
    """The hash of a password, with a new salt. ValueError if the password is too short."""
    if len(password) < SHORTEST:
        raise ValueError(f"a password has at least {SHORTEST} characters")
    empty = _Hash(cost, _R, _P, secrets.token_bytes(_SALT), bytes(_DIGEST))
    return str(_Hash(cost, _R, _P, empty.salt, empty.of(password)))


def matches(password: str, hashed: str) -> bool:
    """Whether the password has this hash. Either answer takes a core a third of a second."""
    expected = _parsed(hashed)
    return hmac.compare_digest(expected.of(password), expected.digest)


def nobodys_hash(cost: int = COST) -> str:
    """A hash that no password has. Comparing with it takes as long as with any other."""
    return str(_Hash(cost, _R, _P, secrets.token_bytes(_SALT), secrets.token_bytes(_DIGEST)))


def check_hash(text: str) -> None:
    """ValueError unless the text is a hash like those of `hash_password`."""
    _parsed(text)


def _parsed(text: str) -> _Hash:
    try:
        name, *numbers, salt, digest = text.split("$")
        n, r, p = (int(number) for number in numbers)
        parsed = _Hash(n, r, p, b64decode(salt, validate=True), b64decode(digest, validate=True))
    except (ValueError, binascii.Error):
        raise ValueError("not a hash of a password; `apiserver user hash` makes one") from None
    power_of_two = n > 1 and n & (n - 1) == 0
    cheap = power_of_two and r > 0 and p > 0 and 128 * n * r <= _MOST_MEMORY // 2 and n * r * p <= _MOST_WORK
    if name != "scrypt" or not cheap or len(parsed.salt) < 8 or not 16 <= len(parsed.digest) <= 64:
        raise ValueError("not a hash of a password; `apiserver user hash` makes one")
    return parsed
