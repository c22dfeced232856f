"""Reserves room on the disk for deletions: a file of zeros, which is deleted when the disk is full.

A deletion writes to the databases' logs before it frees room. So without a reserve, nobody could free a full disk by
the API. While the file is gone, no events are taken, so that they do not fill its room. The file is made again once
there is room for it and a quarter more.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_LITTLE = 2**20
_AGAIN_SECONDS = 1.0

logger = logging.getLogger(__name__)


class Reserve:
    """A file of `size` bytes. If `size` is 0, there is none, and `held` is always True.

    Only the file says whether the room is held. So both stores of a folder may have a Reserve of the same file.
    """

    def __init__(
        self,
        path: Path,
        size: int = 0,
        clock: Callable[[], float] = time.monotonic,
        free: Callable[[Path], int] | None = None,
    ) -> None:
        """`clock` tells seconds, and `free` how many bytes may still be written to a folder."""
        self._path, self._name = path, str(path)
        self._folder = path.parent
        self._size = size
        self._clock = clock
        self._free = free or free_bytes
        self._next_try = 0.0

    @property
    def is_gone(self) -> bool:
        """Whether the room is in use, because the disk was full, and is not back yet."""
        return bool(self._size) and not os.path.exists(self._name)

    def held(self) -> bool:
        """Whether the room is held. If not, try to make the file again. Only one thread at a time may call this."""
        if not self._size:
            return True
        try:
            if os.stat(self._name).st_size == self._size:
                return True
        except OSError:
            pass
        if self._clock() < self._next_try:
            return False
        self._next_try = self._clock() + _AGAIN_SECONDS
        return self._make()

    def make_room(self, *, much: bool = False) -> None:
        """Delete the file if the disk has less than 1 MB of room; with `much`, for a deletion, less than its size."""
        if self._size and self._free(self._folder) < (self._size if much else _LITTLE):
            with suppress(FileNotFoundError):
                self._path.unlink()
                logger.warning("the disk of %s is full: no events are taken until there is room", self._folder)

    def _make(self) -> bool:
        self._path.unlink(missing_ok=True)
        if self._free(self._folder) < self._size + self._size // 4:
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
    """How many bytes may still be written to the folder's disk."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize
