"""The limit on how many series a task or model may have, so that reading all of them always ends soon.

What counts is what has an entry in the document of the task or model: each scalar series, and each metric of plots,
images and vectors.

Counting an owner's series for each batch would cost too much. So each owner has a budget, and each series in a batch
takes one from it, new or not. The stored series are counted only when the budget is used up; the budget is then what is
left to the limit. With a limit of 20,000, an owner that sends batches of its 100 series is counted once in about 200
batches. Servers that share the stores have a budget each, so the limit is approximate.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from weakref import WeakValueDictionary

from apiserver.common.off_loop import off_loop
from apiserver.events.ingest import Ingest
from apiserver.events.model import SAMPLE_TYPES, EventBatch, EventType, Owner, SeriesName
from apiserver.stores.events.base import EventStore

#: The budget of an owner that has none in memory.
_FIRST_BUDGET = 1000

SeriesKey = tuple[str, str | None]
"""Metric and variant of a scalar series; metric and None for samples, whose variants do not count."""


class SeriesLimit:
    """Refuses events of new series if their owner would have more than `most`.

    The budgets of `owners` are in memory: of those that reported last.
    """

    def __init__(self, events: EventStore, most: int, *, owners: int = 10_000) -> None:
        self._events = events
        self._most = most
        self._owners = owners
        self._first_budget = min(_FIRST_BUDGET, most)
        self._budget: dict[Owner, int] = {}
        self._locks: WeakValueDictionary[Owner, asyncio.Lock] = WeakValueDictionary()

    def spend(self, batch: EventBatch) -> list[Owner]:
        """Take the batch's series from the budgets of their owners; returns the owners whose budget is used up."""
        groups = _groups(batch)
        for owner, count in groups.items():
            self._budget[owner] = self._budget.pop(owner, self._first_budget) - count
        overspent = [owner for owner in groups if self._budget[owner] < 0]
        while len(self._budget) > self._owners:
            del self._budget[next(iter(self._budget))]
        return overspent

    def forget(self, owners: Iterable[Owner]) -> None:
        """Forget the budgets of owners whose events were all deleted."""
        for owner in owners:
            self._budget.pop(owner, None)

    @asynccontextmanager
    async def counted(self, events: Ingest, owners: Iterable[Owner]) -> AsyncIterator[None]:
        """Count the owners' series and refuse the events of those beyond the limit; the caller stores the rest inside.

        One call at a time does so for an owner, so that two cannot use the same remaining room.
        """
        async with AsyncExitStack() as held:
            for owner in sorted(owners):
                await held.enter_async_context(self._locks.setdefault(owner, asyncio.Lock()))
                series = await self._events.series(owner, [EventType.SCALAR, *SAMPLE_TYPES])
                known = await off_loop(len(series), partial(_known, series))
                refuse = partial(self._refuse, events, owner, known)
                self._budget[owner] = await off_loop(len(events.batch.scalars) + len(events.batch.samples), refuse)
            yield

    def _refuse(self, events: Ingest, owner: Owner, known: set[SeriesKey]) -> int:
        """Refuse the events of new series beyond the limit; returns how many more series the owner may have then."""
        fresh = [one for one in dict.fromkeys(_counted(events.batch, owner)) if one not in known]
        room = max(self._most - len(known), 0)
        if len(fresh) > room:
            kind = "model" if owner.is_model else "task"
            what = f"A {kind} has at most {self._most:,} scalar series and metrics of plots, images and vectors"
            beyond = set(fresh[room:])
            events.refuse_series(owner, lambda name: _key(name) in beyond, f"{what}: {owner.id}")
        return max(room - len(fresh), 0)


def _groups(batch: EventBatch) -> dict[Owner, int]:
    """How many groups of points (each of one series) and metrics of samples each owner has in the batch."""
    scalars = batch.scalars
    if len(scalars.owners) == 1 and not batch.samples:  # the usual case, without counting
        return {scalars.owners[0]: len(scalars)}
    groups = Counter([scalars.owners[number] for number in scalars.owner])
    groups.update(owner for owner, _ in {(sample.owner, sample.metric) for sample in batch.samples})
    return groups


def _known(series: Iterable[SeriesName]) -> set[SeriesKey]:
    return {_key(name) for name in series}


def _key(name: SeriesName) -> SeriesKey:
    return name.metric, name.variant if name.type is EventType.SCALAR else None


def _counted(batch: EventBatch, owner: Owner) -> Iterator[SeriesKey]:
    scalars = batch.scalars
    for number, metric, variant in zip(scalars.owner, scalars.metrics, scalars.variants, strict=True):
        if scalars.owners[number] == owner:
            yield metric, variant
    for sample in batch.samples:
        if sample.owner == owner:
            yield sample.metric, None
