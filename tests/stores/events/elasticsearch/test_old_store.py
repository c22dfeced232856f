"""A whole store answers as the plain one does, although older versions kept the first events."""

from __future__ import annotations

import pytest

from apiserver.events.model import EventType
from apiserver.events.queries import SeriesQuery
from apiserver.stores.events.elasticsearch.address import ElasticsearchAddress
from apiserver.stores.events.elasticsearch.bounds import ElasticsearchBounds
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.migrations import check_schema
from apiserver.stores.events.elasticsearch.moving import Moving
from apiserver.stores.events.elasticsearch.store import ElasticsearchEventStore
from tests.contract.event_stores import batch, lines, sample, scalars
from tests.contract.plain_event_store import PlainEventStore
from tests.stores.events import comparison
from tests.stores.events.elasticsearch.old_layout import OldServer
from tests.stores.events.random_events import OWNERS

pytestmark = pytest.mark.anyio

FEW_IN_A_BLOCK = ElasticsearchBounds(part_events=5)


SOME = batch(scalars([1.0, 2.0]), scalars([3.0], owner=OWNERS[1]), lines([f"line {n}" for n in range(12)]))
LATER = batch(scalars([5.0], iters=[1], metric="a"), lines(["later"], timestamps=[3]), sample(1))


@pytest.mark.parametrize("moved", [False, True])
async def test_the_store_answers_like_the_plain_one(
    elasticsearch_url: str, elasticsearch_prefix: str, moved: bool
) -> None:
    address = ElasticsearchAddress((elasticsearch_url,), elasticsearch_prefix)
    cluster, store, plain = (
        Cluster(address, strict=False, bounds=FEW_IN_A_BLOCK),
        ElasticsearchEventStore(address, abandoned=0, bounds=FEW_IN_A_BLOCK),
        PlainEventStore(),
    )
    try:
        await check_schema(cluster.client, cluster.prefix, migrate=True)
        await OldServer(cluster).add(SOME)
        await plain.add(SOME)
        if moved:
            await Moving(cluster, lambda line: None).run()
        await store.open()
        assert {one async for one in store.owners()} == {*OWNERS}
        for one in (store, plain):
            await one.add(LATER)
            await one.restated(OWNERS)
        await comparison.assert_same(store, plain, OWNERS, comparison.FEW)
        series = SeriesQuery(OWNERS[0], EventType.LOG)
        assert await store.delete_logs(series, 5) == await plain.delete_logs(series, 5) == 6
        await comparison.assert_same_logs(store, plain, OWNERS[0])
        assert await store.delete(OWNERS[1:]) == await plain.delete(OWNERS[1:]) == 1
        await comparison.assert_same(store, plain, OWNERS, comparison.FEW)
        assert {one async for one in store.owners()} == {OWNERS[0]}
    finally:
        await store.close()
        await cluster.close()
