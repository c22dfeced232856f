"""Smooths curves at full resolution, before they are put into buckets. So a curve looks the same at each zoom.

A long curve is smoothed in parts, in order. A smoother keeps what it needs of the parts before, and holds back points
whose windows reach beyond the part. Values that are not finite are left out. They stay as they are in an exponential
average; in a window they count for nothing. For example, a running mean of 3 points, fed in two parts:

    fed 1, 2, 6      1.5, 3         the window of the third point is not whole yet
    fed 1            3
    the rest         3.5
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Protocol

import numpy as np

from apiserver.events.medians import medians
from apiserver.events.model import Float64Array, Int64Array

#: The most points of a median's window. Each point takes time for its whole window.
MOST_OF_MEDIAN = 31
#: The most points of a mean's window. So many are held back, and memory for a window is taken for a short curve, too.
MOST_OF_MEAN = 10_000
#: Values in each row of the table in which decayed sums are made.
_COLUMNS = 64
#: The x axis of W&B's charts has this length, whatever x is. See `_ByX`.
_CHART = 1000
#: A part of 1 that rounding leaves out.
_NOTHING = 2**-54
#: How far weights reach: e^−200 of a value can still be told from 0.
_REACH = 200.0
#: With fewer points in that reach, they are averaged one by one.
_FEW = 32

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
    """Smooths one curve, fed with its parts in ascending order. A shallow copy of it may go on from where it is."""

    @property
    def size(self) -> int:
        """Bytes of the points that it holds back."""

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
                return _ByX(self.weight, greatest - least) if self.weight else _Exponential(0)
            case Kind.DERIVATIVE:
                return _Derivative()
            case Kind.MEAN:
                return _Window(self.points, _means)
            case Kind.MEDIAN:
                return _Window(self.points, medians)

    @property
    def needs_length(self) -> bool:
        """Whether all points change as the axis gets longer."""
        return self.kind is Kind.EXPONENTIAL_BY_X

    def whole(self, x: Int64Array, values: Float64Array) -> Part:
        """A whole curve, smoothed."""
        if not len(x):
            return x, values
        smoother = self.begin(int(x[0]), int(x[-1]))
        parts = [smoother.feed(x, values), smoother.rest()]
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


class _AtOnce:
    """A smoother that holds nothing back."""

    size = 0

    def feed(self, x: Int64Array, values: Float64Array) -> Part:
        finite = np.isfinite(values)
        with np.errstate(over="ignore", invalid="ignore"):
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
            powers = np.arange(self._count + 1, self._count + len(values) + 1, dtype=np.float64)
            powers *= math.log(self._weight) if self._weight else -math.inf
            sums /= np.negative(np.expm1(powers, out=powers), out=powers)
        self._count += len(values)
        return sums


class _ByX(_AtOnce):
    """W&B's average by time: the further apart two points are on the axis, the less the first one counts.

    A value counts w^(1000 · d / length of the axis) at a distance of d, where w is √weight > 0, at most 0.999.

    Each value is multiplied with its weight at the last point of its part. Then the average at a point is the sum of
    these products so far, divided by the sum of these weights so far. Weights far from the last point are too small for
    a number, so a part ends where they become e^−`_REACH`. For example, values 8, 0, 4, of which each counts half at
    the next point:

        weights at the last point    ¼, ½, 1
        averages                     2 / ¼ = 8,  (2 + 0) / (¼ + ½) = 2.67,  (2 + 0 + 4) / (¼ + ½ + 1) = 3.43
    """

    def __init__(self, weight: float, length: int) -> None:
        self._rate = -math.log(min(weight**0.5, 0.999)) * _CHART / max(length, 1)
        self._before: float | None = None
        self._sum = self._total = 0.0

    def _smoothed(self, x: Int64Array, values: Float64Array) -> Float64Array:
        places = x.astype(np.float64)
        before = places[0] if self._before is None else self._before
        self._before = float(places[-1])
        places -= before
        places *= self._rate
        if places[-1] - places[0] > _REACH * len(places) / _FEW:
            return self._one_by_one(places.tolist(), values.tolist())
        averages = np.empty_like(values)
        start, at = 0, 0.0
        while start < len(places):
            stop = int(np.searchsorted(places, places[start] + _REACH, "right"))
            end = float(places[stop - 1])
            left = math.exp(at - end)
            both = np.empty(stop - start, np.complex128)  # so that two columns are summed up in the time of one
            sums, weights = both.real, both.imag
            np.exp(places[start:stop] - end, out=weights)
            np.multiply(weights, values[start:stop], out=sums)
            sums[0] += self._sum * left
            weights[0] += self._total * left
            np.cumsum(both, out=both)
            np.divide(sums, weights, out=averages[start:stop])
            self._sum, self._total = float(sums[-1]), float(weights[-1])
            start, at = stop, end
        return averages

    def _one_by_one(self, places: list[float], values: list[float]) -> Float64Array:
        """The same, for points that are so far apart that parts would have few."""
        averages, before = [], 0.0
        for place, value in zip(places, values, strict=True):
            left = math.exp(before - place)
            self._sum, self._total = self._sum * left + value, self._total * left + 1
            averages.append(self._sum / self._total)
            before = place
        return np.array(averages)


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

    @property
    def size(self) -> int:
        return self._x.nbytes + self._values.nbytes

    def feed(self, x: Int64Array, values: Float64Array) -> Part:
        self._x, self._values = np.concatenate([self._x, x]), np.concatenate([self._values, values])
        count = len(self._values) - self._points + 1
        if count <= 0:
            return np.empty(0, np.int64), np.empty(0)
        smoothed = self._smooth(self._values, self._points)
        known, self._x, self._values = self._x[:count], self._x[count:].copy(), self._values[count:].copy()
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

    Sums of 1, 2, 4, 8 … neighbours are made, each of two of the size before, and those that `width` is made of are
    added. So each sum is made of its own values only: no large value elsewhere makes it inexact. For example, a sum of
    5 neighbours is one of 4 and a value: those of 1, 2, 3, 4, 5, 6 are 1 + 2 + 3 + 4 + 5 = 10 + 5 and 14 + 6.
    """
    count = len(values) - width + 1
    total, covered, sums, size = np.zeros(count), 0, values, 1
    while size <= width:
        if width & size:
            total += sums[covered : covered + count]
            covered += size
        if 2 * size <= width:
            sums = sums[:-size] + sums[size:]
        size *= 2
    return total


def _decayed_sums(values: Float64Array, decay: float, before: float) -> Float64Array:
    """y_n = decay · y_{n−1} + value_n for each value; y before the first value is `before`.

    The values are cut into rows. What is left of the last y of a row is added to the first value of the next row. Then
    each row is summed up by itself, by a product of matrices. The last y of the rows, as if y were 0 before each row,
    are such a column themselves, with another decay. For example, with decay 0.5 and rows of 2:

        values           8 0 | 4 4
        last y           4, and y before the second row is 4
        with what is left   8 0 | 6 4
        each row         8 4 | 6 7
    """
    weights = _weights(decay)
    squares = _squares(values)
    befores = np.full(1, before)
    if len(values) > _COLUMNS:
        lasts = np.matmul(squares, weights[:, -1]).ravel()[: (len(values) - 1) // _COLUMNS]
        befores = np.concatenate([befores, _decayed_sums(lasts, decay**_COLUMNS, before)])
    rows = squares.reshape(-1, _COLUMNS)
    rows[: len(befores), 0] += decay * befores
    sums: Float64Array = np.matmul(squares, weights).ravel()[: len(values)]
    return sums


@lru_cache(maxsize=64)
def _weights(decay: float) -> Float64Array:
    """How much of the value at place i of a row is left at place j, as [i, j]."""
    places = np.arange(_COLUMNS)
    distances = places - places[:, np.newaxis]
    return np.where(distances >= 0, np.power(decay, np.maximum(distances, 0)), 0.0)


def _squares(values: Float64Array) -> Float64Array:
    """The values in rows, and the rows in squares, as BLAS starts no threads for small products. The rest is 0."""
    square = _COLUMNS * _COLUMNS
    table = np.zeros((-(-len(values) // square), _COLUMNS, _COLUMNS))
    table.ravel()[: len(values)] = values
    return table
