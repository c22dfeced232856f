"""Merging the scalars of one memtable into the database: tail rows for small series, chunks for the others.

- Chunks of a series are disjoint and ascending; the rows of its tail lie beyond its last chunk and are fewer than
  `FOLD_AT`, or they are folded into chunks.
- New points beyond all that was merged are appended; others are laid over the chunks they fall into, and the stats of
  their series are made anew from those of its chunks.
"""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from apiserver.events.model import EventType, Int64Array
from apiserver.stores.events.embedded import aggregates, chunks, stats
from apiserver.stores.events.embedded.hot import Memtable
from apiserver.stores.events.embedded.names import Registrar
from apiserver.stores.events.embedded.points import NO_POINTS, Points, concat, overlay, take
from apiserver.stores.events.embedded.series import read_tail
from apiserver.stores.events.embedded.stats import EMPTY, LEAST, STATS, StatsArray

FOLD_AT = 512
_SERIES_BITS = 24


@dataclass(slots=True)
class _Group:
    """A series as the database has it, and its new points where they are not just rows for the tail."""

    id: int
    chunks: int
    chunk_end: int | None
    tail: int
    points: Points = NO_POINTS


class _LastChunk(NamedTuple):
    id: int
    length: int


class _ChunkWriter:
    """Collects chunks, then computes, encodes and writes all of them at once."""

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._conn = conn
        self._pending: dict[int, Points] = {}

    def read(self, id: int) -> Points:
        """A chunk as it is or will be."""
        if id in self._pending:
            return self._pending[id]
        row = self._conn.execute(
            "SELECT count, c.body, d.body FROM chunk_index AS i JOIN chunk_curves AS c ON c.id = i.id"
            " JOIN chunk_details AS d ON d.id = i.id WHERE i.id = ?",
            (id,),
        ).fetchone()
        return chunks.decode_points(*row)

    def put(self, group: _Group, points: Points, replaced: int | None) -> _LastChunk:
        """Write the points as one chunk, or several of like size; the first takes the place of chunk `replaced`."""
        parts = _even_parts(points)
        ids = [] if replaced is None else [replaced]
        while len(ids) < len(parts):
            ids.append(group.id << _SERIES_BITS | group.chunks)
            group.chunks += 1
        self._pending.update(zip(ids, parts, strict=True))
        return _LastChunk(ids[-1], len(parts[-1].iters))

    def write(self) -> None:
        """Put everything collected into the database."""
        if not self._pending:
            return
        parts = list(self._pending.values())
        lengths = [len(part.iters) for part in parts]
        starts = np.cumsum([0, *lengths[:-1]], dtype=np.intp)
        iters, values, timestamps = (np.concatenate([part[n] for part in parts]) for n in range(3))
        rows = stats.of_groups(iters, values, timestamps, starts)
        shifts = [
            aggregates.shift_of(int(part.iters[0]), int(part.iters[-1]), length)
            for part, length in zip(parts, lengths, strict=True)
        ]
        blocks = aggregates.blocks_of(iters, values, starts, shifts)
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


@dataclass(slots=True)
class _TailWriter:
    """Collects rows of the tail, then writes them at once."""

    conn: sqlite3.Connection
    ids: list[Int64Array] = field(default_factory=list)
    parts: list[Points] = field(default_factory=list)

    def put(self, ids: Int64Array, points: Points) -> None:
        """Write the points, each to the series with its id."""
        self.ids.append(ids)
        self.parts.append(points)

    def write(self) -> None:
        """Put everything collected into the database."""
        if self.parts:
            columns = (np.concatenate(self.ids), *concat(self.parts))
            self.conn.executemany(
                "REPLACE INTO tail (series, iter, value, timestamp, worker, received) VALUES (?, ?, ?, ?, ?, ?)",
                zip(*(column.tolist() for column in columns), strict=True),
            )


def merge_scalars(conn: sqlite3.Connection, table: Memtable, registrar: Registrar) -> None:
    """Bring the memtable's points into the database, within the caller's transaction."""
    if not table.group_series:
        return
    ids, points, starts = _sorted_points(table, registrar)
    known = [_known(conn, int(id)) for id in ids]
    old = np.concatenate([row[3] for row in known])
    new = stats.of_groups(points.iters, points.values, points.timestamps, starts)
    overlapping = new["min_iter"] <= old["max_iter"]
    tails = np.array([row[2] for row in known])
    counts = new["count"]
    small = ~overlapping & (tails + counts < FOLD_AT)

    tail_writer, chunk_writer = _TailWriter(conn), _ChunkWriter(conn)
    groups = []
    for n, (id, (chunk_count, chunk_end, tail, _)) in enumerate(zip(ids.tolist(), known, strict=True)):
        group = _Group(id, chunk_count, chunk_end, tail)
        groups.append(group)
        if small[n]:
            group.tail += int(counts[n])
            continue
        group.points = take(points, slice(starts[n], starts[n] + counts[n]))
        if overlapping[n]:
            _lay_over(conn, group, chunk_writer, tail_writer)
        else:
            _append(conn, group, _with_tail(conn, group), _last_chunk(conn, group), chunk_writer)
    in_tail = np.repeat(small, counts)
    tail_writer.put(np.repeat(ids, counts)[in_tail], take(points, in_tail))
    chunk_writer.write()
    tail_writer.write()

    merged = stats.combine(old, new)
    for n in np.flatnonzero(overlapping).tolist():
        merged[n] = _made_anew(conn, int(ids[n]))[0]
    conn.executemany(
        "REPLACE INTO scalars (series, chunks, chunk_end, tail, stats) VALUES (?, ?, ?, ?, ?)",
        (
            (group.id, group.chunks, group.chunk_end, group.tail, row.tobytes())
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
    points = _all_points(table)
    series = np.repeat(rank[np.array(table.group_series)], table.group_lengths)
    order = np.argsort(series, kind="stable")
    if not _ascending(series[order], points.iters[order]):
        order = np.lexsort((points.iters, series))
        last_of_its_kind = np.append(_steps(series[order], points.iters[order]), True)
        order = order[last_of_its_kind]
    series = series[order]
    starts = np.flatnonzero(np.append(True, series[1:] != series[:-1]))
    return ids[by_id], take(points, order), starts


def _all_points(table: Memtable) -> Points:
    records = [record for record in table.records if len(record.iters)]
    return Points(
        iters=np.concatenate([record.iters for record in records]),
        values=np.concatenate([record.values for record in records]),
        timestamps=np.concatenate([record.timestamps for record in records]),
        workers=np.repeat(np.array(table.group_workers), table.group_lengths),
        received=np.repeat([record.received for record in records], [len(record.iters) for record in records]),
    )


def _ascending(series: npt.NDArray[np.unsignedinteger], iters: Int64Array) -> bool:
    return bool(((iters[1:] > iters[:-1]) | (series[1:] != series[:-1])).all())


def _steps(series: npt.NDArray[np.unsignedinteger], iters: Int64Array) -> npt.NDArray[np.bool_]:
    """Where a point and the next one differ in series or iteration."""
    steps: npt.NDArray[np.bool_] = (iters[1:] != iters[:-1]) | (series[1:] != series[:-1])
    return steps


def _known(conn: sqlite3.Connection, series: int) -> tuple[int, int | None, int, StatsArray]:
    row = conn.execute("SELECT chunks, chunk_end, tail, stats FROM scalars WHERE series = ?", (series,)).fetchone()
    return (0, None, 0, EMPTY) if row is None else (*row[:3], np.frombuffer(row[3], STATS))


def _with_tail(conn: sqlite3.Connection, group: _Group) -> Points:
    return overlay([read_tail(conn, group.id), group.points]) if group.tail else group.points


def _last_chunk(conn: sqlite3.Connection, group: _Group) -> _LastChunk | None:
    if group.chunk_end is None:
        return None
    query = "SELECT id, count FROM chunk_index WHERE series = ? ORDER BY last DESC LIMIT 1"
    return _LastChunk(*conn.execute(query, (group.id,)).fetchone())


def _append(
    conn: sqlite3.Connection, group: _Group, points: Points, last_chunk: _LastChunk | None, writer: _ChunkWriter
) -> None:
    """Make chunks of points beyond all chunks; a last chunk that is small is made anew with them."""
    if group.tail:
        conn.execute("DELETE FROM tail WHERE series = ?", (group.id,))
        group.tail = 0
    group.chunk_end = int(points.iters[-1])
    if last_chunk is not None and last_chunk.length < chunks.LARGEST // 2:
        writer.put(group, concat([writer.read(last_chunk.id), points]), last_chunk.id)
    else:
        writer.put(group, points, None)


def _lay_over(conn: sqlite3.Connection, group: _Group, chunk_writer: _ChunkWriter, tail_writer: _TailWriter) -> None:
    chunk_end = LEAST if group.chunk_end is None else group.chunk_end
    inside = 0 if group.chunk_end is None else int(np.searchsorted(group.points.iters, chunk_end, "right"))
    last_chunk = _last_chunk(conn, group)
    if inside:
        last_chunk = _lay_over_chunks(conn, group, take(group.points, slice(inside)), chunk_writer)
    group.points = take(group.points, slice(inside, None))
    if not len(group.points.iters):
        return
    beyond = _with_tail(conn, group)
    if len(beyond.iters) < FOLD_AT:
        group.tail = len(beyond.iters)
        tail_writer.put(np.full(len(group.points.iters), group.id), group.points)
    else:
        _append(conn, group, beyond, last_chunk, chunk_writer)


def _lay_over_chunks(conn: sqlite3.Connection, group: _Group, points: Points, writer: _ChunkWriter) -> _LastChunk:
    """Lay each point over the first chunk that ends at its iteration or beyond; return the series' last chunk."""
    rows = conn.execute(
        "SELECT id, last, count FROM chunk_index WHERE series = ? AND last >= ? ORDER BY last",
        (group.id, int(points.iters[0])),
    ).fetchall()
    number = np.searchsorted(np.array([last for _, last, _ in rows], np.int64), points.iters)
    for n, start, stop in _runs(number):
        id = rows[n][0]
        written = writer.put(group, overlay([writer.read(id), take(points, slice(start, stop))]), id)
    return written if id == rows[-1][0] else _LastChunk(rows[-1][0], rows[-1][2])


def _runs(numbers: npt.NDArray[np.intp]) -> Iterator[tuple[int, int, int]]:
    """Each number of an ascending column, and where its run starts and stops."""
    starts = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1]))
    stops = np.append(starts[1:], len(numbers))
    return zip(numbers[starts].tolist(), starts.tolist(), stops.tolist(), strict=True)


def _even_parts(points: Points) -> list[Points]:
    length = len(points.iters)
    count = -(-length // chunks.LARGEST)
    edges = [length * n // count for n in range(count + 1)]
    return [take(points, slice(a, b)) for a, b in itertools.pairwise(edges)]


def _made_anew(conn: sqlite3.Connection, series: int) -> StatsArray:
    """The stats of a series from those of its chunks and the points of its tail."""
    rows = b"".join(row[0] for row in conn.execute("SELECT stats FROM chunk_index WHERE series = ?", (series,)))
    tail = read_tail(conn, series)
    found = stats.fold(np.frombuffer(rows, STATS))
    if not len(tail.iters):
        return found
    return stats.combine(found, stats.of_groups(tail.iters, tail.values, tail.timestamps, np.zeros(1, np.intp)))
