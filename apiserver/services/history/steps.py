"""Equal steps of time, and what was reported in each: the points of a chart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from apiserver.events.model import Buckets, Float64Array, Int64Array
from apiserver.rpc.errors import ApiError, validation_error

#: Seconds of the least step of a chart of machines: agents report less often than shorter ones could show.
LEAST_INTERVAL = 40
#: More of them nobody looks at, and they would fill the memory.
MOST_STEPS = 65_536


@dataclass(frozen=True, slots=True)
class Steps:
    """`count` ≥ 0 steps of `width` ms, the first one from `start` on (epoch ms); steps begin at multiples of the width.

    What is later than `stop` (epoch ms, inclusive) does not count.
    """

    start: int
    width: int
    count: int
    stop: int

    @classmethod
    def whole(cls, request: Mapping[str, Any]) -> Self:
        """Those that a request asks for by `from_date`, `to_date` and `interval` (s), without an unfinished last one.

        400/16 when there is nothing between the dates, 400/12 when there are too many.
        """
        return cls._of(request, max(request["interval"], LEAST_INTERVAL), unfinished=False)

    @classmethod
    def touched(cls, request: Mapping[str, Any]) -> Self:
        """As `whole`, but with the step that `to_date` is in, and as short as is asked for."""
        return cls._of(request, request["interval"], unfinished=True)

    @classmethod
    def _of(cls, request: Mapping[str, Any], interval: int, *, unfinished: bool) -> Self:
        begin, end = int(request["from_date"] * 1000), int(request["to_date"] * 1000)
        if begin >= end:
            raise ApiError(400, 16, "Invalid value for fields: from_date must be before to_date")
        width = interval * 1000
        first, last = begin // width, end // width + unfinished
        if last - first > MOST_STEPS:
            raise validation_error(f"more than {MOST_STEPS} steps between the dates", field="interval")
        return cls(first * width, width, last - first, end if unfinished else last * width - 1)

    @property
    def dates(self) -> Int64Array:
        """When each step begins, in epoch ms."""
        return self.start + self.width * np.arange(self.count, dtype=np.int64)

    def before(self, milliseconds: int) -> Steps:
        """These, and those that begin so much earlier."""
        more = -(-milliseconds // self.width)
        return Steps(self.start - more * self.width, self.width, self.count + more, self.stop)

    def number(self, at: int) -> int:
        """The number of the step that a time is in; below 0 or from `count` on when it is in none."""
        return (at - self.start) // self.width


@dataclass(slots=True)
class ChartCurve:
    """Of some values: how many are in each step, and their sum, least and greatest (±infinity where there are none).

    `last`: the latest of each step, NaN where there are none, or where they were not asked for.
    """

    count: Int64Array
    sum: Float64Array
    min: Float64Array
    max: Float64Array
    last: Float64Array
    empty: bool = field(default=True)

    @classmethod
    def over(cls, steps: Steps) -> Self:
        """Without any value yet."""
        none = np.full(steps.count, np.inf)
        return cls(np.zeros(steps.count, np.int64), np.zeros(steps.count), none, -none, none * np.nan)

    def add(self, steps: Steps, buckets: Buckets) -> None:
        """Count what an engine found of one series in these steps; what is later comes later."""
        which = (buckets.x - steps.start) // steps.width
        some = (which >= 0) & (which < steps.count) & np.isfinite(buckets.mean)
        which = which[some]
        self.count[which] += buckets.count[some]
        self.sum[which] += buckets.mean[some] * buckets.count[some]
        self.min[which] = np.minimum(self.min[which], buckets.min[some])
        self.max[which] = np.maximum(self.max[which], buckets.max[some])
        if len(buckets.last):
            self.last[which] = buckets.last[some]
        self.empty = self.empty and not len(which)

    def values(self, aggregation: str) -> Float64Array:
        """The `avg`, `min` or `max` of each step, NaN where there are no values."""
        if aggregation == "avg":
            with np.errstate(invalid="ignore"):
                return self.sum / self.count
        extreme = self.min if aggregation == "min" else self.max
        return np.where(self.count > 0, extreme, np.nan)


def combined(steps: Steps, curves: Iterable[ChartCurve]) -> ChartCurve:
    """All values of several curves as those of one."""
    whole = ChartCurve.over(steps)
    for curve in curves:
        whole.count += curve.count
        whole.sum += curve.sum
        whole.min = np.minimum(whole.min, curve.min)
        whole.max = np.maximum(whole.max, curve.max)
        whole.empty = whole.empty and curve.empty
    return whole
