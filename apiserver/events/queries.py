"""Queries of events: which series, and which of their points, buckets or events.

A reader makes a query once. It goes down to the store as a whole, so that no function in between has to name its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Self, TypeVar

import numpy as np

from apiserver.events.aggregates import OF_CURVES, Aggregate
from apiserver.events.model import BucketAxis, EventType, Int64Array, MetricSelection, Owner, Selection
from apiserver.events.smoothing import Smoothing

#: The ends of every axis: iterations and timestamps are int64.
LEAST, GREATEST = -(2**63), 2**63 - 1

#: Stores compute with times as doubles. These hold whole numbers exactly up to here.
_GREATEST_TIME = 2**53 - 1

#: About how many bytes of memory a series and a bucket take, for the axis and for each aggregate.
_SERIES_BYTES, _BUCKET_BYTES = 500, 8

Position = TypeVar("Position")

#: The width ≥ 1 of a series' buckets, given its number of points and their least and greatest x.
Width = Callable[[int, int, int], int]


@dataclass(frozen=True, slots=True)
class SeriesQuery:
    """The series of one owner and type that `selection` names. An empty selection names all."""

    owner: Owner
    type: EventType
    selection: Selection = ()


@dataclass(frozen=True, slots=True)
class Range:
    """The part of an axis from `least` to `greatest`, both included."""

    least: int = LEAST
    greatest: int = GREATEST

    @classmethod
    def of(cls, least: int | None, greatest: int | None) -> Self:
        """The range between two values. None: the range has no end on that side."""
        return cls(LEAST if least is None else least, GREATEST if greatest is None else greatest)


EVERYWHERE = Range()


@dataclass(frozen=True, slots=True)
class PageQuery(Generic[Position]):
    """A page of a walk: up to `limit` ≥ 1 events behind the position `after`, or from the beginning.

    A `whole` page also has all events that share the iteration, or timestamp, of the last one, even beyond `limit`.
    Of an ascending page, points beyond the iteration `until` are not needed: a store may leave them out. With
    `may_be_shorter`, a page of points has any number of them up to `limit`, as suits the store; only the last has none.
    """

    limit: int
    after: Position | None = None
    descending: bool = False
    whole: bool = False
    until: int | None = None
    may_be_shorter: bool = False


@dataclass(frozen=True, slots=True)
class BucketQuery:
    """Buckets over a part of an axis, `width` wide, with some aggregates. Curves may be smoothed before.

    With `may_be_finer`, a store may make buckets over iterations narrower, by up to a half, if it can read less then.
    """

    axis: BucketAxis
    width: Width
    range: Range = EVERYWHERE
    aggregates: frozenset[Aggregate] = frozenset([Aggregate.MEAN])
    smoothing: Smoothing | None = None
    may_be_finer: bool = False

    def size(self, series: int, buckets: int) -> int:
        """About how many bytes of memory some series take, with so many buckets in all."""
        return (_SERIES_BYTES * series + _BUCKET_BYTES * buckets) * (1 + len(self.aggregates))


@dataclass(frozen=True, slots=True)
class CurvesQuery:
    """The same scalar series of several owners, each owner once, and the axis of their curves.

    With `smoothing`, each curve is smoothed before buckets are made. That does not change where curves begin and end.
    """

    owners: Sequence[Owner]
    metric: str
    variant: str
    axis: BucketAxis
    smoothing: Smoothing | None = None

    def of(self, owner: Owner) -> SeriesQuery:
        """The series of one owner."""
        return SeriesQuery(owner, EventType.SCALAR, [MetricSelection(self.metric, (self.variant,))])


@dataclass(frozen=True, slots=True)
class CommonBuckets:
    """Neighbouring buckets that several curves have in common. Bucket n begins at (first + n) · width.

    The width is a power of two. So the embedded store need not make buckets wider before it can use its own blocks.
    """

    first: int
    count: int
    width: int

    @classmethod
    def over(cls, least: int, greatest: int, most: int) -> Self:
        """The narrowest buckets from `least` to `greatest` that are no more than `most` ≥ 4."""
        shift = 0
        while (greatest >> shift) - (least >> shift) >= most:
            shift += 1
        return cls(least >> shift, (greatest >> shift) - (least >> shift) + 1, 1 << shift)

    @property
    def starts(self) -> Int64Array:
        """Where each bucket begins."""
        return (self.first + np.arange(self.count, dtype=np.int64)) * self.width

    def numbers(self, starts: Int64Array) -> Int64Array:
        """The number of each bucket that begins at one of these places."""
        return starts // self.width - self.first

    @property
    def range(self) -> Range:
        """All places that lie in a bucket."""
        return Range(self.first * self.width, (self.first + self.count) * self.width - 1)

    def of(self, curves: CurvesQuery) -> BucketQuery:
        """The mean and the extremes of each curve in these buckets."""
        return BucketQuery(curves.axis, lambda *_: self.width, self.range, OF_CURVES, curves.smoothing)


class Grid(NamedTuple):
    """Steps of `step` ≥ 1 milliseconds, from `start` to `stop`, both included.

    Stores can compute with −2⁵³ < start ≤ stop < 2⁵³.
    """

    start: int
    stop: int
    step: int

    @classmethod
    def of(cls, start: int, stop: int, step: int) -> Self:
        """The grid, cut to the times that stores can compute with."""
        start = max(start, -_GREATEST_TIME)
        return cls(start, min(max(start, stop), _GREATEST_TIME), min(step, _GREATEST_TIME))

    @property
    def width(self) -> int:
        """The width of a step, but no more than the width of the grid."""
        return min(self.step, self.stop - self.start + 1)

    @property
    def steps(self) -> int:
        """The number of steps that begin until `stop`."""
        return (self.stop - self.start) // self.step + 1

    def times(self, steps: Int64Array) -> Int64Array:
        """The times at which steps begin, by their numbers."""
        return self.start + steps * self.step
