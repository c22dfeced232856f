"""What happens to indices, of a real Elasticsearch, while a store uses them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from elasticsearch import AsyncElasticsearch

from apiserver.events.model import EventBatch, EventType, Owner
from apiserver.events.queries import PageQuery
from apiserver.stores.events.base import EventStoreBusy, EventStoreError
from apiserver.stores.events.blocks.bounds import BOUNDS, ColumnarBounds
from apiserver.stores.events.elasticsearch import names
from apiserver.stores.events.elasticsearch.address import ElasticsearchAddress
from apiserver.stores.events.elasticsearch.bounds import ElasticsearchBounds
from apiserver.stores.events.elasticsearch.store import ElasticsearchEventStore
from tests.contract.event_stores import OWNER, SCALARS, batch, lines, messages, scalars

pytestmark = pytest.mark.anyio

FEWEST = BOUNDS.fewest


@pytest.fixture
async def client(elasticsearch_url: str) -> AsyncIterator[AsyncElasticsearch]:
    async with AsyncElasticsearch(elasticsearch_url) as opened:
        yield opened


async def test_a_closed_index_is_unavailable_and_not_empty(
    store: ElasticsearchEventStore, client: AsyncElasticsearch, elasticsearch_prefix: str
) -> None:
    index = names.blocks(elasticsearch_prefix, EventType.SCALAR, OWNER.company)
    sent = batch(scalars([1.0, 2.0]))
    await store.add(sent)
    await client.indices.close(index=index)
    for call in (
        lambda: store.add(sent),
        lambda: store.scalar_stats(SCALARS),
        lambda: store.scalar_points(SCALARS, PageQuery(10**6)),
        lambda: store.events_count(OWNER),
        lambda: store.delete([OWNER]),
    ):
        with pytest.raises(EventStoreBusy, match="closed") as told:
            await call()
        assert (told.value.overloaded, told.value.retry_after) == (False, 30)
    await client.indices.open(index=index)
    await client.cluster.health(index=index, wait_for_status="yellow")
    await store.add(sent)
    assert await store.events_count(OWNER) == 2


async def test_what_is_removed_is_gone_and_comes_back(
    store: ElasticsearchEventStore, client: AsyncElasticsearch, elasticsearch_prefix: str
) -> None:
    await store.add(batch(scalars([1.0]), lines(["line"])))
    await client.indices.delete(index=names.blocks(elasticsearch_prefix, EventType.SCALAR, OWNER.company))
    assert await store.scalar_stats(SCALARS) == []
    assert await store.delete([OWNER], [EventType.SCALAR]) == 0
    assert await messages(store) == ["line"]
    assert [owner async for owner in store.owners()] == [OWNER]
    await store.add(batch(scalars([2.0])))
    (stats,) = await store.scalar_stats(SCALARS)
    assert stats.sum == 2.0


async def test_no_index_is_written_to_that_has_no_template(
    client: AsyncElasticsearch, elasticsearch_url: str, elasticsearch_bare_prefix: str
) -> None:
    store = ElasticsearchEventStore(ElasticsearchAddress((elasticsearch_url,), elasticsearch_bare_prefix), migrate=True)
    await store.open()
    await client.indices.delete_index_template(name=f"{elasticsearch_bare_prefix}-blocks")
    with pytest.raises(EventStoreBusy, match="apiserver migrate"):
        await store.add(batch(scalars([1.0])))
    await store.close()


async def test_a_delete_that_is_blocked_says_so_in_a_line(
    store: ElasticsearchEventStore, client: AsyncElasticsearch, elasticsearch_prefix: str
) -> None:
    await store.add(batch(scalars([1.0] * 100)))
    index = names.blocks(elasticsearch_prefix, EventType.SCALAR, OWNER.company)
    await client.indices.put_settings(index=index, settings={"index.blocks.write": True})
    with pytest.raises(EventStoreBusy, match="does not write") as told:
        await store.delete([OWNER])
    assert len(str(told.value)) < 500


async def test_what_is_written_is_compacted_by_itself(
    store: ElasticsearchEventStore, client: AsyncElasticsearch, elasticsearch_prefix: str
) -> None:
    for number in range(2 * FEWEST):
        await store.add(batch(scalars([1.0], iters=[number]), lines([f"{number}"], timestamps=[number])))
    is_fragment = {"bool": {"must_not": {"exists": {"field": "up_to"}}}}
    for type in (EventType.SCALAR, EventType.LOG):
        index, fragments = names.blocks(elasticsearch_prefix, type, OWNER.company), 2 * FEWEST
        async with asyncio.timeout(120):
            while fragments >= 2 * FEWEST:
                await client.indices.refresh(index=index)
                fragments = (await client.count(index=index, query=is_fragment))["count"]
    assert store.gauges()["owners_to_compact"] <= 2
    assert await store.events_count(OWNER) == 4 * FEWEST


@pytest.mark.parametrize("type", [EventType.SCALAR, EventType.LOG])
@pytest.mark.parametrize("bounds", [ElasticsearchBounds(ColumnarBounds(hurry=FEWEST, most=2 * FEWEST, patience=0.1))])
async def test_what_is_not_compacted_is_bounded(
    store: ElasticsearchEventStore, monkeypatch: pytest.MonkeyPatch, type: EventType
) -> None:
    """Readers would have to fetch all of it: further writes wait, and are told to come back if that takes long."""
    compactor, may_compact = store._opened.compactor, asyncio.Event()
    compact = compactor.types[type].compact

    async def when_it_may(owner: Owner, *, fewest: int) -> bool:
        await may_compact.wait()
        return await compact(owner, fewest=fewest)

    monkeypatch.setattr(compactor, "types", {type: compactor.types[type]._replace(compact=when_it_may)})

    def one(number: int) -> EventBatch:
        return batch(
            scalars([1.0], iters=[number]) if type is EventType.SCALAR else lines([f"{number}"], timestamps=[number])
        )

    for number in range(2 * FEWEST):
        await store.add(one(number))
    with pytest.raises(EventStoreBusy, match="wait for compaction") as told:
        await store.add(one(2 * FEWEST))
    assert told.value.retry_after
    assert await store.events_count(OWNER) == 2 * FEWEST
    may_compact.set()
    monkeypatch.setattr(compactor, "bounds", replace(compactor.bounds, patience=60))
    for number in range(2 * FEWEST, 6 * FEWEST):
        await store.add(one(number))
    assert await store.events_count(OWNER) == 6 * FEWEST


async def test_who_does_not_answer_is_named() -> None:
    store = ElasticsearchEventStore(ElasticsearchAddress(("http://127.0.0.1:1",)))
    with pytest.raises(EventStoreError, match=r"cannot be reached.*127\.0\.0\.1:1"):
        await store.open()
