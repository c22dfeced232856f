"""Keeps what was found out about long curves, so that another look at them takes little time.

What is kept tells of points of chunks. A merge may change chunks. So what it changes is forgotten before it commits,
and nothing is found or kept from then until it has committed. Readers say what was merged in their view, so one with an
older view finds and keeps nothing. For example, a curve's blocks of the iterations 0 to 999,999 are kept:

    a merge begins that changes the iteration 700,000     blocks up to there are kept, others are forgotten
    a reader comes meanwhile                              finds nothing, and reads all from the database
    the merge has committed, and a reader comes           finds the blocks that are kept, and reads the others

Deletions need no such care, as the id of a deleted series is not used again. Curves of owners whose events are deleted
are forgotten, as they would take memory. Sealing changes no points.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol, Self, TypeVar

from apiserver.events.model import Owner
from apiserver.events.smoothing import Smoothing
from apiserver.stores.events.codec.names import Name
from apiserver.stores.events.embedded.bounds import BOUNDS, EmbeddedBounds
from apiserver.stores.events.embedded.hot import HotPoints, Memtable


class Key(NamedTuple):
    """Which curve it is, how it is smoothed, and which columns of sums are kept of it."""

    owner: Owner
    name: Name
    series: int
    """The id of the series in the database."""
    smoothing: Smoothing | None
    columns: Sequence[str]


class OfCurve(Protocol):
    """What may be known of a curve, from its first point on."""

    @property
    def size(self) -> int:
        """About how many bytes it takes; 0: nothing is known."""
        ...

    @property
    def basis(self) -> tuple[int, ...]:
        """What it was made by. It is of no use to a reader who would make it by something else."""
        ...

    def until(self, end: int) -> Self:
        """Without what does not lie wholly before the iteration `end`."""
        ...


Of = TypeVar("Of", bound=OfCurve)


class KeptCurves:
    """What is known of the curves that were asked for last. Any thread may use it."""

    def __init__(self, merged: int, bounds: EmbeddedBounds = BOUNDS) -> None:
        """`merged` is the number of the last journal segment that was merged."""
        self.bounds = bounds
        self._merged: int | None = merged
        self._curves: OrderedDict[Key, OfCurve] = OrderedDict()
        self._deleted: set[Owner] = set()
        """Owners who were deleted since the last merge, but not all: readers may still have a view from before that."""
        self._lock = threading.Lock()
        self.size = 0
        """About how many bytes all curves take."""

    def find(self, key: Key, begun: Of, merged: int) -> Of:
        """What is known of a curve, for a reader in whose view the segment `merged` is the last one that was merged.

        `begun` knows nothing yet. It is returned if nothing is known, or what is known has another basis.
        """
        with self._lock:
            curve = self._curves.get(key)
            if merged != self._merged or not isinstance(curve, type(begun)) or curve.basis != begun.basis:
                return begun
            self._curves.move_to_end(key)
            return curve

    def keep(self, key: Key, curve: OfCurve, merged: int) -> None:
        """Keep what such a reader found out about a curve."""
        with self._lock:
            if merged == self._merged and curve.size and key.owner not in self._deleted:
                self._put(key, curve)
                while self.size > self.bounds.curve_bytes:
                    self._put(next(iter(self._curves)), None)

    def will_merge(self, table: Memtable) -> None:
        """Forget what the memtable changes. From now on until `has_merged`, nothing is found or kept."""
        with self._lock:
            self._merged = None
            for key, curve in list(self._curves.items()):
                hot = table.owners.get(key.owner)
                if hot is not None and key.name in hot.scalars:
                    changed = HotPoints(hot.columns, hot.scalars[key.name].numbers).points().iters.min()
                    left = curve.until(int(changed))
                    self._put(key, left if left.size else None)

    def will_change(self, owner: Owner) -> None:
        """Forget all curves of an owner. From now on until the next merge, nothing is found or kept."""
        with self._lock:
            self._merged = None
            for key in [key for key in self._curves if key.owner == owner]:
                self._put(key, None)

    def will_delete(self, owners: Collection[Owner]) -> None:
        """Forget all curves of owners. From now on until the next merge, none of theirs is kept.

        If there are too many such owners, earlier ones are not remembered. At worst, a late reader keeps a curve then
        that nobody asks for.
        """
        with self._lock:
            if len(self._deleted) > self.bounds.deletions:
                self._deleted.clear()
            self._deleted.update(owners)
            for key in [key for key in self._curves if key.owner in self._deleted]:
                self._put(key, None)

    def has_merged(self, segment: int) -> None:
        """Note that the segment was merged, and readers see it."""
        with self._lock:
            self._merged = segment
            self._deleted.clear()

    def _put(self, key: Key, curve: OfCurve | None) -> None:
        before = self._curves.pop(key, None)
        self.size -= before.size if before else 0
        if curve is not None:
            self._curves[key] = curve
            self.size += curve.size


#: For readers that find and keep nothing, as no segment has this number.
NOTHING_KEPT = KeptCurves(merged=-1)
