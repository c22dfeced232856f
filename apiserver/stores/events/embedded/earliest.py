"""Points in the order of their timestamps, though they are stored in that of iterations.

Chunks know the least and the greatest timestamp in them: they are read by their least, only as far as is needed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from apiserver.events.model import Int64Array
from apiserver.stores.events.embedded.points import NO_POINTS, Points, concat, take
from apiserver.stores.events.embedded.series import Series
from apiserver.stores.events.embedded.stats import GREATEST, LEAST


def earliest(series: Sequence[Series], after: int | None, limit: int) -> tuple[Points, Int64Array]:
    """The first `limit` points beyond a timestamp and those that share the last one's, and the series' number of each.

    They are in (timestamp, iteration, series) order.
    """
    found = _Found(LEAST if after is None else after + 1)
    for number, one in enumerate(series):
        found.add(number, one.points(one.settled_end))
    chunks = _chunks(series, found.begin)
    read = 0
    while read < len(chunks):
        last = found.last_of(limit)
        if last is not None and last < chunks["least"][read]:
            break
        # All chunks that may hold a point of the page so far; and if there is none yet, as many as may fill it.
        stop = int(np.searchsorted(chunks["least"], chunks["least"][read] if last is None else last, "right"))
        if last is None:
            stop = max(stop, read + 1 + int(np.searchsorted(np.cumsum(chunks["count"][read:]), limit - found.count)))
        for number, first, end in chunks[["series", "first", "last"]][read:stop].tolist():
            found.add(number, series[number].points(first, end))
        read = stop
    return found.page(limit)


_CHUNK = np.dtype([(name, np.int64) for name in ("least", "count", "series", "first", "last")])


def _chunks(series: Sequence[Series], begin: int) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    """What is known of the settled chunks that have a timestamp from `begin` on, by their least timestamp."""
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
    """Points with timestamps from `begin` on."""

    def __init__(self, begin: int) -> None:
        self.begin = begin
        self.count = 0
        self._parts: list[tuple[int, Points]] = []

    def add(self, number: int, points: Points) -> None:
        """Take in those of a series' points that count."""
        points = take(points, points.timestamps >= self.begin)
        self.count += len(points.iters)
        self._parts.append((number, points))

    def last_of(self, limit: int) -> int | None:
        """The timestamp of the last point of the page, if there were no others; None when there are too few."""
        if self.count < limit:
            return None
        times = np.concatenate([points.timestamps for _, points in self._parts])
        return int(np.partition(times, limit - 1)[limit - 1])

    def page(self, limit: int) -> tuple[Points, Int64Array]:
        """The first `limit` points, and those that share the last one's timestamp."""
        points = concat([NO_POINTS, *(points for _, points in self._parts)])
        numbers = np.repeat(
            np.array([number for number, _ in self._parts], np.int64), [len(points.iters) for _, points in self._parts]
        )
        last = self.last_of(limit)
        inside = points.timestamps <= (GREATEST if last is None else last)
        points, numbers = take(points, inside), numbers[inside]
        order = np.lexsort((numbers, points.iters, points.timestamps))
        return take(points, order), numbers[order]
