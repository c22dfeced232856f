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

from apiserver.common import answers
from apiserver.events import documents
from apiserver.events.log_filter import LineFilter
from apiserver.events.model import JsonObject, LogLine, LogPosition
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.stores.events.protocols.logs import LogStore
from apiserver.stores.events.sizes import PAGE_BYTES, bytes_of_all, may_go_on, page_of


@dataclass(frozen=True, slots=True)
class SearchBounds:
    """How much of a log is searched for one answer."""

    page: int = 2000
    """Lines that are read at once."""
    seconds: float = 2
    """After this time, a search answers the lines that it has found, and where to go on."""
    hit_seconds: float = 0.5
    """The time of a search that only numbers its hits: somebody watches how far it got."""


BOUNDS = SearchBounds()
"""The bounds of requests."""


@dataclass(slots=True)
class SearchPage:
    """The events of the lines that match, and how far the search got."""

    events: list[JsonObject]
    last: LogPosition | None
    """The last line that was read, or the last one of a full page."""
    ended: bool
    """Whether the log has no more lines beyond `last`."""


async def search(
    store: LogStore,
    series: SeriesQuery,
    line_filter: LineFilter,
    page: PageQuery[LogPosition],
    bounds: SearchBounds | None = None,
) -> SearchPage:
    """The next `limit` matching lines; fewer when its time is over, after PAGE_BYTES, and at the end of the log."""
    bounds = bounds or BOUNDS
    hits: list[LogLine] = []
    size, full, after, limit = 0, False, page.after, page.limit
    deadline = time.monotonic() + bounds.seconds
    while True:
        lines = await store.log_lines(series, PageQuery(bounds.page, after, page.descending))
        matching = await asyncio.to_thread(line_filter.of, lines)
        ended = not may_go_on(lines, bounds.page)
        size += bytes_of_all(matching)
        hits += matching
        if len(hits) > limit or size > PAGE_BYTES:
            hits, ended, full = page_of(hits[:limit]), False, True
            after = hits[-1].position
        elif lines:
            after = lines[-1].position
        if ended or full or len(hits) >= limit or time.monotonic() >= deadline:
            answers.hold(bytes_of_all(hits))
            return SearchPage([documents.log(series.owner, line) for line in hits], after, ended)


@dataclass(slots=True)
class Hits:
    """The numbers of the lines that match, and how far the search got."""

    numbers: list[int]
    end: int
    """The number behind the last line that was read."""
    last: LogPosition | None
    """The last line that was read."""
    ended: bool
    """Whether the log has no more lines beyond `last`."""


async def hits(
    store: LogStore,
    series: SeriesQuery,
    line_filter: LineFilter,
    after: LogPosition | None,
    most: int,
    bounds: SearchBounds | None = None,
) -> Hits:
    """The numbers of matching lines behind `after` that are found within `hit_seconds`, up to about `most`."""
    bounds, end = bounds or BOUNDS, 0
    if after is not None:
        end = await store.log_number(series.owner, after._replace(sequence=after.sequence + 1))
    numbers: list[int] = []
    deadline = time.monotonic() + bounds.hit_seconds
    while True:
        step = await store.log_hits(series.owner, line_filter, after)
        numbers += [end + place for place in step.places]
        end += step.searched
        after = step.last or after
        if step.ended or len(numbers) >= most or time.monotonic() >= deadline:
            return Hits(numbers, end, after, step.ended)


def text(part: str, *, any_case: bool) -> Callable[[str], bool]:
    """A function that says whether a message has the text in it."""
    if not any_case:
        return lambda message: part in message
    folded = part.casefold()
    return lambda message: folded in message.casefold()
