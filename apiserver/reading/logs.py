"""Pages of log lines, in both directions."""

from __future__ import annotations

from dataclasses import dataclass

from apiserver.common import answers
from apiserver.common.off_loop import off_loop
from apiserver.events import documents
from apiserver.events.model import JsonObject, LogLine, LogPosition, Owner
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.stores.events.protocols.logs import LogStore
from apiserver.stores.events.sizes import bytes_of_all

#: Greater than every sequence number. With a timestamp, it is the position behind all lines of that millisecond.
_BEHIND_ALL = 2**63 - 1


@dataclass(slots=True)
class LogPage:
    """Log events, and how many the whole log has."""

    events: list[JsonObject]
    total: int
    last: LogPosition | None
    """The position of the last line of the page."""


async def page(store: LogStore, series: SeriesQuery, asked: PageQuery[LogPosition]) -> LogPage:
    """A page of lines, and how many the whole log has.

    Readers who go on from a page's last timestamp ask for `whole` pages. So they miss no line of that timestamp.
    """
    lines, total = await store.log_page(series, asked)
    answers.hold(bytes_of_all(lines))
    return LogPage(await events(series.owner, lines), total, lines[-1].position if lines else None)


def beyond(timestamp: int, *, earlier: bool) -> LogPosition | None:
    """The position behind all lines of a millisecond, in walk direction; None: the beginning of the walk.

    A walk to earlier lines from timestamp 5 begins with the last line of timestamp 4 or before; a walk to later lines
    with the first line of timestamp 6 or after. A timestamp that is no int64 may lie before all lines of the walk.
    """
    nearest = min(max(timestamp, -(2**63)), 2**63 - 1)
    if nearest != timestamp and (nearest < timestamp) == earlier:
        return None
    return LogPosition(nearest, -1 if earlier else _BEHIND_ALL)


async def events(owner: Owner, lines: list[LogLine]) -> list[JsonObject]:
    """The events of many log lines, as readers get them."""
    return await off_loop(len(lines), lambda: [documents.log(owner, line) for line in lines])
