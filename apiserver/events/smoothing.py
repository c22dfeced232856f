"""Smooths curves at full resolution, before they are put into buckets. So a curve looks the same at each zoom.

A long curve is smoothed in parts, in order. A smoother keeps what it needs of the parts before, and holds back points
whose windows reach beyond the part. Values that are not finite are left out. They stay as they are in an exponential
average; in a window they count for nothing. For example, a running mean of 3 points, fed in two parts:

    fed 1, 2, 6      1.5, 3         the window of the third point is not whole yet
    fed 1            3
    the rest         3.5
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Protocol

import numpy as np

from apiserver.events.model import Float64Array, Int64Array

#: The most points of a median's window. Each point takes time for its whole window.
MOST_OF_MEDIAN = 31
#: Values in each row of the table in which decayed sums are made.
_COLUMNS = 64
#: The x axis of W&B's charts has this length, whatever x is. See `_ByX`.
_CHART = 1000
#: A part of 1 that rounding leaves out.
_NOTHING = 2**-54
#: Values in windows that are compared at a time.
_AT_ONCE = 2**18

Part = tuple[Int64Array, Float64Array]
"""Some neighbouring points of a curve: x and value."""


class Kind(StrEnum):
    """How a curve is smoothed."""

    EXPONENTIAL = "ema"
    EXPONENTIAL_BY_X = "x_ema"
    MEAN = "mean"
    MEDIAN = "median"
    DERIVATIVE = "derivative"


class Smoother(Protocol):
    """Smooths one curve, fed with its parts in ascending order."""

    def feed(self, x: Int64Array, values: Float64Array) -> Part:
        """The points that are known with this part, smoothed; there may be none."""

    def rest(self) -> Part:
        """The points that were held back until the curve's end, smoothed."""


@dataclass(frozen=True, slots=True)
class Smoothing:
    """How to smooth curves. `weight`, below 1, is for exponential averages, and `points` ≥ 1 is for windows."""

    kind: Kind
    weight: float = 0.6
    points: int = 11

    def begin(self, least: int, greatest: int) -> Smoother:
        """A smoother of a curve with x from `least` to `greatest`."""
        match self.kind:
            case Kind.EXPONENTIAL:
                return _Exponential(self.weight)
            case Kind.EXPONENTIAL_BY_X:
                return _ByX(self.weight, greatest - least)
            case Kind.DERIVATIVE:
                return _Derivative()
            case Kind.MEAN:
                return _Window(self.points, _means)
            case Kind.MEDIAN:
                return _Window(self.points, _medians)

    def whole(self, x: Int64Array, values: Float64Array) -> Part:
        """A whole curve, smoothed."""
        if not len(x):
            return x, values
        smoother = self.begin(int(x[0]), int(x[-1]))
        parts = [smoother.feed(x, values), smoother.rest()]
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


class _AtOnce:
    """A smoother that holds nothing back."""

    def feed(self, x: Int64Array, values: Float64Array) -> Part:
        finite = np.isfinite(values)
        if finite.all():
            return x, self._smoothed(x, values) if len(x) else values
        smoothed = values.copy()
        if finite.any():
            smoothed[finite] = self._smoothed(x[finite], values[finite])
        return x, smoothed

    def rest(self) -> Part:
        return np.empty(0, np.int64), np.empty(0)

    def _smoothed(self, x: Int64Array, values: Float64Array) -> Float64Array:
        raise NotImplementedError


class _Exponential(_AtOnce):
    """TensorBoard's average: of y_n = w · y_{n−1} + (1 − w) · value_n, with y_0 = 0, each y_n is divided by 1 − wⁿ."""

    def __init__(self, weight: float) -> None:
        self._weight = weight
        self._last = 0.0
        self._count = 0

    def _smoothed(self, x: Int64Array, values: Float64Array) -> Float64Array:
        sums = _decayed_sums(values * (1 - self._weight), self._weight, self._last)
        self._last = float(sums[-1])
        if self._weight**self._count > _NOTHING:
            sums /= 1 - np.power(self._weight, np.arange(self._count + 1, self._count + len(values) + 1))
        self._count += len(values)
        return sums


class _ByX(_AtOnce):
    """W&B's average by time: the further apart two points are on the axis, the less the first one counts.

    A value counts w^(1000 · d / length of the axis) at a distance of d, where w is √weight, at most 0.999.
    """

    def __init__(self, weight: float, length: int) -> None:
        self._weight = min(weight**0.5, 0.999)
        self._length = max(length, 1)
        self._before: float | None = None
        self._sum = self._total = 0.0

    def _smoothed(self, x: Int64Array, values: Float64Array) -> Float64Array:
        places = x.astype(np.float64)
        steps = np.diff(places, prepend=places[0] if self._before is None else self._before)
        if self._before is None and len(steps) > 1:
            steps[0] = steps[1]  # nothing is before the first point, so its step does not matter
        self._before = float(places[-1])
        steps *= _CHART / self._length
        sums, totals = (
            _decayed_sums(column, float(self._weight ** steps[0]), before)
            if (steps == steps[0]).all()
            else _varying_sums(column, np.power(self._weight, steps), before)
            for column, before in ((values, self._sum), (np.ones(len(values)), self._total))
        )
        self._sum, self._total = float(sums[-1]), float(totals[-1])
        return sums / totals


class _Derivative(_AtOnce):
    """How much the value changes for each step of x since the point before; NaN if there is no such step."""

    def __init__(self) -> None:
        self._before = (np.nan, np.nan)

    def _smoothed(self, x: Int64Array, values: Float64Array) -> Float64Array:
        before_x, before = self._before
        places = x.astype(np.float64)
        self._before = float(places[-1]), float(values[-1])
        steps = np.diff(places, prepend=before_x)
        change = np.full(len(values), np.nan)
        with np.errstate(over="ignore", invalid="ignore"):
            np.divide(np.diff(values, prepend=before), steps, out=change, where=steps > 0)
        return change


class _Window:
    """A smoother over the points around each point: (points − 1) // 2 before it, and points // 2 behind it."""

    def __init__(self, points: int, smooth: Callable[[Float64Array, int], Float64Array]) -> None:
        self._points = points
        self._smooth = smooth
        self._ahead = points // 2
        self._x = np.empty(0, np.int64)
        self._values = np.full(points - 1 - self._ahead, np.nan)

    def feed(self, x: Int64Array, values: Float64Array) -> Part:
        self._x, self._values = np.concatenate([self._x, x]), np.concatenate([self._values, values])
        count = len(self._values) - self._points + 1
        if count <= 0:
            return np.empty(0, np.int64), np.empty(0)
        smoothed = self._smooth(self._values, self._points)
        known, self._x, self._values = self._x[:count], self._x[count:], self._values[count:]
        return known, smoothed

    def rest(self) -> Part:
        return self.feed(np.empty(0, np.int64), np.full(self._ahead, np.nan))


def _means(values: Float64Array, width: int) -> Float64Array:
    """The mean of each window's finite values; NaN if there are none."""
    finite = np.isfinite(values)
    with np.errstate(over="ignore", invalid="ignore"):
        if finite.all():
            return _window_sums(values, width) / width
        return _window_sums(np.where(finite, values, 0.0), width) / _window_sums(finite.astype(np.float64), width)


def _window_sums(values: Float64Array, width: int) -> Float64Array:
    """The sum of each `width` neighbours.

    The values are cut into rows of `width`. Each window is the end of a row and the beginning of the next one, or a
    whole row. So each sum is made of its own values only: no large value elsewhere makes it inexact.
    """
    count = len(values) - width + 1
    table = np.zeros(-(-len(values) // width) * width)
    table[: len(values)] = values
    rows = table.reshape(-1, width)
    beginnings = np.cumsum(rows, axis=1).ravel()[width - 1 : width - 1 + count]
    ends = np.cumsum(rows[:, ::-1], axis=1)[:, ::-1].ravel()[:count].copy()
    ends[::width] = 0.0
    return beginnings + ends


def _medians(values: Float64Array, width: int) -> Float64Array:
    """The median of each window's finite values; NaN if there are none."""
    windows = np.lib.stride_tricks.sliding_window_view(np.where(np.isfinite(values), values, np.nan), width)
    found = np.empty(len(windows))
    step = max(1, _AT_ONCE // width)
    for start in range(0, len(windows), step):
        some = np.sort(windows[start : start + step], axis=1)  # NaN comes last
        counts = width - np.isnan(some).sum(axis=1)
        rows = np.arange(len(some))
        low, high = some[rows, np.maximum(counts - 1, 0) // 2], some[rows, np.minimum(counts // 2, width - 1)]
        found[start : start + step] = low + (high - low) / 2
    return found


def _decayed_sums(values: Float64Array, decay: float, before: float) -> Float64Array:
    """y_n = decay · y_{n−1} + value_n for each value; y before the first value is `before`.

    The values are cut into rows, and each row is summed up as if y were 0 before it, by a product of matrices. Then
    each row gets what is left of the last y of the row before it. For example, with decay 0.5 and rows of 2:

        values   8 0 | 4 4     each row   8 4 | 4 6     then   8 4 | 6 7     as 4 · 0.5 = 2 and 4 · 0.25 = 1
    """
    left, weights = _powers(decay)
    squares = _rows(values, 0.0).reshape(-1, _COLUMNS, _COLUMNS)  # BLAS starts no threads for small products
    sums: Float64Array = np.matmul(squares, weights).reshape(-1, _COLUMNS)
    sums += np.multiply.outer(_carried(sums[:, -1], np.broadcast_to(left[-1], len(sums)), before), left)
    return sums.ravel()[: len(values)]


@lru_cache(maxsize=16)
def _powers(decay: float) -> tuple[Float64Array, Float64Array]:
    """What is left of the value before a row at each place in it; and of the value at place i at place j, as [i, j]."""
    places = np.arange(_COLUMNS)
    distances = places - places[:, np.newaxis]
    weights = np.where(distances >= 0, np.power(decay, np.maximum(distances, 0)), 0.0)
    return np.power(decay, places + 1), weights


def _varying_sums(values: Float64Array, decays: Float64Array, before: float) -> Float64Array:
    """The same with a decay for each value. All rows are summed up side by side, column by column."""
    sums, left = (np.ascontiguousarray(_rows(column, fill).T) for column, fill in ((values, 0.0), (decays, 1.0)))
    for n in range(1, _COLUMNS):
        sums[n] += left[n] * sums[n - 1]
        left[n] *= left[n - 1]
    sums += left * _carried(sums[-1], left[-1], before)
    return sums.T.reshape(-1)[: len(values)]


def _rows(values: Float64Array, fill: float) -> Float64Array:
    """The values in rows. There are a multiple of `_COLUMNS` rows; `fill` is in those that the values leave."""
    square = _COLUMNS * _COLUMNS
    if len(values) % square:
        table = np.full(-(-len(values) // square) * square, fill)
        table[: len(values)] = values
        values = table
    rows: Float64Array = values.reshape(-1, _COLUMNS)
    return rows


def _carried(lasts: Float64Array, left: Float64Array, before: float) -> Float64Array:
    """The y before each row, given the last y of each row if it were 0 before the row, and how much is left of it."""
    carried = []
    for last, factor in zip(lasts.tolist(), left.tolist(), strict=True):
        carried.append(before)
        before = last + factor * before
    return np.array(carried)
