"""Finds the points with the least timestamps. They are stored by iteration, so chunks have to be searched.

The stats of each chunk have its least and greatest timestamp. Chunks are read in the order of their least timestamps,
until no other chunk can have a point of the page. For example, a page of 5 points, and three chunks of 10 points:

    chunk A, 100–200   is read first. Say its fifth point has timestamp 160.
    chunk B, 150–300   is read, as it may have points before 160. Now the fifth point has timestamp 155.
    chunk C, 400–500   is not read, as all its points are later.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from apiserver.events.model import Int64Array
from apiserver.events.queries import LEAST
from apiserver.stores.events.embedded.points import NO_POINTS, Points, concat, take
from apiserver.stores.events.embedded.series import Series
from apiserver.stores.events.embedded.unsettled import in_parts


def earliest(series: Sequence[Series], after: int | None, limit: int) -> tuple[Points, Int64Array]:
    """The first `limit` points beyond a timestamp and all that share the last one's; and the number of their series.

    They are in (timestamp, iteration, series) order.
    """
    found = _Found(LEAST if after is None else after + 1)
    for which in in_parts(series):
        for number in which.tolist():
            found.add(number, series[number].points(series[number].settled_end))
        found.cut(limit)
    chunks = _chunks(series, found.begin)
    read = 0
    while read < len(chunks):
        last = found.last_of(limit)
        if last is not None and last < chunks["least"][read]:
            break
        # Read all chunks that may hold a point of the page; or if it is not full yet, as many as may fill it.
        stop = int(np.searchsorted(chunks["least"], chunks["least"][read] if last is None else last, "right"))
        if last is None:
            stop = max(stop, read + 1 + int(np.searchsorted(np.cumsum(chunks["count"][read:]), limit - found.count)))
        for number, first, end in chunks[["series", "first", "last"]][read:stop].tolist():
            found.add(number, series[number].settled_points(first, end))
        found.cut(limit)
        read = stop
    return found.page()


_CHUNK = np.dtype([(name, np.int64) for name in ("least", "count", "series", "first", "last")])


def _chunks(series: Sequence[Series], begin: int) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    """A row for each settled chunk that has a timestamp from `begin` on, sorted by the least timestamp."""
    parts = []
    for number, one in enumerate(series):
        stats = one.settled_stats()
        stats = stats[stats["last_time"] >= begin]
        rows = np.empty(len(stats), _CHUNK)
        rows["series"] = number
        for name, column in (("least", "first_time"), ("count", "count"), ("first", "min_iter"), ("last", "max_iter")):
            rows[name] = stats[column]
        parts.append(rows)
    chunks = np.concatenate(parts) if parts else np.empty(0, _CHUNK)
    return chunks[np.argsort(chunks["least"], kind="stable")]


class _Found:
    """Collects points with timestamps from `begin` on."""

    def __init__(self, begin: int) -> None:
        self.begin = begin
        self.count = 0
        self._kept = NO_POINTS
        self._kept_numbers = np.empty(0, np.int64)
        self._added: list[tuple[int, Points]] = []

    def add(self, number: int, points: Points) -> None:
        """Add the points of a series that are not too early."""
        points = take(points, points.timestamps >= self.begin)
        self.count += len(points.iters)
        self._added.append((number, points))

    def last_of(self, limit: int) -> int | None:
        """The timestamp of the last point of a page of the points so far; None if they do not fill it."""
        if self.count < limit:
            return None
        times = np.concatenate([self._kept.timestamps, *(points.timestamps for _, points in self._added)])
        return int(np.partition(times, limit - 1)[limit - 1])

    def cut(self, limit: int) -> None:
        """Keep only the first `limit` points, and all that share the last one's timestamp."""
        last = self.last_of(limit)
        points, numbers = self._all()
        if last is not None:
            inside = points.timestamps <= last
            points, numbers = take(points, inside), numbers[inside]
        self.count, self._kept, self._kept_numbers = len(numbers), points, numbers
        self._added.clear()

    def page(self) -> tuple[Points, Int64Array]:
        """All points in order, and the number of each point's series."""
        points, numbers = self._all()
        order = np.lexsort((numbers, points.iters, points.timestamps))
        return take(points, order), numbers[order]

    def _all(self) -> tuple[Points, Int64Array]:
        lengths = np.array([len(points.iters) for _, points in self._added], np.int64)
        added = np.repeat(np.array([number for number, _ in self._added], np.int64), lengths)
        points = concat([self._kept, *(points for _, points in self._added)])
        return points, np.concatenate([self._kept_numbers, added])
