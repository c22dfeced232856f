"""Pages of an owner's events, of one type or of all types, in the order of iterations.

Log lines are sorted by time. In a walk over all types they come after all other events.

A page ends with a whole iteration, so that the iteration is enough as a position. Only a page of samples alone may end
inside one, because samples may be large: it ends once it has PAGE_BYTES, and its position is its last sample.

A page of all types is put together from a page of each type. For example, a page of four events is wanted. The four
scalars that are read have the iterations 1, 1, 2 and 2, and there may be more scalars from 3 on. The only plots have
the iterations 1 and 4. The page ends with iteration 2, because scalars of 3 would come before the plot of 4. It has the
five events of the iterations 1 and 2, and a later page reads the plot of 4 again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from apiserver.common import answers
from apiserver.common.off_loop import off_loop
from apiserver.events import documents
from apiserver.events.model import (
    LAST_NAME,
    SAMPLE_TYPES,
    EventType,
    LogPosition,
    Owner,
    Sample,
    SamplePosition,
    ScalarPoints,
    ScalarPosition,
)
from apiserver.events.queries import PageQuery, Range, SeriesQuery
from apiserver.reading import logs
from apiserver.reading.samples import PAGE
from apiserver.stores.events.base import EventStore
from apiserver.stores.events.protocols.logs import LogStore
from apiserver.stores.events.protocols.samples import SampleStore
from apiserver.stores.events.protocols.scalars import ScalarStore
from apiserver.stores.events.sizes import PAGE_BYTES, bytes_of_all, may_go_on

#: Bytes of memory that the event of a scalar takes, about.
_SCALAR_BYTES = 600


class Position(NamedTuple):
    """Where a walk stands: behind an iteration or, in a walk over samples alone, a sample; and behind a log line."""

    iteration: int | None = None
    log: tuple[int, int] | None = None
    in_logs: bool = False
    sample: tuple[int, str, str, str] | None = None


@dataclass(slots=True)
class EventPage:
    """Events as readers get them, and the position of the walk behind them."""

    events: list[Any]
    position: Position


#: The page of a walk that a reader asks for.
Asked = PageQuery[Position]


async def page(store: EventStore, owner: Owner, type: EventType | None, asked: Asked) -> EventPage:
    """The next `limit` events and all others of the last iteration. Fewer at the end, or if they are large."""
    if type in SAMPLE_TYPES:
        samples, _ = await _samples(store, SeriesQuery(owner, type), asked, most=PAGE_BYTES)
        last = Position(sample=samples[-1].position) if samples else asked.after or Position()
        return EventPage([orjson.Fragment(sample.document) for sample in samples], last)
    events: list[Any] = []
    goes_on = False
    position = asked.after or Position()
    if type is not EventType.LOG and not position.in_logs:
        types = (EventType.SCALAR, *SAMPLE_TYPES) if type is None else (type,)
        events, position, goes_on = await _iterations(store, [SeriesQuery(owner, one) for one in types], asked)
    if type in (EventType.LOG, None) and len(events) < asked.limit and not goes_on and not owner.is_model:
        rest = PageQuery(asked.limit - len(events), position, asked.descending)
        lines, position = await _lines(store, SeriesQuery(owner, EventType.LOG), rest)
        events += lines
    return EventPage(events, position)


async def _iterations(
    store: EventStore, queries: Sequence[SeriesQuery], asked: Asked
) -> tuple[list[Any], Position, bool]:
    """Events of whole iterations from a page of each type, the position behind them, and whether there may be more."""
    events: list[tuple[int, Any]] = []
    ends: list[int] = []
    for query in queries:
        of_type, goes_on = await _of_type(store, query, asked)
        events += of_type
        if goes_on:
            ends.append(of_type[-1][0])
    descending = asked.descending
    if ends:  # unread events of a type lie beyond its last iteration that was read
        events = [event for event in events if (event[0] >= max(ends) if descending else event[0] <= min(ends))]
    events.sort(key=lambda event: event[0], reverse=descending)
    end = asked.limit
    while 0 < end < len(events) and events[end][0] == events[end - 1][0]:  # all events of the last iteration
        end += 1
    events = events[:end]
    if not events:
        return [], asked.after or Position(), False
    return [event for _, event in events], Position(iteration=events[-1][0]), bool(ends)


async def _of_type(store: EventStore, series: SeriesQuery, asked: Asked) -> tuple[list[tuple[int, Any]], bool]:
    """Events of whole iterations of one type, and whether there may be more."""
    if series.type is EventType.SCALAR:
        iteration = None if asked.after is None else asked.after.iteration
        points = await scalars(store, series, PageQuery(asked.limit, iteration, asked.descending))
        return points, len(points) >= asked.limit
    samples, goes_on = await _samples(store, series, asked, most=None)
    return [(sample.iter, orjson.Fragment(sample.document)) for sample in samples], goes_on


async def scalars(store: ScalarStore, series: SeriesQuery, asked: PageQuery[int]) -> list[tuple[int, Any]]:
    """The next `limit` scalar events behind an iteration, and all others of the last one's iteration."""
    after = None if asked.after is None else ScalarPosition(asked.after, *_edge(asked.descending, 2))
    points = await store.scalar_points(series, PageQuery(asked.limit, after, asked.descending, whole=True))
    answers.hold(_SCALAR_BYTES * len(points.iters))
    return await off_loop(len(points.iters), lambda: _documents(series.owner, points))


def _documents(owner: Owner, points: ScalarPoints) -> list[tuple[int, Any]]:
    columns = zip(
        [points.names[series] for series in points.series.tolist()],
        points.iters.tolist(),
        points.timestamps.tolist(),
        points.values.tolist(),
        points.workers,
        points.received.tolist(),
        strict=True,
    )
    return [
        (iter, documents.scalar(owner, iter, timestamp, worker, metric, variant, value, received))
        for (metric, variant), iter, timestamp, value, worker, received in columns
    ]


async def _samples(
    store: SampleStore, series: SeriesQuery, asked: Asked, *, most: int | None
) -> tuple[list[Sample], bool]:
    """The next samples, and whether there may be more. They end with a whole iteration, or at `most` bytes."""
    after: SamplePosition | None = None
    if asked.after is not None and asked.after.sample is not None:
        after = SamplePosition(*asked.after.sample)
    elif asked.after is not None and asked.after.iteration is not None:
        after = SamplePosition(asked.after.iteration, *_edge(asked.descending, 3))
    samples = page = await store.samples(series, PageQuery(asked.limit, after, asked.descending))
    size = bytes_of_all(page)
    answers.hold(size)
    goes_on = rest = may_go_on(page, asked.limit)
    while rest and (most is None or size < most):
        last = samples[-1].position
        further = PageQuery(PAGE, last, asked.descending)
        page = await store.samples(series, further, Range(last.iter, last.iter))
        answers.hold(bytes_of_all(page))
        size += bytes_of_all(page)
        samples = [*samples, *page]
        rest = may_go_on(page, PAGE)
    return samples, goes_on


def _edge(descending: bool, names: int) -> tuple[str, ...]:
    """As many names that come behind all others in walk direction."""
    return ("" if descending else LAST_NAME,) * names


async def _lines(store: LogStore, series: SeriesQuery, asked: Asked) -> tuple[list[Any], Position]:
    position = asked.after or Position()
    after = None if position.log is None else LogPosition(*position.log)
    lines = await store.log_lines(series, PageQuery(asked.limit, after, asked.descending))
    answers.hold(bytes_of_all(lines))
    last: tuple[int, int] | None = lines[-1].position if lines else position.log
    return await logs.events(series.owner, lines), Position(position.iteration, last, in_logs=True)
