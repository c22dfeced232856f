"""Thins long series: only those points stay that a chart of some width shows. They keep their values.

The iterations of a series are cut into buckets of one width. Of each bucket four points stay: the first, the last, the
least and the greatest; the latter two are of finite values, and of equal ones the first counts. For example, to at most
12 points, which are 2 buckets, of a series at the iterations 0 to 15:

    values    5 4 9 4 6 7 5 6 | 3 4 4 2 8 nan 4 3
    stay      5 4 9         6 | 3     2 8 nan   3

Some points stay wherever they are, as other answers name them: the first and the last by time, the first whose value
is not finite, and a single value. So up to four points stay beside those of the buckets. There are N / 4 − 1 buckets
if N points may stay.

Points may be thinned in parts, and then what stays of the parts. The same points stay. For example, a server that stops
has thinned the first half of a series. The next one thins all of it. The buckets are the same, as the first and the
last point always stay.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from apiserver.events.model import SINGLE_VALUE_ITERATION, Float64Array, Int64Array, ScalarStats
from apiserver.stores.events.codec.points import Columns, Points, take

#: Of each bucket so many points stay at most, and so many others of a series.
_OF_A_BUCKET, _OTHERS = 4, 4
#: A series cannot be thinned to fewer points: those of two buckets.
FEWEST = 2 * _OF_A_BUCKET + _OTHERS


def known_ends(stats: ScalarStats) -> tuple[int, int] | None:
    """The first and the last iteration of a series without a single value, if its stats tell them."""
    ends = stats.min_iter, stats.max_iter
    return None if SINGLE_VALUE_ITERATION in ends else ends


def checksum(points: Points, before: int = 0) -> int:
    """A number that is the same if each point has the same iteration, timestamp and value.

    The points of a series may come in parts, in the order of their iterations: `before` is the checksum of the parts
    before.
    """
    rows = np.stack([points.iters, points.timestamps, points.values.view(np.int64)], axis=1)
    return zlib.crc32(rows.tobytes(), before)


class Thinning(NamedTuple):
    """Which points of a series stay. Bucket n has the iterations from first + n · width on."""

    first: int
    width: int
    others: Int64Array
    """Iterations that stay, whichever bucket they are in."""

    @classmethod
    def of(cls, stats: ScalarStats, ends: tuple[int, int], points: int) -> Thinning:
        """For a series, so that at most so many points stay, which are FEWEST at least.

        `stats` are all stats of it, with `spread`. `ends` are its first and its last iteration without a single value.
        """
        others = [SINGLE_VALUE_ITERATION, stats.first_iter, stats.last_iter]
        if stats.first_not_finite_iter is not None:
            others.append(stats.first_not_finite_iter)
        buckets = (points - _OTHERS) // _OF_A_BUCKET
        return cls(ends[0], (ends[1] - ends[0]) // buckets + 1, np.array(others, np.int64))

    def thinned(self, points: Columns) -> Columns:
        """Those of some points of the series, ascending by iteration, that stay."""
        stays = self._stays(points.iters, points.values)
        return points if stays.all() else take(points, stays)

    def _stays(self, iters: Int64Array, values: Float64Array) -> npt.NDArray[np.bool_]:
        stays = np.isin(iters, self.others)
        places = np.flatnonzero(iters != SINGLE_VALUE_ITERATION)
        if not len(places):
            return stays
        # A difference of iterations may be too great for an int64, but not for a uint64.
        since = iters[places].view(np.uint64) - np.array(self.first).view(np.uint64)
        buckets, values = since // np.uint64(self.width), values[places]
        begins = np.append(True, buckets[1:] != buckets[:-1])
        stays[places[begins]] = True
        stays[places[np.append(begins[1:], True)]] = True
        finite = np.flatnonzero(np.isfinite(values))
        if len(finite):
            places, buckets, values = places[finite], buckets[finite], values[finite]
            starts = np.flatnonzero(np.append(True, buckets[1:] != buckets[:-1]))
            lengths = np.diff(np.append(starts, len(values)))
            for extreme in (np.minimum, np.maximum):
                hits = np.flatnonzero(values == np.repeat(extreme.reduceat(values, starts), lengths))
                stays[places[hits[np.searchsorted(hits, starts)]]] = True
        return stays
