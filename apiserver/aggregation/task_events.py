"""Pages over an owner's events of any type, in iteration order; log lines, which have a time rather than an
iteration, come last in a walk over all types.

A page never ends inside an iteration, so an iteration is position enough for scalars and samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from apiserver.aggregation import logs
from apiserver.events import documents
from apiserver.events.model import (
    LAST_NAME,
    SAMPLE_TYPES,
    EventType,
    LogPosition,
    Owner,
    SamplePosition,
    ScalarPoints,
    ScalarPosition,
    Selection,
)
from apiserver.off_loop import off_loop
from apiserver.stores.events.base import EventStore


class Position(NamedTuple):
    """Where a walk stands: the last whole iteration, then the last log line."""

    iteration: int | None = None
    log: tuple[int, int] | None = None
    in_logs: bool = False


@dataclass(slots=True)
class Page:
    """Events as readers get them, and the position behind them."""

    events: list[Any]
    position: Position


async def page(
    store: EventStore, owner: Owner, type: EventType | None, *, limit: int, descending: bool, position: Position
) -> Page:
    """At least `limit` events beyond `position`, fewer only at the end of the walk."""
    events: list[Any] = []
    if type is not EventType.LOG and not position.in_logs:
        types = (EventType.SCALAR, *SAMPLE_TYPES) if type is None else (type,)
        events, position = await _iterations(store, owner, types, limit, descending, position)
    if type in (EventType.LOG, None) and len(events) < limit and not owner.is_model:
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
) -> tuple[list[Any], Position]:
    found: list[tuple[int, Any]] = []
    for type in types:
        found += await _of_type(store, owner, type, limit, descending, position.iteration)
    # Whatever some type has beyond its part of this, the first `limit` events are among them.
    found.sort(key=lambda event: event[0], reverse=descending)
    found = _cut(found, limit)
    if not found:
        return [], position
    return [event for _, event in found], Position(iteration=found[-1][0])


def _cut(found: list[tuple[int, Any]], limit: int) -> list[tuple[int, Any]]:
    """The first `limit` events and the rest of the last one's iteration."""
    end = limit
    while 0 < end < len(found) and found[end][0] == found[end - 1][0]:
        end += 1
    return found[:end]


async def _of_type(
    store: EventStore, owner: Owner, type: EventType, limit: int, descending: bool, iteration: int | None
) -> list[tuple[int, Any]]:
    if type is EventType.SCALAR:
        return await scalars(store, owner, (), limit, descending, iteration)
    return await _samples(store, owner, type, limit, descending, iteration)


async def scalars(
    store: EventStore, owner: Owner, selection: Selection, limit: int, descending: bool, iteration: int | None
) -> list[tuple[int, Any]]:
    """At least `limit` scalar events beyond an iteration, each with its iteration; fewer only at the end."""
    after = None if iteration is None else ScalarPosition(iteration, *_edge(descending, 2))
    points = await store.scalar_points(
        owner, selection, after=after, descending=descending, limit=limit, whole_iterations=True
    )
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


async def _samples(
    store: EventStore, owner: Owner, type: EventType, limit: int, descending: bool, iteration: int | None
) -> list[tuple[int, Any]]:
    after = None if iteration is None else SamplePosition(iteration, *_edge(descending, 3))
    samples = await store.samples(owner, type, after=after, descending=descending, limit=limit)
    while len(samples) >= limit:
        last = samples[-1]
        behind = SamplePosition(last.iter, last.metric, last.variant, last.key)
        rest = await store.samples(
            owner, type, after=behind, descending=descending, limit=limit, min_iter=last.iter, max_iter=last.iter
        )
        samples += rest
        if len(rest) < limit:
            break
    return [(sample.iter, orjson.Fragment(sample.document)) for sample in samples]


def _edge(descending: bool, names: int) -> tuple[str, ...]:
    """Names that sort behind all others of an iteration, in walk direction."""
    return ("" if descending else LAST_NAME,) * names


async def _lines(
    store: EventStore, owner: Owner, limit: int, descending: bool, position: Position
) -> tuple[list[Any], Position]:
    after = None if position.log is None else LogPosition(*position.log)
    lines = await store.log_lines(owner, after=after, descending=descending, limit=limit)
    last: tuple[int, int] | None = lines[-1].position if lines else position.log
    events = [logs.event(owner, line) for line in lines]
    return events, Position(position.iteration, last, in_logs=True)
