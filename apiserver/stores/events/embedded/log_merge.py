"""Merges the log lines of one memtable into the database, as compressed blocks of up to `block_lines` lines.

Blocks of an owner do not overlap in (timestamp, sequence). So late lines go into the blocks to which they belong. Lines
behind all blocks join the last blocks while those are small, so a line is written a few times at most. For example:

    blocks: time 0–400 with 500 lines, 401–700 with 500, 701–720 with 20
    30 new lines, time 721–750   join the last block, as it is small: 701–750 with 50
    a late line of time 500      goes into block 401–700, which becomes two, with 250 and 251 lines

A block is read as a whole, so its lines have up to `block_bytes` together, unless it is a single line.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from itertools import pairwise

import msgspec
import numpy as np

from apiserver.events.model import EventType, Owner
from apiserver.events.queries import SeriesQuery
from apiserver.stores.events.codec import lines as codec
from apiserver.stores.events.codec.lines import Lines, Positions
from apiserver.stores.events.codec.names import Name
from apiserver.stores.events.embedded import log_sizes
from apiserver.stores.events.embedded.bounds import EmbeddedBounds
from apiserver.stores.events.embedded.hot import Memtable
from apiserver.stores.events.embedded.log_walk import decode
from apiserver.stores.events.embedded.names import Registrar, series_ids, set_state, state
from apiserver.stores.events.embedded.pace import Pace

_MOST_SWALLOWED = 16
_FROM = (
    "SELECT id, last_time, last_sequence FROM log_blocks WHERE owner = ? AND (last_time, last_sequence) >= (?, ?)"
    " ORDER BY last_time, last_sequence"
)


class BlockWriter:
    """Changes the blocks of one owner: collects them, then encodes and writes all at once."""

    def __init__(self, conn: sqlite3.Connection, owner: Owner, number: int, bounds: EmbeddedBounds) -> None:
        """`number` is the id of the owner."""
        self._conn = conn
        self._bounds = bounds
        self._series = SeriesQuery(owner, EventType.LOG)
        self._owner = number
        self._ids: dict[Name, int] = {}
        self._names: dict[int, Name] = {}
        self._knows_merged = False
        """Whether the ids of all series are known that merged lines have."""
        self._pending: dict[int, Lines] = {}
        self._next_id = int(conn.execute("SELECT coalesce(max(id), 0) + 1 FROM log_blocks").fetchone()[0])

    def learn(self, ids: Mapping[Name, int]) -> None:
        """Know the ids of these series."""
        self._ids |= ids
        self._names |= {id: name for name, id in ids.items()}

    def read(self, id: int) -> Lines:
        """A block that is in the database."""
        row = self._conn.execute("SELECT body FROM log_blocks WHERE id = ?", (id,)).fetchone()
        if not self._knows_merged:
            self.learn(series_ids(self._conn, self._series))
            self._knows_merged = True
        return decode(row[0], self._names)

    def remove(self, id: int) -> None:
        """Delete a block."""
        self._conn.execute("DELETE FROM log_blocks WHERE id = ?", (id,))

    def put(self, lines: Lines, replaced: int | None = None) -> None:
        """Write the lines as one block, or several of like size. The first one replaces the block `replaced`."""
        for start, stop in pairwise(_edges(lines, self._bounds)):
            id = replaced
            if id is None:
                id = self._next_id
                self._next_id += 1
            self._pending[id] = lines.slice(start, stop)
            replaced = None

    def write(self) -> None:
        """Write all collected blocks to the database."""
        if not self._pending:
            return
        self._conn.executemany(
            "REPLACE INTO log_blocks"
            " (id, owner, first_time, first_sequence, last_time, last_sequence, count, names, body, sizes)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (
                    id,
                    self._owner,
                    int(lines.timestamps[0]),
                    int(lines.sequences[0]),
                    int(lines.timestamps[-1]),
                    int(lines.sequences[-1]),
                    len(lines),
                    msgspec.msgpack.encode(lines.names.distinct().map(self._ids).table),
                    codec.encode(lines, self._ids),
                    log_sizes.encode(lines),
                )
                for id, lines in self._pending.items()
            ),
        )
        self._pending.clear()


def _edges(lines: Lines, bounds: EmbeddedBounds) -> list[int]:
    """Where the blocks of the lines begin and end. For example, lines of 3, 3, 3, 1 and 1 MB: 0, 1, 2, 4, 5."""
    most, most_bytes = bounds.block_lines, bounds.block_bytes
    count = -(-len(lines) // most)
    edges = [len(lines) * n // count for n in range(count + 1)]
    blocks = (lines.messages[start:stop] for start, stop in pairwise(edges))
    if all(sum(map(len, block)) <= most_bytes for block in blocks):
        return edges
    sizes, edges = np.cumsum([0, *map(len, lines.messages)]), [0]
    while edges[-1] < len(lines):
        start = edges[-1]
        fits = int(np.searchsorted(sizes, sizes[start] + most_bytes, "right")) - 1
        edges.append(min(max(fits, start + 1), start + most, len(lines)))
    return edges


def merge_logs(
    conn: sqlite3.Connection, table: Memtable, registrar: Registrar, pace: Pace, bounds: EmbeddedBounds
) -> None:
    """Write the memtable's lines and digests to the database, in the caller's transaction."""
    for owner, hot in table.owners.items():
        if hot.logs:
            digests = [(registrar.owner(owner), digest) for digest in hot.digests]
            conn.executemany("INSERT OR IGNORE INTO log_digests VALUES (?, ?)", digests)
            _lay_in(conn, owner, codec.of_parts(hot.logs), registrar, bounds)
            pace.rest()


def merge_whole(
    conn: sqlite3.Connection, owner: Owner, lines: Lines, registrar: Registrar, bounds: EmbeddedBounds
) -> None:
    """Write lines at their positions, in the caller's transaction; one whose position is taken is passed over."""
    _lay_in(conn, owner, lines, registrar, bounds)
    set_state(conn, "next_sequence", max(state(conn, "next_sequence"), int(lines.sequences.max()) + 1))


def _lay_in(conn: sqlite3.Connection, owner: Owner, lines: Lines, registrar: Registrar, bounds: EmbeddedBounds) -> None:
    """Put lines where they belong, without those whose positions are taken."""
    number = registrar.owner(owner)
    writer = BlockWriter(conn, owner, number, bounds)
    fresh: list[Lines] = []
    behind: Lines | None = None
    for id, placed in _placed(conn, number, lines):
        if id is None:
            behind = placed
            fresh.append(placed)
            continue
        stored = writer.read(id)
        free = placed.without(stored)
        if len(free):
            fresh.append(free)
            writer.put(codec.joined([stored, free]), id)
    if fresh:
        writer.learn(_count(conn, owner, codec.joined(fresh), registrar))
    writer.write()
    if behind is not None:
        _append(conn, number, behind, writer, bounds)


def _placed(conn: sqlite3.Connection, owner: int, lines: Lines) -> Iterator[tuple[int | None, Lines]]:
    """Which of the lines belong into which block, by the block's id; None: they lie behind all blocks."""
    rows = conn.execute(_FROM, (owner, *lines.position(0))).fetchall()
    ids, times, sequences = np.array(rows, np.int64).reshape(-1, 3).T
    edges = [0, *lines.positions.until_each(Positions(times, sequences)).tolist()]
    for id, (start, stop) in zip(ids.tolist(), pairwise(edges), strict=True):
        if start < stop:
            yield id, lines.slice(start, stop)
    if edges[-1] < len(lines):
        yield None, lines.slice(edges[-1], len(lines))


def _count(conn: sqlite3.Connection, owner: Owner, lines: Lines, registrar: Registrar) -> dict[Name, int]:
    """Add the lines to the numbers of lines of their series; return the ids of these."""
    names = lines.names.distinct()
    ids = registrar.series(EventType.LOG, [(owner, *name) for name in names.table])
    conn.executemany(
        "INSERT INTO log_series VALUES (?, ?) ON CONFLICT (series) DO UPDATE SET lines = lines + excluded.lines",
        zip(ids, np.bincount(names.places, minlength=len(names.table)).tolist(), strict=True),
    )
    return dict(zip(names.table, ids, strict=True))


def _append(conn: sqlite3.Connection, owner: int, lines: Lines, writer: BlockWriter, bounds: EmbeddedBounds) -> None:
    """Write lines behind all blocks, together with the last blocks while these are small beside the new lines."""
    query = (
        "SELECT id, count, sizes FROM log_blocks WHERE owner = ? ORDER BY last_time DESC, last_sequence DESC LIMIT ?"
    )
    parts, together = [lines], len(lines)
    small, small_bytes = bounds.block_lines // 2, bounds.block_bytes // 2
    for id, count, sizes in conn.execute(query, (owner, _MOST_SWALLOWED)).fetchall():
        if count >= small or count > 2 * together or log_sizes.bytes_of(sizes) >= small_bytes:
            break
        parts.append(writer.read(id))
        together += count
        writer.remove(id)
    writer.put(codec.joined(parts[::-1]))
    writer.write()
