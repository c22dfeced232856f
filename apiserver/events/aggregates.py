"""What buckets tell of their points: a table. A new aggregate is a member of `Aggregate` and an entry in `_MADE_OF`.

Points are summed up in columns. Two neighbouring sums can be joined to one, so that sums of points may be kept. For
example, the values 1, NaN and 5 in the buckets [1, NaN] and [5]:

    column    of the points    joined to buckets
    sum       1, 0, 5          1, 5
    finite    1, 0, 1          1, 1
    min       1, inf, 5        1, 5

The mean of each bucket is made of two columns: sum / finite = 1, 5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from apiserver.events.model import Float64Array, Int64Array

Rows = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]
Sums = dict[str, npt.NDArray[Any]]
"""Columns of sums by their names. All have the same length."""
Join = Callable[[npt.NDArray[Any], Rows, Rows], npt.NDArray[Any]]
"""Joins groups of neighbouring sums, given the first and the last row of each group."""


class Aggregate(StrEnum):
    """A number that a bucket has for its points. MEAN, MIN and MAX are of finite values. NOT_FINITE counts others."""

    COUNT = "count"
    MEAN = "mean"
    MIN = "min"
    MAX = "max"
    FIRST = "first"
    LAST = "last"
    NOT_FINITE = "not_finite"


#: All that there is to know of a bucket.
ALL = frozenset(Aggregate)
#: What an envelope shows of a bucket.
ENVELOPE = ALL - {Aggregate.NOT_FINITE}
#: What one curve of many runs is made of.
OF_CURVES = frozenset([Aggregate.MEAN, Aggregate.MIN, Aggregate.MAX])

Aggregates = dict[Aggregate, npt.NDArray[Any]]


@dataclass(slots=True)
class Buckets:
    """The buckets of one series that have points, ascending by `x`. All arrays have the same length.

    `x` is the bucket's start, floor(x / width) · width. `values` has the aggregates that were asked for. An aggregate
    of finite values is NaN for a bucket without any; FIRST and LAST are in the order of the axis.
    """

    metric: str
    variant: str
    x: Int64Array
    values: Aggregates


@dataclass(frozen=True, slots=True)
class CurvesInBuckets:
    """Several curves in buckets that they have in common. NaN: there is no finite value.

    `means` has a row for each curve and a column for each bucket. `least` and `greatest` have a number for each bucket:
    the extremes of all finite values that all curves have there.
    """

    means: Float64Array
    least: Float64Array
    greatest: Float64Array

    @classmethod
    def empty(cls, curves: int, buckets: int) -> Self:
        """Curves without values, until they are put in."""
        return cls(np.full((curves, buckets), np.nan), np.full(buckets, np.nan), np.full(buckets, np.nan))

    def put(self, curves: int | Rows, numbers: Int64Array, found: Aggregates) -> None:
        """Put in what was found in buckets with these numbers, of one curve, or of the curve that is said for each."""
        self.means[curves, numbers] = found[Aggregate.MEAN]
        least, greatest = found[Aggregate.MIN], found[Aggregate.MAX]
        (rows,) = np.nonzero(least <= greatest)  # not where there is no finite value, or others find the extremes
        self.widen(numbers[rows], least[rows], greatest[rows])

    def take(self, first: int, other: CurvesInBuckets) -> None:
        """Take over other curves in the same buckets, as those from `first` on."""
        self.means[first : first + len(other.means)] = other.means
        np.fmin(self.least, other.least, out=self.least)
        np.fmax(self.greatest, other.greatest, out=self.greatest)

    def widen(self, numbers: Int64Array | Rows, least: Float64Array, greatest: Float64Array) -> None:
        """Let the extremes of the buckets with these numbers reach to these values, too."""
        np.fmin.at(self.least, numbers, least)
        np.fmax.at(self.greatest, numbers, greatest)


@dataclass(frozen=True, slots=True)
class Neighbours:
    """A bucket of each curve outside of some buckets, and the mean of its finite values. NaN: there is none.

    Numbers count on from those of the buckets: −1 is the number of the one before the first.
    """

    numbers: Float64Array
    means: Float64Array

    @classmethod
    def empty(cls, curves: int) -> Self:
        """No neighbours."""
        return cls(np.full(curves, np.nan), np.full(curves, np.nan))


@dataclass(frozen=True, slots=True)
class Column:
    """A column of sums."""

    stored: str
    """The type of a number on disk."""
    of_points: Callable[[Float64Array, BoolArray | None], npt.NDArray[Any]]
    """The sum of each single point, from the values and whether each is finite. None: all are, as nearly always."""
    join: Join

    @property
    def type(self) -> npt.DTypeLike:
        """The type of a number in memory."""
        return np.float64 if self.stored == "<f8" else np.int64

    def summed(self, values: Float64Array, firsts: Rows, lasts: Rows) -> npt.NDArray[Any]:
        """One sum for each group of points whose values are all finite."""
        return self.join(self.of_points(values, None), firsts, lasts)


def _reduced(function: np.ufunc) -> Join:
    """Joins a group by a function of NumPy's, such as np.add."""
    return lambda column, firsts, lasts: function.reduceat(column, firsts)


def _finite_or(other: float) -> Callable[[Float64Array, BoolArray | None], Float64Array]:
    return lambda values, finite: values if finite is None else np.where(finite, values, other)


def _values(values: Float64Array, finite: BoolArray | None) -> Float64Array:
    return values


def _ones_if_finite(values: Float64Array, finite: BoolArray | None) -> Int64Array:
    return np.ones(len(values), np.int64) if finite is None else finite.astype(np.int64)


#: All columns, in the order that they have on disk. A column is joined by itself, so it cannot need another one.
COLUMNS: Mapping[str, Column] = {
    "sum": Column("<f8", _finite_or(0.0), _reduced(np.add)),
    "min": Column("<f8", _finite_or(np.inf), _reduced(np.minimum)),
    "max": Column("<f8", _finite_or(-np.inf), _reduced(np.maximum)),
    "first": Column("<f8", _values, lambda column, firsts, lasts: column[firsts]),
    "last": Column("<f8", _values, lambda column, firsts, lasts: column[lasts]),
    "count": Column("<u4", lambda values, finite: np.ones(len(values), np.int64), _reduced(np.add)),
    "finite": Column("<u4", _ones_if_finite, _reduced(np.add)),
}


def _mean(sums: Sums) -> Float64Array:
    mean: Float64Array = np.full(len(sums["sum"]), np.nan)
    np.divide(sums["sum"], sums["finite"], out=mean, where=sums["finite"] > 0)
    return mean


#: Each aggregate: the columns that it is made of, and how.
_MADE_OF: Mapping[Aggregate, tuple[tuple[str, ...], Callable[[Sums], npt.NDArray[Any]]]] = {
    Aggregate.COUNT: (("count",), lambda sums: sums["count"]),
    Aggregate.MEAN: (("sum", "finite"), _mean),
    Aggregate.MIN: (("min", "finite"), lambda sums: np.where(sums["finite"] > 0, sums["min"], np.nan)),
    Aggregate.MAX: (("max", "finite"), lambda sums: np.where(sums["finite"] > 0, sums["max"], np.nan)),
    Aggregate.FIRST: (("first",), lambda sums: sums["first"]),
    Aggregate.LAST: (("last",), lambda sums: sums["last"]),
    Aggregate.NOT_FINITE: (("count", "finite"), lambda sums: sums["count"] - sums["finite"]),
}


@cache
def columns_for(wanted: frozenset[Aggregate]) -> tuple[str, ...]:
    """The columns that some aggregates are made of."""
    needed = {name for aggregate in wanted for name in _MADE_OF[aggregate][0]}
    return tuple(name for name in COLUMNS if name in needed)


def of_points(values: Float64Array, columns: Iterable[str]) -> Sums:
    """Each point as a sum of its own."""
    finite = np.isfinite(values)
    some = None if finite.all() else finite
    return {name: COLUMNS[name].of_points(values, some) for name in columns}


def joined(sums: Sums, firsts: Rows) -> Sums:
    """One sum for each group of neighbours. `firsts` are the first rows of the groups."""
    length = len(next(iter(sums.values())))
    lasts = lasts_of(firsts, length)
    with np.errstate(over="ignore", invalid="ignore"):
        return {name: COLUMNS[name].join(column, firsts, lasts) for name, column in sums.items()}


def made_of(sums: Sums, wanted: frozenset[Aggregate]) -> Aggregates:
    """The aggregates of each bucket, one array each, from the sum of each bucket."""
    with np.errstate(over="ignore", invalid="ignore"):
        return {one: _MADE_OF[one][1](sums) for one in Aggregate if one in wanted}


def lasts_of(firsts: Rows, length: int) -> Rows:
    """The last row of each group of `length` rows, whose first rows are given."""
    lasts = np.empty_like(firsts)
    np.subtract(firsts[1:], 1, out=lasts[:-1])
    lasts[-1:] = length - 1
    return lasts
