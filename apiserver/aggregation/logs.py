"""Pages of log lines, in both directions."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from apiserver import answers
from apiserver.events import documents
from apiserver.events.model import JsonObject, LogLine, LogPosition, Owner
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.stores.events.base import EventStore, bytes_of_all

#: Beyond every sequence: with a timestamp, the position behind all lines of that millisecond.
_BEHIND_ALL = 2**63 - 1

#: More lines than this become events in a thread, as others would wait. No page is asked to have so many, but lines
#: that share a timestamp may be more.
MANY_LINES = 10_000


@dataclass(slots=True)
class LogPage:
    """Log events as readers get them, and how many there are in all."""

    events: list[JsonObject]
    total: int
    last: LogPosition | None
    """The last line of the walk that this page reached."""


async def page(store: EventStore, series: SeriesQuery, asked: PageQuery[LogPosition]) -> LogPage:
    """A page of lines, and how many there are in all.

    A `whole` one is for readers who go on from its last timestamp: they skip none.
    """
    lines = await store.log_lines(series, asked)
    answers.hold(bytes_of_all(lines))
    total = await store.log_count(series)
    many = len(lines) > MANY_LINES
    events = await asyncio.to_thread(_events, series.owner, lines) if many else _events(series.owner, lines)
    return LogPage(events, total, lines[-1].position if lines else None)


def beyond(timestamp: int, *, earlier: bool) -> LogPosition | None:
    """Where a walk to earlier or to later lines begins to meet none of this millisecond; None: at the first line."""
    nearest = min(max(timestamp, -(2**63)), 2**63 - 1)
    if nearest != timestamp and (nearest < timestamp) == earlier:
        return None
    return LogPosition(nearest, -1 if earlier else _BEHIND_ALL)


def _events(owner: Owner, lines: list[LogLine]) -> list[JsonObject]:
    return [event(owner, line) for line in lines]


def event(owner: Owner, line: LogLine) -> JsonObject:
    """A log event as readers get it."""
    return documents.log(
        owner,
        line.iter,
        line.position.timestamp,
        line.worker,
        line.metric,
        line.variant,
        line.level,
        line.message,
        line.received,
        line.extra,
    )
