"""Room on the disk that is kept for deleting: a file of zeros, given up when the disk is full.

Deleting needs a little room before it makes any, in logs of both databases. So a full disk could be freed by nobody who
has only the API. The file gives that room; while it is gone no events are taken, so that they cannot fill it, too. It
is made again as soon as there is room for it and a quarter more.
"""

from __future__ import annotations

import logging
import os
import time
from contextlib import suppress
from pathlib import Path

_LITTLE = 2**20
_AGAIN_SECONDS = 1.0

logger = logging.getLogger(__name__)


class Reserve:
    """A file of `size` bytes; 0: there is none, and nothing is refused for its sake.

    The file alone says whether the room is there, so that both stores of a folder may have a Reserve of their own.
    """

    def __init__(self, path: Path, size: int = 0) -> None:
        self._path = path
        self._folder = path.parent
        self._size = size
        self._next_try = 0.0

    def held(self) -> bool:
        """Whether the room is there; made again now when that can be done. One thread at a time may ask."""
        if not self._size or self._is_there():
            return True
        if time.monotonic() < self._next_try:
            return False
        self._next_try = time.monotonic() + _AGAIN_SECONDS
        return self._make()

    def make_room(self, *, much: bool = False) -> None:
        """Give the room up when the disk has next to none; `much`, for deleting: when it has no more than this."""
        if self._size and free_bytes(self._folder) < (self._size if much else _LITTLE):
            with suppress(FileNotFoundError):
                self._path.unlink()
                logger.warning("the disk of %s is full: no events are taken until there is room", self._folder)

    def _is_there(self) -> bool:
        try:
            return self._path.stat().st_size == self._size
        except OSError:
            return False

    def _make(self) -> bool:
        self._path.unlink(missing_ok=True)
        if free_bytes(self._folder) < self._size + self._size // 4:
            return False
        try:
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.posix_fallocate(file, 0, self._size)
            finally:
                os.close(file)
        except OSError:
            with suppress(OSError):
                self._path.unlink()
            return False
        return True


def free_bytes(folder: Path) -> int:
    """How much may still be written to the folder's disk."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize
