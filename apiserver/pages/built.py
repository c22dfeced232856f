"""What was built of the pages: a folder with `index.html`, `frame.html`, `licences.txt` and `assets/…`.

The names of assets hold a hash of their content, so browsers may keep them for ever. Only the names that are in the
folder when it is read can be asked for: an address is looked up, and never becomes a path.
"""

from __future__ import annotations

import gzip
import hashlib
import threading
from dataclasses import dataclass, field
from pathlib import Path

import zstandard

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
}
#: Files of fewer bytes are sent as they are.
_SMALL = 1024
#: A file is compressed once, and sent often.
_ZSTD_LEVEL, _GZIP_LEVEL = 15, 9


class NotBuilt(Exception):
    """The pages were not built, or are being built just now."""


@dataclass(frozen=True, slots=True)
class Content:
    """One file as it is sent."""

    body: bytes
    kind: str
    tag: str
    """Its ETag: a digest of the file."""
    encoding: str | None


@dataclass(slots=True)
class Built:
    """The files of one build, by their addresses, such as `/assets/main-ABC.js`."""

    version: int
    """Differs from build to build."""
    _paths: dict[str, Path]
    _read: dict[tuple[str, str | None], Content] = field(default_factory=dict)
    _reading: threading.Lock = field(default_factory=threading.Lock)

    def content(self, address: str, encoding: str | None) -> Content | None:
        """The file at an address, compressed if `encoding` (zstd or gzip) is given; None if there is none.

        It is read and compressed when it is asked for first, which takes up to half a second, and then kept.
        One file is compressed at a time, however many ask at once, so that strangers cannot make the server do more.
        """
        key = address, encoding
        if key not in self._read and address in self._paths:
            with self._reading:
                if key not in self._read:
                    self._read[key] = content_of(self._paths[address], encoding)
        return self._read.get(key)

    def has(self, address: str, encoding: str | None) -> bool:
        """Whether `content` has the file at hand."""
        return (address, encoding) in self._read


def version_of(folder: Path) -> int:
    """Differs after another build. NotBuilt if there is none."""
    try:
        return (folder / "index.html").stat().st_mtime_ns
    except OSError:
        raise NotBuilt from None


def read(folder: Path) -> Built:
    """What is built in the folder. NotBuilt if there is nothing."""
    version = version_of(folder)
    files = [path for path in folder.rglob("*") if path.is_file()]
    return Built(version, {f"/{path.relative_to(folder).as_posix()}": path for path in files})


def content_of(path: Path, encoding: str | None) -> Content:
    try:
        body = path.read_bytes()
    except OSError:  # another build is under way
        raise NotBuilt from None
    tag = f'W/"{hashlib.sha256(body).hexdigest()[:32]}"'
    kind = _TYPES.get(path.suffix, "application/octet-stream")
    if encoding is None or len(body) < _SMALL:
        return Content(body, kind, tag, None)
    return Content(_compressed(body, encoding), kind, tag, encoding)


def _compressed(body: bytes, encoding: str) -> bytes:
    if encoding == "zstd":
        return zstandard.ZstdCompressor(_ZSTD_LEVEL).compress(body)
    return gzip.compress(body, _GZIP_LEVEL, mtime=0)
