"""Checks merged data: that each chunk, page of the tail, log block and sample is what was stored, some at a time.

What is checked is decoded as readers decode it, and compared with what its row says of it. Numbers and names in rows
have no checksum, so not every flipped bit in them is found.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import numpy as np
import orjson
import zstandard

from apiserver.common.sizes import counted
from apiserver.events.queries import GREATEST, LEAST
from apiserver.stores.events.codec import chunks, compression, pieces, stats
from apiserver.stores.events.codec import lines as codec
from apiserver.stores.events.codec.checked import Damaged, Kind, Place, place_of, unwrap
from apiserver.stores.events.codec.names import Name
from apiserver.stores.events.embedded import log_sizes, tail
from apiserver.stores.events.embedded.names import TYPES
from apiserver.stores.inspection import Finding

_CHUNKS = (
    "SELECT i.id, series, first, last, count, stats, blocks, c.body, d.body FROM chunk_index AS i"
    " LEFT JOIN chunk_curves AS c ON c.id = i.id LEFT JOIN chunk_details AS d ON d.id = i.id"
    " WHERE i.id > ? ORDER BY i.id LIMIT ?"
)
_PAGES = "SELECT id, lengths, curve, details FROM tail_pages WHERE id > ? ORDER BY id LIMIT ?"
_BLOCKS = (
    "SELECT id, owner, first_time, first_sequence, last_time, last_sequence, count, names, sizes, body"
    " FROM log_blocks WHERE id > ? ORDER BY id LIMIT ?"
)
_SAMPLES = "SELECT id, body FROM sample_documents WHERE id > ? ORDER BY id LIMIT ?"

_NONSENSE = (
    *(ValueError, KeyError, IndexError, TypeError, RuntimeError, OverflowError, MemoryError),
    *(zstandard.ZstdError, Damaged),
)


class Step(NamedTuple):
    """Some rows that were checked."""

    last: int | None
    """The id of the last one; None: there were no more."""
    checked: int
    bytes: int
    """Of their encoded values."""
    findings: list[Finding]


Check = Callable[[sqlite3.Connection, tuple[Any, ...]], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class Part:
    """A table, and how its rows are checked."""

    name: str
    """What its rows are, for people."""
    table: str
    query: str
    check: Check
    at_once: int

    def step(self, conn: sqlite3.Connection, after: int, most: int = 0) -> Step:
        """Check the next rows (`most`, or as many as usual) behind the row with the id `after`."""
        findings: list[Finding] = []
        rows = conn.execute(self.query, (after, most or self.at_once)).fetchall()
        for row in rows:
            findings += self.check(conn, row)
        size = sum(len(value) for row in rows for value in row if isinstance(value, bytes))
        return Step(rows[-1][0] if rows else None, len(rows), size, findings)

    def count(self, conn: sqlite3.Connection) -> int:
        """How many rows there are."""
        return int(conn.execute(f"SELECT count(*) FROM {self.table}").fetchone()[0])


def _check_chunk(conn: sqlite3.Connection, row: tuple[Any, ...]) -> Iterator[Finding]:
    id, series, first, last, count, stats_of, blocks, curve, details = row
    points = f"{counted(count, 'points')} at iterations {first:,} to {last:,}"
    if not _works(lambda: _is_curve(id, first, last, count, curve)):
        yield Finding(
            *("events", "damaged-chunk", str(id), f"chunk {id} ({series_of(conn, series)}) is damaged"),
            f"its {points} cannot be read; the rest of the series can",
            "the chunk is set aside, and its points are lost; its bytes are kept",
        )
        return
    if not _works(lambda: _are_details(id, count, curve, details)):
        yield Finding(
            *("events", "damaged-details", str(id), f"chunk {id} ({series_of(conn, series)}) is partly damaged"),
            f"when its {points} were reported, and by whom, cannot be read; curves by iteration can",
            "the times are made again from those of the first and the last point, so the others are lost",
        )
    elif not _works(lambda: _are_sums(id, count, stats_of, blocks)):
        yield Finding(
            *("events", "damaged-sums", str(id), f"the sums of chunk {id} ({series_of(conn, series)}) are damaged"),
            f"wide histograms and statistics of its {points} fail; the points themselves can be read",
            "the sums are made again from the points, and nothing is lost",
        )


def _is_curve(id: int, first: int, last: int, count: int, curve: bytes) -> bool:
    iters = chunks.decode_curve(count, _of(Kind.CHUNK, id, curve), LEAST, GREATEST).iters
    ascends = bool((iters[1:] > iters[:-1]).all())
    return len(iters) == count and bool(iters[0] == first and iters[-1] == last) and ascends


def _are_details(id: int, count: int, curve: bytes, details: bytes) -> bool:
    points = chunks.decode_points(count, curve, _of(Kind.CHUNK, id, details))
    return all(len(column) == count for column in points) and bool((points.workers >= 0).all())


def _are_sums(id: int, count: int, row: bytes, blocks: bytes) -> bool:
    of_all = stats.stored([unwrap(_of(Kind.CHUNK, id, row))])
    sums = pieces.decode_blocks([unwrap(_of(Kind.CHUNK, id, blocks))], ["count"]).sums
    return len(of_all) == 1 and int(of_all["count"][0]) == count and int(sums["count"].sum()) == count


def _of(kind: Kind, id: int, stored: bytes) -> bytes:
    """What was stored, if it says that it belongs here; Damaged."""
    if place_of(stored) != Place(kind, id):
        raise Damaged(None)
    return stored


def _check_page(conn: sqlite3.Connection, row: tuple[Any, ...]) -> Iterator[Finding]:
    id, lengths, curve, details = row

    def is_page() -> bool:
        runs, points = tail.decode_page(*(_of(Kind.TAIL_PAGE, id, stored) for stored in (lengths, curve, details)))
        return bool((runs > 0).all()) and all(len(column) == int(runs.sum()) for column in points)

    if not _works(is_page):
        yield Finding(
            *("events", "damaged-page", str(id), f"page {id} of newest points ({_owner_of_page(conn, id)}) is damaged"),
            "the newest points of some of its series cannot be read, and these series cannot be shown",
            "the page is set aside, and its points are lost; older points can be read again; its bytes are kept",
        )


def _check_block(conn: sqlite3.Connection, row: tuple[Any, ...]) -> Iterator[Finding]:
    id, owner, *positions, count, names, sizes, body = row

    def is_block() -> bool:
        lines = codec.decode(body, SAME)
        ends = [*lines.position(0), *lines.position(-1)] == positions
        order = np.lexsort((lines.sequences, lines.timestamps))
        right = len(lines) == count and ends and bool((np.diff(order) > 0).all())
        in_block = set(lines.names.distinct().table) == set(msgspec.msgpack.decode(names))
        log_sizes.bytes_of(sizes)
        return right and in_block

    if not _works(is_block):
        yield Finding(
            *("events", "damaged-log", str(id), f"log block {id} ({_owner(conn, owner)}) is damaged"),
            f"its {counted(count, 'lines')} cannot be read, and pages of the console that would show them fail",
            "the block is set aside, and its lines are lost; its bytes are kept",
        )


def _check_sample(conn: sqlite3.Connection, row: tuple[Any, ...]) -> Iterator[Finding]:
    id, body = row
    if not _works(lambda: isinstance(orjson.loads(compression.decompress(body)), dict)):
        yield Finding(
            *("events", "damaged-sample", str(id), f"sample {id} ({_series_of_sample(conn, id)}) is damaged"),
            "this plot, image or vector cannot be read, and pages that would show it fail",
            "the sample is set aside, and lost; its bytes are kept",
        )


def _works(check: Callable[[], bool]) -> bool:
    try:
        return check()
    except _NONSENSE:
        return False


class _Same(dict[int, Name]):
    """Gives each id as its own name."""

    def __missing__(self, id: int) -> Any:
        return id


#: For `lines.decode`, if series need no names.
SAME: Mapping[int, Name] = _Same()

PARTS = (
    Part("chunks", "chunk_index", _CHUNKS, _check_chunk, 32),
    Part("pages of newest points", "tail_pages", _PAGES, _check_page, 64),
    Part("log blocks", "log_blocks", _BLOCKS, _check_block, 32),
    Part("samples", "sample_documents", _SAMPLES, _check_sample, 32),
)


# --- names, for people ------------------------------------------------------------------------------


def series_of(conn: sqlite3.Connection, series: int) -> str:
    """Whose series it is, and its name."""
    query = (
        "SELECT name, is_model, type, metric, variant FROM series LEFT JOIN owners ON owners.id = owner"
        " WHERE series.id = ? LIMIT 1"
    )
    row = conn.execute(query, (series,)).fetchone()
    if row is None:
        return f"series {series}, which nothing names"
    name, is_model, type, metric, variant = row
    what = "" if TYPES[type].name == "SCALAR" else f"{TYPES[type].name.lower()}, "
    return f"{'model' if is_model else 'task'} {name}, {what}metric {metric}, variant {variant}"


def _owner(conn: sqlite3.Connection, owner: int) -> str:
    row = conn.execute("SELECT name, is_model FROM owners WHERE id = ?", (owner,)).fetchone()
    return f"owner {owner}, whom nothing names" if row is None else f"{'model' if row[1] else 'task'} {row[0]}"


def _owner_of_page(conn: sqlite3.Connection, page: int) -> str:
    for series, runs in conn.execute("SELECT series, runs FROM scalars WHERE length(runs) > 0"):
        if page in tail.pages_of([runs]):
            return series_of(conn, series)
    return "of nobody"


def _series_of_sample(conn: sqlite3.Connection, document: int) -> str:
    row = conn.execute("SELECT series, iter FROM samples WHERE document = ? LIMIT 1", (document,)).fetchone()
    return "of nobody" if row is None else f"{series_of(conn, row[0])}, iteration {row[1]}"
