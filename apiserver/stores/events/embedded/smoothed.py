"""What is kept of smoothed curves (`kept_curves.py`), so that another look at them takes little time, at any zoom.

A long curve is smoothed in stretches of `smoothed_points` points. Of each one is kept how the smoother was before it,
and sums of its blocks of neighbouring points. Buckets of whole blocks are made of the sums. Points are smoothed again,
from the smoother that was kept, where buckets are narrower than blocks, and where a range begins or ends. For example,
a range begins in the middle of stretch 3 of 76, and ends in the middle of stretch 9:

    stretches 1 and 2      are not needed
    stretch 3              is smoothed again, from the smoother before it
    stretches 4 to 8       their sums are taken
    stretch 9              is smoothed again
    all others             are not needed

Only points of chunks are kept that no hot points lie in or before.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

from apiserver.events.smoothing import Smoother, Smoothing
from apiserver.stores.events.codec.pieces import Pieces

_STRETCH_BYTES = 1000


class Stretch(NamedTuple):
    """Neighbouring points of a curve that were smoothed at a time."""

    end: int
    """The iteration of the last of them."""
    before: Smoother
    """The smoother before it got them."""
    first: int
    last: int
    """Where the smoothed points begin and end. They may lie before `end`, as a smoother may hold points back."""
    pieces: Pieces
    """Sums of the smoothed points."""

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        columns = [self.pieces.x, *self.pieces.sums.values()]
        return sum([column.nbytes for column in columns]) + self.before.size + _STRETCH_BYTES


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a curve: its stretches from its first point on."""

    length: int
    """The length of the axis, if it matters for the smoothing; else 0."""
    after: Smoother
    """The smoother behind the last stretch. It must not be fed, but a copy of it."""
    shift: int = 0
    """Points with the same iter >> shift are in one block."""
    stretches: Sequence[Stretch] = ()

    @classmethod
    def begin(cls, smoothing: Smoothing, ends: tuple[int, int]) -> Self:
        """Nothing yet of a curve with these ends."""
        return cls(ends[1] - ends[0] if smoothing.needs_length else 0, smoothing.begin(*ends))

    def until(self, end: int) -> Known:
        """Without the stretches that do not lie wholly before `end`."""
        count = bisect_left(self.stretches, end, key=lambda stretch: stretch.end)
        if count == len(self.stretches):
            return self
        return replace(self, stretches=self.stretches[:count], after=self.stretches[count].before)

    @property
    def basis(self) -> tuple[int, ...]:
        """The axis and the blocks."""
        return self.length, self.shift

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return sum([stretch.size for stretch in self.stretches])
