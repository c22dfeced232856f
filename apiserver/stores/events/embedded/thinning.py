"""Thins series. They are read while others merge, and only what stays is written while others wait.

1. The points of some series are read, a part at a time, and those that stay are kept in memory.
2. If nothing of these series came or went meanwhile, their points are deleted, and those that stay are written again,
   in one transaction. Otherwise the store begins again.

To read 15 million points takes some seconds, to replace them some ten milliseconds.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence

from apiserver.events.model import BucketAxis, EventType, Owner, ScalarStats, selection_of
from apiserver.events.queries import CurvesQuery, SeriesQuery
from apiserver.stores.events.base import EventStore
from apiserver.stores.events.columns.names import Name
from apiserver.stores.events.columns.points import Points, concat
from apiserver.stores.events.columns.thinning import Thinning, checksum, known_ends
from apiserver.stores.events.columns.whole import WholePoints
from apiserver.stores.events.embedded.deletion import delete_points
from apiserver.stores.events.embedded.names import Registrar
from apiserver.stores.events.embedded.scalar_merge import merge_whole
from apiserver.stores.events.embedded.series import merged_series


class Thinned:
    """What stays of a series. Its points are read in parts."""

    def __init__(self, thinning: Thinning) -> None:
        self._thinning = thinning
        self._parts: list[Points] = []
        self._count = 0
        self.checksum = 0
        """Of all points."""
        self.kept: WholePoints
        """The points that stay, once all parts were read."""
        self.gone = 0
        """How many others there are."""

    def read(self, some: WholePoints) -> None:
        """Read the next part."""
        self._count += len(some.points.iters)
        self.checksum = checksum(some.points, self.checksum)
        self._parts.append(self._thinning.thinned(some.points))
        self.kept = some

    def end(self) -> None:
        """All parts were read."""
        self.kept = self.kept._replace(points=self._thinning.thinned(concat(self._parts)))
        self.gone = self._count - len(self.kept.points.iters)


async def read(store: EventStore, wanted: SeriesQuery, points: int) -> dict[Name, Thinned]:
    """Read those of the series that have more points, to thin them to at most so many."""
    long = [one for one in await store.scalar_stats(wanted, spread=True) if one.count > points]
    thinnings = {(one.metric, one.variant): await _thinning(store, one, points) for one in long}
    found: dict[Name, Thinned] = {}
    if thinnings:
        async for part in store.whole_points(SeriesQuery(wanted.owner, wanted.type, selection_of(thinnings))):
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


def replace(
    conn: sqlite3.Connection,
    owner: Owner,
    some: Sequence[WholePoints],
    registrar: Registrar,
    worker: Callable[[str], int],
) -> list[int]:
    """Delete all merged points of these series, and write these; returns the ids of the series.

    `worker` gives numbers to names of workers.
    """
    wanted = SeriesQuery(owner, EventType.SCALAR, selection_of(one.series for one in some))
    delete_points(conn, list(merged_series(conn, wanted).values()))
    return merge_whole(conn, owner, some, registrar, worker)
