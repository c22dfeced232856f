"""Writes chunks: cuts points to size, sums them up, encodes them, and writes many together in one transaction.

If points have to be laid over a chunk that is damaged, it is set aside, as nobody can tell what was in it: its bytes go
to the table `damaged_chunks`, the log names it, and merging goes on.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from apiserver.stores.events.codec import chunks, pieces, stats
from apiserver.stores.events.codec.checked import Damaged, Kind, Place, wrap
from apiserver.stores.events.codec.chunks import WholeBody
from apiserver.stores.events.codec.points import NO_POINTS, Points, concat, even_parts
from apiserver.stores.events.embedded.bounds import EmbeddedBounds

_SERIES_BITS = 24
_FIRST_SEALED = 2**62

logger = logging.getLogger(__name__)


class LastChunk(NamedTuple):
    """The last chunk of a series, in the database or about to be written."""

    id: int
    length: int


class _Pending(NamedTuple):
    series: int
    points: Points
    sealed: bool


class ChunkWriter:
    """Collects chunks, then computes, encodes and writes many of them at once.

    If it `seals`, it makes large ones sealed at once, as of series that come whole.
    """

    def __init__(self, conn: sqlite3.Connection, bounds: EmbeddedBounds, *, seals: bool = False) -> None:
        self._conn = conn
        self._bounds = bounds
        self._seals = seals
        self._pending: dict[int, _Pending] = {}
        self._points = 0
        self._next_id: int | None = None
        self.set_aside = 0
        """How many damaged chunks were set aside."""

    def read(self, id: int) -> Points:
        """A chunk that is in the database or about to be written. A damaged one is set aside, and has no points."""
        if id in self._pending:
            return self._pending[id].points
        try:
            return chunks.decode_points(*self._bodies(id))
        except Damaged:
            logger.error("chunk %s is damaged; it is set aside, so that its series can be written", id)
            self._conn.execute("INSERT INTO damaged_chunks VALUES (?, ?, ?, ?)", (id, *self._bodies(id)))
            self.set_aside += 1
            return NO_POINTS

    def read_whole(self, ids: Sequence[int]) -> Points:
        """Adjacent chunks that are in the database, as one; Damaged."""
        return concat([chunks.decode_points(*self._bodies(id)) for id in ids])

    def _bodies(self, id: int) -> WholeBody:
        query = (
            "SELECT count, c.body, d.body FROM chunk_index AS i JOIN chunk_curves AS c ON c.id = i.id"
            " JOIN chunk_details AS d ON d.id = i.id WHERE i.id = ?"
        )
        row: WholeBody = self._conn.execute(query, (id,)).fetchone()
        return row

    def put(self, series: int, numbered: int, points: Points, replaced: int | None) -> tuple[LastChunk, int]:
        """Write the points as one chunk, or several of like size. The first one replaces the chunk `replaced`.

        `numbered` chunks of the series got numbers so far. Returns the last chunk, and how many got numbers now.
        """
        largest_sealed = self._bounds.sealed_chunk_points
        parts = even_parts(points, largest_sealed if self._seals else self._bounds.chunk_points)
        ids = [] if replaced is None else [replaced]
        while len(ids) < len(parts):
            if self._seals or ids[:1] >= [_FIRST_SEALED] or numbered == 1 << _SERIES_BITS:
                ids.append(self._greatest_id())
            else:
                ids.append(series << _SERIES_BITS | numbered)
                numbered += 1
        sealed = self._seals and 2 * len(parts[0].iters) >= largest_sealed
        self._add([_Pending(series, part, sealed) for part in parts], ids)
        return LastChunk(ids[-1], len(parts[-1].iters)), numbered

    def seal(self, series: int, ids: Sequence[int], points: Points) -> None:
        """Write one sealed chunk instead of those with the ids, which have these points."""
        new = self._greatest_id()
        for table in ("chunk_index", "chunk_curves", "chunk_details"):
            self._conn.executemany(f"DELETE FROM {table} WHERE id = ?", zip(ids))
        self._add([_Pending(series, points, True)], [new])

    def _greatest_id(self) -> int:
        """An id that is greater than all others. SQLite fills pages better if rows are added at the end of a table."""
        if self._next_id is None:
            (last,) = self._conn.execute("SELECT max(id) FROM chunk_index").fetchone()
            self._next_id = max(last or 0, *self._pending, _FIRST_SEALED - 1) + 1
        self._next_id += 1
        return self._next_id - 1

    def _add(self, some: Sequence[_Pending], ids: Sequence[int]) -> None:
        self._pending.update(zip(ids, some, strict=True))
        self._points += sum([len(one.points.iters) for one in some])
        if self._points >= self._bounds.points_at_a_time:
            self.write()

    def write(self) -> None:
        """Write all collected chunks to the database."""
        if not self._pending:
            return
        bounds, ids, pending = self._bounds, list(self._pending), list(self._pending.values())
        parts = [chunk.points for chunk in pending]
        lengths = [len(part.iters) for part in parts]
        starts = np.cumsum([0, *lengths[:-1]], dtype=np.intp)
        iters, values, timestamps = (np.concatenate([part[n] for part in parts]) for n in range(3))
        rows = stats.of_groups(iters, values, timestamps, starts, bounds.long_group)
        summed = (bounds.summed_points, bounds.sealed_summed_points)
        shifts = [
            pieces.shift_of(int(chunk.points.iters[0]), int(chunk.points.iters[-1]), length, summed[chunk.sealed])
            for chunk, length in zip(pending, lengths, strict=True)
        ]
        blocks = pieces.blocks_of(iters, values, starts, shifts)
        self._conn.executemany(
            "REPLACE INTO chunk_index (id, series, first, last, count, shift, stats, blocks, sealed)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (
                    id,
                    chunk.series,
                    int(chunk.points.iters[0]),
                    int(chunk.points.iters[-1]),
                    lengths[n],
                    shifts[n],
                    wrap(rows[n].tobytes(), Place(Kind.CHUNK, id)),
                    wrap(
                        pieces.encode_blocks(blocks[n]) if chunk.sealed else blocks[n].tobytes(), Place(Kind.CHUNK, id)
                    ),
                    chunk.sealed,
                )
                for n, (id, chunk) in enumerate(zip(ids, pending, strict=True))
            ),
        )
        page = bounds.page_numbers
        for table, encode, columns in (
            ("chunk_curves", chunks.encode_curve, slice(0, 2)),
            ("chunk_details", chunks.encode_details, slice(2, 5)),
        ):
            self._conn.executemany(
                f"REPLACE INTO {table} VALUES (?, ?)",
                (
                    (id, wrap(encode(*chunk.points[columns], sealed=chunk.sealed, page=page), Place(Kind.CHUNK, id)))
                    for id, chunk in zip(ids, pending, strict=True)
                ),
            )
        self._pending.clear()
        self._points = 0
