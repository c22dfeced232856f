"""The blocks of long curves, decoded and kept (`kept_curves.py`): a long histogram takes most of its time to read them.

Kept are the blocks of all chunks of a curve, one after another, so that any part of it can be answered from them. They
are kept from the second time on that a curve is read, if all of it is, as most curves are looked at once. When chunks
were added since, only these are read:

    chunks     0–127     128–255     256–300
    pieces     0, 64     128, 192    256         each with its sums
    slices     0 to 2    2 to 4      4 to 5

A reader takes slices as if they were the encoded blocks of the database, so an answer does not depend on what is kept.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, pairwise
from typing import Self

import numpy as np

from apiserver.events.aggregates import COLUMNS
from apiserver.events.queries import GREATEST, LEAST, Range
from apiserver.stores.events.codec.checked import decoder, unwrap
from apiserver.stores.events.codec.pieces import ColumnNames, Pieces, concatenated, count_blocks, decode_blocks
from apiserver.stores.events.embedded.kept_curves import KeptCurves, Key
from apiserver.stores.events.embedded.names import state
from apiserver.stores.events.embedded.series import Content, Series, merged_stats

_BYTES = 1000
_CHUNK_BYTES = 250
_NUMBER_BYTES = 8


@dataclass(frozen=True, slots=True)
class Blocks:
    """The blocks of neighbouring chunks, from the first one of a curve on."""

    shift: int
    """The greatest shift of a chunk, for which they were read."""
    pieces: Pieces
    """A piece for each block. Nobody may change the arrays."""
    chunks: Sequence[Content] = ()
    """The body of a chunk is the slice of the pieces that are its blocks."""

    @classmethod
    def begin(cls, shift: int, columns: ColumnNames) -> Self:
        """No blocks yet."""
        sums = {name: np.empty(0, COLUMNS[name].type) for name in columns}
        return cls(shift, Pieces(np.empty(0, np.int64), sums))

    @property
    def last(self) -> int:
        """The last iteration of the last chunk."""
        return self.chunks[-1][1] if self.chunks else LEAST

    def until(self, end: int) -> Blocks:
        """Without the chunks that do not lie wholly before `end`."""
        count = bisect_left(self.chunks, end, key=lambda chunk: chunk[1])
        if count == len(self.chunks):
            return self
        stop = self.chunks[count][3].start
        return Blocks(self.shift, _part(self.pieces, slice(0, stop)), self.chunks[:count])

    def between(self, low: int, high: int) -> Iterator[Content]:
        """The chunks with points at low ≤ iter ≤ high, ascending."""
        start = bisect_left(self.chunks, low, key=lambda chunk: chunk[1])
        stop = bisect_right(self.chunks, high, key=lambda chunk: chunk[0])
        return iter(self.chunks[start:stop])

    def of(self, chunks: Sequence[Content]) -> Pieces:
        """The blocks of adjacent chunks, of which there must be at least one."""
        return _part(self.pieces, slice(chunks[0][3].start, chunks[-1][3].stop))

    def further(self, rows: Iterator[Content], at_once: int) -> Blocks:
        """With the chunks that come next, as they are stored. So many are decoded at once."""
        parts, chunks = [self.pieces], list(self.chunks)
        while part := list(islice(rows, at_once)):
            pieces, counts = _decoded(part, list(self.pieces.sums))
            edges = accumulate(counts, initial=chunks[-1][3].stop if chunks else 0)
            slices = [slice(*ends) for ends in pairwise(edges)]
            chunks += [(*chunk[:3], blocks) for chunk, blocks in zip(part, slices, strict=True)]
            parts.append(pieces)
        pieces = concatenated(parts)
        for column in (pieces.x, *pieces.sums.values()):
            column.flags.writeable = False
        return Blocks(self.shift, pieces, chunks)

    @property
    def basis(self) -> tuple[int, ...]:
        """The shift."""
        return (self.shift,)

    @property
    def size(self) -> int:
        """About how many bytes they take."""
        numbers = len(self.pieces.x) * (1 + len(self.pieces.sums))
        return _BYTES + _NUMBER_BYTES * numbers + _CHUNK_BYTES * len(self.chunks)


@decoder
def _decoded(chunks: Sequence[Content], columns: ColumnNames) -> tuple[Pieces, list[int]]:
    """The blocks of adjacent chunks, and how many each of them has."""
    bodies = [unwrap(body) for _, _, _, body in chunks]
    return decode_blocks(bodies, columns), [count_blocks(body) for body in bodies]


def _part(pieces: Pieces, which: slice) -> Pieces:
    return Pieces(pieces.x[which], {name: column[which] for name, column in pieces.sums.items()})


def _still_there(series: Series, blocks: Blocks) -> Blocks:
    """Without the last chunks if they have become part of others, or were found to be damaged."""
    if not blocks.chunks:
        return blocks
    first, last, length, _ = blocks.chunks[-1]
    there = series.chunk_until(last)
    if there == (first, last, length):
        return blocks
    return blocks.until(first if there is None else min(first, there.first))


def blocks_of(series: Series, shift: int, columns: ColumnNames, range: Range, curves: KeptCurves) -> Blocks | None:
    """The blocks of all chunks of a series; None if they are not kept, and need not be read for the range.

    `shift` is the greatest one of the chunks in the range.
    """
    row, bounds = merged_stats([series.merged])[0], series.bounds
    count, first, last = int(row["count"]), int(row["min_iter"]), series.merged.chunk_end
    most = min(count, (int(row["max_iter"]) - first >> shift) + 1)
    is_large = most * (1 + len(columns)) * _NUMBER_BYTES > bounds.bytes_of_a_curve
    if last is None or count < bounds.kept_curve_points or is_large:
        return None
    key = Key(series.owner, series.name, series.merged.id, None, columns)
    merged = state(series.conn, "merged_journal")
    begun = Blocks.begin(shift, columns)
    blocks = curves.find(key, begun, merged)
    if blocks is begun:
        curves.keep(key, begun, merged)
        return None
    if blocks.last == last:
        return blocks
    if first < range.least or range.greatest < last:
        return None
    blocks = _still_there(series, blocks)
    blocks = blocks.further(series.blocks(blocks.last + 1, GREATEST, shift), bounds.chunks_of_blocks)
    curves.keep(key, blocks, merged)
    return blocks
