"""Whole columns of stores: to compare them, and to put them into other stores."""

from __future__ import annotations

from typing import Any

from apiserver.events.model import EventBatch, EventType
from apiserver.events.queries import SeriesQuery
from apiserver.stores.events.base import EventStore
from tests.contract.plain_event_store import PlainEventStore


async def source_of(batch: EventBatch) -> PlainEventStore:
    """A store with the events of a batch."""
    store = PlainEventStore()
    await store.add(batch)
    return store


async def put_all(source: EventStore, target: EventStore) -> None:
    """Put all points of the source into the target."""
    async for owner in source.owners():
        async for some in source.whole_points(SeriesQuery(owner, EventType.SCALAR)):
            await target.put_points(owner, some)


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
