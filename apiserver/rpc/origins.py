"""Decides for which requests the cookie counts, by the headers that say which page made a browser send a request.

A browser adds the cookie to every request that a page causes, by a picture, a link, a form or a script, even if the
page is of another site. A page cannot forge the headers that say so. The rules are:

- A request that changes something must be sent by a script, from a page of this server or of `allowed_origins`.
- A request that only reads may also come from a link or the address bar, but not from a page of another site. So links
  to logs and pictures of files work.

Browsers send `Sec-Fetch-*` only to https and to localhost. Elsewhere, the method, the type of the body and `Origin`
decide: pictures and links are GET, a form cannot send JSON, and a script of another site needs the server's permission
(CORS), which it does not get.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

from apiserver.common.errors import forbidden

#: The methods of links and images.
SAFE_METHODS = ("GET", "HEAD")
#: Types of bodies that no form can send, and for which a script of another site needs permission.
_JSON = ("application/json", "application/json-lines")

RequestHeaders = Mapping[str, str]


class Origins:
    """Tells the server's own and `allowed` origins, such as `http://ui.example:8080`, from foreign ones."""

    def __init__(self, allowed: Collection[str] = ()) -> None:
        self._allowed = frozenset(allowed)

    def check(self, method: str, headers: RequestHeaders, *, changes: bool, forms: bool = False) -> None:
        """403/21 unless the cookie counts for the request; `changes`: whether the request may change something.

        With `forms`, the body need not be JSON: files are uploaded as forms.
        """
        if not changes:
            if self._is_foreign(headers):
                raise forbidden("the cookie is not accepted from this origin")
        elif not self._is_own(headers):
            raise forbidden("with the cookie, only pages of this server or of allowed_origins can change something")
        elif method in SAFE_METHODS or not _is_fetch(headers) or not (forms or _content_type(headers) in _JSON):
            raise forbidden("with the cookie, a request that changes something must be a POST of JSON by a script")

    def may_set_cookie(self, method: str, headers: RequestHeaders) -> bool:
        """Whether the answer may set or delete the cookie: a page of another site may log nobody in or out."""
        return method not in SAFE_METHODS and _is_fetch(headers) and not self._is_foreign(headers)

    def _is_own(self, headers: RequestHeaders) -> bool:
        """Whether the browser says that a page of this server, or of an allowed origin, sent the request."""
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin in self._allowed:
            return True
        if site is not None:
            return site == "same-origin"
        return origin is not None and self._is_host(origin, headers)

    def _is_foreign(self, headers: RequestHeaders) -> bool:
        """Whether the browser says that a page of another site sent the request.

        If it says nothing, the request comes from a link or the address bar, or from a client that is no browser.
        """
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if site == "same-origin" or origin in self._allowed:
            return False
        if origin is not None:
            return not self._is_host(origin, headers)
        return site == "cross-site" and _origin(headers.get("referer")) not in self._allowed

    def _is_host(self, url: str, headers: RequestHeaders) -> bool:
        """Whether a URL is on the host that the request was sent to, by `Host` or `X-Forwarded-Host`.

        `X-Forwarded-Host` is believed whoever sends it: only browsers have the cookie, and a page of another site
        cannot make them send this header without permission (CORS). The port may be missing, because some proxies leave
        it out. That gives nothing away: cookies do not depend on the port either.
        """
        host = _host(url)
        asked = {headers.get(name, "").lower() for name in ("host", "x-forwarded-host")} - {""}
        return host is not None and (host in asked or host.rpartition(":")[0] in asked)


def _is_fetch(headers: RequestHeaders) -> bool:
    """Whether a script sent the request, by `fetch` or XMLHttpRequest; also if the browser does not say."""
    return headers.get("sec-fetch-dest", "empty") == "empty" and headers.get("sec-fetch-mode", "cors") in (
        "cors",
        "same-origin",
    )


def _content_type(headers: RequestHeaders) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _host(url: str) -> str | None:
    """Host and port of a URL, as a Host header has them; None for `null` and other texts without a host."""
    try:
        return urlsplit(url).netloc.lower() or None
    except ValueError:
        return None


def _origin(url: str | None) -> str | None:
    try:
        parts = urlsplit(url or "")
    except ValueError:
        return None
    return f"{parts.scheme}://{parts.netloc}".lower()
