"""Merging the scalars of one memtable into the database: runs in the tail for small series, chunks for the others.

- Chunks of a series are disjoint and ascending; the points of its tail lie beyond its last chunk and are fewer than
  `FOLD_AT`, or they are folded into chunks.
- New points beyond all that was merged are appended; others are laid over the chunks they fall into, and the stats of
  their series are made anew from those of its chunks.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from apiserver.events.model import EventType, Int64Array
from apiserver.stores.events.embedded import chunks, stats, tail
from apiserver.stores.events.embedded.chunk_writer import ChunkWriter, LastChunk
from apiserver.stores.events.embedded.hot import Memtable
from apiserver.stores.events.embedded.names import Registrar
from apiserver.stores.events.embedded.points import NO_POINTS, Points, by_series, concat, overlay, take
from apiserver.stores.events.embedded.stats import EMPTY, STATS, StatsArray

FOLD_AT = 512
_EMPTY = EMPTY.tobytes()


@dataclass(slots=True)
class _Group:
    """A series as the database has it, and its new points where they are not just a run for the tail."""

    id: int
    chunks: int
    chunk_end: int | None
    tail: int
    runs: bytes
    points: Points = NO_POINTS


class _Merge:
    """One merge's writers."""

    def __init__(self, conn: sqlite3.Connection) -> None:
        self.conn = conn
        self.tail = tail.TailWriter(conn)
        self.chunks = ChunkWriter(conn)

    def write(self) -> None:
        """Put everything collected into the database."""
        self.chunks.write()
        self.tail.write()

    def with_tail(self, group: _Group) -> Points:
        """The new points laid over those in the tail."""
        return overlay([tail.read(self.conn, group.runs), group.points]) if group.tail else group.points

    def set_tail(self, group: _Group, points: Points) -> None:
        """Let the tail be just these points."""
        self.tail.remove(group.runs)
        group.tail = len(points.iters)
        group.runs = b"".join(self.tail.put(points, [group.tail])) if group.tail else b""


def merge_scalars(conn: sqlite3.Connection, table: Memtable, registrar: Registrar) -> None:
    """Bring the memtable's points into the database, within the caller's transaction."""
    if not table.columns.series:
        return
    ids, points, starts = _sorted_points(table, registrar)
    known = [_known(conn, id) for id in ids.tolist()]
    old = np.frombuffer(b"".join(row[4] for row in known), STATS)
    new = stats.of_groups(points.iters, points.values, points.timestamps, starts)
    groups = [_Group(id, *row[:4]) for id, row in zip(ids.tolist(), known, strict=True)]
    counts = new["count"]
    overlapping = new["min_iter"] <= old["max_iter"]
    small = ~overlapping & (np.array([group.tail for group in groups]) + counts < FOLD_AT)
    small &= ~np.array([tail.is_crowded(group.runs) for group in groups])

    merge = _Merge(conn)
    for n in np.flatnonzero(~small).tolist():
        groups[n].points = take(points, slice(starts[n], starts[n] + counts[n]))
        _merge_group(merge, groups[n], bool(overlapping[n]))
    _append_runs(
        merge, [groups[n] for n in np.flatnonzero(small)], take(points, np.repeat(small, counts)), counts[small]
    )
    merge.write()

    merged = stats.combine(old, new)
    for n in np.flatnonzero(overlapping).tolist():
        merged[n] = _made_anew(conn, groups[n])[0]
    conn.executemany(
        "REPLACE INTO scalars (series, chunks, chunk_end, tail, runs, stats) VALUES (?, ?, ?, ?, ?, ?)",
        (
            (group.id, group.chunks, group.chunk_end, group.tail, group.runs, row.tobytes())
            for group, row in zip(groups, merged, strict=True)
        ),
    )


def _sorted_points(table: Memtable, registrar: Registrar) -> tuple[Int64Array, Points, npt.NDArray[np.intp]]:
    """Ids of the series, ascending; all points by series and iteration, each once; where each series begins."""
    names = table.series_names
    ids = np.array([registrar.series(owner, EventType.SCALAR, (m, v)) for owner, m, v in names], np.int64)
    by_id = np.argsort(ids)
    rank = np.empty(len(ids), np.uint16 if len(ids) <= 1 << 16 else np.uint32)  # numpy sorts short integers by radix
    rank[by_id] = np.arange(len(ids))
    series = np.repeat(rank[np.array(table.columns.series)], table.columns.lengths)
    return ids[by_id], *by_series(series, table.columns.everything())


def _known(conn: sqlite3.Connection, series: int) -> tuple[int, int | None, int, bytes, bytes]:
    query = "SELECT chunks, chunk_end, tail, runs, stats FROM scalars WHERE series = ?"
    row: tuple[int, int | None, int, bytes, bytes] | None = conn.execute(query, (series,)).fetchone()
    return row or (0, None, 0, b"", _EMPTY)


def _append_runs(merge: _Merge, groups: list[_Group], points: Points, counts: Int64Array) -> None:
    """A run for each group; the points are those of all groups, one after another."""
    listed = merge.tail.put(points, counts)
    for group, count, run in zip(groups, counts.tolist(), listed, strict=True):
        group.tail += count
        group.runs += run


def _merge_group(merge: _Merge, group: _Group, overlapping: bool) -> None:
    last_chunk = _last_chunk(merge.conn, group)
    if overlapping and group.chunk_end is not None:
        inside = int(np.searchsorted(group.points.iters, group.chunk_end, "right"))
        if inside:
            last_chunk = _lay_over_chunks(merge, group, take(group.points, slice(inside)))
            group.points = take(group.points, slice(inside, None))
    if not len(group.points.iters):
        return
    beyond = merge.with_tail(group)
    if len(beyond.iters) < FOLD_AT:
        merge.set_tail(group, beyond)
    else:
        merge.set_tail(group, NO_POINTS)
        _append_chunks(merge, group, beyond, last_chunk)


def _last_chunk(conn: sqlite3.Connection, group: _Group) -> LastChunk | None:
    if group.chunk_end is None:
        return None
    query = "SELECT id, count FROM chunk_index WHERE series = ? ORDER BY last DESC LIMIT 1"
    return LastChunk(*conn.execute(query, (group.id,)).fetchone())


def _append_chunks(merge: _Merge, group: _Group, points: Points, last_chunk: LastChunk | None) -> None:
    """Make chunks of points beyond all chunks; a last chunk that is small is made anew with them."""
    group.chunk_end = int(points.iters[-1])
    if last_chunk is not None and last_chunk.length < chunks.LARGEST // 2:
        merge.chunks.put(group, concat([merge.chunks.read(last_chunk.id), points]), last_chunk.id)
    else:
        merge.chunks.put(group, points, None)


def _lay_over_chunks(merge: _Merge, group: _Group, points: Points) -> LastChunk:
    """Lay each point over the first chunk that ends at its iteration or beyond; return the series' last chunk."""
    rows = merge.conn.execute(
        "SELECT id, last, count FROM chunk_index WHERE series = ? AND last >= ? ORDER BY last",
        (group.id, int(points.iters[0])),
    ).fetchall()
    number = np.searchsorted(np.array([last for _, last, _ in rows], np.int64), points.iters)
    for n, start, stop in _runs(number):
        id = rows[n][0]
        laid_over = overlay([merge.chunks.read(id), take(points, slice(start, stop))])
        written = merge.chunks.put(group, laid_over, id)
    return written if id == rows[-1][0] else LastChunk(rows[-1][0], rows[-1][2])


def _runs(numbers: npt.NDArray[np.intp]) -> Iterator[tuple[int, int, int]]:
    """Each number of an ascending column, and where its run starts and stops."""
    starts = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1]))
    stops = np.append(starts[1:], len(numbers))
    return zip(numbers[starts].tolist(), starts.tolist(), stops.tolist(), strict=True)


def _made_anew(conn: sqlite3.Connection, group: _Group) -> StatsArray:
    """The stats of a series from those of its chunks and the points of its tail."""
    rows = b"".join(row[0] for row in conn.execute("SELECT stats FROM chunk_index WHERE series = ?", (group.id,)))
    found = stats.fold(np.frombuffer(rows, STATS))
    rest = tail.read(conn, group.runs)
    if not len(rest.iters):
        return found
    return stats.combine(found, stats.of_groups(rest.iters, rest.values, rest.timestamps, np.zeros(1, np.intp)))
