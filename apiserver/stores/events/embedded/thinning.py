"""Thins merged series: in one transaction, the points of a series go, and those that stay are written again."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence

from apiserver.events.model import BucketAxis
from apiserver.events.queries import GREATEST, LEAST, SeriesQuery
from apiserver.stores.events.base import EventStoreError
from apiserver.stores.events.columns.checked import Damaged
from apiserver.stores.events.columns.chunks import POINTS_AT_A_TIME
from apiserver.stores.events.columns.names import Name
from apiserver.stores.events.columns.points import Points, concat
from apiserver.stores.events.columns.thinning import Thinning, checksum
from apiserver.stores.events.columns.whole import WholePoints
from apiserver.stores.events.embedded.curves import ends
from apiserver.stores.events.embedded.deletion import delete_points
from apiserver.stores.events.embedded.names import Registrar
from apiserver.stores.events.embedded.scalar_merge import merge_whole
from apiserver.stores.events.embedded.scalars import scalar_stats
from apiserver.stores.events.embedded.series import Series, merged_series


def thin(
    conn: sqlite3.Connection,
    wanted: SeriesQuery,
    points: int,
    checksums: Mapping[Name, int] | None,
    registrar: Registrar,
    workers: Sequence[str],
    worker: Callable[[str], int],
) -> tuple[int, list[int]]:
    """Thin the merged series as `EventStore.thin_scalars` says.

    Returns how many points are gone, and the ids of the series that were thinned. EventStoreError: a series is damaged.
    `workers` are the names of all workers, `worker` gives numbers to names.
    """
    gone = 0
    merged, thinned = [], []
    for name, known in merged_series(conn, wanted).items():
        series = Series(conn, wanted.owner, name, known)
        try:
            (stats,) = scalar_stats(wanted.owner, [series], spread=True)
            if stats.count <= points:
                continue
            first_and_last = ends([series], BucketAxis.ITER)
            assert first_and_last is not None  # only a series that is a single value has no curve
            kept, found = _thinned(series, Thinning.of(stats, first_and_last, points))
        except Damaged as error:
            raise EventStoreError(f"{error}: apiserver doctor tells more") from error
        if checksums is not None and checksums.get(name) != found:
            continue
        gone += stats.count - len(kept.iters)
        merged.append(known)
        thinned.append(WholePoints(name, kept, workers))
    if not merged:
        return 0, []
    delete_points(conn, merged)
    return gone, merge_whole(conn, wanted.owner, thinned, registrar, worker)


def _thinned(series: Series, thinning: Thinning) -> tuple[Points, int]:
    """The points that stay, and the checksum of all."""
    kept, found = [], 0
    for some in _parts(series):
        if len(some.iters):
            kept.append(thinning.thinned(some))
            found = checksum(some, found)
    return thinning.thinned(concat(kept)), found


def _parts(series: Series) -> Iterator[Points]:
    low, high = LEAST, LEAST
    while high < GREATEST:
        high = series.end_of(low, POINTS_AT_A_TIME)
        yield series.points(low, high)
        low = high + 1
