"""Who watches: a watcher is one open stream, an audience all watchers of the same tasks.

A watcher gets chunks and takes them one by one. Who takes them too slowly loses them and gets a `reset` in their place,
which tells it to read anew what it shows. So a watcher holds a bounded number of bytes, and so do all together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from apiserver.live import telling
from apiserver.live.telling import Chunk, Event


class Subscription(NamedTuple):
    """What a stream is asked to follow: tasks, and all tasks that lie directly in some projects."""

    tasks: frozenset[str]
    projects: frozenset[str] = frozenset()


@dataclass(slots=True)
class Waiting:
    """Bytes that wait for the watchers of a server. With more than `most` of one, or `most_in_all`, they are reset."""

    most: int
    most_in_all: int
    bytes: int = 0


class Watcher:
    """One reader. It iterates over the chunks, until there will be no more; `reason` then says why."""

    __slots__ = ("_all", "_begin", "_bytes", "_chunks", "_future", "_taken", "audience", "reason")

    def __init__(self, audience: Audience, waiting: Waiting) -> None:
        self.audience = audience
        self.reason: str | None = None
        self._all = waiting
        self._begin: Iterator[Chunk] | None = None
        self._chunks: list[Chunk] | None = None
        self._bytes = self._taken = 0
        self._future: asyncio.Future[None] | None = None

    def begin(self, chunks: Iterator[Chunk]) -> None:
        """Tell these chunks before all others. They are made when it is their turn."""
        self._begin = chunks

    def put(self, chunk: Chunk) -> None:
        """Tell this chunk, too."""
        size = len(chunk.stream())
        if self._bytes + size > self._all.most or self._all.bytes + size > self._all.most_in_all:
            self._count(self._taken - self._bytes)
            chunk, self._chunks = Chunk([telling.reset(None)], chunk.cursor), None
            size = len(chunk.stream())
        self._count(size)
        if self._chunks is None:
            self._chunks = [chunk]
        else:
            self._chunks.append(chunk)
        self._wake()

    def end(self, reason: str) -> None:
        """There will be no more chunks."""
        if self.reason is None:
            self.reason = reason
            self._wake()

    def forget(self) -> None:
        """Nobody takes the chunks any more."""
        self._count(-self._bytes)
        self._chunks = self._begin = None
        self._taken = 0
        self.end("")

    def __aiter__(self) -> Watcher:
        return self

    async def __anext__(self) -> Chunk:
        self._count(-self._taken)
        self._taken = 0
        while True:
            if self._begin is not None:
                chunk = next(self._begin, None)
                if chunk is not None:
                    return chunk
                self._begin = None
            if self._chunks:
                chunk = self._chunks.pop(0)
                self._chunks = self._chunks or None
                self._taken = len(chunk.stream())
                return chunk
            if self.reason is not None:
                raise StopAsyncIteration
            self._future = asyncio.get_running_loop().create_future()
            try:
                await self._future
            finally:
                self._future = None

    def _wake(self) -> None:
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    def _count(self, size: int) -> None:
        self._bytes += size
        self._all.bytes += size


@dataclass(eq=False, slots=True)
class Audience:
    """The watchers of one subscription, and the tasks that it stands for now."""

    asked: Subscription
    missing: Collection[str]
    """Tasks that were asked for, and that there are not."""
    tasks: set[str] = field(default_factory=set)
    watchers: set[Watcher] = field(default_factory=set)
    due: list[Event] = field(default_factory=list)
    """What has to be told next."""
    mark: int = 0
    """The marks of all tasks' statuses together, by exclusive or: so one of them can be taken out, and put in."""
