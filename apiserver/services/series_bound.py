"""A bound of series that a task or model may have: what is asked of all its series then always ends soon.

Scalar series count, and metrics of plots, images and vectors: each has an entry in the document of the task or model.

To count an owner's series for each batch would cost too much. So each owner has room for some groups of points, new
series or not; they are counted when the room is used up. An owner of 100 series in batches of all of them is counted
once in 200 batches, if 20,000 are allowed. Several servers that share the stores have room each, so that the bound is
an approximate one.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from weakref import WeakValueDictionary

from apiserver.events.ingest import Ingest
from apiserver.events.model import SAMPLE_TYPES, EventBatch, EventType, Owner, SeriesName
from apiserver.off_loop import off_loop
from apiserver.stores.events.base import EventStore

#: Owners whose room is remembered.
_MOST_OWNERS = 10_000
#: The room of an owner who is not: most have no more series than that, and are never counted.
_FIRST_ROOM = 1000


Counted = tuple[str, str | None]
"""The metric and variant of a scalar series; or a metric of plots, images and vectors, whose variants do not count."""


class SeriesBound:
    """Refuses the events of further series when an owner has `most`."""

    def __init__(self, events: EventStore, most: int) -> None:
        self._events = events
        self._most = most
        self._first_room = min(_FIRST_ROOM, most)
        self._room: dict[Owner, int] = {}
        self._locks: WeakValueDictionary[Owner, asyncio.Lock] = WeakValueDictionary()

    def spend(self, batch: EventBatch) -> list[Owner]:
        """Take what the batch has off the room of its owners; whose room is used up."""
        groups = _groups(batch)
        for owner, count in groups.items():
            self._room[owner] = self._room.pop(owner, self._first_room) - count
        beyond = [owner for owner in groups if self._room[owner] < 0]
        while len(self._room) > _MOST_OWNERS:
            del self._room[next(iter(self._room))]
        return beyond

    @asynccontextmanager
    async def counted(self, events: Ingest, owners: Iterable[Owner]) -> AsyncIterator[None]:
        """Take events out of what is to be stored whose series would be too many, with a reason; store it inside.

        Of those who count an owner's series, one at a time does.
        """
        async with AsyncExitStack() as held:
            for owner in sorted(owners):
                await held.enter_async_context(self._locks.setdefault(owner, asyncio.Lock()))
                series = await self._events.series(owner, [EventType.SCALAR, *SAMPLE_TYPES])
                known = await off_loop(len(series), partial(_known, series))
                refuse = partial(self._refuse, events, owner, known)
                self._room[owner] = await off_loop(len(events.batch.scalars) + len(events.batch.samples), refuse)
            yield

    def _refuse(self, events: Ingest, owner: Owner, known: set[Counted]) -> int:
        """Refuse what is too much; how many more there may be then."""
        fresh = [one for one in dict.fromkeys(_counted(events.batch, owner)) if one not in known]
        room = max(self._most - len(known), 0)
        if len(fresh) > room:
            kind = "model" if owner.is_model else "task"
            what = f"A {kind} has at most {self._most:,} scalar series and metrics of plots, images and vectors"
            events.refuse_series(owner, set(fresh[room:]), f"{what}: {owner.id}")
        return max(room - len(fresh), 0)


def _groups(batch: EventBatch) -> dict[Owner, int]:
    """What each owner has in the batch: groups of points, and metrics of samples."""
    scalars = batch.scalars
    if len(scalars.owners) == 1 and not batch.samples:  # nearly always
        return {scalars.owners[0]: len(scalars)}
    groups = Counter([scalars.owners[number] for number in scalars.owner])
    groups.update(owner for owner, _ in {(sample.owner, sample.metric) for sample in batch.samples})
    return groups


def _known(series: Iterable[SeriesName]) -> set[Counted]:
    return {(name.metric, name.variant if name.type is EventType.SCALAR else None) for name in series}


def _counted(batch: EventBatch, owner: Owner) -> Iterator[Counted]:
    scalars = batch.scalars
    for number, metric, variant in zip(scalars.owner, scalars.metrics, scalars.variants, strict=True):
        if scalars.owners[number] == owner:
            yield metric, variant
    for sample in batch.samples:
        if sample.owner == owner:
            yield sample.metric, None
