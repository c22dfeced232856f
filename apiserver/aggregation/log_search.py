"""Search in logs: a walk that answers only the lines that match, and stops when it has enough or its time is up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from apiserver import answers
from apiserver.aggregation import logs
from apiserver.events.model import JsonObject, LogLine, LogPosition
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.stores.events.base import PAGE_BYTES, EventStore, bytes_of_all, may_go_on, page_of

#: Lines that are read at once.
PAGE = 2000
#: How long a search may look; with what it has found, it then answers where to go on.
SECONDS = 2.0


@dataclass(slots=True, frozen=True)
class Wanted:
    """Which lines match: those with one of the levels and workers, if any are named, and a message that matches."""

    levels: frozenset[str] = frozenset()
    workers: frozenset[str] = frozenset()
    message: Callable[[str], bool] | None = None

    def of(self, lines: list[LogLine]) -> list[LogLine]:
        """Those of the lines that match."""
        if self.levels:
            lines = [line for line in lines if line.level in self.levels]
        if self.workers:
            lines = [line for line in lines if line.worker in self.workers]
        if self.message is not None:
            message = self.message
            lines = [line for line in lines if message(line.message)]
        return lines


@dataclass(slots=True)
class Found:
    """Log events as readers get them, and how far the search got."""

    events: list[JsonObject]
    last: LogPosition | None
    """The last line that was looked at."""
    ended: bool
    """Whether there are no lines beyond it."""


async def search(store: EventStore, series: SeriesQuery, wanted: Wanted, page: PageQuery[LogPosition]) -> Found:
    """A page of matching lines.

    They are fewer when SECONDS are over, when they have PAGE_BYTES, and at the end of the log.
    """
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
            return Found([logs.event(series.owner, line) for line in found], after, ended)


def text(wanted: str, *, any_case: bool) -> Callable[[str], bool]:
    """A function that tells whether a message holds the text."""
    if not any_case:
        return lambda message: wanted in message
    folded = wanted.casefold()
    return lambda message: folded in message.casefold()
