"""Links that open one file without a login, for one to two hours: pages load pictures without the cookie.

A link is the file's URL with a signed token in its query (`?token=…`). The token names the company, the file and the
time when the link expires. Until then, everybody who has the link can read that file, and nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import jwt

from apiserver.fileserver.addresses import names_of

#: Seconds. A link that is made between 10:00 and 11:00 expires at 12:00. So it stays the same for up to an hour, and
#: browsers find the picture in their cache.
HOUR = 3600

_ALGORITHM = "HS256"
#: Distinguishes these tokens from those of logins: the same secret signs both.
_AUDIENCE = "file"
_LONGEST_QUERY = 4096


class FileLinks:
    """Makes and checks links with the server's `secret`; `clock` gives epoch seconds."""

    def __init__(self, secret: str, clock: Callable[[], float] = time.time) -> None:
        self._secret = secret
        self._clock = clock

    def link(self, url: str, company: str, hosts: Collection[str]) -> str:
        """`url` as a link if it names a file on one of our `hosts`, else `url` itself. The file is the company's."""
        names = names_of(url, hosts)
        if not names:
            return url
        hour = int(self._clock()) // HOUR
        claims = {"aud": _AUDIENCE, "exp": (hour + 2) * HOUR, "company": company, "names": names}
        token = jwt.encode(claims, self._secret, algorithm=_ALGORITHM)
        parts = urlsplit(url)
        query = "&".join(filter(None, (parts.query, urlencode({"token": token}))))
        return urlunsplit(parts._replace(query=query))

    def company(self, query: bytes, name: str) -> str | None:
        """The company whose file `name` the query of a link opens; None if it opens no or another file, or expired."""
        if len(query) > _LONGEST_QUERY or b"token=" not in query:
            return None
        token = dict(parse_qsl(query.decode("latin-1"))).get("token", "")
        try:
            # PyJWT would compare `exp` with the system's clock; below it is compared with `self._clock`.
            claims = jwt.decode(
                token, self._secret, algorithms=[_ALGORITHM], audience=_AUDIENCE, options={"verify_exp": False}
            )
        except (jwt.InvalidTokenError, ValueError, RecursionError):
            return None
        opens = claims["exp"] > self._clock() and name in claims["names"]
        return str(claims["company"]) if opens else None
