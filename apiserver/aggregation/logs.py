"""Pages of log lines, in both directions."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from apiserver import answers
from apiserver.events import documents
from apiserver.events.model import JsonObject, LogLine, LogPosition, Owner, Selection
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


async def page(
    store: EventStore,
    owner: Owner,
    selection: Selection = (),
    *,
    limit: int,
    earlier: bool,
    beyond_timestamp: int | None = None,
) -> LogPage:
    """Up to `limit` lines strictly beyond a timestamp, walking to earlier or to later ones.

    Lines that share the page's last timestamp are all in it, so that the next page, which only knows a timestamp,
    skips none.
    """
    after = None if beyond_timestamp is None else beyond(beyond_timestamp, earlier=earlier)
    lines = await store.log_lines(owner, selection, after=after, descending=earlier, limit=limit, whole_timestamps=True)
    return await _page(store, owner, selection, lines)


def beyond(timestamp: int, *, earlier: bool) -> LogPosition | None:
    """Where a walk to earlier or to later lines begins to meet none of this millisecond; None: at the first line."""
    nearest = min(max(timestamp, -(2**63)), 2**63 - 1)
    if nearest != timestamp and (nearest < timestamp) == earlier:
        return None
    return LogPosition(nearest, -1 if earlier else _BEHIND_ALL)


async def walk(
    store: EventStore,
    owner: Owner,
    selection: Selection = (),
    *,
    limit: int,
    descending: bool,
    after: LogPosition | None,
) -> LogPage:
    """Up to `limit` lines beyond an exact position."""
    lines = await store.log_lines(owner, selection, after=after, descending=descending, limit=limit)
    return await _page(store, owner, selection, lines)


async def _page(store: EventStore, owner: Owner, selection: Selection, lines: list[LogLine]) -> LogPage:
    answers.hold(bytes_of_all(lines))
    total = await store.log_count(owner, selection)
    many = len(lines) > MANY_LINES
    events = await asyncio.to_thread(_events, owner, lines) if many else _events(owner, lines)
    return LogPage(events, total, lines[-1].position if lines else None)


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
