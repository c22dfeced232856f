"""The x axis of a chart as equal steps of time, and its curves: the values that were reported in each step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from apiserver.common.errors import Refusal, Why, validation_error
from apiserver.events.aggregates import Aggregate, Buckets
from apiserver.events.model import Float64Array, Int64Array

#: The shortest step of a chart of machines, in seconds: agents report about this often.
LEAST_INTERVAL = 40
#: The most steps of a chart, to bound its memory.
MOST_STEPS = 65_536


@dataclass(frozen=True, slots=True)
class Steps:
    """`count` ≥ 0 steps of `width` ms from `start` (epoch ms). Steps begin at multiples of the width.

    Values later than `stop` (epoch ms, inclusive) do not count.
    """

    start: int
    width: int
    count: int
    stop: int

    @classmethod
    def whole(cls, request: Mapping[str, Any]) -> Self:
        """The whole steps of `interval` seconds between a request's `from_date` and `to_date`.

        Raises Refusal(INVALID_VALUE) if the dates are not in order, Refusal(INVALID) if there are too many steps.
        """
        return cls._of(request, max(request["interval"], LEAST_INTERVAL), unfinished=False)

    @classmethod
    def touched(cls, request: Mapping[str, Any]) -> Self:
        """Like `whole`, but with the step that `to_date` is in, and without a shortest step."""
        return cls._of(request, request["interval"], unfinished=True)

    @classmethod
    def _of(cls, request: Mapping[str, Any], interval: int, *, unfinished: bool) -> Self:
        begin, end = int(request["from_date"] * 1000), int(request["to_date"] * 1000)
        if begin >= end:
            raise Refusal(Why.INVALID_VALUE, "Invalid value for fields: from_date must be before to_date")
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
        """The steps, with further steps before them that cover `milliseconds`."""
        more = -(-milliseconds // self.width)
        return Steps(self.start - more * self.width, self.width, self.count + more, self.stop)

    def number(self, at: int) -> int:
        """The number of the step that a time is in; below 0, or `count` and more, if it is in none."""
        return (at - self.start) // self.width


@dataclass(slots=True)
class ChartCurve:
    """A curve of a chart: for each step the number of values, their sum, least and greatest (±infinity if none).

    `last` is the latest value of each step: NaN if there is none, or it was not read.
    """

    count: Int64Array
    sum: Float64Array
    min: Float64Array
    max: Float64Array
    last: Float64Array
    empty: bool = field(default=True)

    @classmethod
    def over(cls, steps: Steps) -> Self:
        """A curve without values."""
        none = np.full(steps.count, np.inf)
        return cls(np.zeros(steps.count, np.int64), np.zeros(steps.count), none, -none, none * np.nan)

    def add(self, steps: Steps, buckets: Buckets) -> None:
        """Add buckets of one series, each of one step. Later calls must bring later values, for `last` to be right."""
        which = (buckets.x - steps.start) // steps.width
        inside = (which >= 0) & (which < steps.count) & np.isfinite(buckets.values[Aggregate.MEAN])
        which = which[inside]
        columns = {aggregate: column[inside] for aggregate, column in buckets.values.items()}
        self.count[which] += columns[Aggregate.COUNT]
        self.sum[which] += columns[Aggregate.MEAN] * columns[Aggregate.COUNT]
        self.min[which] = np.minimum(self.min[which], columns[Aggregate.MIN])
        self.max[which] = np.maximum(self.max[which], columns[Aggregate.MAX])
        if Aggregate.LAST in columns:
            self.last[which] = columns[Aggregate.LAST]
        self.empty = self.empty and not len(which)

    def values(self, aggregation: str) -> Float64Array:
        """The `avg`, `min` or `max` of each step; NaN for steps without values."""
        if aggregation == "avg":
            with np.errstate(invalid="ignore"):
                return self.sum / self.count
        extreme = self.min if aggregation == "min" else self.max
        return np.where(self.count > 0, extreme, np.nan)


def combined(steps: Steps, curves: Iterable[ChartCurve]) -> ChartCurve:
    """One curve with the values of several. Its `last` is not set."""
    whole = ChartCurve.over(steps)
    for curve in curves:
        whole.count += curve.count
        whole.sum += curve.sum
        whole.min = np.minimum(whole.min, curve.min)
        whole.max = np.maximum(whole.max, curve.max)
        whole.empty = whole.empty and curve.empty
    return whole
