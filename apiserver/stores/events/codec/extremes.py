"""The least and the greatest values of many runs, found iteration by iteration where runs have the same iterations.

To find the least value of each bucket, a short group of values, takes several times as long as to compare two arrays.
Runs often have the same iterations. So the values of a run are compared with those of the runs before, and buckets are
made once, of what is the least and the greatest at each iteration. For example, with buckets that are 2 wide:

    run a           1, 9, 5, 4
    run b           3, 2, 7, 6
    least           1, 2, 5, 4    in buckets: 1, 4
    greatest        3, 9, 7, 6    in buckets: 9, 7
"""

from __future__ import annotations

import numpy as np

from apiserver.events.aggregates import CurvesInBuckets
from apiserver.events.model import Float64Array
from apiserver.events.queries import CommonBuckets
from apiserver.stores.events.codec.integers import Progression

#: Points that are remembered at most: they and those of a run fit into a processor's cache.
_MOST = 2**16


class Extremes:
    """Lets the extremes of curves in buckets reach to the points of some of their runs."""

    def __init__(self, found: CurvesInBuckets, buckets: CommonBuckets) -> None:
        self._found, self._buckets = found, buckets
        self._known: dict[Progression, tuple[Float64Array, Float64Array]] = {}
        self._points = 0

    def take(self, iters: Progression, values: Float64Array) -> bool:
        """Take finite points, which all lie in the buckets. False: they are too many to be taken."""
        if iters in self._known:
            least, greatest = self._known[iters]
            np.minimum(least, values, out=least)
            np.maximum(greatest, values, out=greatest)
            return True
        if len(values) > _MOST:
            return False
        if self._points + len(values) > _MOST:
            self.put()
        self._known[iters] = values.copy(), values.copy()
        self._points += len(values)
        return True

    def put(self) -> None:
        """Put what is known so far into the buckets."""
        for iters, (least, greatest) in self._known.items():
            numbers = self._buckets.numbers(iters.whole())
            starts = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1]))
            self._found.widen(
                numbers[starts], np.minimum.reduceat(least, starts), np.maximum.reduceat(greatest, starts)
            )
        self._known.clear()
        self._points = 0
