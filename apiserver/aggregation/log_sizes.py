"""How long each worker's part of a log is as a file: walked once, then remembered and walked on.

Lines may come late, before others that were walked already, and lines may be deleted. So what is remembered is held
against the number of lines there are; where that disagrees, it is walked again from further and further back.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from apiserver.aggregation import log_file
from apiserver.events.model import LogLine, LogPosition, Owner
from apiserver.stores.events.base import EventStore

#: Logs that are remembered at most, and workers in all their parts together.
OWNERS = 1000
WORKERS = 100_000
#: How often a log that changes all the while is looked at before it is taken for what it was last.
_TRIES = 64


class WorkerLog(NamedTuple):
    """The lines of one worker: the timestamp of the first, and how many bytes all have as text."""

    first: int
    size: int


class LogSizes:
    """The sizes of the logs in one store; those that were asked for last are remembered."""

    def __init__(self) -> None:
        self._logs: OrderedDict[Owner, _Log] = OrderedDict()

    async def by_worker(self, store: EventStore, owner: Owner) -> Mapping[str, WorkerLog]:
        """Of each worker that logged: when it began, and how long its part of the log is as a file."""
        log = self._logs.setdefault(owner, _Log())
        self._logs.move_to_end(owner)
        async with log.lock:
            whole = await log.read(store, owner)
        while len(self._logs) > OWNERS or sum(one.weight for one in self._logs.values()) > WORKERS:
            self._logs.popitem(last=False)
        return whole.workers


@dataclass(slots=True, frozen=True)
class _Part:
    """The lines from the beginning of a log up to some position."""

    first: LogPosition | None = None
    last: LogPosition | None = None
    count: int = 0
    workers: Mapping[str, WorkerLog] = field(default_factory=dict)

    def with_lines(self, lines: Sequence[LogLine]) -> _Part:
        """The part that ends with these lines, which are the next ones and at least one."""
        workers = dict(self.workers)
        messages: dict[str, list[str]] = {}
        for line in lines:
            if line.worker in messages:
                messages[line.worker].append(line.message)
            else:
                messages[line.worker] = [line.message]
                workers.setdefault(line.worker, WorkerLog(line.position.timestamp, 0))
        for worker, theirs in messages.items():
            first, size = workers[worker]
            workers[worker] = WorkerLog(first, size + len(log_file.text(theirs)))
        return _Part(self.first or lines[0].position, lines[-1].position, self.count + len(lines), workers)


_NOTHING = _Part()


class _Log:
    """What is remembered of one log: parts of it, each longer than the one before.

    They are only believed while `read` finds that they make up for all lines there are; so it may be interrupted.
    """

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self._parts = [_NOTHING]

    @property
    def weight(self) -> int:
        """How many workers are in all parts together, at most."""
        return _weight(self._parts)

    async def read(self, store: EventStore, owner: Owner) -> _Part:
        """The whole log."""
        doubted = _NOTHING
        for _ in range(_TRIES):
            await self._walk_on(store, owner)
            total = await store.log_count(owner)
            if not await self._still_begins(store, owner):
                self._parts = [_NOTHING]
                continue
            if total == self._whole.count:
                break
            if total > self._whole.count:
                await self._walk_on(store, owner)
                if total <= self._whole.count:
                    continue  # they came at the end, and meanwhile
            doubted = self._go_back(doubted)
        return self._whole

    @property
    def _whole(self) -> _Part:
        return self._parts[-1]

    async def _still_begins(self, store: EventStore, owner: Owner) -> bool:
        """Whether the first line is there: lines are deleted by age, and as many late ones may come in their place."""
        first = [line.position for line in await store.log_lines(owner, limit=1)]
        return self._whole.first in (None, *first)

    async def _walk_on(self, store: EventStore, owner: Owner) -> None:
        async for lines in log_file.pages(store, owner, after=self._whole.last):
            parts = _thinned([*self._parts, self._whole.with_lines(lines)])
            self._parts = parts if _weight(parts) <= WORKERS else [_NOTHING, parts[-1]]

    def _go_back(self, doubted: _Part) -> _Part:
        """Forget the doubted part and what was built on it; return the one to go on from. If there is none: the end."""
        doubted = doubted if doubted.count else self._whole
        self._parts = [_NOTHING, *(part for part in self._parts[1:] if part.count < doubted.count)]
        return self._whole


def _weight(parts: Sequence[_Part]) -> int:
    return len(parts) * len(parts[-1].workers)


def _thinned(parts: Sequence[_Part]) -> list[_Part]:
    """The longest part and, the shorter, the fewer others: each step back goes about twice as far as the one before."""
    end = parts[-1].count
    kept = [parts[0]]
    for part, longer in pairwise(parts[1:]):
        if end - kept[-1].count > 2 * (end - longer.count):
            kept.append(part)
    return [*kept, parts[-1]]
