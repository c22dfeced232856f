"""What an engine promises of log lines. An owner has one log, which several workers may write."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from apiserver.events.changes import Cursor
from apiserver.events.log_filter import LineFilter, LogHits
from apiserver.events.model import LogLine, LogPosition, LogSize, Owner, Selection
from apiserver.events.queries import PageQuery, SeriesQuery


class LogStore(Protocol):
    """Reads, searches and deletes log lines. What holds for all methods is said at `EventStore`."""

    async def log_lines(
        self, series: SeriesQuery, page: PageQuery[LogPosition], workers: Collection[str] | None = None
    ) -> list[LogLine]:
        """A page of lines in (timestamp, sequence) order, of these workers (None: all).

        A `whole` page has all lines of its last timestamp. If they are too large for it, it ends before that timestamp.
        If all its lines have one timestamp, it may have TIMESTAMP_BYTES.
        """

    async def log_count(self, series: SeriesQuery) -> int:
        """How many lines there are, exactly."""

    async def log_page(self, series: SeriesQuery, page: PageQuery[LogPosition]) -> tuple[list[LogLine], int]:
        """What `log_lines` and `log_count` answer. One call takes less time than two."""

    async def log_numbered(self, owner: Owner, numbers: Sequence[int]) -> tuple[list[LogLine], int]:
        """The lines with these numbers, and how many lines there are.

        Numbers are ascending, each once. The oldest line has number 0. Lines that come late change the numbers behind
        them. Numbers beyond the last line are left out, and so are those behind the line that brings the page to
        PAGE_BYTES. For example, for the numbers 5, 7 and 900 of a log of 100 lines, two lines and 100.
        """

    async def log_number(self, owner: Owner, position: LogPosition) -> int:
        """How many lines lie before the position: the number of the line that has it, if there is one."""

    async def log_hits(self, owner: Owner, line_filter: LineFilter, after: LogPosition | None) -> LogHits:
        """Search the next part of the log behind `after` (None: from its beginning), for some milliseconds."""

    async def log_sizes(self, owner: Owner) -> dict[str, LogSize]:
        """How much each worker logged, exactly; times beyond ±2⁵³ may be rounded."""

    async def delete_logs(
        self, series: SeriesQuery, before: int | None, exclude: Selection = (), up_to: Cursor | None = None
    ) -> int:
        """Delete log lines of the series that are older than `before` (epoch ms; None: all) and not excluded.

        Returns how many there were.
        """
