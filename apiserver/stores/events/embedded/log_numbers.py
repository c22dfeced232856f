"""Finds log lines by their numbers, and the numbers of positions. The oldest line has number 0.

Blocks know how many lines they have, so only those with wanted lines are read. Hot lines may belong anywhere. So the
log is cut into segments: each has the lines of one block, and the hot lines behind the block before it. The last
segment has the hot lines behind all blocks. For example:

    blocks: times 0–400 with 500 lines, 401–700 with 300; hot lines of the times 350, 500, 900 and 901
    segments: 500 + 1 lines from number 0, 300 + 1 from number 501, 2 from number 802
    line 803 is the second line of the last segment, which is the hot line of time 901

A log of 10 million lines has 20,000 blocks. `BlockEnds` remembers where they end, because reading that takes 15 ms.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from apiserver.events.model import EventType, Int64Array, LogLine, LogPosition, Owner
from apiserver.stores.events.bounded import Bounded
from apiserver.stores.events.codec.lines import Lines, Positions, joined
from apiserver.stores.events.codec.log_pages import of_parts
from apiserver.stores.events.embedded.bounds import EmbeddedBounds
from apiserver.stores.events.embedded.log_walk import Log
from apiserver.stores.events.embedded.names import CODES
from apiserver.stores.events.sizes import page_of

_ENDS = "SELECT id, last_time, last_sequence, count FROM log_blocks WHERE owner = ? ORDER BY last_time, last_sequence"
#: What changes when an owner's blocks do.
_VERSION = (
    "SELECT id, changed_segment, changed_record, (SELECT sum(lines) FROM series JOIN log_series ON series = series.id"
    " WHERE owner = owners.id AND type = ?) FROM owners WHERE company = ? AND name = ? AND is_model = ?"
)
_Version = tuple[int, int, int, int | None] | None


class _Blocks(NamedTuple):
    """The blocks of a log, in order."""

    ids: Int64Array
    ends: Positions
    firsts: Int64Array
    """The number of the first merged line of each segment, then how many merged lines there are."""


FindBlocks = Callable[[sqlite3.Connection, Owner], _Blocks]


class BlockEnds:
    """Where the blocks of some logs end: of those that were asked for last, up to `block_ends` together.

    A log's blocks are known until they change. Each merge of the owner's events moves the place up to which they are
    merged, and a deletion of lines makes them fewer. So the blocks are the same while both are.
    """

    def __init__(self, bounds: EmbeddedBounds) -> None:
        self._known: Bounded[Owner, tuple[_Version, _Blocks]] = Bounded(
            bounds.block_ends, lambda _, known: max(len(known[1].ids), bounds.least_block_ends)
        )
        self._deletions = 0
        self._lock = threading.Lock()

    def reading(self) -> FindBlocks:
        """How a read that begins now finds the blocks of an owner's log, as its connection sees them.

        They are not remembered if events were deleted meanwhile, as the owner may be gone.
        """
        return partial(self._of, self._deletions)

    def forget(self, owners: Iterable[Owner]) -> None:
        """Forget owners whose events were just deleted."""
        with self._lock:
            self._deletions += 1
            for owner in owners:
                self._known.drop(owner)

    def _of(self, deletions: int, conn: sqlite3.Connection, owner: Owner) -> _Blocks:
        company, name, is_model = owner
        code = CODES[EventType.LOG]
        version: _Version = conn.execute(_VERSION, (code, company, name, int(is_model))).fetchone()
        with self._lock:
            known = self._known.get(owner)
            if known is not None and known[0] == version:
                return known[1]
        rows = conn.execute(_ENDS, (version and version[0],)).fetchall()
        ids, times, sequences, counts = np.array(rows, np.int64).reshape(-1, 4).T.copy()
        blocks = _Blocks(ids, Positions(times, sequences), np.concatenate([[0], np.cumsum(counts), [np.sum(counts)]]))
        with self._lock:
            if version is not None and deletions == self._deletions:
                self._known.put(owner, (version, blocks))
        return blocks


class NumberedLog:
    """The lines of a log by their numbers: merged lines are read only as they are needed."""

    def __init__(self, log: Log, known: FindBlocks) -> None:
        self._log = log
        self._ids, self._ends, self._first_merged = known(log.conn, log.owner)
        #: The number of the first hot line of each segment, and of the first line of any kind; then how many there are.
        self._first_hot = np.concatenate([[0], self._log.hot.positions.until_each(self._ends), [len(self._log.hot)]])
        self._firsts = self._first_merged + self._first_hot

    @property
    def count(self) -> int:
        """How many lines there are."""
        return int(self._firsts[-1])

    def lines(self, numbers: Sequence[int]) -> list[LogLine]:
        """The lines with these ascending numbers, as `LogStore.log_numbered` describes it."""
        some = (self._some(segment, places) for segment, places in of_parts(numbers, self._firsts))
        return page_of(line for lines in some for line in lines)

    def number(self, position: LogPosition) -> int:
        """How many lines lie before the position."""
        segment = self._ends.before(position)
        merged = int(self._first_merged[segment])
        if segment < len(self._ids):
            merged += self._block(segment).before(position)
        return merged + self._log.hot.positions.before(position)

    def _some(self, segment: int, places: Int64Array) -> list[LogLine]:
        """The lines at these places of a segment. Of hot lines, only these become columns."""
        first, last = self._first_hot[segment : segment + 2].tolist()
        if segment == len(self._ids):
            return self._log.hot.lines(first + places).log_lines()
        block = self._block(segment)
        hot = self._log.hot.positions.take(np.arange(first, last))
        times, sequences = (np.concatenate(both) for both in zip(block.positions, hot, strict=True))
        which = np.lexsort((sequences, times))[places]  # merged lines come first in these numbers, then hot ones
        of_block, of_hot = which[which < len(block)], which[which >= len(block)] - len(block) + first
        found = [block.take(of_block)] if len(of_block) else []
        if len(of_hot):
            found.append(self._log.hot.lines(of_hot))
        return joined(found).log_lines()

    def _block(self, segment: int) -> Lines:
        (body,) = self._log.conn.execute(
            "SELECT body FROM log_blocks WHERE id = ?", (int(self._ids[segment]),)
        ).fetchone()
        return self._log.decoded(body)
