"""A lock file ensures that one process at a time uses an events folder."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

from apiserver.stores.events.base import EventStoreError
from apiserver.stores.locks import lock_if_free


class FolderInUse(EventStoreError):
    """Another process uses the folder."""


class FolderLock:
    """Holds the folder from `take` until `release`, or until the process ends, however it ends."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held = ExitStack()

    def take(self) -> None:
        """Raise FolderInUse, which names the folder and the other process, if another store holds the folder.

        OSError if the disk does not take the file.
        """
        path = self._folder / "lock"
        with ExitStack() as held:
            if not held.enter_context(lock_if_free(path)):
                owner = path.read_text("utf-8", "replace")[:32].strip() or "unknown"
                raise FolderInUse(f"the events folder {self._folder} is in use by the process {owner}")
            path.write_text(f"{os.getpid()}\n")
            self._held = held.pop_all()

    def release(self) -> None:
        """Let another store have the folder."""
        self._held.close()
