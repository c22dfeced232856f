"""Who is calling: access keys (Basic), tokens (Bearer, or the web UI's cookie), and the tokens themselves.

Tokens are signed with HS256 and nothing else, and always expire. The Authorization header decides when there is one;
the cookie counts only without it, and only for requests that no foreign page can have made.
"""

from __future__ import annotations

import binascii
import time
from base64 import b64decode
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import jwt

from apiserver.rpc.call import Identity
from apiserver.rpc.errors import ApiError, forbidden, unauthorized
from apiserver.rpc.versions import NEWEST, SERVER_VERSION

#: The cookie that `auth.login` sets for the web UI.
TOKEN_COOKIE = "clearml_token_basic"
#: HS256 needs a secret as long as its digest.
SHORTEST_SECRET = 32

_ALGORITHM = "HS256"
#: The clocks of several servers differ, so a token may seem to come from the future.
_CHECKED: Any = {"require": ["exp"], "verify_iat": False}
_REMEMBERED_TOKENS = 1024

#: Finds who an access key and its secret belong to; None when they belong to nobody.
Lookup = Callable[[str, str], Awaitable[Identity | None]]
#: Tells whether an access key is still in use.
IsLive = Callable[[str], Awaitable[bool]]


class Authenticator:
    """Tells who a request is from, by its headers.

    `lookup` answers for access keys; with `is_live`, a token ends with the access key it came from. `allowed_origins`
    are those of pages on other hosts that may use the cookie, such as `http://ui.example:8080`. ValueError when
    `token_secret` is shorter than 32 bytes.
    """

    def __init__(
        self,
        token_secret: str,
        lookup: Lookup,
        *,
        is_live: IsLive | None = None,
        allowed_origins: Collection[str] = (),
    ) -> None:
        if len(token_secret.encode()) < SHORTEST_SECRET:
            raise ValueError(f"the token secret must have at least {SHORTEST_SECRET} bytes")
        self._secret = token_secret
        self._lookup = lookup
        self._is_live = is_live
        self._allowed_origins = frozenset(allowed_origins)
        self._verified = lru_cache(_REMEMBERED_TOKENS)(self._verify)

    async def authenticate(self, headers: Mapping[str, str]) -> Identity:
        """The caller, by request headers of lower-case names.

        401/20 without credentials, 401/10 for an unknown scheme, 401/22 for a wrong key or secret, 401/30 for a bad or
        expired token, 403/21 for a cookie sent along by a foreign page.
        """
        scheme, _, credentials = headers.get("authorization", "").strip().partition(" ")
        match scheme.lower():
            case "basic":
                return await self._by_key(credentials)
            case "bearer":
                return await self._by_token(credentials.strip())
            case "":
                return await self._by_cookie(headers)
        raise unauthorized(10, "Unauthorized (bad authentication header type)")

    def issue(self, identity: Identity, lifetime_s: int) -> str:
        """A token that says `identity` for `lifetime_s` seconds. Clients learn the server's version from its claims."""
        now = int(time.time())
        claims = {
            "exp": now + lifetime_s,
            "iat": now,
            "identity": {
                "user": identity.user,
                "company": identity.company,
                "role": identity.role,
                "user_name": identity.user_name,
                "company_name": identity.company_name,
                "key": identity.key,
            },
            "api_version": str(NEWEST),
            "server_version": SERVER_VERSION,
            "feature_set": "basic",
            "auth_type": "Bearer",
        }
        return jwt.encode(claims, self._secret, algorithm=_ALGORITHM)

    async def _by_key(self, credentials: str) -> Identity:
        try:
            key, _, secret = b64decode(credentials.strip(), validate=True).decode().partition(":")
        except (binascii.Error, ValueError):
            raise _bad_key() from None
        identity = await self._lookup(key, secret) if key and secret else None
        if identity is None:
            raise _bad_key()
        return identity

    async def _by_token(self, token: str) -> Identity:
        identity, expires = self._verified(token)
        if expires <= time.time():
            raise _expired_token()
        if self._is_live and identity.key and not await self._is_live(identity.key):
            raise _bad_token("the access key it came from is no longer in use")
        return identity

    def _verify(self, token: str) -> tuple[Identity, int]:
        """Who a token is of, and when it expires; remembered, as it is most of the time that a small call takes."""
        try:
            claims = jwt.decode(token, self._secret, algorithms=[_ALGORITHM], options=_CHECKED)
        except jwt.ExpiredSignatureError:
            raise _expired_token() from None
        except (jwt.InvalidTokenError, ValueError, RecursionError) as error:
            raise _bad_token(_printable(error)) from None
        return _identity(claims.get("identity")), int(claims["exp"])

    async def _by_cookie(self, headers: Mapping[str, str]) -> Identity:
        token = _cookie(headers.get("cookie", ""), TOKEN_COOKIE)
        if not token:
            raise unauthorized(20, "Unauthorized (missing credentials)")
        if self._is_foreign(headers):
            raise forbidden("the cookie is not accepted from this origin")
        return await self._by_token(token)

    def _is_foreign(self, headers: Mapping[str, str]) -> bool:
        """Whether a page of another origin, which is not allowed to, made the browser send this request."""
        origin = headers.get("origin")
        if origin is None:
            return headers.get("sec-fetch-site") == "cross-site"
        return origin not in self._allowed_origins and _host(origin) != headers.get("host", "").lower()


def _bad_key() -> ApiError:
    return unauthorized(22, "Unauthorized (invalid credentials)")


def _bad_token(reason: str, *, expired: bool = False) -> ApiError:
    return unauthorized(30, f"Invalid token ({reason})", expired=expired)


def _expired_token() -> ApiError:
    return _bad_token("it has expired", expired=True)


def _printable(error: Exception) -> str:
    return str(error).encode("utf-8", "backslashreplace").decode()[:200]


def _identity(claim: Any) -> Identity:
    fields = ("user", "company", "role", "user_name", "company_name")
    if not isinstance(claim, dict) or not all(isinstance(claim.get(field), str) for field in fields):
        raise _bad_token("it names no identity")
    key = claim.get("key")
    return Identity(**{field: claim[field] for field in fields}, key=key if isinstance(key, str) else None)


def _cookie(header: str, name: str) -> str | None:
    for pair in header.split(";"):
        key, _, value = pair.partition("=")
        if key.strip() == name:
            return value.strip().strip('"')
    return None


def _host(origin: str) -> str | None:
    """Host and port of an origin as a Host header has them; None for `null` and other things that have none."""
    try:
        return urlsplit(origin).netloc.lower() or None
    except ValueError:
        return None
