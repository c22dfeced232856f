"""Columns of points of one series, ascending by iteration, each iteration once.

A `Curve` has what histograms need, a `TimedCurve` what stats need, `Points` have everything. All begin with `iters` and
`values`. `WholePoints` are what copies move from one store to another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from apiserver.events.model import (
    SINGLE_VALUE_ITERATION,
    BucketAxis,
    Float64Array,
    Int64Array,
    ScalarPoints,
    ScalarPosition,
)
from apiserver.events.queries import GREATEST, PageQuery
from apiserver.stores.events.codec.names import Name


class Curve(NamedTuple):
    """Iterations and values."""

    iters: Int64Array
    values: Float64Array


class TimedCurve(NamedTuple):
    """Iterations, values and timestamps."""

    iters: Int64Array
    values: Float64Array
    timestamps: Int64Array


class Points(NamedTuple):
    """Whole points; `workers` are numbers from the `Workers` table, `received` epoch milliseconds."""

    iters: Int64Array
    values: Float64Array
    timestamps: Int64Array
    workers: Int64Array
    received: Int64Array


class WholePoints(NamedTuple):
    """Points of one series, at least one. `workers` has the names that their numbers stand for, and perhaps others."""

    series: Name
    points: Points
    workers: Sequence[str]


class Workers:
    """Numbers the names of workers. No number is used for two names."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names = list(names)
        self._numbers = {name: number for number, name in enumerate(self.names)}

    def number(self, name: str) -> int:
        """The number of `name`; a new one if it has none. Only one thread at a time may call this."""
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self.names)
            self.names.append(name)
        return number

    def numbers(self, names: Iterable[str]) -> Int64Array:
        """The number of each name."""
        return np.array([self.number(name) for name in names], np.int64)


Columns = TypeVar("Columns", Curve, TimedCurve, Points)

NO_CURVE = Curve(np.empty(0, np.int64), np.empty(0, np.float64))
NO_POINTS = Points(*NO_CURVE, np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))


def curve_of(points: Points) -> Curve:
    """Only the first two columns."""
    return Curve(points.iters, points.values)


def scalar_points(
    points: Points, series: npt.NDArray[np.int32], names: list[Name], workers: Sequence[str]
) -> ScalarPoints:
    """Points of several series as readers get them. `series` has the number of each point's name."""
    numbers = points.workers
    if len(numbers) and bool((numbers == numbers[0]).all()):
        reported_by = [workers[numbers[0]]] * len(numbers)
    else:
        reported_by = [workers[number] for number in numbers.tolist()]
    return ScalarPoints(names, series, points.iters, points.timestamps, points.values, reported_by, points.received)


def without_single_value(points: Columns) -> Columns:
    """The points but the one at the iteration of single values."""
    iters = points.iters
    if not len(iters) or iters[0] > SINGLE_VALUE_ITERATION:
        return points
    at = int(np.searchsorted(iters, SINGLE_VALUE_ITERATION))
    if at < len(iters) and iters[at] == SINGLE_VALUE_ITERATION:
        return take(points, np.arange(len(iters)) != at)
    return points


def curve_over_time(points: Points, axis: BucketAxis) -> Curve:
    """Timestamps, or durations, and values of all points of a series, ascending by time, without its single value."""
    points = without_single_value(points)
    curve = Curve(points.timestamps, points.values)
    if bool((curve.iters[1:] < curve.iters[:-1]).any()):
        curve = take(curve, np.argsort(curve.iters, kind="stable"))
    return Curve(since_first(curve.iters), curve.values) if axis is BucketAxis.DURATION else curve


def since_first(times: Int64Array) -> Int64Array:
    """The durations since the first of ascending times. A duration over 2⁶³ − 1 would wrap around, and is 2⁶³ − 1."""
    since = times - times[:1]
    return np.where(since < 0, GREATEST, since)


def ends_of_all(ends: Sequence[tuple[int, int]], axis: BucketAxis) -> tuple[int, int] | None:
    """The least and the greatest x of curves; `ends` are the first and the last iteration, or timestamp, of each."""
    if axis is BucketAxis.DURATION:
        ends = [(0, min(last - first, GREATEST)) for first, last in ends]
    return (min(first for first, _ in ends), max(last for _, last in ends)) if ends else None


def take(points: Columns, which: slice | npt.NDArray[Any]) -> Columns:
    """The points at `which`: a slice, a mask or indices."""
    return type(points)._make([column[which] for column in points])


def even_parts(points: Columns, largest: int) -> list[Columns]:
    """Parts of like size, of up to so many points; there must be at least one point."""
    length = len(points.iters)
    count = -(-length // largest)
    return [take(points, slice(*ends)) for ends in pairwise(length * n // count for n in range(count + 1))]


def concat(parts: Sequence[Columns]) -> Columns:
    """The parts one after another; there must be at least one."""
    return parts[0] if len(parts) == 1 else type(parts[0])._make(map(np.concatenate, zip(*parts, strict=True)))


def overlay(parts: Sequence[Columns]) -> Columns:
    """All parts as one, sorted by iteration. Of points with the same iteration, the last one is kept."""
    points = concat(parts)
    iters = points.iters
    if bool((iters[1:] > iters[:-1]).all()):
        return points
    order = np.argsort(iters, kind="stable")
    ordered = iters[order]
    last_of_its_iter = np.append(ordered[1:] != ordered[:-1], True)
    return take(points, order[last_of_its_iter])


def within(points: Columns, low: int, high: int) -> Columns:
    """The points with low ≤ iter ≤ high; there must be at least one point."""
    if low <= points.iters[0] and points.iters[-1] <= high:
        return points
    start = np.searchsorted(points.iters, low, "left")
    stop = np.searchsorted(points.iters, high, "right")
    return take(points, slice(int(start), int(stop)))


def by_series(series: npt.NDArray[np.integer[Any]], points: Columns) -> tuple[Columns, npt.NDArray[np.intp]]:
    """The points sorted by series and iteration, and where each series begins; `series` has the series of each point.

    Of points with the same series and iteration, the last one is kept.
    """
    iters = points.iters
    if not bool(_ascends(series, iters).all()):
        order = np.argsort(series, kind="stable")
        if not bool(_ascends(series[order], iters[order]).all()):
            order = np.lexsort((iters, series))
            last_of_its_kind = np.append(_ascends(series[order], iters[order]), True)
            order = order[last_of_its_kind]
        series, points = series[order], take(points, order)
    return points, np.flatnonzero(np.append(True, series[1:] != series[:-1]))


def _ascends(series: npt.NDArray[np.integer[Any]], iters: Int64Array) -> npt.NDArray[np.bool_]:
    """Whether each point has a greater (series, iteration) than the one before it; shorter by one than the points."""
    later = iters[1:] > iters[:-1]
    ascends: npt.NDArray[np.bool_] = (series[1:] > series[:-1]) | ((series[1:] == series[:-1]) & later)
    return ascends


def spread(starts: npt.NDArray[np.integer[Any]], lengths: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.intp]:
    """The indices in runs with these starts and lengths: starts 5 and 0, lengths 2 and 3 give 5, 6, 0, 1, 2."""
    offsets = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
    offsets += np.arange(len(offsets))
    return offsets


def grouped(numbers: npt.NDArray[np.integer[Any]]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The order that groups equal numbers, and where each group begins; there must be at least one number."""
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    return order, np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))


def page_end(column: Int64Array, limit: int, *, whole: bool) -> int:
    """How many of the rows are on a page of `limit`. A `whole` page has all rows with the last one's value."""
    if limit >= len(column) or not whole:
        return min(limit, len(column))
    beyond = np.flatnonzero(column[limit:] != column[limit - 1])
    return limit + int(beyond[0]) if len(beyond) else len(column)


def first_of(
    points: Points, numbers: npt.NDArray[np.int32], page: PageQuery[ScalarPosition]
) -> tuple[Points, npt.NDArray[np.int32]]:
    """The first page of these points in (iteration, series) order; `numbers` has the number of each point's series."""
    ahead = in_walking_order(page.descending)
    order = np.lexsort((ahead(numbers), ahead(points.iters)))
    order = order[: page_end(points.iters[order], page.limit, whole=page.whole)]
    return take(points, order), numbers[order]


def in_walking_order(descending: bool) -> np.ufunc:
    """Makes numbers that ascend in walking order."""
    return np.invert if descending else np.positive


def as_bytes(rows: npt.NDArray[Any]) -> list[bytes]:
    """The bytes of each element."""
    items: list[bytes] = rows.view(f"V{rows.itemsize}").tolist()
    return items
