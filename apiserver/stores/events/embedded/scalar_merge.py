"""Merges the scalars of one memtable into the database: points go to the tail first, and then to chunks.

- Chunks of a series are disjoint and ascending. The points of its tail lie beyond its last chunk. They become chunks
  when there are `fold_points` of them.
- New points beyond all merged ones are added to the tail as a run. Other points are laid over the chunk or the tail
  where they belong, and the series' stats are made again from those of its chunks.
- Tails that change in any other way than by one more run are read first, for some series at a time, as tails may be
  much larger than the new points.

For example, a series has 1,000 points in its tail, with iterations 0 to 999, and no chunk:

    100 new points, 1000–1099     tail and new points are folded: one chunk, 0–1099
    100 new points, 1100–1199     one run in the tail
    one point again, 5            is laid over the chunk; the tail is read, and written as it was
    1,000 new points, 1200–2199   tail and new points are folded, with the last chunk as it is small: one chunk, 0–2199
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from apiserver.events.model import EventType, Int64Array, Owner
from apiserver.events.queries import LEAST
from apiserver.stores.events.codec import stats
from apiserver.stores.events.codec.checked import Damaged, Kind, Place, unwrap, wrap
from apiserver.stores.events.codec.points import Points, WholePoints, as_bytes, by_series, concat, overlay, spread, take
from apiserver.stores.events.codec.stats import EMPTY, StatsArray
from apiserver.stores.events.embedded import tail
from apiserver.stores.events.embedded.bounds import EmbeddedBounds
from apiserver.stores.events.embedded.chunk_writer import ChunkWriter, LastChunk
from apiserver.stores.events.embedded.hot import HotColumns, Memtable
from apiserver.stores.events.embedded.names import Registrar
from apiserver.stores.events.embedded.pace import Pace

logger = logging.getLogger(__name__)

_NEW = (0, None, 0, b"", EMPTY.tobytes())


@dataclass(slots=True)
class _Known:
    """The rows of some series in the table `scalars`, as columns; `chunk_end` is LEAST if there is no chunk."""

    ids: Int64Array
    chunks: Int64Array
    chunk_end: Int64Array
    tail: Int64Array
    runs: list[bytes]
    stats: StatsArray

    @classmethod
    def read(cls, conn: sqlite3.Connection, ids: Int64Array) -> _Known:
        query = (
            "SELECT series, chunks, chunk_end, tail, runs, stats FROM scalars"
            " WHERE series IN (SELECT value FROM json_each(?))"
        )
        found = {row[0]: row[1:] for row in conn.execute(query, (json.dumps(ids.tolist()),))}
        chunks, ends, sizes, runs, rows = zip(*(found.get(id, _NEW) for id in ids.tolist()), strict=True)
        return cls(
            ids=ids,
            chunks=np.array(chunks, np.int64),
            chunk_end=np.array([LEAST if end is None else end for end in ends], np.int64),
            tail=np.array(sizes, np.int64),
            runs=list(runs),
            stats=stats.stored(rows),
        )

    def write(self, conn: sqlite3.Connection) -> None:
        ends = [None if end == LEAST else end for end in self.chunk_end.tolist()]
        columns = (self.ids.tolist(), self.chunks.tolist(), ends, self.tail.tolist(), self.runs, as_bytes(self.stats))
        conn.executemany(
            "REPLACE INTO scalars (series, chunks, chunk_end, tail, runs, stats) VALUES (?, ?, ?, ?, ?, ?)",
            zip(*columns, strict=True),
        )


@dataclass(slots=True)
class _News:
    """The new points of the same series, one series after another."""

    points: Points
    starts: npt.NDArray[np.intp]
    counts: Int64Array

    def of(self, which: Int64Array) -> Points:
        """The points of these series, which are ascending."""
        starts, counts = self.starts[which], self.counts[which]
        if len(which) and which[-1] - which[0] == len(which) - 1:
            return take(self.points, slice(int(starts[0]), int(starts[-1] + counts[-1])))
        return take(self.points, spread(starts, counts))


def merge_scalars(
    conn: sqlite3.Connection, table: Memtable, registrar: Registrar, pace: Pace, bounds: EmbeddedBounds
) -> list[int]:
    """Write the memtable's points to the database, in the caller's transaction; returns the ids of their series."""
    if not table.columns.series:
        return []
    ids, owners, points, starts = _by_series(table, registrar)
    stops = np.append(starts[1:], len(points.iters))
    for first, last in pairwise(_edges(owners, bounds.series_at_once)):
        pace.rest()
        start, some = starts[first], slice(first, last)
        news = take(points, slice(start, stops[last - 1]))
        _Merge(conn, ids[some], owners[some], news, starts[some] - start, bounds).run()
    series: list[int] = ids.tolist()
    return series


def merge_whole(
    conn: sqlite3.Connection,
    owner: Owner,
    some: Sequence[WholePoints],
    registrar: Registrar,
    worker: Callable[[str], int],
    bounds: EmbeddedBounds,
) -> list[int]:
    """Write points of whole series to the database, in the caller's transaction; returns the ids of their series.

    `worker` gives numbers to names of workers.
    """
    ids = np.array(registrar.series(EventType.SCALAR, [(owner, *one.series) for one in some]), np.int64)
    order = np.argsort(ids)
    in_order = [_renumbered(some[n], worker) for n in order.tolist()]
    lengths = np.array([len(points.iters) for points in in_order], np.int64)
    owners = np.full(len(ids), registrar.owner(owner), np.int64)
    _Merge(conn, ids[order], owners, concat(in_order), np.cumsum(lengths) - lengths, bounds, seals=True).run()
    series: list[int] = ids.tolist()
    return series


def _renumbered(some: WholePoints, worker: Callable[[str], int]) -> Points:
    """The points, whose workers have the numbers that they have here."""
    used, places = np.unique(some.points.workers, return_inverse=True)
    numbers = np.array([worker(some.workers[n]) for n in used.tolist()], np.int64)
    return some.points._replace(workers=numbers[places])


def _edges(owners: Int64Array, at_once: int) -> list[int]:
    """Where parts of the series begin and end. For example, with 3 at once, of owners 1, 1, 2, 2, 2, 3: 0, 5, 6."""
    edges = [0]
    for edge in [*(np.flatnonzero(np.diff(owners)) + 1).tolist(), len(owners)]:
        if edge - edges[-1] >= at_once or edge == len(owners):
            edges.append(edge)
    return edges


def _by_series(table: Memtable, registrar: Registrar) -> tuple[Int64Array, Int64Array, Points, npt.NDArray[np.intp]]:
    """Ascending ids of the series, ids of their owners, points by series and iteration, where each series begins."""
    keys, columns = table.series_names, table.columns
    owner_ids = {owner: registrar.owner(owner) for owner in table.owners}
    owners = np.array([owner_ids[owner] for owner, _, _ in keys], np.int64)
    ids = np.array(registrar.series(EventType.SCALAR, keys), np.int64)
    by_id = np.argsort(ids)
    ranks = _ranks(len(ids))
    rank = np.empty_like(ranks)
    rank[by_id] = ranks
    return ids[by_id], owners[by_id], *_in_order(rank[np.array(columns.series)], columns)


def _in_order(rank: npt.NDArray[np.integer[Any]], columns: HotColumns) -> tuple[Points, npt.NDArray[np.intp]]:
    """The points as `by_series` returns them; `rank` has the rank of each group's series."""
    points, lengths = columns.everything(), np.array(columns.lengths)
    order = np.argsort(rank, kind="stable")
    if not bool((order[1:] > order[:-1]).all()):
        points = take(points, spread((np.cumsum(lengths) - lengths)[order], lengths[order]))
    first_groups = np.flatnonzero(np.append(True, np.diff(rank[order]) != 0))
    counts = np.add.reduceat(lengths[order], first_groups)
    starts = np.cumsum(counts) - counts
    if stats.ascends(points.iters, starts):
        return points, starts
    return by_series(np.repeat(_ranks(len(counts)), counts), points)


class _Merge:
    """One merge: the rows of the series that it changes, their new points, and the writers."""

    def __init__(
        self,
        conn: sqlite3.Connection,
        ids: Int64Array,
        owners: Int64Array,
        points: Points,
        starts: npt.NDArray[np.intp],
        bounds: EmbeddedBounds,
        *,
        seals: bool = False,
    ) -> None:
        self._conn = conn
        self._bounds = bounds
        self._owners = owners
        self._known = _Known.read(conn, ids)
        self._news = _News(points, starts, np.diff(np.append(starts, len(points.iters))))
        self._tail = tail.TailWriter(conn, bounds)
        self._chunks = ChunkWriter(conn, bounds, seals=seals)

    def run(self) -> None:
        """Write everything to the database."""
        known, news, bounds = self._known, self._news, self._bounds
        points = news.points
        new = stats.of_groups(points.iters, points.values, points.timestamps, news.starts, bounds.long_group)
        overlapping = new["min_iter"] <= known.stats["max_iter"]
        known.stats = stats.combine(known.stats, new)
        sizes = known.tail + news.counts
        reopened = overlapping | (sizes >= bounds.fold_points) | tail.are_crowded(known.runs, bounds.tail_runs)
        appended = np.flatnonzero(~reopened)
        self._put_runs(appended, news.of(appended), news.counts[appended])
        for which in tail.some_at_a_time(np.flatnonzero(reopened), sizes, bounds.points_at_a_time):
            self._reopen(which, overlapping[which])
        self._tail.write()
        known.write(self._conn)

    def _put_runs(self, which: Int64Array, points: Points, lengths: Int64Array) -> None:
        """Add a run to the tail of each of these series."""
        if not len(which):
            return
        known = self._known
        known.tail[which] += lengths
        listed = self._tail.put(self._owners[which], known.tail[which], points, lengths)
        for n, run in zip(which.tolist(), listed, strict=True):
            known.runs[n] += run

    def _reopen(self, which: Int64Array, overlapping: npt.NDArray[np.bool_]) -> None:
        """Merge into these series, whose chunks change, or whose tails do not only grow by a run."""
        ends = self._known.chunk_end[which]
        points, starts, lost = self._with_tails(which)
        overlapping = overlapping | lost
        stops = np.append(starts[1:], len(points.iters))
        last_chunks: dict[int, LastChunk] = {}
        for n in np.flatnonzero((ends > LEAST) & (points.iters[starts] <= ends)).tolist():
            start = int(starts[n])
            starts[n] += np.searchsorted(points.iters[start : stops[n]], ends[n], "right")
            last_chunks[n] = self._lay_over_chunks(int(which[n]), take(points, slice(start, int(starts[n]))))
            overlapping[n] = True
        counts, fold_points = stops - starts, self._bounds.fold_points
        for n in np.flatnonzero(counts >= fold_points).tolist():
            beyond, before = take(points, slice(int(starts[n]), int(stops[n]))), self._chunks.set_aside
            self._append_chunks(int(which[n]), beyond, last_chunks.get(n))
            overlapping[n] |= self._chunks.set_aside > before
        self._chunks.write()
        short = (counts > 0) & (counts < fold_points)
        tails = take(points, spread(starts[short], counts[short]))
        self._put_runs(which[short], tails, counts[short])
        if overlapping.any():
            self._make_stats_again(which, overlapping, tails, counts * short)

    def _with_tails(self, which: Int64Array) -> tuple[Points, npt.NDArray[np.intp], bool]:
        """The new points laid over the points of the tails, which are emptied; and where each series begins.

        Also whether points of a tail were lost, as its page is damaged.
        """
        known, counts = self._known, self._news.counts[which]
        new = self._news.of(which)
        tails = [known.runs[n] for n in which.tolist()]
        if not any(tails):
            return new, np.cumsum(counts) - counts, False
        damaged: list[int] = []

        def set_aside(page: int) -> None:
            logger.error("tail page %s is damaged; it is set aside, so that its series can be written", page)
            query = "INSERT INTO damaged_chunks SELECT -id, 0, curve, details FROM tail_pages WHERE id = ?"
            self._conn.execute(query, (page,))
            damaged.append(page)

        old, sizes = tail.read_all(self._conn, tails, set_aside)
        self._tail.remove(tails)
        for n in which.tolist():
            known.runs[n] = b""
        known.tail[which] = 0
        ranks = _ranks(len(which))
        together = by_series(np.concatenate([np.repeat(ranks, sizes), np.repeat(ranks, counts)]), concat([old, new]))
        return *together, bool(damaged)

    def _lay_over_chunks(self, n: int, points: Points) -> LastChunk:
        """Lay each point over the first chunk that ends at its iteration or later; return the series' last chunk."""
        series = int(self._known.ids[n])
        rows = self._conn.execute(
            "SELECT id, last, count FROM chunk_index WHERE series = ? AND last >= ? ORDER BY last",
            (series, int(points.iters[0])),
        ).fetchall()
        number = np.searchsorted(np.array([last for _, last, _ in rows], np.int64), points.iters)
        for row, start, stop in _runs(number):
            id = rows[row][0]
            laid_over = overlay([self._chunks.read(id), take(points, slice(start, stop))])
            written = self._put_chunks(n, laid_over, id)
        if id != rows[-1][0]:
            return LastChunk(rows[-1][0], rows[-1][2])
        self._known.chunk_end[n] = laid_over.iters[-1]  # an earlier one if the chunk was damaged
        return written

    def _append_chunks(self, n: int, points: Points, last_chunk: LastChunk | None) -> None:
        """Make chunks of points beyond all chunks. If the last chunk is small, it is written again with them."""
        if last_chunk is None and self._known.chunk_end[n] > LEAST:
            query = "SELECT id, count FROM chunk_index WHERE series = ? ORDER BY last DESC LIMIT 1"
            last_chunk = LastChunk(*self._conn.execute(query, (int(self._known.ids[n]),)).fetchone())
        self._known.chunk_end[n] = points.iters[-1]
        if last_chunk is not None and last_chunk.length < self._bounds.chunk_points // 2:
            self._put_chunks(n, concat([self._chunks.read(last_chunk.id), points]), last_chunk.id)
        else:
            self._put_chunks(n, points, None)

    def _put_chunks(self, n: int, points: Points, replaced: int | None) -> LastChunk:
        series, numbered = int(self._known.ids[n]), int(self._known.chunks[n])
        last_chunk, self._known.chunks[n] = self._chunks.put(series, numbered, points, replaced)
        return last_chunk

    def _make_stats_again(
        self, which: Int64Array, overlapping: npt.NDArray[np.bool_], tails: Points, lengths: Int64Array
    ) -> None:
        """Make the stats of the overlapping series from the stats of their chunks and the points of their tails."""
        known, long = self._known, self._bounds.long_group
        rows = np.repeat(EMPTY, len(which))
        filled = lengths > 0
        if filled.any():
            starts = np.cumsum(lengths[filled]) - lengths[filled]
            rows[filled] = stats.of_groups(tails.iters, tails.values, tails.timestamps, starts, long)
        for n in np.flatnonzero(overlapping & (known.chunk_end[which] > LEAST)).tolist():
            found = stats.fold(self._stats_of_chunks(int(known.ids[which[n]])))
            rows[n] = stats.combine(found, rows[n : n + 1])[0]
        known.stats[which[overlapping]] = rows[overlapping]

    def _stats_of_chunks(self, series: int) -> StatsArray:
        """The stats of each chunk of a series, which are all written; damaged ones are made again of the points."""
        found = self._conn.execute("SELECT id, stats FROM chunk_index WHERE series = ?", (series,)).fetchall()
        try:
            return stats.stored(unwrap(stored) for _, stored in found)
        except Damaged as error:
            logger.error("%s; the stats of its series are made again of the points", error)
        rows = []
        for id, _ in found:
            row = stats.of_points(self._chunks.read(id), self._bounds.long_group)
            stored = wrap(row.tobytes(), Place(Kind.CHUNK, id))
            self._conn.execute("UPDATE chunk_index SET stats = ? WHERE id = ?", (stored, id))
            rows.append(row)
        return np.concatenate(rows)


def _ranks(count: int) -> npt.NDArray[np.integer[Any]]:
    return np.arange(count, dtype=np.uint16 if count <= 1 << 16 else np.uint32)  # numpy sorts short ones by radix


def _runs(numbers: npt.NDArray[np.intp]) -> Iterator[tuple[int, int, int]]:
    """Each distinct number of an ascending column, and where its run starts and stops."""
    starts = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1]))
    stops = np.append(starts[1:], len(numbers))
    return zip(numbers[starts].tolist(), starts.tolist(), stops.tolist(), strict=True)
