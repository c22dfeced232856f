"""Walks over points in iteration order, through many series side by side.

A walk reads one series a chunk at a time, or about as much of a chunk as is wanted. It has read every iteration up to
its `frontier`. So up to the nearest frontier of all walks, all points are known, and can be answered in order. For
example, series a and b were read so far:

    a   1   5   9      frontier 9
    b     4  6         frontier 6

All points up to iteration 6 are known: a1, b4, a5, b6. That is a page of 4. For a larger one, b is read further.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from apiserver.events.model import ScalarPosition
from apiserver.events.queries import GREATEST, LEAST, PageQuery
from apiserver.stores.events.codec.points import NO_POINTS, Points, concat, first_of, in_walking_order, take
from apiserver.stores.events.embedded.series import Series

_SPARE = 16


class SeriesWalk:
    """Reads a series from an iteration (inclusive) to one of its ends, at most a chunk at a time."""

    def __init__(self, series: Series, start: int, descending: bool) -> None:
        self._series = series
        self._next = start
        self.descending = descending
        self._found: list[Points] = []
        self._count = 0
        self.exhausted = not LEAST <= start <= GREATEST

    @property
    def frontier(self) -> int:
        """The iteration up to which the series was read."""
        if self.exhausted:
            return LEAST if self.descending else GREATEST
        return self._next + 1 if self.descending else self._next - 1

    def fill(self, want: int, at_once: int | None = None) -> None:
        """Read on, until `want` points were found in total, or to the end; at least `at_once` of a chunk."""
        at_once = self._series.bounds.walk_points if at_once is None else at_once
        while self._count < want and not self.exhausted:
            some = max(want - self._count, at_once)
            low, high = (self._range_down if self.descending else self._range_up)(self._next, some)
            found = self._series.points(low, high)
            if len(found.iters):
                self._found.append(take(found, slice(None, None, -1)) if self.descending else found)
                self._count += len(found.iters)

    def points(self) -> Points:
        """The points found so far, in walking order."""
        if len(self._found) > 1:
            self._found = [concat(self._found)]
        return self._found[0] if self._found else NO_POINTS

    def _range_up(self, low: int, points: int) -> tuple[int, int]:
        """The next range of iterations, which has about so many points."""
        chunk = self._series.chunk_from(low) if low <= self._chunk_end else None
        if chunk is None or chunk.last == GREATEST:
            self.exhausted = True
            return low, GREATEST
        high = min(max(low, chunk.first) + chunk.span_of(points), chunk.last)
        self._next = high + 1
        return low, high

    def _range_down(self, high: int, points: int) -> tuple[int, int]:
        if LEAST < self._chunk_end < high:
            self._next = self._chunk_end
            return self._chunk_end + 1, high
        chunk = self._series.chunk_until(high) if self._chunk_end > LEAST else None
        if chunk is None or chunk.first == LEAST:
            self.exhausted = True
            return LEAST, high
        low = max(min(high, chunk.last) - chunk.span_of(points), chunk.first)
        self._next = low - 1
        return low, high

    @property
    def _chunk_end(self) -> int:
        end = self._series.merged.chunk_end
        return LEAST if end is None else end


def walk_together(
    walks: Sequence[SeriesWalk], query: PageQuery[ScalarPosition]
) -> tuple[Points, npt.NDArray[np.int32]]:
    """A page of points in (iteration, walk) order, reversed if descending, and the number of each point's walk."""
    limit = query.limit
    if not walks:
        return NO_POINTS, np.empty(0, np.int32)
    if len(walks) == 1:
        walks[0].fill(*((1, limit) if query.may_be_shorter else (limit,)))
        points = take(walks[0].points(), slice(0, limit))
        return points, np.zeros(len(points.iters), np.int32)
    ahead = in_walking_order(query.descending)
    want = limit // len(walks) + _SPARE
    for walk in walks:
        walk.fill(want)
    while True:
        frontiers = ahead(np.array([walk.frontier for walk in walks], np.int64))
        frontier = frontiers.min()
        complete = [int(np.searchsorted(ahead(walk.points().iters), frontier, "right")) for walk in walks]
        behind = [walk for walk, at in zip(walks, frontiers, strict=True) if at == frontier and not walk.exhausted]
        if sum(complete) >= limit or not behind:
            break
        want *= 2
        for walk in behind:
            walk.fill(want)
    # No walk has more than `limit` of the first `limit` points.
    counts = [min(count, limit) for count in complete]
    points = concat([take(walk.points(), slice(0, count)) for walk, count in zip(walks, counts, strict=True)])
    numbers = np.repeat(np.arange(len(walks), dtype=np.int32), counts)
    return first_of(points, numbers, query)
