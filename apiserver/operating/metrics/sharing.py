"""Sums the counters of all workers of a server: each leaves its own in a file, and the one that is asked reads all.

A worker writes its file every few seconds, so others' counts are that old. When a worker dies, its file stays. A sum
that became smaller would look to Prometheus as if everything had been counted anew.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import orjson

from apiserver.common.counters import Counters, Snapshot, together
from apiserver.stores.data_folder import forget_processes

#: Seconds between two writes of a worker's file.
SECONDS = 5.0


class SharedCounters:
    """The counters of this process, and of the other workers of the same parent."""

    def __init__(self, counters: Counters, folder: Path, workers: int) -> None:
        self._counters = counters
        self._all = folder
        self._folder = folder / str(os.getppid())
        self._workers = workers
        self._written = b""

    def open(self) -> None:
        """Forget the counts of servers that have ended. Call it in the process that counts."""
        self._folder = self._all / str(os.getppid())
        forget_processes(self._all, self._folder)

    async def write(self) -> None:
        """Leave this process's counts for the others. A server of one process has no others."""
        if self._workers == 1:
            return
        content = orjson.dumps(self._counters.snapshot())
        if content == self._written:
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = self._folder / f".{os.getpid()}"
        new.write_bytes(content)
        new.replace(self._folder / str(os.getpid()))
        self._written = content

    def sums(self) -> Snapshot:
        """The counts of all workers."""
        snapshots = [self._counters.snapshot()]
        if self._workers > 1:
            with suppress(FileNotFoundError):
                for path in self._folder.iterdir():
                    if path.name.isdecimal() and path.name != str(os.getpid()):
                        with suppress(OSError, orjson.JSONDecodeError):
                            snapshots.append(orjson.loads(path.read_bytes()))
        return together(snapshots)
