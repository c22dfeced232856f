"""The pages of an SQLite file as they are at one moment, read while another process writes to the file.

SQLite could copy the file, but only to another file on a disk, and each time as a whole. A backup wants to read, and to
keep only the pages that changed. So this reads the file and its write-ahead log (WAL) itself, by their documented
formats, under the protection of a read transaction. For example, a file of 4 pages, whose log has 3 frames at the
moment:

    log     frame 1: page 2    frame 2: page 4    frame 3: page 2    (frames that others append later do not count)
    read    page 1 of the file, frame 3, page 3 of the file, frame 2

Why nothing is torn:

- The index of the log (the file `-shm`) begins with a header: how many frames count, and how many pages the file has. A
  commit changes it. If it is the same before and after a read transaction began, the transaction sees just that.
- While the transaction is open, a checkpoint copies only frames that count for it from the log into the file. It
  changes only pages that are read from the log here.
- The log may begin anew only if all its frames had been copied when the transaction began. Then the file has all pages,
  and nothing is copied into it as long as the transaction is open. So the log is not read.

POSIX drops all locks that a process has on a file when it closes the file once. So no descriptor of these files is
closed before the connection is, and a process that serves must not read its own files like this.
"""

from __future__ import annotations

import os
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from apiserver.stores.snapshots import SnapshotError
from apiserver.stores.sqlite_files import FRAME_HEAD, LOG_HEAD

_HEADER_BYTES = 48
#: Of the index: the header twice, and how many frames were copied into the file.
_INDEX_HEAD = struct.Struct(f"={_HEADER_BYTES}s{_HEADER_BYTES}sI")
#: Of the header: the version, how many frames count, and the salt that the frames have.
_HEADER = struct.Struct("=I12xI12x8s8x")
_VERSION = 3007000
_TRIES = 1000


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what reading a damaged file raises, or rows that make no sense, into SnapshotError."""
    try:
        yield
    except (sqlite3.Error, OSError, ValueError, TypeError, IndexError, struct.error) as error:
        raise SnapshotError(f"{path} cannot be read: {error}") from error


class Pages:
    """The file `path`. `begin` begins a moment, which lasts until the next `begin` or `close`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptors: list[int] = []
        with reading(path):
            self.connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None)
            try:
                self._read_one()  # from the first read on, there are a log and its index
                names = (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm"))
                self._file, self._log, self._index = (self._opened(name) for name in names)
            except BaseException:
                self.close()
                raise
        self._header = b""
        self._frames: dict[int, int] = {}
        self.page_size, self._pages = 0, 0

    def close(self) -> None:
        """End the moment, and close the file."""
        self.connection.close()
        while self._descriptors:
            os.close(self._descriptors.pop())

    @property
    def size(self) -> int:
        """Bytes of the file at the moment."""
        return self._pages * self.page_size

    def begin(self) -> None:
        """Begin a moment now: `connection` sees it, and `read` reads its pages."""
        for _ in range(_TRIES):
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            self._header, _ = self._head()
            self.connection.execute("BEGIN")
            self._read_one()
            header, copied = self._head()
            if header == self._header:
                break
        else:
            raise SnapshotError(f"{self._path} is written to all the time")
        version, frames, salt = _HEADER.unpack(header)
        if version != _VERSION:
            raise SnapshotError(f"{self._path} has a log of the version {version}, which is not known")
        (self.page_size,) = self.connection.execute("PRAGMA page_size").fetchone()
        (self._pages,) = self.connection.execute("PRAGMA page_count").fetchone()
        self._frames = self._frames_by_page(frames, salt) if copied < frames else {}

    def holds(self) -> bool:
        """Whether nothing was committed since the moment."""
        return self._head()[0] == self._header

    def read(self, start: int, size: int) -> bytes:
        """Bytes of the file as it is at the moment. `start` is at the beginning of a page."""
        size = min(size, self.size - start)
        content = bytearray(os.pread(self._file, size, start))
        first, last = start // self.page_size + 1, (start + size - 1) // self.page_size + 1
        in_file = len(content) // self.page_size
        content.extend(bytes(size - len(content)))
        for page in range(first, last + 1):
            place = (page - first) * self.page_size
            if frame := self._frames.get(page):
                at = self._frame_at(frame) + FRAME_HEAD.size
                content[place : place + self.page_size] = os.pread(self._log, self.page_size, at)
            elif page - first >= in_file:
                raise SnapshotError(f"{self._path} has no page {page}")
        return bytes(content[:size])

    def _read_one(self) -> None:
        self.connection.execute("SELECT 1 FROM sqlite_schema").fetchone()

    def _opened(self, path: Path) -> int:
        self._descriptors.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        return self._descriptors[-1]

    def _head(self) -> tuple[bytes, int]:
        """The header of the index, and how many frames were copied into the file."""
        for _ in range(_TRIES):
            one, other, copied = _INDEX_HEAD.unpack(os.pread(self._index, _INDEX_HEAD.size, 0))
            if one == other:  # otherwise it is being written
                return one, copied
        raise SnapshotError(f"the log of {self._path} has no whole index")

    def _frame_at(self, frame: int) -> int:
        return LOG_HEAD.size + (frame - 1) * (FRAME_HEAD.size + self.page_size)

    def _frames_by_page(self, frames: int, salt: bytes) -> dict[int, int]:
        """The newest frame of each page that has one. It is empty if the log has begun anew since."""
        found = {}
        for frame in range(1, frames + 1):
            page, _, of_frame = FRAME_HEAD.unpack(os.pread(self._log, FRAME_HEAD.size, self._frame_at(frame)))
            if of_frame != salt:
                raise SnapshotError(f"the log of {self._path} is not what its index says")
            found[page] = frame
        return found
