"""Whole columns of stores: to compare them, and to put them into other stores."""

from __future__ import annotations

from collections.abc import AsyncIterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from apiserver.events.model import EventBatch, EventType, LogLine, Owner
from apiserver.events.queries import SeriesQuery
from apiserver.stores.events.base import EventStore
from apiserver.stores.events.codec.points import WholePoints
from apiserver.stores.events.codec.thinning import checksum
from tests.contract.plain_event_store import PlainEventStore


async def source_of(batch: EventBatch) -> PlainEventStore:
    """A store with the events of a batch."""
    store = PlainEventStore()
    await store.add(batch)
    return store


async def put_all(source: EventStore, *targets: EventStore) -> None:
    """Put all points of the source into the targets, and the logs of owners who have none in the first of these."""
    async for owner in source.owners():
        async for some in source.whole_points(SeriesQuery(owner, EventType.SCALAR)):
            for target in targets:
                await target.put_points(owner, some)
        if await targets[0].events_count(owner, [EventType.LOG]) == 0:
            bodies = await source.known_bodies(owner)
            for target in targets:
                await target.know_bodies(owner, bodies)
                await put_lines(source, target, owner)


async def put_lines(source: EventStore, target: EventStore, owner: Owner) -> None:
    """Put the lines of an owner, numbered from 0."""
    number = 0
    async for lines in source.whole_lines(owner):
        await target.put_lines(owner, replace(lines, sequences=np.arange(number, number + len(lines))))
        number += len(lines)


async def points_of(store: EventStore, series: SeriesQuery) -> dict[tuple[str, str], list[Any]]:
    """All points of each series; a part has each series once at most, and the points of a series ascend."""
    found: dict[tuple[str, str], list[Any]] = {}
    async for part in store.whole_points(series):
        assert len({one.series for one in part}) == len(part) > 0
        for name, points, workers in part:
            assert len(points.iters) > 0
            columns = [column.tolist() for column in points]
            for iter, value, timestamp, worker, received in zip(*columns, strict=True):
                found.setdefault(name, []).append((iter, repr(value), timestamp, workers[worker], received))
    for rows in found.values():
        assert [row[0] for row in rows] == sorted({row[0] for row in rows})
    return found


async def checksums_of(whole: AsyncIterable[Sequence[WholePoints]]) -> dict[tuple[str, str], int]:
    """The checksum of the points of each series, as a store answers them."""
    found: dict[tuple[str, str], int] = {}
    async for part in whole:
        for name, points, _ in part:
            found[name] = checksum(points, found.get(name, 0))
    return found


async def lines_of(store: EventStore, owner: Owner) -> list[Any]:
    """All log lines of an owner, without their sequences."""
    found: list[LogLine] = []
    async for lines in store.whole_lines(owner):
        assert len(lines) > 0
        found += lines.log_lines()
    assert found == sorted(found, key=lambda line: line.position)
    return [(line.position.timestamp, *line[1:]) for line in found]
