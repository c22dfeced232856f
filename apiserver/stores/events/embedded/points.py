"""Columns of points of one series, ascending by iteration, each iteration once.

A `Curve` is what histograms look at; `Points` have all there is to a point. Both begin with `iters` and `values`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from apiserver.events.model import Float64Array, Int64Array


class Curve(NamedTuple):
    """Iterations and values."""

    iters: Int64Array
    values: Float64Array


class Points(NamedTuple):
    """Whole points; `workers` are numbers from the `Workers` table, `received` epoch milliseconds."""

    iters: Int64Array
    values: Float64Array
    timestamps: Int64Array
    workers: Int64Array
    received: Int64Array


Columns = TypeVar("Columns", Curve, Points)

NO_CURVE = Curve(np.empty(0, np.int64), np.empty(0, np.float64))
NO_POINTS = Points(*NO_CURVE, np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))


def curve_of(points: Points) -> Curve:
    """Only the first two columns."""
    return Curve(points.iters, points.values)


def take(points: Columns, which: slice | npt.NDArray[Any]) -> Columns:
    """The points at `which`: a slice, a mask or indices."""
    return type(points)._make([column[which] for column in points])


def concat(parts: Sequence[Columns]) -> Columns:
    """The parts one after another; there must be at least one."""
    return parts[0] if len(parts) == 1 else type(parts[0])._make(map(np.concatenate, zip(*parts, strict=True)))


def overlay(parts: Sequence[Columns]) -> Columns:
    """All parts as one: sorted, and of points with the same iteration the last one."""
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


def by_series(series: npt.NDArray[np.integer[Any]], points: Points) -> tuple[Points, npt.NDArray[np.intp]]:
    """All points sorted by series and iteration, of equal ones the last, and where each series begins.

    `series` says for each point which series it is of.
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
    """Whether a point is of a later series than the one before it, or of a later iteration of the same."""
    later = iters[1:] > iters[:-1]
    ascends: npt.NDArray[np.bool_] = (series[1:] > series[:-1]) | ((series[1:] == series[:-1]) & later)
    return ascends


def spread(starts: npt.NDArray[np.integer[Any]], lengths: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.intp]:
    """The indices of runs of these starts and lengths, one run after another."""
    offsets = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
    offsets += np.arange(len(offsets))
    return offsets


def grouped(numbers: npt.NDArray[np.integer[Any]]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The places of equal numbers, of which there is one at least, after one another; and where those of each begin."""
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    return order, np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))


def as_bytes(rows: npt.NDArray[Any]) -> list[bytes]:
    """Each element, as it is in memory."""
    items: list[bytes] = rows.view(f"V{rows.itemsize}").tolist()
    return items
