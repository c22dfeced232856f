"""Files that answers are kept in: Parquet, and whatever a reader asks for in parts or asks for the size of.

A reader such as DuckDB or polars asks for the size, then for the end of the file, then for the columns that it needs.
All of these must be parts of the same file, while the table may grow. So a file is made on disk, and kept for some
minutes after it was last asked for:

- Whoever asks for a part gets one of the kept file, even if the table has grown since.
- Whoever asks for all of it gets the kept file if the table has not changed. Otherwise the file is made anew.

Each process keeps its own files. Of several servers, a reader should ask one: parts of two files do not fit together.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from apiserver.common.errors import overloaded
from apiserver.rpc.reads_at_once import WhileConnected
from apiserver.stores.data_folder import forget_processes
from apiserver.stores.files.disk import StoredFile
from apiserver.stores.files.shares import Shares


@dataclass(frozen=True, slots=True)
class ExportBounds:
    """Limits of the files that are made. Times are in seconds."""

    asked_seconds: float = 300
    """How long a file is kept after it was last asked for."""
    made_seconds: float = 3600
    """How long it is kept after it was made: no reader takes longer for its parts."""
    files: int = 200
    """How many files are kept. Those that were not asked for longest go first."""
    bytes: int = 8 * 2**30
    """Their bytes together."""
    at_once: int = 2
    """How many files are made at a time."""
    patience_seconds: float = 20
    """How long others wait for that."""


@dataclass(slots=True)
class _Kept:
    """A file that was made, and which version of the table it has, if that is known. No file: the size is −1."""

    path: Path = Path()
    size: int = -1
    version: str | None = None
    made: float = 0.0
    asked: float = 0.0
    users: int = 0
    """Requests that wait for the file, or open it."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


Write = Callable[[Path], Awaitable[None]]
"""Makes a file."""


class Version(Protocol):
    """The versions of the table that a file is made of."""

    async def now(self) -> str:
        """The version of a table that is read after this returns."""

    async def is_still(self, tag: str, *, only_grown: bool = False) -> bool:
        """Whether nothing has changed since a table of this version was read; `only_grown`: or rows were added."""


class Exports:
    """The files of one process, in a folder of its own inside `folder`. They belong to one event loop."""

    def __init__(self, folder: Path, bounds: ExportBounds | None = None) -> None:
        self._bounds = bounds = bounds or ExportBounds()
        self._all = folder
        self._folder = folder / str(os.getpid())
        self._kept: dict[bytes, _Kept] = {}
        """By digest of what a file is for; the last one was asked for last."""
        self._making = asyncio.Semaphore(bounds.at_once)
        self._shares = Shares()

    def open(self) -> None:
        """Delete what processes left that died."""
        self._folder = self._all / str(os.getpid())  # the process may have been forked after __init__
        shutil.rmtree(self._folder, ignore_errors=True)
        forget_processes(self._all, self._folder)

    def close(self) -> None:
        """Delete all files."""
        self._kept.clear()
        shutil.rmtree(self._folder, ignore_errors=True)

    async def file(
        self, key: bytes, write: Write, version: Version | None, connected: WhileConnected, *, is_part: bool
    ) -> StoredFile:
        """The file of this key, which `write` can make while the client is connected.

        `version`: the table's versions, if they can be told apart. `is_part`: the reader asks for a part of the file.
        429 if too many are made, 503 if the disk is too full.
        """
        kept = self._kept.pop(key) if key in self._kept else _Kept()
        self._kept[key] = kept
        kept.users += 1
        try:
            async with kept.lock:
                if not await self._serves(kept, version, is_part):
                    await self._make(kept, write, version, connected)
                kept.asked = time.monotonic()
                return self._open(kept)
        finally:
            kept.users -= 1
            await self.forget()

    async def _serves(self, kept: _Kept, version: Version | None, is_part: bool) -> bool:
        """Whether the kept file answers the request."""
        if kept.size < 0 or time.monotonic() - kept.made > self._bounds.made_seconds:
            return False
        if version is None or kept.version is None:
            return is_part
        return await version.is_still(kept.version, only_grown=is_part)

    async def _make(self, kept: _Kept, write: Write, version: Version | None, connected: WhileConnected) -> None:
        try:
            async with asyncio.timeout(self._bounds.patience_seconds):
                await self._making.acquire()
        except TimeoutError:
            raise overloaded("The server makes as many files as it can", retry_after=10) from None
        path = self._folder / f"{time.time_ns():x}-{os.urandom(4).hex()}"
        try:
            tag = None if version is None else await version.now()
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            async with connected():
                await write(path)
            size = path.stat().st_size
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        finally:
            self._making.release()
        _delete(kept)
        kept.path, kept.size, kept.version, kept.made = path, size, tag, time.monotonic()

    def _open(self, kept: _Kept) -> StoredFile:
        descriptor = os.open(kept.path, os.O_RDONLY | os.O_CLOEXEC)
        status = os.fstat(descriptor)
        return StoredFile(descriptor, status.st_size, status.st_mtime_ns, status.st_ino, self._shares)

    async def forget(self) -> None:
        """Delete files that nobody asked for lately, and the oldest ones if there are too many."""
        now, size, bounds = time.monotonic(), 0, self._bounds
        for number, (key, kept) in enumerate(reversed(list(self._kept.items()))):
            if kept.users:
                continue
            size += max(kept.size, 0)
            is_old = now - kept.asked > bounds.asked_seconds or now - kept.made > bounds.made_seconds
            if kept.size < 0 or is_old or number >= bounds.files or (size > bounds.bytes and number):
                _delete(kept)
                del self._kept[key]


def _delete(kept: _Kept) -> None:
    """Delete the file, if there is one. Whoever still reads it has it open."""
    if kept.size >= 0:
        kept.path.unlink(missing_ok=True)
        kept.size = -1
