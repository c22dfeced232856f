"""Which documents of a series count on which iterations, while any number of servers write, compact and delete.

- A *fragment* has the points of a series that came with one batch. The store gives each document a place in one order
  that all servers agree on: on Elasticsearch the `_seq_no` in the owner's shard.
- A *chunk* is a statement: "of the iterations `first` to `last`, everything that was written up to place `up_to` is in
  me". Who makes a chunk first asks the store for the place up to which every write has ended, then reads what there
  is, and puts those points together. So the statement is true, and stays true whatever others do meanwhile.
- A chunk may also *bring* points that were in the store nowhere before, as copies do. Of these it is a fragment, at its
  own place: a chunk that was made before has none of them, however far its statement goes.
- A *deletion* at a place says that nothing of before counts any more: fragments of an earlier place, and chunks whose
  statement ends before it, unless they brought their points later. A chunk whose statement goes beyond it was made by
  somebody who knew of it. A deletion of what somebody knows (`deletion.py`) is noted later than its place: a chunk of
  somebody who did not know of the note may go beyond the place, and then its points come back.

Of two chunks that cover an iteration, the one whose statement goes further counts. A fragment, or a chunk that brings
points, counts where no chunk covers it whose statement goes up to its place. For example:

    chunk a       iterations 0 to 99, up to place 7
    fragment f    iterations 90 to 120, place 5
    fragment g    iterations 95 to 105, place 9

    `parts`       a 0 to 99, f 100 to 120, g 95 to 105: in this order, so that g's points replace others
    `superseded`  nothing, as f still counts from 100 on

    chunk a       iterations 0 to 99, up to place 7
    chunk b       iterations 50 to 149, up to place 6; it brings its points, at place 8
    fragment f    iterations 120 to 129, place 6

    `parts`       a 0 to 99, b 50 to 149, so that b's points replace others
    `superseded`  f, as b says that it has everything up to place 6

Anybody may delete a document that counts nowhere, at any time. On each of its iterations another chunk counts, which is
in the store already. That chunk counts until there is one whose statement goes further, and may be deleted only then.
So a server may stop between any two steps, several servers may compact the same series at once, and a reader that
sees all documents of a moment finds every point once. Nothing here needs a lock: a lease only keeps servers from doing
the same work twice.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Fragment:
    """Points of one batch. `first` and `last` are their least and greatest iteration."""

    id: str
    place: int
    first: int
    last: int

    @property
    def reaches(self) -> int:
        """The place up to which it has something."""
        return self.place


@dataclass(frozen=True, slots=True)
class Chunk:
    """All points of the iterations `first` to `last` that were written up to place `up_to`.

    `place` is the chunk's own place if it brings points.
    """

    id: str
    up_to: int
    first: int
    last: int
    place: int | None = None

    @property
    def reaches(self) -> int:
        """The place up to which it has something."""
        return self.up_to if self.place is None else self.place


Document = Fragment | Chunk


class Part(NamedTuple):
    """A document counts on the iterations `first` to `last`."""

    document: Document
    first: int
    last: int


def counting(documents: Iterable[Document], deleted: int) -> list[Document]:
    """The documents that a deletion at place `deleted` leaves; 0: there was none."""
    return [one for one in documents if one.reaches >= deleted]


def parts(documents: Iterable[Document], deleted: int = 0) -> list[Part]:
    """The parts of a series' documents that count. If several have a point of an iteration, that of the last counts."""
    left = counting(documents, deleted)
    cover = _Cover(one for one in left if isinstance(one, Chunk))
    made = [part for part in cover.parts if part.document.place is None]
    brought = sorted([(one.place, one) for one in left if one.place is not None], key=itemgetter(0))
    return [*made, *(part for place, one in brought for part in cover.uncovered(one, place))]


def superseded(documents: Sequence[Document], deleted: int = 0) -> list[Document]:
    """The documents that count nowhere: whoever finds some may delete them."""
    count = {part.document.id for part in parts(documents, deleted)}
    return [one for one in documents if one.id not in count]


class _Cover:
    """For each iteration the chunk that counts there, as ranges that do not overlap, ascending."""

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        self.parts: list[Part] = []
        self._lasts: list[int] = []
        for chunk in sorted(chunks, key=lambda one: (one.up_to, one.id)):
            self._lay(chunk)

    def _lay(self, chunk: Chunk) -> None:
        """Lay a chunk over those before it."""
        start, stop = self._overlapping(chunk.first, chunk.last)
        fresh = [Part(chunk, chunk.first, chunk.last)]
        if start < stop:
            before, behind = self.parts[start], self.parts[stop - 1]
            if before.first < chunk.first:
                fresh.insert(0, before._replace(last=chunk.first - 1))
            if behind.last > chunk.last:
                fresh.append(behind._replace(first=chunk.last + 1))
        self.parts[start:stop] = fresh
        self._lasts[start:stop] = [part.last for part in fresh]

    def _overlapping(self, first: int, last: int) -> tuple[int, int]:
        """Where the parts begin and end that have some of the iterations."""
        return bisect_left(self._lasts, first), bisect_right(self.parts, last, key=lambda part: part.first)

    def uncovered(self, document: Document, place: int) -> list[Part]:
        """The iterations of a document on which no chunk counts whose statement goes up to this place."""
        found, first = [], document.first
        start, stop = self._overlapping(document.first, document.last)
        for chunk, begin, end in self.parts[start:stop]:
            if isinstance(chunk, Chunk) and chunk.up_to >= place:
                if first < begin:
                    found.append(Part(document, first, begin - 1))
                first = end + 1
        if first <= document.last:
            found.append(Part(document, first, document.last))
        return found
