"""Servers that share the indices: what one deletes, writes or compacts while another reads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from elasticsearch import AsyncElasticsearch

from apiserver.events.changes import ChangesQuery
from apiserver.events.model import EventType, Owner
from apiserver.events.queries import PageQuery
from apiserver.stores.events.elasticsearch.address import ElasticsearchAddress
from apiserver.stores.events.elasticsearch.blocks import ElasticsearchBlocks
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.store import ElasticsearchEventStore
from tests.contract.event_stores import LOGS, OWNER, PLOTS, SCALARS, batch, lines, messages, sample, scalars

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


async def test_who_asks_for_a_cursor_reads_all_that_others_acknowledged_before(stores: Stores) -> None:
    """So whoever reads and then deletes up to the cursor has read all that goes."""
    one, other = stores
    assert (await one.events_count(OWNER), await one.samples(PLOTS, PageQuery(9))) == (2, [])
    await other.add(batch(scalars([1.0], variant="other"), lines(["a"]), sample(1)))
    cursor = (await one.changes(ChangesQuery([OWNER]))).cursor
    assert await one.events_count(OWNER) == 5
    await other.add(batch(sample(2)))
    assert await one.delete_samples(PLOTS, up_to=cursor) == 1
    assert await other.delete_samples(PLOTS) == 1


async def test_two_deletions_at_once_leave_the_one_that_says_more(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One server deletes up to a cursor. Another deletes all just before the note of the first comes."""
    one, other = stores
    cursor = (await one.changes(ChangesQuery([OWNER]))).cursor
    real, late = ElasticsearchBlocks.delete_before, list[int]()

    async def delete_before(self: ElasticsearchBlocks, owner: Owner, place: int) -> None:
        real_bulk = Cluster.bulk

        async def bulk(self: Cluster, index: str, body: bytes) -> Any:
            monkeypatch.setattr(Cluster, "bulk", real_bulk)
            await other.add(batch(scalars([3.0], iters=[5])))
            late.append(await other.delete([OWNER], [EventType.SCALAR]))
            return await real_bulk(self, index, body)

        monkeypatch.setattr(Cluster, "bulk", bulk)
        await real(self, owner, place)

    monkeypatch.setattr(ElasticsearchBlocks, "delete_before", delete_before)
    assert await one.delete_scalars(OWNER, cursor) == 1
    assert late == [2]
    assert await one.events_count(OWNER, [EventType.SCALAR]) == 0
    assert await one.scalar_stats(SCALARS) == []


async def test_a_series_that_is_deleted_while_its_newest_samples_are_looked_for_is_not_there(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = stores
    await one.add(batch(sample(1), sample(2)))
    searches = Cluster.searches

    async def delete_first(self: Cluster, *asked: Any, **how: Any) -> Any:
        monkeypatch.setattr(Cluster, "searches", searches)
        await other.delete([OWNER])
        return await searches(self, *asked, **how)

    monkeypatch.setattr(Cluster, "searches", delete_first)
    assert await one.latest_samples(PLOTS, 1) == []


async def test_what_is_compacted_while_it_is_read_is_read_as_it_is_then(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = stores
    await one.add(batch(scalars([1.0, 2.0, 3.0]), lines(["two"])))
    fetch = ElasticsearchBlocks.fetch

    async def compact_first(self: ElasticsearchBlocks, *asked: Any) -> Any:
        monkeypatch.setattr(ElasticsearchBlocks, "fetch", fetch)
        await other.add(batch(scalars([4.0], iters=[1])))
        await other.compact(OWNER)
        await other.events_count(OWNER)  # refreshes
        return await fetch(self, *asked)

    monkeypatch.setattr(ElasticsearchBlocks, "fetch", compact_first)
    assert (await one.scalar_points(SCALARS, PageQuery(10))).values.tolist() == [1.0, 4.0, 3.0]
    monkeypatch.setattr(ElasticsearchBlocks, "fetch", compact_first)
    assert await messages(one) == ["one", "two"]


async def test_servers_compact_an_owner_at_once(stores: Stores) -> None:
    one, other = stores
    for number in range(20):
        await stores[number % 2].add(batch(scalars([float(number)], iters=[number]), lines([f"{number}"])))
    await asyncio.gather(*(store.compact(OWNER) for store in stores for _ in range(2)))
    for store in (one, other):
        assert (await store.scalar_points(SCALARS, PageQuery(100))).values.tolist() == [float(n) for n in range(20)]
        assert await store.log_count(LOGS) == 21
