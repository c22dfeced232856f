"""Pages over an owner's events of any type, in iteration order; log lines, which have a time rather than an
iteration, come last in a walk over all types.

A page never ends inside an iteration, so an iteration is position enough for scalars and samples. But of samples alone,
which may be large, a page ends with any of them when it has PAGE_BYTES.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import orjson

from apiserver import answers
from apiserver.aggregation import logs
from apiserver.aggregation.samples import PAGE
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
    Selection,
)
from apiserver.off_loop import off_loop
from apiserver.stores.events.base import PAGE_BYTES, EventStore, bytes_of_all, may_go_on

#: Bytes of memory that a scalar event takes, about.
_SCALAR_BYTES = 600


class Position(NamedTuple):
    """Where a walk stands: the last whole iteration or, over samples alone, the last sample; then the last log line."""

    iteration: int | None = None
    log: tuple[int, int] | None = None
    in_logs: bool = False
    sample: tuple[int, str, str, str] | None = None


@dataclass(slots=True)
class Page:
    """Events as readers get them, and the position behind them."""

    events: list[Any]
    position: Position


async def page(
    store: EventStore, owner: Owner, type: EventType | None, *, limit: int, descending: bool, position: Position
) -> Page:
    """At least `limit` events beyond `position`; fewer at the end of the walk, and when they are large."""
    if type in SAMPLE_TYPES:
        return await _samples_alone(store, owner, type, limit, descending, position)
    events: list[Any] = []
    goes_on = False
    if type is not EventType.LOG and not position.in_logs:
        types = (EventType.SCALAR, *SAMPLE_TYPES) if type is None else (type,)
        events, position, goes_on = await _iterations(store, owner, types, limit, descending, position)
    if type in (EventType.LOG, None) and len(events) < limit and not goes_on and not owner.is_model:
        lines, position = await _lines(store, owner, limit - len(events), descending, position)
        events += lines
    return Page(events, position)


async def _iterations(
    store: EventStore,
    owner: Owner,
    types: tuple[EventType, ...],
    limit: int,
    descending: bool,
    position: Position,
) -> tuple[list[Any], Position, bool]:
    """At least `limit` events, unless they are large; whether there may be more."""
    found: list[tuple[int, Any]] = []
    ends: list[int] = []
    for type in types:
        more, goes_on = await _of_type(store, owner, type, limit, descending, position)
        found += more
        if goes_on:
            ends.append(more[-1][0])
    if ends:  # whatever some type has beyond its part of this, it is beyond its last iteration
        found = [one for one in found if (one[0] >= max(ends) if descending else one[0] <= min(ends))]
    found.sort(key=lambda event: event[0], reverse=descending)
    found = _cut(found, limit)
    if not found:
        return [], position, False
    return [event for _, event in found], Position(iteration=found[-1][0]), bool(ends)


def _cut(found: list[tuple[int, Any]], limit: int) -> list[tuple[int, Any]]:
    """The first `limit` events and the rest of the last one's iteration."""
    end = limit
    while 0 < end < len(found) and found[end][0] == found[end - 1][0]:
        end += 1
    return found[:end]


async def _of_type(
    store: EventStore, owner: Owner, type: EventType, limit: int, descending: bool, position: Position
) -> tuple[list[tuple[int, Any]], bool]:
    """Events of whole iterations, and whether there may be more."""
    if type is EventType.SCALAR:
        points = await scalars(store, owner, (), limit, descending, position.iteration)
        return points, len(points) >= limit
    samples, goes_on = await _samples(store, owner, type, limit, descending, position, most=None)
    return [(sample.iter, orjson.Fragment(sample.document)) for sample in samples], goes_on


async def scalars(
    store: EventStore, owner: Owner, selection: Selection, limit: int, descending: bool, iteration: int | None
) -> list[tuple[int, Any]]:
    """At least `limit` scalar events beyond an iteration, each with its iteration; fewer only at the end."""
    after = None if iteration is None else ScalarPosition(iteration, *_edge(descending, 2))
    points = await store.scalar_points(
        owner, selection, after=after, descending=descending, limit=limit, whole_iterations=True
    )
    answers.hold(_SCALAR_BYTES * len(points.iters))
    return await off_loop(len(points.iters), lambda: _documents(owner, points))


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


async def _samples_alone(
    store: EventStore, owner: Owner, type: EventType, limit: int, descending: bool, position: Position
) -> Page:
    samples, _ = await _samples(store, owner, type, limit, descending, position, most=PAGE_BYTES)
    last = Position(sample=samples[-1].position) if samples else position
    return Page([orjson.Fragment(sample.document) for sample in samples], last)


async def _samples(
    store: EventStore,
    owner: Owner,
    type: EventType,
    limit: int,
    descending: bool,
    position: Position,
    *,
    most: int | None,
) -> tuple[list[Sample], bool]:
    """A page of samples with all of its last iteration, unless it has `most` bytes, and whether there may be more."""
    after: SamplePosition | None = None
    if position.sample is not None:
        after = SamplePosition(*position.sample)
    elif position.iteration is not None:
        after = SamplePosition(position.iteration, *_edge(descending, 3))
    read = partial(store.samples, owner, type, descending=descending)
    samples = page = await read(after=after, limit=limit)
    size = bytes_of_all(page)
    answers.hold(size)
    goes_on = rest = may_go_on(page, limit)
    while rest and (most is None or size < most):
        last = samples[-1].position
        page = await read(after=last, min_iter=last.iter, max_iter=last.iter, limit=PAGE)
        answers.hold(bytes_of_all(page))
        size += bytes_of_all(page)
        samples = [*samples, *page]
        rest = may_go_on(page, PAGE)
    return samples, goes_on


def _edge(descending: bool, names: int) -> tuple[str, ...]:
    """Names that sort behind all others of an iteration, in walk direction."""
    return ("" if descending else LAST_NAME,) * names


async def _lines(
    store: EventStore, owner: Owner, limit: int, descending: bool, position: Position
) -> tuple[list[Any], Position]:
    after = None if position.log is None else LogPosition(*position.log)
    lines = await store.log_lines(owner, after=after, descending=descending, limit=limit)
    answers.hold(bytes_of_all(lines))
    last: tuple[int, int] | None = lines[-1].position if lines else position.log
    events = [logs.event(owner, line) for line in lines]
    return events, Position(position.iteration, last, in_logs=True)
