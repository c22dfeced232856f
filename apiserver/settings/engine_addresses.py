"""Splits addresses of engines into their parts, and hides the secrets in them.

Errors never repeat an address, as it may have a password.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

ENCODE = "in user and password, write '/', '?', '@', ':' and '%' as %2F, %3F, %40, %3A and %25"
#: Names of parameters that hold a secret, such as api_key, tlsCertificateKeyFilePassword and authMechanismProperties.
_SECRET = re.compile(r"key$|passw|secret|token|properties", re.IGNORECASE)
_MASK = "********"


def masked(address: str) -> str:
    """The address with its secrets hidden."""
    head, separator, rest = address.partition("://")
    if not separator:
        return address
    authority, slash, tail = _split_authority(rest)
    userinfo, at, hosts = authority.rpartition("@")
    if ":" in userinfo:
        userinfo = f"{userinfo.partition(':')[0]}:{_MASK}"
    path, question, query = tail.partition("?")
    parameters = [item.partition("=") for item in query.split("&")]
    shown = "&".join(
        f"{name}{equals}{_MASK if value and _SECRET.search(name) else value}" for name, equals, value in parameters
    )
    return f"{head}://{userinfo}{at}{hosts}{slash}{path}{question}{shown}"


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of scheme://user:password@hosts/path?query. User and password are decoded. Missing parts are empty."""

    scheme: str
    user: str
    password: str
    hosts: str
    path: str
    query: str


def parts_of(address: str) -> Parts:
    """The parts of an address. ValueError if its user or password is not encoded."""
    scheme, _, rest = address.partition("://")
    authority, _, tail = _split_authority(rest)
    userinfo, _, hosts = authority.rpartition("@")
    user, _, password = userinfo.partition(":")
    path, _, query = tail.partition("?")
    if "@" in path:
        raise ValueError(ENCODE)
    return Parts(scheme, unquote(user), unquote(password), hosts, path.strip("/"), query)


def _split_authority(rest: str) -> tuple[str, str, str]:
    """The text before the first "/" or "?"; that "/", or "" for a "?"; and the rest, which includes the "?"."""
    end = min((at for at in (rest.find("/"), rest.find("?")) if at >= 0), default=len(rest))
    slash = rest[end : end + 1] if rest[end : end + 1] == "/" else ""
    return rest[:end], slash, rest[end + len(slash) :]


def once(inside: str, beside: str, what: str) -> str:
    """The secret inside the address or the one beside it. ValueError, which names `what`, if there are both."""
    if inside and beside:
        raise ValueError(f"{what} is in the address and in a setting of its own: give it once")
    return inside or beside
