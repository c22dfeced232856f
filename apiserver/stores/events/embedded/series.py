"""One scalar series as readers see it: chunks, tail and hot points as one.

All chunks before `settled_end` are free of hot points. Their stats and blocks may stand for their points. From there
on, points are read, and hot ones are laid over merged ones. For example, hot points at iterations 150 and 230:

    chunk 0–99      is settled; settled_end is 100
    chunk 100–199   must be read, as a hot point lies in it
    tail 200–220    must be read
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from apiserver.events.model import Owner
from apiserver.events.queries import GREATEST, LEAST, SeriesQuery
from apiserver.stores.events.codec import chunks, stats
from apiserver.stores.events.codec.checked import unwrap
from apiserver.stores.events.codec.chunks import WholeBody
from apiserver.stores.events.codec.names import Name
from apiserver.stores.events.codec.points import NO_CURVE, NO_POINTS, Columns, Curve, Points, curve_of, overlay, within
from apiserver.stores.events.codec.stats import EMPTY, StatsArray
from apiserver.stores.events.embedded import tail
from apiserver.stores.events.embedded.bounds import EmbeddedBounds
from apiserver.stores.events.embedded.hot import HotPoints
from apiserver.stores.events.embedded.names import series_rows

_FROM_CHUNKS = "FROM chunk_index AS i {} WHERE series = ? AND last >= ? AND first <= ? ORDER BY last"
_SHIFTS = (
    "SELECT DISTINCT series, shift FROM chunk_index WHERE series IN (SELECT value FROM json_each(?))"
    " AND last >= ? AND first <= ? ORDER BY series, shift"
)
_WITH_CURVES = "JOIN chunk_curves AS c ON c.id = i.id"
_WITH_DETAILS = "JOIN chunk_details AS d ON d.id = i.id"
_WITH_POINTS = f"{_WITH_CURVES} {_WITH_DETAILS}"


class Chunk(NamedTuple):
    """The first and the last iteration of a chunk, and how many points it has."""

    first: int
    last: int
    length: int

    def span_of(self, points: int) -> int:
        """How many iterations of the chunk have about so many points."""
        return (self.last - self.first + 1) * points // self.length + 1


#: A chunk's first and last iteration, its number of points, and the part of its body that was selected.
Content = tuple[int, int, int, Any]


class MergedSeries(NamedTuple):
    """A row of the table `scalars`; `stats` is a row of STATS, as bytes."""

    id: int
    chunk_end: int | None
    runs: bytes
    stats: bytes


NOT_MERGED = MergedSeries(0, None, b"", EMPTY.tobytes())


def merged_series(conn: sqlite3.Connection, series: SeriesQuery) -> dict[Name, MergedSeries]:
    """The merged scalar series, sorted by name."""
    rows = series_rows(conn, series, "SELECT id, chunk_end, runs, stats FROM series JOIN scalars ON series = id")
    return {(metric, variant): MergedSeries(id, end, runs, stats) for metric, variant, id, end, runs, stats in rows}


def merged_stats(series: Iterable[MergedSeries]) -> StatsArray:
    """The stats of the merged points, a row for each series."""
    return stats.stored(one.stats for one in series)


class Series:
    """A view of one series: what `conn` reads in its transaction, and its hot points."""

    def __init__(
        self,
        conn: sqlite3.Connection,
        owner: Owner,
        name: Name,
        merged: MergedSeries,
        hot: Sequence[HotPoints],
        bounds: EmbeddedBounds,
    ) -> None:
        self.conn = conn
        self.owner = owner
        self.name = name
        self.merged = merged
        self.bounds = bounds
        self.recent = hot
        """Hot points as they were sent."""
        self._hot: Points | None = None
        self._tail: Points | None = None

    @property
    def hot(self) -> Points:
        """The points that are not merged."""
        if self._hot is None:
            self._hot = overlay([some.points() for some in self.recent]) if self.recent else NO_POINTS
        return self._hot

    @property
    def tail(self) -> Points:
        """The merged points that are in no chunk."""
        if self._tail is None:
            self._tail = tail.read(self.conn, self.merged.runs)
        return self._tail

    def hold(self, *, tail: Points | None = None, hot: Points | None = None) -> None:
        """Keep these points of the series, which were read together with those of other series."""
        self._tail = self._tail if tail is None else tail
        self._hot = self._hot if hot is None else hot

    def let_go(self) -> None:
        """Drop all points. Points that are needed again are read again."""
        self._tail = self._hot = None

    @cached_property
    def settled_end(self) -> int:
        """The iteration before which all points are in chunks without hot points."""
        end = LEAST if self.merged.chunk_end is None else self.merged.chunk_end + 1
        if not self.recent or int(self.hot.iters[0]) >= end:
            return end
        hot_start = int(self.hot.iters[0])
        overlapped = self.chunk_from(hot_start)
        return hot_start if overlapped is None else min(hot_start, overlapped.first)

    def chunk_from(self, low: int) -> Chunk | None:
        """The first chunk that ends at `low` or later."""
        row = self._select("SELECT first, last, count", "", low, GREATEST).fetchone()
        return None if row is None else Chunk(*row)

    def chunk_until(self, high: int) -> Chunk | None:
        """The last chunk that begins at `high` or before."""
        row = self.conn.execute(
            "SELECT first, last, count FROM chunk_index WHERE series = ? AND first <= ? ORDER BY last DESC LIMIT 1",
            (self.merged.id, high),
        ).fetchone()
        return None if row is None else Chunk(*row)

    def end_of(self, low: int, points: int) -> int:
        """The last iteration of a range from `low` on that has about so many points; a chunk more at most."""
        for last, count in self._select("SELECT last, count", "", low, GREATEST):
            points -= count
            if points <= 0:
                return int(last)
        return GREATEST

    def ranges(self, low: int, points: int) -> Iterator[tuple[int, int]]:
        """Ranges of iterations from `low` to the end, with about so many points each; a chunk more at most."""
        high = self.end_of(low, points)
        while high < GREATEST:
            yield low, high
            low, high = high + 1, self.end_of(high + 1, points)
        yield low, high

    def count(self) -> int:
        """How many points there are."""
        settled = 0
        if self.settled_end > LEAST:
            settled = self._select("SELECT sum(count)", "", LEAST, self.settled_end - 1).fetchone()[0] or 0
        return int(settled) + len(self.curve(self.settled_end).iters)

    def settled_stats(self) -> StatsArray:
        """A row for each chunk before `settled_end`."""
        rows = self._select("SELECT stats", "", LEAST, self.settled_end - 1) if self.settled_end > LEAST else ()
        return stats.stored(unwrap(row[0]) for row in rows)

    def settled_details(self) -> Sequence[tuple[int, bytes]]:
        """The number of points and the details of each chunk before `settled_end`, in the order of `settled_stats`."""
        if self.settled_end == LEAST:
            return []
        return self._chunk_rows("SELECT count, d.body", _WITH_DETAILS, LEAST, self.settled_end - 1)

    def settled_bodies(self, low: int, high: int) -> Sequence[WholeBody]:
        """The chunks before `settled_end` with points at low ≤ iter ≤ high."""
        return self._chunk_rows("SELECT count, c.body, d.body", _WITH_POINTS, low, high)

    def has_hot(self, low: int, high: int) -> bool:
        """Whether there are hot points at low ≤ iter ≤ high."""
        if not self.recent:
            return False
        iters = self.hot.iters
        return bool(np.searchsorted(iters, low, "left") < np.searchsorted(iters, high, "right"))

    def blocks(self, low: int, high: int, largest_shift: int) -> sqlite3.Cursor:
        """The blocks of chunks with points at low ≤ iter ≤ high, ascending; None for a chunk with a larger shift."""
        return self._select(f"SELECT first, last, count, iif(shift <= {largest_shift}, blocks, NULL)", "", low, high)

    def curves(self, low: int, high: int) -> sqlite3.Cursor:
        """The encoded curves of chunks with points at low ≤ iter ≤ high, ascending."""
        return self._select("SELECT first, last, count, c.body", _WITH_CURVES, low, high)

    def curve(self, low: int = LEAST, high: int = GREATEST) -> Curve:
        """Iterations and values at low ≤ iter ≤ high."""
        if self.merged.chunk_end is None and not self.recent:
            tail = curve_of(self.tail)
            return within(tail, low, high) if len(tail.iters) else tail
        rows = self._chunk_rows("SELECT count, c.body", _WITH_CURVES, low, high)
        if not (rows or self.merged.runs or self.recent):
            return NO_CURVE
        if len(rows) == 1:  # as where a range begins or ends
            ((count, body),) = rows
            found = [chunks.decode_curve(count, body, low, high)]
        else:
            found = [chunks.decode_curves(rows)] if rows else []
        return _overlaid([*found, curve_of(self.tail), curve_of(self.hot)], low, high) or NO_CURVE

    def points(self, low: int = LEAST, high: int = GREATEST) -> Points:
        """Whole points at low ≤ iter ≤ high."""
        rows = self._chunk_rows("SELECT count, c.body, d.body", _WITH_POINTS, low, high)
        found = [chunks.decode_points(count, curve, details, low, high) for count, curve, details in rows]
        return _overlaid([*found, self.tail, self.hot], low, high) or NO_POINTS

    def settled_points(self, low: int, high: int) -> Points:
        """Whole points at low ≤ iter ≤ high, both in the same chunk before `settled_end`."""
        ((count, curve, details),) = self._chunk_rows("SELECT count, c.body, d.body", _WITH_POINTS, low, high)
        return chunks.decode_points(count, curve, details, low, high)

    def _chunk_rows(self, select: str, join: str, low: int, high: int) -> list[Any]:
        if self.merged.chunk_end is None or low > self.merged.chunk_end:
            return []
        return self._select(select, join, low, high).fetchall()

    def _select(self, select: str, join: str, low: int, high: int) -> sqlite3.Cursor:
        return self.conn.execute(f"{select} {_FROM_CHUNKS.format(join)}", (self.merged.id, low, high))


def chunk_shifts(series: Sequence[Series], low: int, high: int) -> dict[int, list[int]]:
    """The distinct shifts of the chunks with points at low ≤ iter ≤ high, ascending, by the id of their series."""
    shifts: dict[int, list[int]] = {}
    ids = [id for id, end, *_ in (one.merged for one in series) if end is not None and low <= end]
    for id, shift in series[0].conn.execute(_SHIFTS, (json.dumps(ids), low, high)) if ids else ():
        shifts.setdefault(id, []).append(shift)
    return shifts


def _overlaid(parts: Sequence[Columns], low: int, high: int) -> Columns | None:
    parts = [within(part, low, high) for part in parts if len(part.iters)]
    parts = [part for part in parts if len(part.iters)]
    if len(parts) > 1:
        return overlay(parts)
    return parts[0] if parts else None


def views(
    conn: sqlite3.Connection, series: SeriesQuery, hot: Sequence[Mapping[Name, HotPoints]], bounds: EmbeddedBounds
) -> list[Series]:
    """The scalar series, sorted by name; `hot` has their points in each memtable, oldest first."""
    recent: dict[Name, list[HotPoints]] = {}
    for table in hot:
        for name, points in table.items():
            recent.setdefault(name, []).append(points)
    merged = merged_series(conn, series)
    names = merged.keys() if recent.keys() <= merged.keys() else sorted(merged.keys() | recent.keys())
    owner = series.owner
    return [Series(conn, owner, name, merged.get(name, NOT_MERGED), recent.get(name, ()), bounds) for name in names]
