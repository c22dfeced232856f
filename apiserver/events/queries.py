"""What a reader of events asks for: which series, and which of their points, buckets or events.

A reader makes these once. They go down to the engine whole, so that no function between has to name their parts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple, Self, TypeVar

from apiserver.events.model import BucketAxis, EventType, Int64Array, Owner, Selection

#: The ends of every axis: iterations and timestamps are int64.
LEAST, GREATEST = -(2**63), 2**63 - 1

#: Stores count with times in doubles, which hold whole numbers exactly up to here.
_GREATEST_TIME = 2**53 - 1

#: Bytes of memory that a series and a bucket take, about, without the envelope.
_SERIES_BYTES, _BUCKET_BYTES = 1000, 16

Position = TypeVar("Position")

#: From how many points a series has, and the least and the greatest x of them, to the width ≥ 1 of its buckets.
Width = Callable[[int, int, int], int]


@dataclass(frozen=True, slots=True)
class SeriesQuery:
    """The series of one owner and type that `selection` names; an empty one names them all."""

    owner: Owner
    type: EventType
    selection: Selection = ()


@dataclass(frozen=True, slots=True)
class Range:
    """The part of an axis from `least` to `greatest`, both inclusive."""

    least: int = LEAST
    greatest: int = GREATEST

    @classmethod
    def of(cls, least: int | None, greatest: int | None) -> Self:
        """The range between these; None: without an end on that side."""
        return cls(LEAST if least is None else least, GREATEST if greatest is None else greatest)


EVERYWHERE = Range()


@dataclass(frozen=True, slots=True)
class PageQuery(Generic[Position]):
    """A page of a walk: up to `limit` ≥ 1 events beyond the position `after`, or from the walk's begin on.

    With `whole`, the page goes on beyond `limit` for those that share the last one's iteration, or timestamp.
    """

    limit: int
    after: Position | None = None
    descending: bool = False
    whole: bool = False


@dataclass(frozen=True, slots=True)
class BucketQuery:
    """Buckets over a part of an axis, `width` wide. Without `envelope` or `ends`, they may lack what belongs to it."""

    axis: BucketAxis
    width: Width
    range: Range = EVERYWHERE
    envelope: bool = False
    """Whether buckets are to have min and max."""
    ends: bool = True
    """Whether the envelope is to have the first and the last value, too."""

    def size(self, series: int, buckets: int) -> int:
        """Bytes of memory that so many series take, with so many buckets in all, about."""
        return (_SERIES_BYTES * series + _BUCKET_BYTES * buckets) * (3 if self.envelope else 1)


class Grid(NamedTuple):
    """Steps of `step` ≥ 1 milliseconds from `start` on; what is reported until `stop`, inclusive, counts.

    Stores can count with −2⁵³ < start ≤ stop < 2⁵³.
    """

    start: int
    stop: int
    step: int

    @classmethod
    def of(cls, start: int, stop: int, step: int) -> Self:
        """The same, within the times that stores can count with."""
        start = max(start, -_GREATEST_TIME)
        return cls(start, min(max(start, stop), _GREATEST_TIME), min(step, _GREATEST_TIME))

    @property
    def width(self) -> int:
        """Of a step; no more than there is, as there is only the first of greater ones, too."""
        return min(self.step, self.stop - self.start + 1)

    @property
    def steps(self) -> int:
        """How many steps have begun by `stop`."""
        return (self.stop - self.start) // self.step + 1

    def times(self, steps: Int64Array) -> Int64Array:
        """When these steps begin."""
        return self.start + steps * self.step
