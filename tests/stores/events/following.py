"""A reader that has a copy of some owners' events, and keeps it up to date by what a store says has changed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from apiserver.events.changes import Changes, ChangesQuery, Cursor
from apiserver.events.model import EventType, LogLine, MetricSelection, Owner, Sample, ScalarPosition, SeriesName
from apiserver.events.queries import EVERYWHERE, PageQuery, Range, SeriesQuery
from apiserver.stores.events.base import EventStore

_ALL = 10**6

Point = tuple[str, str, str, str]


@dataclass
class Copy:
    """The events of one owner, each type as a reader may show it."""

    scalars: dict[SeriesName, dict[int, Point]] = field(default_factory=dict)
    samples: dict[SeriesName, dict[tuple[int, str], Sample]] = field(default_factory=dict)
    lines: list[LogLine] = field(default_factory=list)

    @classmethod
    async def of(cls, store: EventStore, owner: Owner) -> Copy:
        """Everything that the store has."""
        copy = cls()
        for series in await store.series(owner):
            if series.type is not EventType.LOG:
                await copy.read(store, owner, series, EVERYWHERE)
        await copy.read_lines(store, owner)
        return copy

    async def read(self, store: EventStore, owner: Owner, series: SeriesName, iterations: Range) -> None:
        """Read a part of a series again."""
        query = SeriesQuery(owner, series.type, [MetricSelection(series.metric, (series.variant,))])
        if series.type is EventType.SCALAR:
            after = ScalarPosition(iterations.least - 1, "", "") if iterations.least > -(2**63) else None
            page = await store.scalar_points(query, PageQuery(_ALL, after))
            columns = (page.iters.tolist(), page.timestamps.tolist(), page.values.tolist(), page.workers)
            rows = zip(*columns, page.received.tolist(), strict=True)
            points = {iter: (repr(time), repr(value), worker, repr(at)) for iter, time, value, worker, at in rows}
            kept = {iter: one for iter, one in self.scalars.get(series, {}).items() if not _is_in(iter, iterations)}
            self.scalars[series] = kept | {iter: one for iter, one in points.items() if _is_in(iter, iterations)}
        else:
            found = {(one.iter, one.key): one for one in await store.samples(query, PageQuery(_ALL), iterations)}
            known = self.samples.get(series, {})
            self.samples[series] = {key: one for key, one in known.items() if not _is_in(key[0], iterations)} | found

    async def read_lines(self, store: EventStore, owner: Owner) -> int:
        """Read the log again; returns how many lines were new."""
        before = {line.position for line in self.lines}
        self.lines = await store.log_lines(SeriesQuery(owner, EventType.LOG), PageQuery(_ALL))
        return len({line.position for line in self.lines} - before)


def _is_in(iter: int, iterations: Range) -> bool:
    return iterations.least <= iter <= iterations.greatest


class Follower:
    """Asks what has changed, and reads just that. `most` is that of its questions."""

    def __init__(self, owners: Sequence[Owner], most: int) -> None:
        self._owners = owners
        self._most = most
        self._copies = {owner: Copy() for owner in owners}
        self._cursor: Cursor = None

    def query(self) -> ChangesQuery:
        """Its next question."""
        return ChangesQuery(self._owners, self._cursor, self._most)

    async def begin(self, store: EventStore) -> None:
        """Copy everything. The cursor comes first: what changes meanwhile is told later, perhaps in vain."""
        self._cursor = (await store.changes(self.query())).cursor
        self._copies = {owner: await Copy.of(store, owner) for owner in self._owners}

    async def follow(self, store: EventStore) -> None:
        """Ask once, and read what has changed. Nobody writes meanwhile."""
        changes = await store.changes(self.query())
        for owner, new in (await self.apply(store, changes)).items():
            assert new <= changes.owners[owner].log_lines

    async def apply(self, store: EventStore, changes: Changes) -> dict[Owner, int]:
        """Read what has changed; returns how many log lines were new, of owners that got some."""
        new = {}
        assert changes.owners.keys() <= set(self._owners)
        assert sum(len(one.series) for one in changes.owners.values()) <= self._most
        for owner, changed in changes.owners.items():
            assert changed
            if changed.everything:
                self._copies[owner] = await Copy.of(store, owner)
                continue
            for series, iterations in changed.series.items():
                await self._copies[owner].read(store, owner, series, iterations)
            if changed.log_lines:
                new[owner] = await self._copies[owner].read_lines(store, owner)
        self._cursor = changes.cursor
        return new

    async def watch(self, store: EventStore, *, until: Owner) -> None:
        """Read what changes as soon as it changes, until this owner does, which is none of its own."""
        query = replace(self.query(), owners=[*self._owners, until])
        async with aclosing(store.watch(query)) as told:
            async for changes in told:
                last = changes.owners.pop(until, None)
                await self.apply(store, changes)
                if last is not None:
                    return

    async def assert_same(self, store: EventStore) -> None:
        """Its copies are what the store has."""
        for owner in self._owners:
            assert self._copies[owner] == await Copy.of(store, owner)
