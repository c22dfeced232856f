"""Checks addresses that users store and that pages put into links and pictures.

None may run a script when it is clicked. A picture may not be a call of the API: the browser of everybody who looks at
the page would make that call in their name.
"""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

#: What `is_of_file` allows, for error messages.
FILE_ADDRESSES = "an address of http, https, s3, gs, azure or file, or a path below /files/"

#: A host or bucket must follow `://`. Without one, browsers take the rest for a path on the page's own origin.
_REMOTE = re.compile(r"(https?|s3|gs|azure)://[^/?#\\\s]", re.IGNORECASE)
_SHARED_DISK = re.compile(r"file://.", re.IGNORECASE)
_OWN = "/files/"
#: A name has no folder, no scheme, no query and nothing that stands for these characters.
_NAME = re.compile(r"(?!\.{1,2}$)[^/\\:?#%\s][^/\\:?#%]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
#: Browsers ignore these characters before the colon.
_IGNORED = re.compile(r"[\x00-\x20\x7f]+")
_SCRIPT = re.compile(r"(javascript|vbscript|data):", re.IGNORECASE)


def is_of_file(url: str) -> bool:
    """Whether the text is the address of a stored file, to every browser.

    `s3://bucket/a b.png` and `/files/a.png` are; `javascript:…`, `//host/a.png` and `/files/../api/…` are not.
    """
    if not url.isprintable() and _CONTROL.search(url):
        return False
    if url.startswith(_OWN):
        # A path with ".." could lead out of the folder, in a browser or in a proxy that decodes it first.
        path = unquote(url)
        return "\\" not in path and {".", ".."}.isdisjoint(re.split(r"[/?#]", path))
    return bool(_REMOTE.match(url) or _SHARED_DISK.match(url))


def is_name_of_file(text: str) -> bool:
    """Whether the text is a file's name and nothing more, such as `a.png`.

    To a browser it may be the name of an endpoint. But for a picture, browsers send GET, and with the cookie alone that
    changes nothing.
    """
    return text.isprintable() and _NAME.fullmatch(text) is not None


def is_script(url: str) -> bool:
    """Whether a browser that follows the text as a link would run a script, or show the text itself as a page."""
    return bool(_SCRIPT.match(_IGNORED.sub("", url)))


def is_private(url: str) -> bool:
    """Whether nobody on the way reads or changes what is sent to the address: https, or a program on this machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    here = host in ("localhost", "::1") or re.fullmatch(r"127(\.\d{1,3}){3}", host) is not None
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and here))
