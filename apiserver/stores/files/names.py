"""Maps the name of a file to its path on disk. Two names never share a path, and no path leaves the company's folder.

A name is a path such as `/project/task.id/artifacts/data.csv`, whose parts may hold any character but NUL. Each part is
percent-encoded. The name of a folder ends with `+`, so that a file and a folder can have the same name:
`project+/task.id+/artifacts+/data.csv`. A part that is too long for a file system becomes its beginning and a digest.
"""

from __future__ import annotations

import hashlib
from pathlib import PurePosixPath
from urllib.parse import quote

MAX_NAME_BYTES = 1024
_MAX_PART = 200
_KEPT_OF_LONG_PART = 100


class InvalidName(ValueError):
    """No file can have this name; the message says why."""


class NotUtf8(InvalidName):
    """The name is not valid UTF-8. If the wrong bytes were replaced, two names could become the same."""

    def __init__(self) -> None:
        super().__init__("the name is not valid UTF-8")


def disk_path(name: str) -> PurePosixPath:
    """The path of the file `name` in the folder of its company."""
    *folders, file = _parts(name)
    return PurePosixPath(*map(disk_folder, folders), _encoded(file))


def disk_folder(part: str) -> str:
    """The name of a folder on disk."""
    return _encoded(part) + "+"


def _parts(name: str) -> list[str]:
    if len(name.encode("utf-8", "surrogatepass")) > MAX_NAME_BYTES:
        raise InvalidName(f"the name is longer than {MAX_NAME_BYTES} bytes")
    if "\0" in name:
        raise InvalidName("the name holds a NUL character")
    parts = [part for part in name.split("/") if part]
    if not parts or name.endswith("/"):
        raise InvalidName("the name is empty, or ends with '/'")
    if "." in parts or ".." in parts:
        raise InvalidName("the name holds '.' or '..' as a part")
    return parts


def _encoded(part: str) -> str:
    encoded = quote(part, safe=" ", errors="surrogatepass")
    if len(encoded) <= _MAX_PART:
        return encoded
    digest = hashlib.sha256(encoded.encode("ascii")).hexdigest()
    return f"{encoded[:_KEPT_OF_LONG_PART]}={digest}"
