"""How the name of a file becomes its place on disk: one to one, and never outside the folder it is put into.

A name is a path such as `/project/task.id/artifacts/data.csv`; its parts may hold anything but NUL. Each part is
percent-encoded, and a folder ends with `+`, so that a file and a folder of the same name can both be. A part that
would be too long for a file system keeps its beginning, and a digest of the whole.
"""

from __future__ import annotations

import hashlib
from pathlib import PurePosixPath
from urllib.parse import quote

MAX_NAME_BYTES = 1024
_MAX_PART = 200
_KEPT_OF_LONG_PART = 100


class InvalidName(ValueError):
    """A name that no file can have; the message says why."""


class NotUtf8(InvalidName):
    """A name in bytes that are no text: whatever stood in for them, two such names could become one."""

    def __init__(self) -> None:
        super().__init__("the name is not valid UTF-8")


def disk_path(name: str) -> PurePosixPath:
    """Where the file `name` lies, relative to the folder of its company."""
    *folders, file = _parts(name)
    return PurePosixPath(*map(disk_folder, folders), _encoded(file))


def disk_folder(part: str) -> str:
    """The name on disk of one folder."""
    return _encoded(part) + "+"


def _parts(name: str) -> list[str]:
    if len(name.encode("utf-8", "surrogatepass")) > MAX_NAME_BYTES:
        raise InvalidName(f"the name is longer than {MAX_NAME_BYTES} bytes")
    if "\0" in name:
        raise InvalidName("the name holds a NUL character")
    parts = [part for part in name.split("/") if part]
    if not parts or name.endswith("/"):
        raise InvalidName("the name names no file")
    if "." in parts or ".." in parts:
        raise InvalidName("the name holds '.' or '..' as a part")
    return parts


def _encoded(part: str) -> str:
    encoded = quote(part, safe=" ", errors="surrogatepass")
    if len(encoded) <= _MAX_PART:
        return encoded
    digest = hashlib.sha256(encoded.encode("ascii")).hexdigest()
    return f"{encoded[:_KEPT_OF_LONG_PART]}={digest}"
