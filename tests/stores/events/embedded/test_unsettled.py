"""However many series are read, the points of no more than a part of them are held."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from apiserver.events.model import BucketAxis, EventBatch, EventType, MetricSelection
from apiserver.events.queries import BucketQuery, PageQuery, SeriesQuery
from apiserver.stores.events.base import EventStore
from apiserver.stores.events.codec.points import NO_POINTS, Points, concat
from apiserver.stores.events.embedded import tail
from apiserver.stores.events.embedded.bounds import EmbeddedBounds
from apiserver.stores.events.embedded.series import Series
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.contract.event_stores import OWNER, SCALARS, batch, scalars

pytestmark = pytest.mark.anyio

SERIES, POINTS, AT_A_TIME = 30, 10, 50

READS: dict[str, Callable[[EventStore], Awaitable[object]]] = {
    "page": lambda store: store.scalar_points(SCALARS, PageQuery(3)),
    "page down": lambda store: store.scalar_points(SCALARS, PageQuery(3, descending=True, whole=True)),
    "earliest": lambda store: store.earliest_points(SCALARS, 3),
    "last": lambda store: store.last_values(SCALARS, 2),
    "by iteration": lambda store: store.scalar_buckets(SCALARS, BucketQuery(BucketAxis.ITER, lambda *extent: 3)),
    "by time": lambda store: store.scalar_buckets(SCALARS, BucketQuery(BucketAxis.TIMESTAMP, lambda *extent: 3)),
}


def _sent(first: int) -> EventBatch:
    """A run for each series; the order of their names is not that in which they come."""
    iters = range(first, first + POINTS // 2)
    return batch(*(scalars([float(n)] * len(iters), iters=iters, metric=str(n)) for n in range(SERIES)))


@asynccontextmanager
async def _filled(folder: Path, points_at_a_time: int, *, merges: bool) -> AsyncIterator[EmbeddedEventStore]:
    bounds = EmbeddedBounds(points_at_a_time=points_at_a_time)
    store = EmbeddedEventStore(folder, merge_points=10**9, merge_seconds=10**6, bounds=bounds)
    await store.open()
    for first in (0, POINTS // 2):
        await store.add(_sent(first))
        if merges:
            await store.merge()
    yield store
    await store.close()


@pytest.mark.test
@pytest.mark.parametrize("merges", [True, False], ids=["merged", "hot"])
@pytest.mark.parametrize("read", READS.values(), ids=READS)
async def test_points_of_one_part_are_held(
    tmp_path: Path, read: Callable[[EventStore], Awaitable[object]], monkeypatch: pytest.MonkeyPatch, merges: bool
) -> None:
    held: dict[int, int] = {}
    most, looked_at = 0, 0
    hold, let_go = Series.hold, Series.let_go

    def counted_hold(self: Series, *, tail: Points | None = None, hot: Points | None = None) -> None:
        nonlocal most, looked_at
        length = sum(len(points.iters) for points in (tail, hot) if points is not None)
        held[id(self)] = held.get(id(self), 0) + length
        most, looked_at = max(most, sum(held.values())), looked_at + length
        hold(self, tail=tail, hot=hot)

    def counted_let_go(self: Series) -> None:
        held.pop(id(self), None)
        let_go(self)

    def read_alone(conn: sqlite3.Connection, runs: bytes) -> Points:
        assert not runs
        return NO_POINTS

    async with _filled(tmp_path / "one part", SERIES * POINTS + 1, merges=merges) as store:
        in_one_part = repr(await read(store))
    async with _filled(tmp_path / "parts", AT_A_TIME, merges=merges) as store:
        monkeypatch.setattr(Series, "hold", counted_hold)
        monkeypatch.setattr(Series, "let_go", counted_let_go)
        monkeypatch.setattr(tail, "read", read_alone)
        assert repr(await read(store)) == in_one_part
    assert looked_at == SERIES * POINTS
    assert 0 < most <= AT_A_TIME + POINTS


async def test_only_the_asked_runs_of_a_page_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[int] = []

    def counted(pages: Sequence[Points]) -> Points:
        kept.extend(len(page.iters) for page in pages)
        return concat(pages)

    store = EmbeddedEventStore(tmp_path, merge_points=10**9, merge_seconds=10**6)
    await store.open()
    await store.add(_sent(0))
    await store.merge()
    monkeypatch.setattr(tail, "concat", counted)
    await store.last_values(SeriesQuery(OWNER, EventType.SCALAR, [MetricSelection("1"), MetricSelection("7")]), 1)
    await store.close()
    assert kept == [POINTS]
