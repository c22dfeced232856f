"""Whatever is done in whatever order, the store on a real Elasticsearch answers like the plain one.

`EVENTS_EXAMPLES=100 pytest tests/stores/events/elasticsearch/test_brute_force.py` looks longer.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apiserver.events.model import Owner
from apiserver.stores.addresses import ElasticsearchAddress
from apiserver.stores.events.elasticsearch import by_worker
from apiserver.stores.events.elasticsearch.store import ElasticsearchEventStore
from tests.contract.plain_event_store import PlainEventStore
from tests.stores.events import comparison
from tests.stores.events.random_events import batches, owners, selections, times, types

EXAMPLES = int(os.environ.get("EVENTS_EXAMPLES", "4"))

operations = st.lists(
    st.one_of(
        st.tuples(st.just("add"), batches),
        st.tuples(st.just("add"), batches),
        st.tuples(st.just("add_twice"), batches),
        st.tuples(st.just("reopen")),
        st.tuples(st.just("restated"), st.sets(owners)),
        st.tuples(st.just("delete"), st.lists(owners, min_size=1, max_size=2), types),
        st.tuples(st.just("delete_logs"), owners, st.none() | times, selections, selections),
    ),
    min_size=2,
    max_size=8,
)


@pytest.fixture(autouse=True)
def _fewer_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "WIDTHS", comparison.WIDTHS[2::2])
    monkeypatch.setattr(comparison, "BOUNDS", comparison.BOUNDS[::3])


@pytest.fixture(autouse=True)
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_worker, "_PAGE", 3)


async def run(address: ElasticsearchAddress, operations: list[tuple[Any, ...]]) -> None:
    """Do the same to both stores, for a company of its own, and compare them at the end."""
    company = uuid4().hex
    store, plain = ElasticsearchEventStore(address, migrate=True, abandoned=0), PlainEventStore()
    await store.open()
    try:
        await _do(store, plain, company, operations)
        await comparison.assert_same(store, plain, [Owner(company, "task"), Owner(company, "task", is_model=True)])
        await store.restated([own async for own in store.owners_to_restate()])
        await store.delete([Owner(company, "task"), Owner(company, "task", is_model=True)])
    finally:
        await store.close()


async def _do(
    store: ElasticsearchEventStore, plain: PlainEventStore, company: str, operations: list[tuple[Any, ...]]
) -> None:
    def own(owner: Owner) -> Owner:
        return owner._replace(company=company)

    for name, *arguments in operations:
        if name.startswith("add"):
            (batch,) = arguments
            batch.scalars.owners[:] = map(own, batch.scalars.owners)
            for events in (*batch.logs, *batch.samples):
                events.owner = own(events.owner)
            for _ in range(2 if name == "add_twice" else 1):
                assert await store.add(batch) == {}
                await plain.add(batch)
        elif name == "reopen":
            await store.close()
            await store.open()
        elif name == "restated":
            for one in (store, plain):
                await one.restated([own(owner) for owner in arguments[0]])
        elif name == "delete":
            named = list(map(own, arguments[0]))
            assert await store.delete(named, arguments[1]) == await plain.delete(named, arguments[1])
        else:
            asked = (own(arguments[0]), *arguments[1:])
            assert await store.delete_logs(*asked) == await plain.delete_logs(*asked)


def test_the_elasticsearch_store_answers_like_the_plain_one(elasticsearch_url: str, elasticsearch_prefix: str) -> None:
    address = ElasticsearchAddress((elasticsearch_url,), elasticsearch_prefix)

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(operations)
    def same(operations: list[tuple[Any, ...]]) -> None:
        asyncio.run(run(address, operations))

    same()
