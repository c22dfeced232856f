"""Searches the log of an owner, whose blocks are read only as far as a search needs.

No line is made. Of a block whose lines are all asked for, only levels, workers and messages are decoded, and no line is
looked at if the joined messages have no match. Where hot lines lie between merged ones, their positions are read, too.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from apiserver import answers
from apiserver.events.log_filter import LineFilter, LogHits
from apiserver.events.model import EventType, LogPosition, Owner
from apiserver.events.queries import SeriesQuery
from apiserver.stores.events.base import PAGE_BYTES
from apiserver.stores.events.columns import compression
from apiserver.stores.events.columns import lines as codec
from apiserver.stores.events.columns.lines import LogPart, Texts
from apiserver.stores.events.embedded import log_sizes
from apiserver.stores.events.embedded.logs import hot_positions
from apiserver.stores.events.embedded.names import owner_id, series_ids

#: Lines after which a search pauses, so that it takes some milliseconds. It also pauses after PAGE_BYTES.
AT_ONCE = 10_000

_BLOCKS = (
    "SELECT first_time, first_sequence, last_time, last_sequence, count, sizes, body FROM log_blocks"
    " WHERE owner = ? AND (last_time, last_sequence) > (?, ?) ORDER BY last_time, last_sequence"
)
_BEGIN = LogPosition(-(2**63), -1)


class _Block(NamedTuple):
    first: LogPosition
    last: LogPosition
    lines: int
    sizes: bytes | None
    body: bytes


def hits(
    conn: sqlite3.Connection,
    owner: Owner,
    hot: Sequence[Sequence[LogPart]],
    wanted: LineFilter,
    after: LogPosition | None,
) -> LogHits:
    """The next hits, as `EventStore.log_hits` describes it."""
    recent = _Recent([part for table in hot for part in table], wanted, after or _BEGIN)
    found: list[int] = []
    searched = size = largest = 0
    for block in _blocks(conn, owner, after or _BEGIN):
        if searched >= AT_ONCE or size >= PAGE_BYTES:
            return LogHits(found, searched, after, ended=False)
        bytes = compression.size_of(block.body)
        answers.will_read(max(0, bytes - largest))  # only one block at a time is in memory
        size, largest = size + bytes, max(largest, bytes)
        some = recent.until(block.last)
        if some.start < some.stop or (after is not None and block.first <= after):
            places, count = _merged(conn, owner, block, after, recent, some, wanted)
        else:
            places, count = _places(block, wanted), block.lines
        found += [searched + place for place in places]
        searched, after = searched + count, block.last
    rest = recent.until(None)
    found += [searched + place for place in np.flatnonzero(recent.matching(rest)).tolist()]
    last = recent.position(rest.stop - 1) if rest.start < rest.stop else after
    return LogHits(found, searched + rest.stop - rest.start, last, recent.ended)


def _blocks(conn: sqlite3.Connection, owner: Owner, after: LogPosition) -> Iterator[_Block]:
    for first_time, first_sequence, last_time, last_sequence, *rest in conn.execute(
        _BLOCKS, (owner_id(conn, owner), *after)
    ):
        yield _Block(LogPosition(first_time, first_sequence), LogPosition(last_time, last_sequence), *rest)


def _places(block: _Block, wanted: LineFilter) -> list[int]:
    """Where the matching lines are in a block."""
    if wanted.workers and block.sizes and wanted.workers.isdisjoint(log_sizes.workers(block.sizes)):
        return []
    return codec.decode_texts(block.body).places(wanted)


def _merged(
    conn: sqlite3.Connection,
    owner: Owner,
    block: _Block,
    after: LogPosition | None,
    recent: _Recent,
    some: slice,
    wanted: LineFilter,
) -> tuple[list[int], int]:
    """Where matches are among a block's lines behind `after` and some hot lines, and how many lines these are."""
    names = {id: name for name, id in series_ids(conn, SeriesQuery(owner, EventType.LOG)).items()}
    lines = codec.decode(block.body, names).beyond(after, descending=False)
    matching = np.zeros(len(lines) + some.stop - some.start, np.bool_)
    matching[Texts(lines.levels, lines.workers, lines.messages).places(wanted)] = True
    matching[len(lines) :] = recent.matching(some)
    times = np.concatenate([lines.timestamps, recent.times[some]])
    order = np.lexsort((np.concatenate([lines.sequences, recent.sequences[some]]), times))
    return np.flatnonzero(matching[order]).tolist(), len(order)


class _Recent:
    """The hot lines behind a position, in order."""

    def __init__(self, parts: Sequence[LogPart], wanted: LineFilter, after: LogPosition) -> None:
        self._parts = parts
        self._wanted = wanted
        self._ends = np.cumsum([len(part.columns.messages) for part in parts], dtype=np.int64)
        times, sequences = hot_positions(parts)
        time, sequence = after
        behind = np.flatnonzero((times > time) | ((times == time) & (sequences > sequence)))
        self._which = behind[np.lexsort((sequences[behind], times[behind]))]
        self.times, self.sequences = times[self._which], sequences[self._which]
        self._start = 0

    @property
    def ended(self) -> bool:
        """Whether `until` has returned all lines."""
        return self._start == len(self._which)

    def until(self, last: LogPosition | None) -> slice:
        """The next lines that are not behind `last`. None: up to AT_ONCE of those that are left."""
        start = self._start
        if last is None:
            self._start = min(start + AT_ONCE, len(self._which))
        else:
            first, stop = (int(np.searchsorted(self.times, last.timestamp, side)) for side in ("left", "right"))
            self._start = first + int(np.searchsorted(self.sequences[first:stop], last.sequence, "right"))
        return slice(start, self._start)

    def matching(self, some: slice) -> npt.NDArray[np.bool_]:
        """Whether each of these lines matches."""
        wanted, which = self._wanted, self._which[some]
        numbers = np.searchsorted(self._ends, which, "right")
        found: list[int] = []
        messages: list[str] = []
        for n, (number, place) in enumerate(zip(numbers.tolist(), which.tolist(), strict=True)):
            columns = self._parts[number].columns
            at = place - int(self._ends[number])  # counts from the end of the part
            if wanted.levels and columns.levels[at] not in wanted.levels:
                continue
            if not wanted.workers or columns.workers[at] in wanted.workers:
                found.append(n)
                messages.append(columns.messages[at])
        matching = np.zeros(len(which), np.bool_)
        matching[wanted.by_message(found, messages)] = True
        return matching

    def position(self, n: int) -> LogPosition:
        """The position of a line."""
        return LogPosition(int(self.times[n]), int(self.sequences[n]))
