"""Tells from a URL which file of this server it names, or whether one in an object store; and whose a file is."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from urllib.parse import quote, unquote, urlsplit

#: Names by which a machine reaches itself.
LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
#: Names that the SDK gives a model while its file is uploaded, and after that has failed. No such file ever comes.
UNSENT = frozenset({"/uploading_file", "/failed_uploading"})
_DOT_AND_ID = re.compile(r"\.([0-9a-f]{32})")
_SLASHES = re.compile(r"/{2,}")
_HTTP = ("http", "https")
#: The path of the files on the API's port.
_BELOW_API = "/files/"
#: HTTP libraries escape only these three characters in the names of form fields. A name and its escaped form are the
#: same file.
_ESCAPED_IN_FORMS = {ord('"'): "%22", ord("\r"): "%0D", ord("\n"): "%0A"}


def task_of(name: str) -> str | None:
    """The id of the task that a file belongs to, by its name.

    The SDK uploads to `/project/task name.task id/…`. The first step of a path that ends with a dot and an id says
    whose the file is: `/vision/first try.0123456789abcdef0123456789abcdef/artifacts/data.csv` belongs to that task.
    """
    ends = (_DOT_AND_ID.fullmatch(step[-33:]) for step in name.split("/")[:-1])
    return next((end[1] for end in ends if end), None)


def file_name(path: str) -> str:
    """The name under which a file is stored, from its decoded path."""
    return path.translate(_ESCAPED_IN_FORMS)


def names_of(url: str, hosts: Collection[str]) -> tuple[str, ...]:
    """The names under which the file of a URL may be stored here; none if the URL's host is not one of `hosts`."""
    try:
        parts = urlsplit(url)
        if parts.scheme.lower() not in _HTTP or parts.hostname not in hosts:
            return ()
        name = file_name(unquote(parts.path, errors="strict"))
    except ValueError:  # also if the path is not valid UTF-8: no file has such a name
        return ()
    return (name, name.removeprefix(_BELOW_API[:-1])) if name.startswith(_BELOW_API) else (name,)


def files_of(urls: Iterable[str], hosts: Collection[str]) -> set[str]:
    """The names of the files of the URLs, each file by one name: a store takes `/a//b` and `/a/b` for the same file.

    `http://localhost:8081/a.png` and `http://127.0.0.1//a%2Epng` are the file `/a.png`.
    """
    return {_SLASHES.sub("/", name) for url in urls for name in names_of(url, hosts)}


def paths_of(url: str) -> set[str]:
    """The names that the file of a URL may have, each as in `files_of`, whatever its host is."""
    try:
        host = urlsplit(url).hostname
    except ValueError:
        return set()
    return files_of([url], {host} if host else ())


def spellings(url: str, hosts: Collection[str]) -> set[str]:
    """The address of a file as clients may have written it: on each of `hosts`, and escaped or not."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return {url}
    names = {f"[{host}]" if ":" in host else host for host in {*hosts, parts.hostname or ""}}
    paths = {parts.path, unquote(parts.path), quote(unquote(parts.path))}
    return {url, *(f"{scheme}://{host}{port}{path}" for scheme in _HTTP for host in names for path in paths)}


def host_of(authority: str) -> str | None:
    """The host in a Host header, without the port; None if it is malformed."""
    try:
        return urlsplit(f"//{authority}").hostname
    except ValueError:
        return None


def is_in_object_store(url: str) -> bool:
    """Whether a URL is like `s3://bucket/file`: only clients have the credentials to reach it."""
    scheme, separator, _ = url.partition("://")
    return bool(scheme and separator) and scheme.lower() not in (*_HTTP, "file")
