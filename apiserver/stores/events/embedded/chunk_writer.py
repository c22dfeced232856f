"""Writes chunks: cuts points to size, sums them up, encodes them, and writes many together in one transaction."""

from __future__ import annotations

import itertools
import sqlite3
from typing import NamedTuple

import numpy as np

from apiserver.stores.events.embedded import chunks, pieces, stats
from apiserver.stores.events.embedded.points import Points, take

_SERIES_BITS = 24


class LastChunk(NamedTuple):
    """The last chunk of a series, in the database or about to be written."""

    id: int
    length: int


class ChunkWriter:
    """Collects chunks, then computes, encodes and writes many of them at once."""

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._conn = conn
        self._pending: dict[int, Points] = {}
        self._points = 0

    def read(self, id: int) -> Points:
        """A chunk that is in the database or about to be written."""
        if id in self._pending:
            return self._pending[id]
        row = self._conn.execute(
            "SELECT count, c.body, d.body FROM chunk_index AS i JOIN chunk_curves AS c ON c.id = i.id"
            " JOIN chunk_details AS d ON d.id = i.id WHERE i.id = ?",
            (id,),
        ).fetchone()
        return chunks.decode_points(*row)

    def put(self, series: int, numbered: int, points: Points, replaced: int | None) -> tuple[LastChunk, int]:
        """Write the points as one chunk, or several of like size. The first one replaces the chunk `replaced`.

        `numbered` chunks of the series got numbers so far. Returns the last chunk, and how many got numbers now.
        """
        parts = _even_parts(points)
        ids = [] if replaced is None else [replaced]
        while len(ids) < len(parts):
            ids.append(series << _SERIES_BITS | numbered)
            numbered += 1
        self._pending.update(zip(ids, parts, strict=True))
        self._points += len(points.iters)
        if self._points >= chunks.POINTS_AT_A_TIME:
            self.write()
        return LastChunk(ids[-1], len(parts[-1].iters)), numbered

    def write(self) -> None:
        """Write all collected chunks to the database."""
        if not self._pending:
            return
        parts = list(self._pending.values())
        lengths = [len(part.iters) for part in parts]
        starts = np.cumsum([0, *lengths[:-1]], dtype=np.intp)
        iters, values, timestamps = (np.concatenate([part[n] for part in parts]) for n in range(3))
        rows = stats.of_groups(iters, values, timestamps, starts)
        shifts = [
            pieces.shift_of(int(part.iters[0]), int(part.iters[-1]), length)
            for part, length in zip(parts, lengths, strict=True)
        ]
        blocks = pieces.blocks_of(iters, values, starts, shifts)
        self._conn.executemany(
            "REPLACE INTO chunk_index (id, series, first, last, count, shift, stats, blocks)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (
                    id,
                    id >> _SERIES_BITS,
                    int(part.iters[0]),
                    int(part.iters[-1]),
                    length,
                    shift,
                    rows[n].tobytes(),
                    blocks[n].tobytes(),
                )
                for n, (id, part, length, shift) in enumerate(zip(self._pending, parts, lengths, shifts, strict=True))
            ),
        )
        self._conn.executemany(
            "REPLACE INTO chunk_curves VALUES (?, ?)",
            ((id, chunks.encode_curve(part.iters, part.values)) for id, part in self._pending.items()),
        )
        self._conn.executemany(
            "REPLACE INTO chunk_details VALUES (?, ?)",
            (
                (id, chunks.encode_details(part.timestamps, part.workers, part.received))
                for id, part in self._pending.items()
            ),
        )
        self._pending.clear()
        self._points = 0


def _even_parts(points: Points) -> list[Points]:
    length = len(points.iters)
    count = -(-length // chunks.LARGEST)
    edges = [length * n // count for n in range(count + 1)]
    return [take(points, slice(a, b)) for a, b in itertools.pairwise(edges)]
