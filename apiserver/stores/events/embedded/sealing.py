"""Seals chunks: puts those of a series that hardly change again together, in few bytes.

Encoding for few bytes takes longer, so it is done when no merge is due. Now and then, a `Sealer` looks for chunks that
are not sealed. They and their small neighbours, of less than half of `sealed_chunk_points`, become one sealed chunk
if they fill it. At the end of a series that grows, chunks wait for more points. Once nothing came for a series since
the last look, they are sealed as they are.

For example, a series has a sealed chunk of 16,000 points, and chunks of 4,000, 4,000, 4,000, 4,000 and 2,000 points:

    it grows        one sealed chunk of 16,000 points; the chunk of 2,000 waits
    it is quiet     two sealed chunks, of 16,000 and 2,000 points. If the series grows later, the second one, which is
                    small, is put together with the chunks that follow.
"""

from __future__ import annotations

import logging
import sqlite3
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from apiserver.events.queries import LEAST
from apiserver.stores.events.codec.checked import Damaged
from apiserver.stores.events.codec.points import Points
from apiserver.stores.events.embedded.bounds import BOUNDS, EmbeddedBounds
from apiserver.stores.events.embedded.chunk_writer import ChunkWriter

#: What it takes to look at a series, as so many points.
_POINTS_A_SERIES = 500

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Due:
    """A series with small chunks; whether it grows, and the iteration up to which it was sealed."""

    series: int
    grows: bool
    at: int = LEAST


class Sealer:
    """Seals step by step. Each step is a part of the caller's transaction."""

    def __init__(self, bounds: EmbeddedBounds = BOUNDS) -> None:
        self._bounds = bounds
        self._grown: set[int] = set()
        """Series that got points since the last look."""
        self._due: deque[_Due] = deque()
        self._damaged: set[int] = set()
        """First chunks of runs that have a chunk that cannot be read."""
        self.must_look = True
        """Whether there may be something to seal, now or once series do not grow any more."""

    @property
    def is_busy(self) -> bool:
        """Whether something is to be sealed now."""
        return bool(self._due)

    def note(self, series: Iterable[int]) -> None:
        """Note that these series got points."""
        self._grown.update(series)
        self.must_look = True

    def look(self, conn: sqlite3.Connection) -> None:
        """Find the series with chunks to seal."""
        grown, self._grown = self._grown, set()
        self.must_look = bool(grown)
        self._damaged.clear()
        small = _small(self._bounds)
        rows = conn.execute("SELECT series, sum(count) FROM chunk_index WHERE sealed = 0 GROUP BY series")
        self._due.extend(
            _Due(series, series in grown) for series, points in rows if series not in grown or points >= small
        )

    def step(self, conn: sqlite3.Connection) -> None:
        """Seal some chunks."""
        writer, left = ChunkWriter(conn, self._bounds), self._bounds.seal_points
        while self._due and left > 0:
            sealed = self._seal(conn, writer, self._due[0], left)
            if sealed < left:
                self._due.popleft()
            left -= sealed + _POINTS_A_SERIES
        writer.write()

    def _seal(self, conn: sqlite3.Connection, writer: ChunkWriter, due: _Due, most: int) -> int:
        """Seal `most` points of a series, a few more, or all; returns how many were sealed."""
        done = 0
        while done < most:
            run = _next_run(conn, due, self._bounds)
            if not run:
                return done
            due.at = run[-1].last
            ids = [chunk.id for chunk in run]
            if ids[0] in self._damaged:
                continue
            try:
                points = _whole(writer, run)
            except Damaged as error:
                logger.error("%s; it stays as it is", error)
                self._damaged.add(ids[0])
                continue
            writer.seal(due.series, ids, points)
            done += len(points.iters)
        return done


def _whole(writer: ChunkWriter, run: Sequence[_Chunk]) -> Points:
    """The points of a run, as the index of chunks says; Damaged."""
    points = writer.read_whole([chunk.id for chunk in run])
    iters = points.iters
    known = len(iters) == sum(chunk.points for chunk in run) and iters[-1] == run[-1].last
    if not (known and bool((iters[1:] > iters[:-1]).all())):
        raise Damaged(None)
    return points


def _small(bounds: EmbeddedBounds) -> int:
    """Chunks of fewer points are small. All that are not sealed are."""
    return bounds.sealed_chunk_points // 2


class _Chunk(NamedTuple):
    id: int
    last: int
    points: int


_NEIGHBOURS = "SELECT id, last, count FROM chunk_index WHERE series = ? AND last {} ? ORDER BY last {} LIMIT ?"


def _next_run(conn: sqlite3.Connection, due: _Due, bounds: EmbeddedBounds) -> list[_Chunk]:
    """The next small neighbours that make up a sealed chunk; none if there are none, or they wait for more points."""
    small, most = _small(bounds), bounds.seal_chunks
    unsealed = conn.execute(
        "SELECT last FROM chunk_index WHERE series = ? AND last > ? AND sealed = 0 ORDER BY last LIMIT 1",
        (due.series, due.at),
    ).fetchone()
    if unsealed is None:
        return []
    first = unsealed[0]
    for row in conn.execute(_NEIGHBOURS.format("<", "DESC"), (due.series, first, 1)):
        before = _Chunk(*row)
        if before.points < small and before.last > due.at:
            first = before.last
    rows = conn.execute(_NEIGHBOURS.format(">=", "ASC"), (due.series, first, most)).fetchall()
    run: list[_Chunk] = []
    points = 0
    for chunk in map(_Chunk._make, rows):
        points += chunk.points
        if chunk.points >= small or points > bounds.sealed_chunk_points:
            return run
        run.append(chunk)
    return [] if due.grows and len(rows) < most else run
