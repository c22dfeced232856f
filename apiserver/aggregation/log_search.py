"""Search in logs: pages of only those lines that match.

A search reads the log in steps of 2,000 lines. It ends when it has found a page, and at the end of the log, but also
after two seconds, so that no request takes long. The answer always says how far the search got, and the next request
goes on there. For example, a rare text may give some answers without a line before one that has it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from apiserver import answers
from apiserver.events import documents
from apiserver.events.model import JsonObject, LogLine, LogPosition
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.stores.events.base import PAGE_BYTES, EventStore, bytes_of_all, may_go_on, page_of

#: Lines that are read at once.
PAGE = 2000
#: Seconds after which a search answers what it has found, and where to go on.
SECONDS = 2.0


@dataclass(slots=True, frozen=True)
class LineFilter:
    """The lines that match: with one of the levels, if any are named, one of the workers, and such a message."""

    levels: frozenset[str] = frozenset()
    workers: frozenset[str] = frozenset()
    message: Callable[[str], bool] | None = None

    def of(self, lines: list[LogLine]) -> list[LogLine]:
        """The matching lines among these."""
        if self.levels:
            lines = [line for line in lines if line.level in self.levels]
        if self.workers:
            lines = [line for line in lines if line.worker in self.workers]
        if self.message is not None:
            message = self.message
            lines = [line for line in lines if message(line.message)]
        return lines


@dataclass(slots=True)
class SearchPage:
    """The events of the lines that match, and how far the search got."""

    events: list[JsonObject]
    last: LogPosition | None
    """The last line that was read, or the last one of a full page."""
    ended: bool
    """Whether the log has no more lines beyond `last`."""


async def search(
    store: EventStore, series: SeriesQuery, wanted: LineFilter, page: PageQuery[LogPosition]
) -> SearchPage:
    """The next `limit` matching lines; fewer when SECONDS are over, after PAGE_BYTES, and at the end of the log."""
    found: list[LogLine] = []
    size, full, after, limit = 0, False, page.after, page.limit
    deadline = time.monotonic() + SECONDS
    while True:
        lines = await store.log_lines(series, PageQuery(PAGE, after, page.descending))
        matching = await asyncio.to_thread(wanted.of, lines)
        ended = not may_go_on(lines, PAGE)
        size += bytes_of_all(matching)
        found += matching
        if len(found) > limit or size > PAGE_BYTES:
            found, ended, full = page_of(found[:limit]), False, True
            after = found[-1].position
        elif lines:
            after = lines[-1].position
        if ended or full or len(found) >= limit or time.monotonic() >= deadline:
            answers.hold(bytes_of_all(found))
            return SearchPage([documents.log(series.owner, line) for line in found], after, ended)


def text(wanted: str, *, any_case: bool) -> Callable[[str], bool]:
    """A function that says whether a message has the text in it."""
    if not any_case:
        return lambda message: wanted in message
    folded = wanted.casefold()
    return lambda message: folded in message.casefold()
