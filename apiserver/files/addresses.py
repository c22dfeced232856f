"""Which URLs are those of files here, and which of them lie in object stores, where only clients can reach them."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import unquote, urlsplit

#: Names that a machine gives itself.
LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
_HTTP = ("http", "https")
#: Where the API's port has the files.
_BELOW_API = "/files/"
#: HTTP libraries write these three characters so in the names of form fields, and nothing else: a name and its escaped
#: form are the same file.
_ESCAPED_IN_FORMS = {ord('"'): "%22", ord("\r"): "%0D", ord("\n"): "%0A"}


def file_name(path: str) -> str:
    """The name under which the file of a (decoded) path is kept."""
    return path.translate(_ESCAPED_IN_FORMS)


def names_of(url: str, hosts: Collection[str]) -> tuple[str, ...]:
    """The names that the file of a URL may have here; none when the URL's host is none of `hosts`."""
    try:
        parts = urlsplit(url)
        if parts.scheme.lower() not in _HTTP or parts.hostname not in hosts:
            return ()
        name = file_name(unquote(parts.path, errors="strict"))
    except ValueError:  # also when the path is no valid UTF-8: no file has such a name
        return ()
    return (name, name.removeprefix(_BELOW_API[:-1])) if name.startswith(_BELOW_API) else (name,)


def host_of(authority: str) -> str | None:
    """The host that a Host header names, without its port."""
    try:
        return urlsplit(f"//{authority}").hostname
    except ValueError:
        return None


def is_in_object_store(url: str) -> bool:
    """Whether a URL is one such as `s3://bucket/file`: clients hold the credentials for it."""
    scheme, separator, _ = url.partition("://")
    return bool(scheme and separator) and scheme.lower() not in (*_HTTP, "file")
