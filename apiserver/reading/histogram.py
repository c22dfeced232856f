"""Histograms: the points of each scalar series, put together in about `samples` buckets, at most one more.

Each series has its own interval, the width of its buckets. It is 1, so that every point is answered, if `samples` is 0
or the series has fewer points than that. Otherwise it is ceil((max − min + 1) / samples). A bucket begins at
floor(x / interval) · interval. This is its x; its y is the mean of its points.

For example, a series has the iterations 0 to 99,999, and `samples` is 100. The interval is 1,000, so the points of the
iterations 1,000 to 1,999 become one bucket with x = 1,000.

A store may make an interval over iterations up to a tenth wider if it can read less then; for tables of `/data`, which
ask for about so many buckets, also up to a half narrower.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from apiserver.common import answers
from apiserver.common.off_loop import off_loop
from apiserver.events.aggregates import ENVELOPE, Aggregate, Buckets
from apiserver.events.model import BucketAxis
from apiserver.events.queries import EVERYWHERE, LEAST, BucketQuery, Range, SeriesQuery
from apiserver.events.smoothing import Smoothing
from apiserver.stores.events.protocols.scalars import OWNERS_AT_ONCE, ScalarStore

#: {metric: {variant: {"name": variant, "x": array, "y": array, …}}}
Histogram = dict[str, dict[str, dict[str, Any]]]

_MEAN = frozenset([Aggregate.MEAN])

#: The widest interval that is an int64; only a series over the whole range of x would need a wider one.
_WIDEST = 2**63 - 1

#: The earliest time, in epoch milliseconds, that NumPy has.
_LEAST_TIME = -(2**63) + 1


class Key(StrEnum):
    """The quantity of the x axis."""

    ITER = "iter"
    DURATION = "duration"
    TIMESTAMP = "timestamp"
    ISO_TIME = "iso_time"

    @property
    def axis(self) -> BucketAxis:
        """The column it is bucketed over."""
        return BucketAxis.TIMESTAMP if self is Key.ISO_TIME else BucketAxis(self.value)


@dataclass(frozen=True, slots=True)
class HistogramQuery:
    """How to answer each series. `envelope` adds min, max, count, first and last to its buckets.

    A `range` zooms: only the points in it are answered, and the interval follows from its length. `smoothing` is done
    before, with the whole series.
    """

    samples: int
    key: Key = Key.ITER
    envelope: bool = False
    range: Range = EVERYWHERE
    smoothing: Smoothing | None = None

    @property
    def buckets(self) -> BucketQuery:
        """The query for stores."""
        width = partial(interval, samples=self.samples, range=self.range)
        return BucketQuery(self.key.axis, width, self.range, ENVELOPE if self.envelope else _MEAN, self.smoothing)


def interval(count: int, least: int, greatest: int, samples: int, range: Range = EVERYWHERE) -> int:
    """The bucket width of a series that has `count` points, with x from `least` to `greatest`, within a range."""
    if samples == 0 or count < samples:
        return 1
    least, greatest = max(least, range.least), min(greatest, range.greatest)
    return min(max(1, -(-(greatest - least + 1) // samples)), _WIDEST)


async def histogram(store: ScalarStore, series: SeriesQuery, asked: HistogramQuery) -> Histogram:
    """The histogram of scalar series. Its bytes count for the answer."""
    return await _histogram(await store.scalar_buckets(series, asked.buckets), asked)


async def histograms(store: ScalarStore, queries: Sequence[SeriesQuery], asked: HistogramQuery) -> list[Histogram]:
    """As `histogram` of each query, in order, by one read of the store for some queries at a time."""
    read = partial(store.scalar_buckets_of_each, buckets=asked.buckets)
    async with aclosing(answers.some_at_a_time(queries, OWNERS_AT_ONCE, read)) as parts:
        return [await _histogram(one, asked) async for part in parts for one in part]


async def _histogram(curves: list[Buckets], asked: HistogramQuery) -> Histogram:
    count = sum([len(curve.x) for curve in curves])
    buckets = asked.buckets
    texts = 3 * replace(buckets, aggregates=_MEAN).size(len(curves), count) if asked.key is Key.ISO_TIME else 0
    answers.hold(buckets.size(len(curves), count) + texts)
    return await off_loop(count if texts else len(curves), lambda: _all(curves, asked))


def _all(found: list[Buckets], asked: HistogramQuery) -> Histogram:
    answer: Histogram = {}
    for buckets in found:
        if asked.range.least > LEAST:  # the first bucket may begin before the range, but has no points there
            buckets.x = np.maximum(buckets.x, asked.range.least)
        x, mean = axis_values(buckets.x, asked.key), buckets.values[Aggregate.MEAN]
        series: dict[str, Any] = {"name": buckets.variant, "x": x, "y": mean}
        if asked.envelope:
            series |= {name.value: column for name, column in buckets.values.items() if name is not Aggregate.MEAN}
        answer.setdefault(buckets.metric, {})[buckets.variant] = series
    return answer


def axis_values(x: npt.NDArray[np.int64], key: Key) -> npt.NDArray[np.int64] | list[str]:
    """The x of an answer."""
    if key is not Key.ISO_TIME:
        return x
    times = np.maximum(x, _LEAST_TIME).astype("datetime64[ms]")
    return [f"{text}Z" for text in np.datetime_as_string(times)]
