"""Reads series that are to be thinned, of any store: which of their points stay (`codec/thinning.py`)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, MutableMapping

import numpy as np

from apiserver.events.model import BucketAxis, EventType, Owner, ScalarStats, selection_of
from apiserver.events.queries import GREATEST, LEAST, CurvesQuery, SeriesQuery
from apiserver.stores.events.base import EventStore
from apiserver.stores.events.codec.names import Name
from apiserver.stores.events.codec.points import Points, WholePoints, concat
from apiserver.stores.events.codec.thinning import Thinning, checksum, known_ends


class Thinned:
    """What stays of a series. Its points are read in parts."""

    def __init__(self, thinning: Thinning) -> None:
        self._thinning = thinning
        self._parts: list[Points] = []
        self.checksum = 0
        """Of all points."""
        self.kept: WholePoints
        """The points that stay, once all parts were read."""
        self.gone = 0
        """How many others there are."""
        self.oldest, self.newest = GREATEST, LEAST
        """The timestamps of the others."""

    def read(self, part: WholePoints) -> None:
        """Read the next part."""
        self.checksum = checksum(part.points, self.checksum)
        self._parts.append(self._thin(part.points))
        self.kept = part

    def end(self) -> None:
        """All parts were read."""
        self.kept = self.kept._replace(points=self._thin(concat(self._parts)))

    def _thin(self, points: Points) -> Points:
        kept = self._thinning.thinned(points)
        times = points.timestamps[~np.isin(points.iters, kept.iters)]
        if len(times):
            self.gone += len(times)
            self.oldest, self.newest = min(self.oldest, int(times.min())), max(self.newest, int(times.max()))
        return kept


async def long_series(store: EventStore, wanted: SeriesQuery, points: int) -> list[ScalarStats]:
    """All stats of those of the series that have more points."""
    return [one for one in await store.scalar_stats(wanted, spread=True) if one.count > points]


async def read(store: EventStore, owner: Owner, long: Iterable[ScalarStats], points: int) -> dict[Name, Thinned]:
    """Read these series of an owner, to thin them to at most so many points. A series that is gone is left out."""
    thinnings = {(one.metric, one.variant): await _thinning(store, one, points) for one in long}
    found: dict[Name, Thinned] = {}
    if thinnings:
        async for part in store.whole_points(SeriesQuery(owner, EventType.SCALAR, selection_of(thinnings))):
            await asyncio.to_thread(_read, part, thinnings, found)
    await asyncio.to_thread(_end, found.values())
    return found


def _read(
    part: Iterable[WholePoints], thinnings: Mapping[Name, Thinning], found: MutableMapping[Name, Thinned]
) -> None:
    for one in part:
        found.setdefault(one.series, Thinned(thinnings[one.series])).read(one)


def _end(found: Iterable[Thinned]) -> None:
    for one in found:
        one.end()


async def _thinning(store: EventStore, stats: ScalarStats, points: int) -> Thinning:
    ends = known_ends(stats)
    if ends is None:
        ends = await store.curve_ends(CurvesQuery([stats.owner], stats.metric, stats.variant, BucketAxis.ITER))
    return Thinning.of(stats, ends or (stats.min_iter, stats.max_iter), points)  # it has no ends if it is gone since
