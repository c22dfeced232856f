"""Servers that share the indices: what one deletes or writes anew while another reads."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from elasticsearch import AsyncElasticsearch

from apiserver.events.aggregates import ENVELOPE, Aggregate
from apiserver.events.model import BucketAxis, EventType
from apiserver.events.queries import BucketQuery
from apiserver.stores.events.elasticsearch.address import ElasticsearchAddress
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.store import ElasticsearchEventStore
from tests.contract.event_stores import LOGS, OWNER, SCALARS, batch, lines, scalars

FIRST, LAST = Aggregate.FIRST, Aggregate.LAST

pytestmark = pytest.mark.anyio

Stores = tuple[ElasticsearchEventStore, ElasticsearchEventStore]


@pytest.fixture
async def stores(elasticsearch_url: str, elasticsearch_prefix: str) -> AsyncIterator[Stores]:
    """Two servers' stores. Nothing is seen by searches unless somebody refreshes."""
    address = ElasticsearchAddress((elasticsearch_url,), elasticsearch_prefix)
    one, other = ElasticsearchEventStore(address, migrate=True), ElasticsearchEventStore(address)
    await one.open()
    await other.open()
    await one.add(batch(scalars([0.0]), lines(["one"])))
    async with AsyncElasticsearch(elasticsearch_url) as client:
        await client.indices.put_settings(index=f"{elasticsearch_prefix}-*", settings={"refresh_interval": -1})
    yield one, other
    await one.close()
    await other.close()


async def test_a_delete_takes_what_another_acknowledged_just_now(stores: Stores) -> None:
    one, other = stores
    assert await one.events_count(OWNER) == 2
    await other.add(batch(scalars([1.0, 2.0], variant="other"), lines(["a", "b"])))
    assert await one.delete([OWNER]) == 6
    assert await other.events_count(OWNER) == 0


async def test_a_delete_of_lines_takes_what_another_acknowledged_just_now(stores: Stores) -> None:
    one, other = stores
    assert await one.log_count(LOGS) == 1
    await other.add(batch(lines(["a", "b"])))
    assert await one.delete_logs(LOGS, None) == 3


async def test_a_series_that_is_deleted_while_its_name_is_looked_up_is_not_there(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = stores
    searches = Cluster.searches

    async def delete_first(self: Cluster, *asked: Any, **how: Any) -> Any:
        monkeypatch.setattr(Cluster, "searches", searches)
        await other.delete([OWNER])
        return await searches(self, *asked, **how)

    monkeypatch.setattr(Cluster, "searches", delete_first)
    assert await one.series(OWNER, [EventType.SCALAR]) == []


async def test_points_that_are_overwritten_while_they_are_bucketed_are_bucketed_as_they_are_then(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = stores
    await one.add(batch(scalars([1.0, 2.0, 3.0], timestamps=[10, 20, 30])))
    point_in_time = Cluster.point_in_time

    @asynccontextmanager
    async def overwrite_first(self: Cluster, *asked: Any, **how: Any) -> AsyncIterator[str | None]:
        monkeypatch.setattr(Cluster, "point_in_time", point_in_time)
        await other.add(batch(scalars([4.0, 5.0, 6.0], timestamps=[11, 21, 31])))
        await other.scalar_stats(SCALARS)
        async with point_in_time(self, *asked, **how) as point:
            yield point

    monkeypatch.setattr(Cluster, "point_in_time", overwrite_first)
    (found,) = await one.scalar_buckets(SCALARS, BucketQuery(BucketAxis.TIMESTAMP, lambda *_: 1, aggregates=ENVELOPE))
    assert (found.x.tolist(), found.values[FIRST].tolist(), found.values[LAST].tolist()) == (
        [11, 21, 31],
        [4, 5, 6],
        [4, 5, 6],
    )
