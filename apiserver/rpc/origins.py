"""Which page made a browser send a request. Browsers say it; a page cannot make them say anything else.

Pages of the server's own origin and of those allowed may use the cookie. Others may make a browser send it along, so a
request that changes something needs a browser's word that it comes from a page that may.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

from apiserver.rpc.errors import forbidden

#: Methods by which a link, or an image, of any page may ask.
SAFE_METHODS = ("GET", "HEAD")


class Origins:
    """Tells own and `allowed` origins, such as `http://ui.example:8080`, from foreign ones."""

    def __init__(self, allowed: Collection[str] = ()) -> None:
        self._allowed = frozenset(allowed)

    def check(self, headers: Mapping[str, str], *, changes: bool) -> None:
        """403/21 when another origin sent the request; or, if it `changes` something, when nothing says who did."""
        own = self._is_own(headers)
        if own is False or (own is None and changes):
            raise forbidden("the cookie is not accepted from this origin")

    def _is_own(self, headers: Mapping[str, str]) -> bool | None:
        """Whether the page may use the cookie; None when nothing tells."""
        origin, site, referrer = (headers.get(name) for name in ("origin", "sec-fetch-site", "referer"))
        if origin in self._allowed or site == "same-origin":
            return True
        if origin is not None:
            return self._is_host(origin, headers)
        # "none" tells nothing: it is a bookmark, but a link in a mail that the user opened as well.
        if _origin(referrer) in self._allowed:
            return True
        if site is None and referrer is not None and self._is_host(referrer, headers):
            return True
        return False if site == "cross-site" else None

    def _is_host(self, url: str, headers: Mapping[str, str]) -> bool:
        """Whether a URL is on the host that the request was sent to, as its proxy knows it or as the server does.

        Some proxies leave out the port. Cookies know none either: whoever serves another port of the host gets them.
        """
        host = _host(url)
        asked = {headers.get(name, "").lower() for name in ("host", "x-forwarded-host")} - {""}
        return host is not None and (host in asked or host.rpartition(":")[0] in asked)


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
