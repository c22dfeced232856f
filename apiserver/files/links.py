"""Links that open one file for an hour or two without a login: for pictures that a page loads without its cookie.

A link is the file's URL with a signed token in its query (`?token=…`), which names the company, the file and the end.
Whoever has the link can read that file, and nothing else, until then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import jwt

from apiserver.files.addresses import names_of

#: Seconds. A link ends with the hour after the one it is made in, so that it stays the same for a while and browsers
#: find the picture in their cache.
HOUR = 3600

_ALGORITHM = "HS256"
#: Tells these tokens from those of logins, which the same secret signs.
_AUDIENCE = "file"
_LONGEST_QUERY = 4096


class FileLinks:
    """Makes links with the server's `secret`, and tells which file a link opens; `clock` gives epoch seconds."""

    def __init__(self, secret: str, clock: Callable[[], float] = time.time) -> None:
        self._secret = secret
        self._clock = clock

    def link(self, url: str, company: str, hosts: Collection[str]) -> str:
        """`url` as a link, when it names a file of the company on one of our `hosts`; else `url` itself."""
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
        """Whose file `name` a link's query opens; None when it opens nothing, another file, or has ended."""
        if len(query) > _LONGEST_QUERY or b"token=" not in query:
            return None
        token = dict(parse_qsl(query.decode("latin-1"))).get("token", "")
        try:
            # PyJWT compares `exp` with the system's clock: here the clock is the one that made the link.
            claims = jwt.decode(
                token, self._secret, algorithms=[_ALGORITHM], audience=_AUDIENCE, options={"verify_exp": False}
            )
        except (jwt.InvalidTokenError, ValueError, RecursionError):
            return None
        opens = claims["exp"] > self._clock() and name in claims["names"]
        return str(claims["company"]) if opens else None
