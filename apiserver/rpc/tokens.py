"""JSON Web Tokens that say who calls. They are always signed with HS256, and always expire."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from secrets import token_hex
from typing import Any

import jwt

from apiserver.common.errors import Refusal, Why, expired
from apiserver.rpc.call import Identity
from apiserver.rpc.versions import NEWEST, SERVER_VERSION

#: Least bytes of the secret: HS256 needs one as long as its digest.
SHORTEST_SECRET = 32

_ALGORITHM = "HS256"
#: `iat` is not checked: the clocks of several servers differ, so a token may seem to come from the future.
_CHECKED: Any = {"require": ["exp"], "verify_iat": False}
#: Thousands of SDKs report at the same time, each with a token of its own.
_REMEMBERED_TOKENS = 8192
#: The fields of an identity that every token names.
_IDENTITY = ("user", "company", "role", "user_name", "company_name")


class Tokens:
    """Issues and reads tokens. ValueError when `secret` is shorter than 32 bytes."""

    def __init__(self, secret: str, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        if len(secret.encode()) < SHORTEST_SECRET:
            raise ValueError(f"the token secret must have at least {SHORTEST_SECRET} bytes")
        self._secret = secret
        self._verified = lru_cache(_REMEMBERED_TOKENS)(self._verify)

    def issue(self, identity: Identity, lifetime_s: int) -> str:
        """A token for `identity`, valid for `lifetime_s` seconds, in the identity's session or else in a new one.

        Clients learn the server's version from the token's claims.
        """
        now = int(self._clock())
        fields = (*_IDENTITY, "key", *(["acted_by"] if identity.acted_by else []))
        claims = {
            "exp": now + lifetime_s,
            "iat": now,
            "identity": {field: getattr(identity, field) for field in fields},
            "session_id": identity.session or token_hex(16),
            "auth_time": now if identity.logged_in is None else identity.logged_in,
            "api_version": str(NEWEST),
            "server_version": SERVER_VERSION,
            "feature_set": "basic",
            "auth_type": "Bearer",
        }
        return jwt.encode(claims, self._secret, algorithm=_ALGORITHM)

    def read(self, token: str) -> Identity:
        """The identity that a token names.

        Raises Refusal(BAD_TOKEN) if this server did not issue the token, or it has expired.
        """
        identity, expires = self._verified(token)
        if expires <= self._clock():
            raise _expired_token()
        return identity

    def _verify(self, token: str) -> tuple[Identity, int]:
        """The identity that a token names, and when the token expires.

        The result is remembered, because verifying would be most of the work of a small call.
        """
        try:
            claims = jwt.decode(token, self._secret, algorithms=[_ALGORITHM], options=_CHECKED)
        except jwt.ExpiredSignatureError:
            raise _expired_token() from None
        except (jwt.InvalidTokenError, ValueError, RecursionError) as error:
            raise bad_token(str(error).encode("utf-8", "backslashreplace").decode()[:200]) from None
        return _identity(claims), int(claims["exp"])


def bad_token(reason: str, *, has_expired: bool = False) -> Refusal:
    """This server did not issue the token, or it has ended."""
    make = expired if has_expired else Refusal
    return make(Why.BAD_TOKEN, f"Invalid token ({reason})")


def _expired_token() -> Refusal:
    return bad_token("it has expired", has_expired=True)


def _identity(claims: dict[str, Any]) -> Identity:
    claim = claims.get("identity")
    if not isinstance(claim, dict) or not all(isinstance(claim.get(field), str) for field in _IDENTITY):
        raise bad_token("it names no identity")
    key, session, acted_by = claim.get("key"), claims.get("session_id"), claim.get("acted_by")
    logged_in = claims.get("auth_time")
    return Identity(
        **{field: claim[field] for field in _IDENTITY},
        key=key if isinstance(key, str) else None,
        session=session if isinstance(session, str) else None,
        logged_in=logged_in if isinstance(logged_in, int) else 0,
        acted_by=acted_by if isinstance(acted_by, str) else "",
    )
