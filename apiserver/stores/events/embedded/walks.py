"""Walks over points in iteration order: one series range by range, many series side by side.

A walk has looked at every iteration on its way up to its `frontier`. Side by side, everything up to the nearest
frontier is complete and can be answered in order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from apiserver.events.model import ScalarPosition
from apiserver.events.queries import GREATEST, LEAST, PageQuery
from apiserver.stores.events.embedded.points import NO_POINTS, Points, concat, take
from apiserver.stores.events.embedded.series import Series

_SPARE = 16


class SeriesWalk:
    """From an iteration (inclusive) to one end of a series, about a chunk at a time."""

    def __init__(self, series: Series, start: int, descending: bool) -> None:
        self._series = series
        self._next = start
        self.descending = descending
        self._found: list[Points] = []
        self._count = 0
        self.exhausted = not LEAST <= start <= GREATEST

    @property
    def frontier(self) -> int:
        """The last iteration looked at."""
        if self.exhausted:
            return LEAST if self.descending else GREATEST
        return self._next + 1 if self.descending else self._next - 1

    def fill(self, want: int) -> None:
        """Go on until `want` points are found in all, or the end."""
        while self._count < want and not self.exhausted:
            low, high = self._next_range()
            found = self._series.points(low, high)
            if len(found.iters):
                self._found.append(take(found, slice(None, None, -1)) if self.descending else found)
                self._count += len(found.iters)

    def points(self) -> Points:
        """What was found, in walking order."""
        if len(self._found) > 1:
            self._found = [concat(self._found)]
        return self._found[0] if self._found else NO_POINTS

    def _next_range(self) -> tuple[int, int]:
        return self._range_down(self._next) if self.descending else self._range_up(self._next)

    def _range_up(self, low: int) -> tuple[int, int]:
        chunk = self._series.chunk_from(low) if low <= self._chunk_end else None
        if chunk is None or chunk.last == GREATEST:
            self.exhausted = True
            return low, GREATEST
        self._next = chunk.last + 1
        return low, chunk.last

    def _range_down(self, high: int) -> tuple[int, int]:
        if LEAST < self._chunk_end < high:
            self._next = self._chunk_end
            return self._chunk_end + 1, high
        chunk = self._series.chunk_until(high) if self._chunk_end > LEAST else None
        if chunk is None or chunk.first == LEAST:
            self.exhausted = True
            return LEAST, high
        self._next = chunk.first - 1
        return chunk.first, high

    @property
    def _chunk_end(self) -> int:
        end = self._series.merged.chunk_end
        return LEAST if end is None else end


def walk_together(
    walks: Sequence[SeriesWalk], wanted: PageQuery[ScalarPosition]
) -> tuple[Points, npt.NDArray[np.int32]]:
    """A page of the walks in (iteration, walk) order and the walk's number of each point; descending, all reversed."""
    limit = wanted.limit
    if not walks or limit < 1:
        return NO_POINTS, np.empty(0, np.int32)
    ahead = _ahead(wanted.descending)
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
    return first_of(points, numbers, wanted)


def first_of(
    points: Points, numbers: npt.NDArray[np.int32], wanted: PageQuery[ScalarPosition]
) -> tuple[Points, npt.NDArray[np.int32]]:
    """A page of some points in (iteration, walk) order and the walk's number of each; as above."""
    ahead = _ahead(wanted.descending)
    order = np.lexsort((ahead(numbers), ahead(points.iters)))
    order = order[: _page_end(points.iters[order], wanted.limit, wanted.whole)]
    return take(points, order), numbers[order]


def _ahead(descending: bool) -> np.ufunc:
    """What comes first in a walk is less."""
    return np.invert if descending else np.positive


def _page_end(iters: npt.NDArray[np.int64], limit: int, whole_iterations: bool) -> int:
    if not whole_iterations or limit >= len(iters):
        return limit
    beyond = np.flatnonzero(iters[limit:] != iters[limit - 1])
    return limit + int(beyond[0]) if len(beyond) else len(iters)
