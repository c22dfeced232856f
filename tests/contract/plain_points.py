"""Points of series, one by one, and what a store answers of them."""

from __future__ import annotations

import math
import statistics
import struct
import zlib
from collections.abc import Mapping, Set
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from apiserver.events.aggregates import Aggregate, Buckets
from apiserver.events.model import SINGLE_VALUE_ITERATION, Owner, ScalarPoints, ScalarStats

Name = tuple[str, str]


@dataclass(frozen=True)
class Point:
    iter: int
    timestamp: int
    value: float
    worker: str
    received: int


def checksum_of(by_iter: Mapping[int, Point]) -> int:
    """The checksum of the points of a series."""
    points = [by_iter[iter] for iter in sorted(by_iter)]
    return zlib.crc32(b"".join([struct.pack("<qqd", one.iter, one.timestamp, one.value) for one in points]))


def stay_of(by_iter: Mapping[int, Point], points: int) -> set[int]:
    """The iterations that stay of a series that is thinned to so many points."""
    by_time = sorted(by_iter.values(), key=lambda point: (point.timestamp, point.iter))
    odd = sorted(point.iter for point in by_iter.values() if not math.isfinite(point.value))
    stay = {by_time[0].iter, by_time[-1].iter, *odd[:1], SINGLE_VALUE_ITERATION} & by_iter.keys()
    iters = sorted(by_iter.keys() - {SINGLE_VALUE_ITERATION})
    width = (iters[-1] - iters[0]) // (points // 4 - 1) + 1
    for _, bucket in groupby(iters, lambda iter: (iter - iters[0]) // width):
        some = list(bucket)
        finite = [iter for iter in some if math.isfinite(by_iter[iter].value)]
        stay |= {some[0], some[-1]}
        if finite:
            stay |= {of(finite, key=lambda iter: by_iter[iter].value) for of in (min, max)}
    return stay


def stats_of(owner: Owner, name: Name, points: list[Point], *, spread: bool) -> ScalarStats:
    by_time = sorted(points, key=lambda point: (point.timestamp, point.iter))
    finite = [point for point in points if math.isfinite(point.value)]
    not_finite = [point.iter for point in points if not math.isfinite(point.value)]
    least = min(finite, key=lambda point: (point.value, point.iter), default=None)
    greatest = min(finite, key=lambda point: (-point.value, point.iter), default=None)
    return ScalarStats(
        owner=owner,
        metric=name[0],
        variant=name[1],
        count=len(points),
        finite_count=len(finite),
        min_iter=min(point.iter for point in points),
        max_iter=max(point.iter for point in points),
        min_timestamp=by_time[0].timestamp,
        max_timestamp=by_time[-1].timestamp,
        first_value=by_time[0].value,
        first_iter=by_time[0].iter,
        last_value=by_time[-1].value,
        last_iter=by_time[-1].iter,
        min_value=least.value if least else None,
        min_value_iter=least.iter if least else None,
        max_value=greatest.value if greatest else None,
        max_value_iter=greatest.iter if greatest else None,
        sum=math.fsum(point.value for point in finite),
        deviations=_deviations([point.value for point in finite]) if spread else None,
        first_not_finite_iter=min(not_finite, default=None) if spread else None,
    )


def _deviations(values: list[float]) -> float:
    try:
        return float(statistics.pvariance(values) * len(values)) if values else 0.0
    except OverflowError:
        return math.inf


def columns_of(page: list[tuple[Name, Point]]) -> ScalarPoints:
    names = sorted({name for name, _ in page})
    return ScalarPoints(
        names=names,
        series=np.array([names.index(name) for name, _ in page], np.int32),
        iters=np.array([point.iter for _, point in page], np.int64),
        timestamps=np.array([point.timestamp for _, point in page], np.int64),
        values=np.array([point.value for _, point in page], np.float64),
        workers=[point.worker for _, point in page],
        received=np.array([point.received for _, point in page], np.int64),
    )


def buckets_of(name: Name, interval: int, points: list[tuple[int, float]], wanted: Set[Aggregate]) -> Buckets:
    rows = [
        (max(number * interval, -(2**63)), *_summed([value for _, value in bucket]))
        for number, bucket in groupby(points, key=lambda point: point[0] // interval)
    ]
    x_column, *columns = list(zip(*rows, strict=True)) or [()] * (1 + len(Aggregate))
    values = {one: np.array(column, np.float64) for one, column in zip(Aggregate, columns, strict=True)}
    for one in (Aggregate.COUNT, Aggregate.NOT_FINITE):
        values[one] = values[one].astype(np.int64)
    chosen_values = {one: column for one, column in values.items() if one in wanted}
    return Buckets(*name, np.array(x_column, np.int64), chosen_values)


def _summed(values: list[float]) -> tuple[int, float, float, float, float, float, int]:
    wrong = sum(not math.isfinite(value) for value in values)
    finite = [value for value in values if math.isfinite(value)] or [math.nan]
    return len(values), math.fsum(finite) / len(finite), min(finite), max(finite), values[0], values[-1], wrong
