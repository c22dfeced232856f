"""Which blocks of a series count on which iterations, while any number of servers write, compact and delete.

- A *fragment* has the points of a series that came with one batch. The store gives each block a place in one order
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

Anybody may delete a block that counts nowhere, at any time. On each of its iterations another chunk counts, which is
in the store already. That chunk counts until there is one whose statement goes further, and may be deleted only then.
So a server may stop between any two steps, several servers may compact the same series at once, and a reader that
sees all blocks of a moment finds every point once. Nothing here needs a lock: a lease only keeps servers from doing
the same work twice.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import NamedTuple

from apiserver.stores.events.blocks.blocks import Block


class BlockPart(NamedTuple):
    """A block's points count on the iterations `first` to `last`."""

    block: Block
    first: int
    last: int


def parts(blocks: Iterable[Block], deleted: int = 0) -> list[BlockPart]:
    """The parts of a series' blocks that count, after a deletion at place `deleted`; 0: there was none.

    If several have a point of an iteration, that of the last counts.
    """
    left = [block for block in blocks if block.reaches >= deleted]
    cover = _Cover(block for block in left if block.statement is not None)
    made = [part for part in cover.parts if part.block.brought_at is None]
    brought = sorted([(place, block) for block in left if (place := block.brought_at) is not None], key=itemgetter(0))
    return [*made, *(part for place, block in brought for part in cover.uncovered(block, place))]


def superseded(blocks: Sequence[Block], deleted: int = 0) -> list[Block]:
    """The blocks that count nowhere: whoever finds some may delete them."""
    count = {part.block.id for part in parts(blocks, deleted)}
    return [one for one in blocks if one.id not in count]


class _Cover:
    """For each iteration the chunk that counts there, as ranges that do not overlap, ascending."""

    def __init__(self, chunks: Iterable[Block]) -> None:
        self.parts: list[BlockPart] = []
        self._lasts: list[int] = []
        for chunk in sorted(chunks, key=lambda one: (one.up_to, one.id)):
            self._lay(chunk)

    def _lay(self, chunk: Block) -> None:
        """Lay a chunk over those before it."""
        start, stop = self._overlapping(chunk.first, chunk.last)
        fresh = [BlockPart(chunk, chunk.first, chunk.last)]
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

    def uncovered(self, block: Block, place: int) -> list[BlockPart]:
        """The iterations of a block on which no chunk counts whose statement goes up to this place."""
        uncovered, first = [], block.first
        start, stop = self._overlapping(block.first, block.last)
        for chunk, begin, end in self.parts[start:stop]:
            if chunk.up_to >= place:
                if first < begin:
                    uncovered.append(BlockPart(block, first, begin - 1))
                first = end + 1
        if first <= block.last:
            uncovered.append(BlockPart(block, first, block.last))
        return uncovered
