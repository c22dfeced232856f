"""A sign-in that a browser has begun: it keeps a signed cookie, so that the server keeps nothing.

State, nonce and the verifier of PKCE are made of a random seed with the server's secret. The cookie has only the seed,
so whoever reads it learns none of them. Whoever has another browser does not have the cookie: a callback that somebody
else began does not sign this browser in.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from base64 import urlsafe_b64encode
from typing import Any

import jwt

#: Seconds that somebody may take at the provider.
SECONDS = 600
COOKIE = "apiserver_sign_in"

_ALGORITHM = "HS256"
#: Distinguishes the cookie from the other tokens that the same secret signs.
_AUDIENCE = "sign-in"
_LONGEST = 4096


class Begun:
    """A sign-in that was begun: `seed` is random, `origin` is the page's, such as `https://tracker.example.org`, and
    `next` is the path to go to afterwards."""

    def __init__(self, secret: str, seed: str, origin: str, next: str) -> None:
        self.origin = origin
        self.next = next
        self.state = _made(secret, "state", seed)
        self.nonce = _made(secret, "nonce", seed)
        self.verifier = _made(secret, "verifier", seed)
        self._secret = secret
        self._seed = seed

    @property
    def challenge(self) -> str:
        """The digest of the verifier (S256), which the provider is told."""
        return _base64(hashlib.sha256(self.verifier.encode()).digest())

    @property
    def address(self) -> str:
        """Where the provider sends the browser afterwards."""
        return f"{self.origin}/sign-in"

    def cookie(self, seconds: float = SECONDS) -> str:
        """The value of the cookie, which is valid for `seconds`."""
        claims = {"aud": _AUDIENCE, "exp": int(time.time() + seconds), "seed": self._seed}
        return jwt.encode({**claims, "origin": self.origin, "next": self.next}, self._secret, algorithm=_ALGORITHM)


def begin(secret: str, origin: str, next: str) -> Begun:
    """A new sign-in."""
    return Begun(secret, secrets.token_urlsafe(32), origin, next)


def of_cookie(secret: str, cookie: str, state: str) -> Begun | None:
    """The sign-in that this browser began with this state; None if there is none, or it is too old."""
    required: Any = {"require": ["exp", "seed", "origin", "next"]}
    try:
        if len(cookie) > _LONGEST:
            return None
        claims = jwt.decode(cookie, secret, algorithms=[_ALGORITHM], audience=_AUDIENCE, options=required)
    except (jwt.InvalidTokenError, ValueError, RecursionError):
        return None
    begun = Begun(secret, claims["seed"], claims["origin"], claims["next"])
    return begun if hmac.compare_digest(begun.state.encode(), state.encode("utf-8", "surrogatepass")) else None


def _made(secret: str, purpose: str, seed: str) -> str:
    return _base64(hmac.digest(secret.encode(), f"sign-in {purpose} {seed}".encode(), "sha256"))


def _base64(content: bytes) -> str:
    return urlsafe_b64encode(content).rstrip(b"=").decode()
