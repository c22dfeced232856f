"""Keeps what was found out about smoothed curves, so that another look at them takes little time, at any zoom.

A long curve is smoothed in stretches of `POINTS` points. Of each one is kept how the smoother was before it, and sums
of its blocks of neighbouring points. Buckets of whole blocks are made of the sums. Points are smoothed again, from the
smoother that was kept, where buckets are narrower than blocks, and where a range begins or ends. For example, a range
begins in the middle of stretch 3 of 76, and ends in the middle of stretch 9:

    stretches 1 and 2      are not needed
    stretch 3              is smoothed again, from the smoother before it
    stretches 4 to 8       their sums are taken
    stretch 9              is smoothed again
    all others             are not needed

Only points of chunks are kept that no hot points lie in or before. A merge may change chunks. So what it changes is
forgotten before it commits, and nothing is found or kept from then until it has committed. Readers say what was merged
in their view, so one with an older view finds and keeps nothing. Deletions need no such care, as the id of a deleted
series is not used again.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

from apiserver.events.model import Owner
from apiserver.events.smoothing import Smoother, Smoothing
from apiserver.stores.events.embedded.hot import HotPoints, Memtable, Name
from apiserver.stores.events.embedded.pieces import Pieces

#: How many points are smoothed at a time: as many as fit into a processor's cache.
POINTS = 2**17
#: Bytes that all curves together may take. The one that was not asked for longest goes first.
MOST_BYTES = 64 * 2**20
#: Bytes that a curve may take. Stretches beyond are not kept.
MOST_OF_A_CURVE = 16 * 2**20

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


class Key(NamedTuple):
    """Which curve it is, how it is smoothed, and which columns of sums are kept of it."""

    owner: Owner
    name: Name
    series: int
    """The id of the series in the database."""
    smoothing: Smoothing
    columns: Sequence[str]


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
    def size(self) -> int:
        """About how many bytes it takes."""
        return sum([stretch.size for stretch in self.stretches])


class SmoothedCurves:
    """What is known of the curves that were asked for last. Any thread may use it."""

    def __init__(self, merged: int) -> None:
        """`merged` is the number of the last journal segment that was merged."""
        self._merged: int | None = merged
        self._curves: OrderedDict[Key, Known] = OrderedDict()
        self._lock = threading.Lock()
        self.size = 0
        """About how many bytes all curves take."""

    def find(self, key: Key, begun: Known, merged: int) -> Known:
        """What is known of a curve, for a reader in whose view the segment `merged` is the last one that was merged.

        `begun` has no stretches yet. It is returned if nothing is known, or the curve's axis or blocks have changed.
        """
        with self._lock:
            known = self._curves.get(key)
            if known is None or merged != self._merged or (known.length, known.shift) != (begun.length, begun.shift):
                return begun
            self._curves.move_to_end(key)
            return known

    def keep(self, key: Key, known: Known, merged: int) -> None:
        """Keep what such a reader found out about a curve."""
        with self._lock:
            if merged == self._merged and known.stretches:
                self._put(key, known)
                while self.size > MOST_BYTES:
                    self._put(next(iter(self._curves)), None)

    def will_merge(self, table: Memtable) -> None:
        """Forget what the memtable changes. From now on until `has_merged`, nothing is found or kept."""
        with self._lock:
            self._merged = None
            for key, known in list(self._curves.items()):
                hot = table.owners.get(key.owner)
                if hot is not None and key.name in hot.scalars:
                    changed = HotPoints(hot.columns, hot.scalars[key.name].numbers).points().iters.min()
                    left = known.until(int(changed))
                    self._put(key, left if left.stretches else None)

    def has_merged(self, segment: int) -> None:
        """Note that the segment was merged, and readers see it."""
        with self._lock:
            self._merged = segment

    def _put(self, key: Key, known: Known | None) -> None:
        before = self._curves.pop(key, None)
        self.size -= before.size if before else 0
        if known is not None:
            self._curves[key] = known
            self.size += known.size


#: For readers that find and keep nothing, as no segment has this number.
NOTHING_KEPT = SmoothedCurves(merged=-1)
