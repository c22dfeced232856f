"""Which page made a browser send a request, and how. Browsers say it; a page cannot make them say anything else.

The cookie goes along with whatever a page makes the browser ask of this server, by pictures, links, forms and scripts;
also when the page is of another site. So a request that changes something must be one that only a page's own script can
send, and the page must be the server's own, or of `allowed_origins`. A request that only reads is refused to foreign
pages alone, so that links to logs and pictures of files work.

Browsers send `Sec-Fetch-*` to https and to localhost only. Elsewhere the method, the type of the body and `Origin`
decide: pictures and links are GET, a form cannot send JSON, and a script of a foreign page can only after asking for
leave (CORS), which it does not get.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

from apiserver.rpc.errors import forbidden

#: Methods by which a link, or an image, of any page may ask.
SAFE_METHODS = ("GET", "HEAD")
#: Types of a body that no form has, and that a script of a foreign page has to ask for.
_JSON = ("application/json", "application/json-lines")

Headers = Mapping[str, str]


class Origins:
    """Tells own and `allowed` origins, such as `http://ui.example:8080`, from foreign ones."""

    def __init__(self, allowed: Collection[str] = ()) -> None:
        self._allowed = frozenset(allowed)

    def check(self, method: str, headers: Headers, *, changes: bool, forms: bool = False) -> None:
        """403/21 unless the cookie may be used: for what `changes` something by an own page's script alone.

        `forms`: bodies of other types than JSON are taken, too. Files are sent so.
        """
        if not changes:
            if self._is_foreign(headers):
                raise forbidden("the cookie is not accepted from this origin")
        elif not self._is_own(headers):
            raise forbidden("the cookie changes nothing for this origin, or without one")
        elif method in SAFE_METHODS or not _is_fetch(headers) or not (forms or _content_type(headers) in _JSON):
            raise forbidden("with the cookie, what changes something is a POST of JSON by a page's script")

    def may_set_cookie(self, method: str, headers: Headers) -> bool:
        """Whether the answer may give the browser a cookie, or take it away; other pages shall log nobody in or out."""
        return method not in SAFE_METHODS and _is_fetch(headers) and not self._is_foreign(headers)

    def _is_own(self, headers: Headers) -> bool:
        """Whether the browser says that it is a page that may use the cookie for anything."""
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin in self._allowed:
            return True
        if site is not None:
            return site == "same-origin"
        return origin is not None and self._is_host(origin, headers)

    def _is_foreign(self, headers: Headers) -> bool:
        """Whether the browser says that it is another page; when it says nothing, it is a link, or no browser."""
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if site == "same-origin" or origin in self._allowed:
            return False
        if origin is not None:
            return not self._is_host(origin, headers)
        return site == "cross-site" and _origin(headers.get("referer")) not in self._allowed

    def _is_host(self, url: str, headers: Headers) -> bool:
        """Whether a URL is on the host that the request was sent to, as its proxy knows it or as the server does.

        `X-Forwarded-Host` is believed from anybody. Only browsers have the cookie, and a foreign page cannot have one
        send this header without leave (CORS). Some proxies leave out the port. Cookies know none either: whoever serves
        another port of the host gets them.
        """
        host = _host(url)
        asked = {headers.get(name, "").lower() for name in ("host", "x-forwarded-host")} - {""}
        return host is not None and (host in asked or host.rpartition(":")[0] in asked)


def _is_fetch(headers: Headers) -> bool:
    """Whether a script asked, by `fetch` or XMLHttpRequest, as far as the browser says what did."""
    return headers.get("sec-fetch-dest", "empty") == "empty" and headers.get("sec-fetch-mode", "cors") in (
        "cors",
        "same-origin",
    )


def _content_type(headers: Headers) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _host(url: str) -> str | None:
    """Host and port of a URL as a Host header has them; None for `null` and other things that have none."""
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
