"""Which texts a page may take for the address of something that users have stored.

A page gives a browser such a text as the source of a picture, or behind a link. So none may run a script, and a picture
may not be a call of the API: a browser would make it in the name of whoever looks at the page.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

#: What an address that `is_of_file` may be, for messages.
FILE_ADDRESSES = "an address of http, https, s3, gs, azure or file, or a path below /files/"

#: With the host or bucket after `://`: without one, browsers take the rest for a path of the page's own origin.
_REMOTE = re.compile(r"(https?|s3|gs|azure)://[^/?#\\\s]", re.IGNORECASE)
_SHARED_DISK = re.compile(r"file://.", re.IGNORECASE)
_OWN = "/files/"
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
#: Browsers pass over these wherever they stand before the colon.
_PASSED_OVER = re.compile(r"[\x00-\x20\x7f]+")
_SCRIPT = re.compile(r"(javascript|vbscript|data):", re.IGNORECASE)


def is_of_file(url: str) -> bool:
    """Whether the text is the address of a stored file, and cannot be anything else to any browser.

    `s3://bucket/a b.png` and `/files/a.png` are; `javascript:…`, `//host/a.png` and `/files/../api/…` are not.
    """
    if not url.isprintable() and _CONTROL.search(url):
        return False
    if url.startswith(_OWN):
        return not _leaves_its_folder(url)
    return bool(_REMOTE.match(url) or _SHARED_DISK.match(url))


def is_script(url: str) -> bool:
    """Whether a browser that follows the text would run it, or show it as a page."""
    return bool(_SCRIPT.match(_PASSED_OVER.sub("", url)))


def _leaves_its_folder(path: str) -> bool:
    """Whether a browser, or a proxy that decodes the path first, may go up from it."""
    decoded = unquote(path)
    return "\\" in decoded or not {".", ".."}.isdisjoint(re.split(r"[/?#]", decoded))
