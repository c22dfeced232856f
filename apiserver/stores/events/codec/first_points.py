"""Collects the points with the least timestamps of several series, while their chunks are read one after another.

For each chunk, its least timestamp is known. Chunks are read in that order, until no other chunk can have a point of
the page. For example, a page of 5 points, and three chunks of 10 points:

    chunk A, 100–200   is read first. Say its fifth point has timestamp 160.
    chunk B, 150–300   is read, as it may have points before 160. Now the fifth point has timestamp 155.
    chunk C, 400–500   is not read, as all its points are later.
"""

from __future__ import annotations

import numpy as np

from apiserver.events.model import Int64Array
from apiserver.events.queries import LEAST
from apiserver.stores.events.codec.points import NO_POINTS, Points, concat, take


class FirstPoints:
    """The first `limit` points beyond the timestamp `after`, and all others that share the last one's timestamp."""

    def __init__(self, limit: int, after: int | None) -> None:
        self._limit = limit
        self.begin = LEAST if after is None else after + 1
        """The least timestamp that a point may have."""
        self._count = 0
        self._kept = NO_POINTS
        self._kept_numbers = np.empty(0, np.int64)
        self._added: list[tuple[int, Points]] = []

    def add(self, number: int, points: Points) -> None:
        """Add the points of the series with this number that are not too early."""
        points = take(points, points.timestamps >= self.begin)
        self._count += len(points.iters)
        self._added.append((number, points))

    def stop(self, least: Int64Array, counts: Int64Array, start: int) -> int:
        """The chunks from `start` on up to here have to be read next; `start`, if none has to be.

        `least` are the least timestamps of all chunks, ascending, and `counts` their numbers of points.
        """
        last = self._last()
        if start == len(least) or (last is not None and last < least[start]):
            return start
        # Read all chunks that may hold a point of the page; or if it is not full yet, as many as may fill it.
        stop = int(np.searchsorted(least, least[start] if last is None else last, "right"))
        if last is None:
            missing = self._limit - self._count
            stop = max(stop, start + 1 + int(np.searchsorted(np.cumsum(counts[start:]), missing)))
        return min(stop, len(least))

    def _last(self) -> int | None:
        """The timestamp of the last point of a page of the points so far; None if they do not fill it."""
        if self._count < self._limit:
            return None
        times = np.concatenate([self._kept.timestamps, *(points.timestamps for _, points in self._added)])
        return int(np.partition(times, self._limit - 1)[self._limit - 1])

    def cut(self) -> None:
        """Let go of the points that are too late."""
        last = self._last()
        points, numbers = self._all()
        if last is not None:
            inside = points.timestamps <= last
            points, numbers = take(points, inside), numbers[inside]
        self._count, self._kept, self._kept_numbers = len(numbers), points, numbers
        self._added.clear()

    def page(self) -> tuple[Points, Int64Array]:
        """All points in (timestamp, iteration, series) order, and the number of each point's series."""
        points, numbers = self._all()
        order = np.lexsort((numbers, points.iters, points.timestamps))
        return take(points, order), numbers[order]

    def _all(self) -> tuple[Points, Int64Array]:
        lengths = np.array([len(points.iters) for _, points in self._added], np.int64)
        added = np.repeat(np.array([number for number, _ in self._added], np.int64), lengths)
        points = concat([self._kept, *(points for _, points in self._added)])
        return points, np.concatenate([self._kept_numbers, added])
