"""Which points go when series are thinned (`stores/events/columns/thinning.py`), of the series that have too many.

What is read of a series gives a checksum. The store thins the series only if its points still have it: so nothing goes
that was not read.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import replace

import numpy as np

from apiserver.events.model import BucketAxis, Int64Array, ScalarStats, selection_of
from apiserver.events.queries import CurvesQuery, SeriesQuery
from apiserver.stores.events.base import EventStore
from apiserver.stores.events.columns.chunks import POINTS_AT_A_TIME
from apiserver.stores.events.columns.names import Name
from apiserver.stores.events.columns.points import NO_CURVE, Points, TimedCurve, concat, take
from apiserver.stores.events.columns.thinning import Thinning, checksum, known_ends
from apiserver.stores.events.columns.whole import WholePoints
from apiserver.stores.events.parts import in_parts


async def ends_of_thinning(
    store: EventStore, series: SeriesQuery, points: int, checksums: dict[Name, int]
) -> tuple[int, int, int]:
    """How many points go when series are thinned, and the times of the oldest and the newest. Points are read once."""
    events, oldest, newest = 0, 2**63 - 1, -(2**63)
    async for some in _thinned(store, series, points, checksums):
        for one in some.values():
            events += one.gone
            oldest, newest = min(oldest, one.oldest), max(newest, one.newest)
    return events, oldest, newest


async def points_that_go(
    store: EventStore, series: SeriesQuery, points: int, checksums: dict[Name, int]
) -> AsyncGenerator[list[WholePoints], None]:
    """The points that do not stay when series are thinned. They are read twice: what stays is known at the end."""
    async for some in _thinned(store, series, points, checksums):
        stay = {name: one.stay for name, one in some.items()}
        async for part in store.whole_points(replace(series, selection=selection_of(some))):
            if gone := await asyncio.to_thread(_without, part, stay):
                yield gone


class _Thinned:
    """A series that is to be thinned: what is known of it once all its points were read, in parts."""

    def __init__(self, thinning: Thinning) -> None:
        self._thinning = thinning
        self._kept: list[TimedCurve] = []
        self.stay: Int64Array = NO_CURVE.iters
        """The iterations that stay."""
        self.checksum = 0
        self.gone = 0
        """How many points go."""
        self.oldest, self.newest = 2**63 - 1, -(2**63)
        """The times of those that go."""

    def read(self, points: Points) -> None:
        """Read the next part."""
        self.checksum = checksum(points, self.checksum)
        self._kept.append(self._thin(TimedCurve(points.iters, points.values, points.timestamps)))

    def end(self) -> None:
        """All parts were read."""
        self.stay = self._thin(concat(self._kept)).iters

    def _thin(self, some: TimedCurve) -> TimedCurve:
        kept = self._thinning.thinned(some)
        times = some.timestamps[~np.isin(some.iters, kept.iters)]
        if len(times):
            self.gone += len(times)
            self.oldest, self.newest = min(self.oldest, int(times.min())), max(self.newest, int(times.max()))
        return kept


async def _thinned(
    store: EventStore, series: SeriesQuery, points: int, checksums: dict[Name, int]
) -> AsyncGenerator[dict[Name, _Thinned], None]:
    """The series with more points, some at a time, once all their points were read; `checksums` gets theirs."""
    long = [one for one in await store.scalar_stats(series, spread=True) if one.count > points]
    for some in in_parts(long, lambda one: one.count, POINTS_AT_A_TIME):
        thinnings = {(one.metric, one.variant): await _thinning(store, one, points) for one in some}
        found: dict[Name, _Thinned] = {}
        async for part in store.whole_points(replace(series, selection=selection_of(thinnings))):
            await asyncio.to_thread(_read, part, thinnings, found)
        await asyncio.to_thread(_end, found.values())
        checksums.update({name: one.checksum for name, one in found.items()})
        if found:
            yield found


def _read(
    part: Sequence[WholePoints], thinnings: Mapping[Name, Thinning], series: MutableMapping[Name, _Thinned]
) -> None:
    for name, points, _ in part:
        series.setdefault(name, _Thinned(thinnings[name])).read(points)


def _end(series: Iterable[_Thinned]) -> None:
    for one in series:
        one.end()


async def _thinning(store: EventStore, stats: ScalarStats, points: int) -> Thinning:
    ends = known_ends(stats)
    if ends is None:
        ends = await store.curve_ends(CurvesQuery([stats.owner], stats.metric, stats.variant, BucketAxis.ITER))
    return Thinning.of(stats, ends or (stats.min_iter, stats.max_iter), points)  # it has no ends if it is gone since


def _without(some: Sequence[WholePoints], stay: Mapping[Name, Int64Array]) -> list[WholePoints]:
    """The points that do not stay; a series without any is left out."""
    goes = [~np.isin(one.points.iters, stay.get(one.series, one.points.iters)) for one in some]
    return [one._replace(points=take(one.points, which)) for one, which in zip(some, goes, strict=True) if which.any()]
