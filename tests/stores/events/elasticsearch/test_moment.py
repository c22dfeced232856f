"""The events of one moment: the same whatever servers do to them afterwards, and known to be newer than documents."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.events.model import EventBatch, EventType, Owner
from apiserver.stores.events.base import EventStoreError
from apiserver.stores.events.elasticsearch.address import ElasticsearchAddress
from apiserver.stores.events.elasticsearch.moment import ClusterOfAMoment, ElasticsearchMoment
from apiserver.stores.events.elasticsearch.store import ElasticsearchEventStore
from tests.chance import examples
from tests.contract.event_stores import OWNER, batch, lines, sample, scalars
from tests.contract.plain_event_store import PlainEventStore
from tests.engines.fixtures import NewPrefix
from tests.stores.events.random_events import OWNERS, batches
from tests.transfer.copying.test_events import content, copy

A, B, C, D = (Owner("company", id) for id in "abcd")

#: What a server does while the moment is read.
meanwhile = st.lists(
    st.one_of(
        st.tuples(st.just("add"), batches),
        st.tuples(st.just("compact"), st.sampled_from(OWNERS)),
        st.tuples(st.just("delete"), st.lists(st.sampled_from(OWNERS), min_size=1, max_size=2)),
    ),
    max_size=6,
)


@pytest.fixture
async def moment(
    store: ElasticsearchEventStore, elasticsearch_url: str, elasticsearch_prefix: str
) -> AsyncIterator[ElasticsearchMoment]:
    """One that is not open yet."""
    made = ElasticsearchMoment(ElasticsearchAddress((elasticsearch_url,), elasticsearch_prefix))
    yield made
    await made.close()


async def told(moment: ElasticsearchMoment) -> set[Owner]:
    return {owner async for owner in moment.owners_to_restate()}


async def run(address: ElasticsearchAddress, before: list[EventBatch], operations: list[tuple[Any, ...]]) -> None:
    """A copy that is made while a server goes on is the same as one that was made at the moment."""
    server, moment = ElasticsearchEventStore(address, migrate=True), ElasticsearchMoment(address)
    expected, copied = PlainEventStore(), PlainEventStore()
    await server.open()
    await moment.open()
    try:
        for one in before:
            await server.add(one)
        await copy(server, expected)
        await moment.begin()
        for name, *arguments in operations:
            await getattr(server, name)(*arguments)
        await copy(moment, copied)
        for owner in OWNERS:
            assert await content(copied, owner) == await content(expected, owner)
            assert set(await copied.known_bodies(owner)) == set(await expected.known_bodies(owner))
    finally:
        await moment.close()
        await server.close()


def test_a_moment_stays_as_it_was(elasticsearch_url: str, elasticsearch_new_prefix: NewPrefix) -> None:
    @examples(4)
    @given(st.lists(batches, min_size=1, max_size=5), meanwhile)
    def same(before: list[EventBatch], operations: list[tuple[Any, ...]]) -> None:
        with elasticsearch_new_prefix() as prefix:
            asyncio.run(run(ElasticsearchAddress((elasticsearch_url,), prefix), before, operations))

    same()


@pytest.mark.anyio
async def test_what_another_server_acknowledged_before_is_seen(
    store: ElasticsearchEventStore, moment: ElasticsearchMoment
) -> None:
    await moment.open()
    await store.add(batch(scalars([1.0, 2.0]), lines(["a"]), *(sample(n) for n in range(3))))
    await moment.begin()
    await store.add(batch(scalars([3.0], iters=[2]), lines(["b"]), sample(3)))
    assert await moment.events_count(OWNER, [EventType.SCALAR]) == 2
    assert await moment.events_count(OWNER) == 6
    assert await store.events_count(OWNER) == 9


@pytest.mark.anyio
async def test_it_tells_whose_documents_may_be_older(
    store: ElasticsearchEventStore, moment: ElasticsearchMoment
) -> None:
    for owner in (A, B):
        await store.add(batch(scalars([1.0], owner=owner)))
    await store.restated([A])
    await moment.open()
    await store.add(batch(scalars([1.0], owner=C)))
    await store.restated([B, C])
    await moment.begin()
    await store.add(batch(scalars([1.0], owner=D)))
    assert await told(moment) == {B, C}


@pytest.mark.anyio
async def test_a_moment_that_is_lost_is_an_error(store: ElasticsearchEventStore, moment: ElasticsearchMoment) -> None:
    await store.add(batch(scalars([1.0])))
    await moment.open()
    await moment.begin()
    cluster = moment._cluster
    assert isinstance(cluster, ClusterOfAMoment)
    assert cluster._points
    for id in cluster._points.values():
        await cluster.client.close_point_in_time(id=id)
    with pytest.raises(EventStoreError, match="has lost the moment that was being copied"):
        await moment.events_count(OWNER)
