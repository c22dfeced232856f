"""Copies all events of all companies, by owner and type: points and log lines as columns, others page by page.

Owners of whose events the target has as many as the source are skipped, and so are series with as many points. So an
interrupted copy can be started again. Writing events a second time does no harm: points and samples replace themselves,
and a line is known by its number.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from apiserver.common.off_loop import while_more_come
from apiserver.common.sizes import counted
from apiserver.events.model import EventBatch, EventType, Owner, SamplePosition, selection_of
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.stores.events.base import EventStore
from apiserver.stores.events.codec.points import WholePoints
from apiserver.transfer.copying.retrying import CopyError, Say, patiently

#: How many run at once, because engines make each of them wait: copies of one owner and type, and counts.
_COPIED_AT_ONCE = 4
_COUNTS_AT_ONCE = 16
#: Parts of the points of one owner that are put at once: while one is encoded, the engine takes another.
_PUT_AT_ONCE = 2
_SAY_SECONDS = 10.0

Counts = dict[tuple[Owner, EventType], int]


@dataclass(slots=True)
class EventCopy:
    """A copy of all events. After `run`, `counts` holds the number of events of each type, and `unstated` is known."""

    source: EventStore
    target: EventStore
    say: Say
    replaces: bool = False
    """Whether events of the target that the source does not have are deleted; else that is an error."""
    counts: dict[EventType, int] = field(default_factory=lambda: dict.fromkeys(EventType, 0))
    unstated: set[Owner] = field(default_factory=set)
    """Owners whose documents in the source may not show all of these events."""
    owners_at_once: int = 200
    """Owners whose events are counted, copied and counted again together: an engine makes new events visible for all of
    them at once, which takes time."""
    page_of_samples: int = 50
    _sent: int = field(default=0, init=False)
    _say_at: float = field(default_factory=lambda: time.monotonic() + _SAY_SECONDS, init=False)

    async def run(self) -> None:
        """Copy. CopyError if the target holds events of unknown owners, or if some are missing in the end."""
        owners = sorted([owner async for owner in self.source.owners()])
        await self._check_nothing_else(frozenset(owners))
        self.unstated = {owner async for owner in self.source.owners_to_restate(of_all=True)}
        for start in range(0, len(owners), self.owners_at_once):
            block = owners[start : start + self.owners_at_once]
            await self._copy(block)
            await patiently(self.say, self.target.restated, [owner for owner in block if owner not in self.unstated])
            done, total = start + len(block), sum(self.counts.values())
            self.say(f"{counted(total, 'events')} of {done:,} of {counted(len(owners), 'tasks or models')} are there")

    async def _check_nothing_else(self, source_owners: frozenset[Owner]) -> None:
        async for owner in self.target.owners():
            if owner not in source_owners and self.replaces:
                await patiently(self.say, self.target.delete, [owner])
            elif owner not in source_owners and await patiently(self.say, self.target.events_count, owner) > 0:
                raise CopyError(
                    f"the target holds events of '{owner.id}', but the source has none of them: copy into an empty one"
                )

    async def _copy(self, owners: Sequence[Owner]) -> None:
        """Copy the events of these owners that are missing, and compare the counts."""
        source_counts = await self._counts(self.source, owners)
        target_counts = await self._counts(self.target, owners)
        missing = [
            key for key, count in source_counts.items() if target_counts[key] != count or _may_have_more(key[1], count)
        ]
        for owner, type in [key for key in missing if target_counts[key]] if self.replaces else ():
            await patiently(self.say, self.target.delete, [owner], [type])
        turns = asyncio.Semaphore(_COPIED_AT_ONCE)
        try:
            async with asyncio.TaskGroup() as group:
                for owner, type in missing:
                    group.create_task(self.copy_type(owner, type, turns))
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        target_counts |= await self._counts(self.target, dict.fromkeys(owner for owner, _ in missing))
        for (owner, type), count in source_counts.items():
            if target_counts[owner, type] != count:
                raise CopyError(
                    f"the source has {counted(count, 'events')} of type '{type}' of '{owner.id}', the target"
                    f" {target_counts[owner, type]:,}: "
                    "copy again while nobody writes to either"
                )
            self.counts[type] += count

    async def _counts(self, store: EventStore, owners: Iterable[Owner]) -> Counts:
        turns = asyncio.Semaphore(_COUNTS_AT_ONCE)

        async def count(owner: Owner, type: EventType) -> int:
            async with turns:
                return await patiently(self.say, store.events_count, owner, [type])

        keys = [(owner, type) for owner in owners for type in EventType]
        return dict(zip(keys, await asyncio.gather(*(count(*key) for key in keys)), strict=True))

    # --- one owner, one type -----------------------------------------------------------------------

    async def copy_type(self, owner: Owner, type: EventType, turns: asyncio.Semaphore) -> None:
        async with turns:
            copy = {EventType.SCALAR: self._copy_points, EventType.LOG: self._copy_lines}.get(type, self._copy_samples)
            await patiently(self.say, copy, SeriesQuery(owner, type))

    async def _copy_points(self, series: SeriesQuery) -> None:
        async def put(some: Sequence[WholePoints]) -> None:
            await patiently(self.say, self.target.put_points, series.owner, some)
            self._count(sum([len(one.points.iters) for one in some]))

        await while_more_come(self.source.whole_points(await self._missing(series)), put, _PUT_AT_ONCE)

    async def _missing(self, series: SeriesQuery) -> SeriesQuery:
        """The series of which the target has other numbers of points than the source."""
        there = await self.target.scalar_stats(series)
        if not there:
            return series
        counts = {(one.metric, one.variant): one.count for one in there}
        wanted = {(one.metric, one.variant): one.count for one in await self.source.scalar_stats(series)}
        return replace(series, selection=selection_of(name for name in wanted if counts.get(name) != wanted[name]))

    async def _copy_lines(self, series: SeriesQuery) -> None:
        bodies = await patiently(self.say, self.source.known_bodies, series.owner)
        if bodies:  # before the lines: if the copy is interrupted, the numbers of lines tell it
            await patiently(self.say, self.target.know_bodies, series.owner, bodies)
        number = 0
        async for lines in self.source.whole_lines(series.owner):
            numbered = replace(lines, sequences=np.arange(number, number + len(lines)))
            await patiently(self.say, self.target.put_lines, series.owner, numbered)
            number += len(lines)
            self._count(len(lines))

    async def _copy_samples(self, series: SeriesQuery) -> None:
        after: SamplePosition | None = None
        while samples := await patiently(self.say, self.source.samples, series, PageQuery(self.page_of_samples, after)):
            for reason in await patiently(self.say, self.target.add, EventBatch(0, samples=samples)):
                raise CopyError(f"the target refuses an event of '{series.owner.id}': {reason}")
            self._count(len(samples))
            after = samples[-1].position

    def _count(self, events: int) -> None:
        self._sent += events
        if time.monotonic() > self._say_at:
            self.say(f"events: {self._sent:,} sent")
            self._say_at = time.monotonic() + _SAY_SECONDS


def _may_have_more(type: EventType, count: int) -> bool:
    """Whether there may be something to copy without any event: bodies of lines that were deleted are known."""
    return type is EventType.LOG and count == 0
