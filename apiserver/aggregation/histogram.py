"""Histograms: each scalar series in at most `samples` buckets, each by its own interval.

interval = 1 (every point) if the series has fewer than `samples` points, or `samples` is 0; otherwise
ceil((max − min + 1) / samples). A bucket's x is its start, floor(x / interval) · interval, and its y the mean.
A store may make an interval over iterations up to a tenth wider, where that lets it look at less.
"""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from apiserver import answers
from apiserver.events.model import BucketAxis, Buckets, Owner, Selection
from apiserver.off_loop import off_loop
from apiserver.stores.events.base import EventStore

#: {metric: {variant: {"name": variant, "x": array, "y": array, …}}}
Histogram = dict[str, dict[str, dict[str, Any]]]

#: The widest interval that is an int64; only a series over the whole range of x would need a wider one.
_WIDEST = 2**63 - 1

#: Bytes of memory that a series and a bucket take, about, without the envelope.
_SERIES_BYTES, _BUCKET_BYTES = 1000, 16

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


def interval(
    count: int, least: int, greatest: int, samples: int, start: int | None = None, stop: int | None = None
) -> int:
    """The bucket width of a series of `count` points with x in [least, greatest], looked at from start to stop."""
    if samples == 0 or count < samples:
        return 1
    least = least if start is None else max(least, start)
    greatest = greatest if stop is None else min(greatest, stop)
    return min(max(1, -(-(greatest - least + 1) // samples)), _WIDEST)


async def histogram(
    store: EventStore,
    owner: Owner,
    *,
    samples: int,
    key: Key = Key.ITER,
    selection: Selection = (),
    envelope: bool = False,
    start: int | None = None,
    stop: int | None = None,
) -> Histogram:
    """The histogram of one owner; `envelope` adds min, max, count, first and last to every series.

    `start` and `stop` (inclusive) zoom: only points between them are answered, in buckets of `interval` of that range.
    """
    width = partial(interval, samples=samples, start=start, stop=stop)
    times = (4 if key is Key.ISO_TIME else 1) + (2 if envelope else 0)
    count = answers.counter()

    def counted(series: int, buckets: int) -> None:
        if count is not None:
            count(times * (_SERIES_BYTES * series + _BUCKET_BYTES * buckets))

    found = await store.scalar_buckets(
        owner, key.axis, width, selection, start=start, stop=stop, envelope=envelope, counted=counted
    )
    size = sum([len(buckets.x) for buckets in found]) if key is Key.ISO_TIME else len(found)
    return await off_loop(size, lambda: _all(found, key, envelope, start))


def _all(found: list[Buckets], key: Key, envelope: bool, start: int | None) -> Histogram:
    answer: Histogram = {}
    for buckets in found:
        if start is not None:  # the first bucket may begin before the range, and holds nothing of what lies there
            buckets.x = np.maximum(buckets.x, start)
        answer.setdefault(buckets.metric, {})[buckets.variant] = _answer(buckets, key, envelope)
    return answer


def _answer(buckets: Buckets, key: Key, envelope: bool) -> dict[str, Any]:
    answer: dict[str, Any] = {"name": buckets.variant, "x": _axis_values(buckets.x, key), "y": buckets.mean}
    if envelope:
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
