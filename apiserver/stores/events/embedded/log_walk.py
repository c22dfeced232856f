"""Walks over the log of an owner: its blocks, and the hot lines between them and among their lines.

For example, a log has blocks with lines of the times 0 to 400 and 500 to 700, and hot lines of the times 350, 450 and
900. A walk meets these segments, or the same from the last to the first:

    the block 0–400, and the hot line 350 among its lines
    the hot line 450
    the block 500–700
    the hot line 900
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from functools import cached_property
from typing import NamedTuple

from apiserver.events.model import EventType, LogPosition, Owner
from apiserver.events.queries import SeriesQuery
from apiserver.stores.events.codec import lines as codec
from apiserver.stores.events.codec.checked import decoder
from apiserver.stores.events.codec.lines import Lines, LogPart
from apiserver.stores.events.codec.log_pages import WantedLines
from apiserver.stores.events.codec.names import Name
from apiserver.stores.events.embedded.bounds import BOUNDS, EmbeddedBounds
from apiserver.stores.events.embedded.hot_lines import HotLines
from apiserver.stores.events.embedded.names import owner_id, series_ids

#: The lines of a block, by its body and the names of series; Damaged if the body makes no sense.
decode = decoder(codec.decode, "a block of log lines")

_BLOCKS = (
    "SELECT first_time, first_sequence, last_time, last_sequence, count, names, sizes, body FROM log_blocks"
    " WHERE owner = ? AND (last_time, last_sequence) "
)
_AHEAD = _BLOCKS + "> (?, ?) ORDER BY last_time, last_sequence"
_BACK = _BLOCKS + "< (?, ?) ORDER BY last_time DESC, last_sequence DESC"
#: Blocks are disjoint. So of those that end at a position or later, only the first one can begin before it.
_STRADDLING = _BLOCKS + ">= (?, ?) ORDER BY last_time, last_sequence LIMIT 1"
_NO_LINES = HotLines(())
_BEGIN = LogPosition(-(2**63), -1)
_END = LogPosition(2**63 - 1, 2**63 - 1)


class Block(NamedTuple):
    """A row of the table `log_blocks`."""

    first: LogPosition
    last: LogPosition
    lines: int
    names: bytes
    sizes: bytes
    body: bytes


class Segment(NamedTuple):
    """A block, and which of the hot lines lie among its lines; or hot lines alone, at least one."""

    block: Block | None
    hot: slice


class Log:
    """The log of one owner, as one read sees it."""

    def __init__(
        self,
        conn: sqlite3.Connection,
        owner: Owner,
        tables: Sequence[Sequence[LogPart]],
        bounds: EmbeddedBounds = BOUNDS,
    ) -> None:
        """`tables` has the hot lines of each memtable."""
        self.conn = conn
        self.bounds = bounds
        self.owner = owner
        self.recent = [part for table in tables for part in table]
        """Hot lines as they were sent."""

    @cached_property
    def hot(self) -> HotLines:
        """The hot lines in their order."""
        return HotLines(self.recent) if self.recent else _NO_LINES

    def on_page(self, wanted: WantedLines) -> Log:
        """The log with those hot lines only that may be on a page, and one behind them."""
        if not self.recent:
            return self
        log = copy(self)
        log.hot = self.hot.on_page(wanted)
        return log

    @cached_property
    def number(self) -> int | None:
        """The id of the owner; None if nothing of it was merged."""
        return owner_id(self.conn, self.owner)

    @cached_property
    def ids(self) -> dict[Name, int]:
        """The ids of the merged series of lines."""
        return series_ids(self.conn, SeriesQuery(self.owner, EventType.LOG))

    @cached_property
    def _names(self) -> dict[int, Name]:
        return {id: name for name, id in self.ids.items()}

    def decoded(self, body: bytes) -> Lines:
        """The lines of a block."""
        return decode(body, self._names)

    def lines(self, segment: Segment) -> Lines:
        """The lines of a segment, ascending."""
        block, hot = segment
        merged = [] if block is None else [self.decoded(block.body)]
        return codec.joined([*merged, self.hot.lines(hot)] if hot.start < hot.stop else merged)

    def blocks(self, after: LogPosition | None, *, descending: bool = False) -> Iterator[Block]:
        """All blocks with lines behind a position, in walking order."""
        for query in (_STRADDLING, _BACK) if descending else (_AHEAD,):
            for row in self.conn.execute(query, (self.number, *(after or (_END if descending else _BEGIN)))):
                yield Block(LogPosition(*row[0:2]), LogPosition(*row[2:4]), *row[4:])

    def walk(
        self,
        after: LogPosition | None,
        blocks: Iterable[Block],
        *,
        descending: bool = False,
        few: int | None = None,
    ) -> Iterator[Segment]:
        """The segments of those `blocks` that are wanted, and of all hot lines behind a position, in walking order.

        The first block may also have lines before the position. Between two blocks, the first segment has a `few` hot
        lines, and each further one twice as many: who needs a few makes no more, and who needs all makes few segments.
        """
        most = self.bounds.hot_lines
        few = most if few is None else few
        start, stop = 0, len(self.hot)
        if after is not None:
            before = self.hot.positions.before(after, "left" if descending else "right")
            start, stop = (start, before) if descending else (before, stop)
        for block in blocks:
            first = min(max(self.hot.positions.before(block.first), start), stop)
            last = min(max(self.hot.positions.before(block.last, "right"), start), stop)
            passed = (last, stop) if descending else (start, first)
            yield from _pieces(*passed, few, most, descending)
            yield Segment(block, slice(first, last))
            start, stop = (start, first) if descending else (last, stop)
        yield from _pieces(start, stop, few, most, descending)


def _pieces(start: int, stop: int, few: int, most: int, descending: bool) -> Iterator[Segment]:
    """Segments of the hot lines from `start` to `stop`, as `Log.walk` says."""
    while start < stop:
        size = min(few, stop - start)
        yield Segment(None, slice(stop - size, stop) if descending else slice(start, start + size))
        start, stop = (start, stop - size) if descending else (start + size, stop)
        few = min(2 * few, most)
