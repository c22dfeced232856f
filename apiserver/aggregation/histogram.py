"""Histograms: each scalar series in at most `samples` buckets, each by its own interval.

interval = 1 (every point) if the series has fewer than `samples` points, or `samples` is 0; otherwise
ceil((max − min + 1) / samples). A bucket's x is its start, floor(x / interval) · interval, and its y the mean.
A store may make an interval over iterations up to a tenth wider, where that lets it look at less.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from apiserver import answers
from apiserver.events.model import BucketAxis, Buckets
from apiserver.events.queries import EVERYWHERE, LEAST, BucketQuery, Range, SeriesQuery
from apiserver.off_loop import off_loop
from apiserver.stores.events.base import EventStore

#: {metric: {variant: {"name": variant, "x": array, "y": array, …}}}
Histogram = dict[str, dict[str, dict[str, Any]]]

#: The widest interval that is an int64; only a series over the whole range of x would need a wider one.
_WIDEST = 2**63 - 1

#: One millisecond earlier, NumPy has no time.
_LEAST_TIME = -(2**63) + 1


class Key(StrEnum):
    """What the x axis shows."""

    ITER = "iter"
    TIMESTAMP = "timestamp"
    ISO_TIME = "iso_time"

    @property
    def axis(self) -> BucketAxis:
        """The column it is bucketed over."""
        return BucketAxis.ITER if self is Key.ITER else BucketAxis.TIMESTAMP


@dataclass(frozen=True, slots=True)
class HistogramQuery:
    """Series in at most `samples` buckets each; `envelope` adds min, max, count, first and last to every series.

    A `range` zooms: only its points are answered, in buckets of the `interval` of that range.
    """

    samples: int
    key: Key = Key.ITER
    envelope: bool = False
    range: Range = EVERYWHERE

    @property
    def buckets(self) -> BucketQuery:
        """What stores are asked for."""
        width = partial(interval, samples=self.samples, range=self.range)
        return BucketQuery(self.key.axis, width, self.range, self.envelope)


def interval(count: int, least: int, greatest: int, samples: int, range: Range = EVERYWHERE) -> int:
    """The bucket width of a series of `count` points with x in [least, greatest], of which a range is looked at."""
    if samples == 0 or count < samples:
        return 1
    least, greatest = max(least, range.least), min(greatest, range.greatest)
    return min(max(1, -(-(greatest - least + 1) // samples)), _WIDEST)


async def histogram(store: EventStore, series: SeriesQuery, asked: HistogramQuery) -> Histogram:
    """The histogram of scalar series; it is held for the answer."""
    buckets = asked.buckets
    found = await store.scalar_buckets(series, buckets)
    count = sum([len(one.x) for one in found])
    texts = 3 * replace(buckets, envelope=False).size(len(found), count) if asked.key is Key.ISO_TIME else 0
    answers.hold(buckets.size(len(found), count) + texts)
    return await off_loop(count if texts else len(found), lambda: _all(found, asked))


def _all(found: list[Buckets], asked: HistogramQuery) -> Histogram:
    answer: Histogram = {}
    for buckets in found:
        if asked.range.least > LEAST:  # the first bucket may begin before the range, where it holds nothing
            buckets.x = np.maximum(buckets.x, asked.range.least)
        answer.setdefault(buckets.metric, {})[buckets.variant] = _answer(buckets, asked)
    return answer


def _answer(buckets: Buckets, asked: HistogramQuery) -> dict[str, Any]:
    answer: dict[str, Any] = {"name": buckets.variant, "x": _axis_values(buckets.x, asked.key), "y": buckets.mean}
    if asked.envelope:
        answer |= {
            "min": buckets.min,
            "max": buckets.max,
            "count": buckets.count,
            "first": buckets.first,
            "last": buckets.last,
        }
    return answer


def _axis_values(x: npt.NDArray[np.int64], key: Key) -> npt.NDArray[np.int64] | list[str]:
    if key is not Key.ISO_TIME:
        return x
    times = np.maximum(x, _LEAST_TIME).astype("datetime64[ms]")
    return [f"{text}Z" for text in np.datetime_as_string(times)]
