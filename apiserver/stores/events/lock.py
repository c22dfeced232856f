"""A lock file ensures that one process at a time uses an events folder."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from apiserver.stores.events.base import EventStoreError


class FolderInUse(EventStoreError):
    """Another process uses the folder."""


class FolderLock:
    """Holds the folder from `take` until `release`, or until the process ends, however it ends."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: int | None = None

    def take(self) -> None:
        """Raise FolderInUse, which names the folder and the other process, if another store holds the folder.

        OSError if the disk does not take the file.
        """
        file = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = os.pread(file, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(file)
            raise FolderInUse(f"the events folder {self._folder} is in use by the process {owner}") from error
        try:
            os.ftruncate(file, 0)
            os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        except OSError:
            os.close(file)
            raise
        self._file = file

    def release(self) -> None:
        """Let another store have the folder."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
