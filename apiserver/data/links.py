"""Links that open the data of one task, or of a project and its tasks, without a login, for some time.

A link is an address with a signed token in its query (`?token=…`). The token names the user who made the link, the task
or project, and when the link ends. Until then everybody who has the link can read that task or project, as far as its
maker can today, and nothing else. A link ends early with its maker, and with the access key
or the password that it was made with.
"""

from __future__ import annotations

import time
from typing import Any

import jwt

from apiserver.rpc.call import Identity
from apiserver.rpc.tokens import bad_token

#: Seconds that a link may be valid.
LONGEST = 30 * 24 * 3600

_ALGORITHM = "HS256"
#: Distinguishes these tokens from those of logins: the same secret signs both.
_AUDIENCE = "data"
_LONGEST_TOKEN = 4096


class DataLinks:
    """Makes and reads the tokens of links with the server's `secret`."""

    def __init__(self, secret: str) -> None:
        self._secret = secret

    def token(self, maker: Identity, covers: str, seconds: int) -> str:
        """The token of a link to what `covers` names, such as `tasks/<id>`."""
        claims = {"aud": _AUDIENCE, "exp": int(time.time()) + seconds, "user": maker.user, "company": maker.company}
        return jwt.encode({**claims, "key": maker.key, "covers": covers}, self._secret, algorithm=_ALGORITHM)

    def read(self, token: str) -> tuple[Identity, str]:
        """Who made a link, and what it covers. 401/30 if this server did not make it, or it has ended."""
        required: Any = {"require": ["exp", "user", "company", "covers"]}
        try:
            if len(token) > _LONGEST_TOKEN:
                raise jwt.InvalidTokenError
            claims = jwt.decode(token, self._secret, algorithms=[_ALGORITHM], audience=_AUDIENCE, options=required)
        except jwt.ExpiredSignatureError:
            raise bad_token("the link has ended", has_expired=True) from None
        except (jwt.InvalidTokenError, ValueError, RecursionError):
            raise bad_token("this server did not make the link") from None
        key = claims.get("key")
        maker = Identity(str(claims["user"]), str(claims["company"]), key=key if isinstance(key, str) else None)
        return maker, str(claims["covers"])
