"""Lines that were stored before they knew how long they are count, too."""

from __future__ import annotations

import pytest
from elasticsearch import AsyncElasticsearch

from apiserver.events.model import EventType, LogSize
from apiserver.stores.events.elasticsearch import names
from apiserver.stores.events.elasticsearch.address import ElasticsearchAddress
from apiserver.stores.events.elasticsearch.migrations import ENGINE, schema_at
from apiserver.stores.events.elasticsearch.store import ElasticsearchEventStore
from apiserver.stores.events.elasticsearch.writing import series_key
from apiserver.stores.migrations import migrate, steps_of
from tests.contract.event_stores import OWNER, batch, lines

pytestmark = pytest.mark.anyio

OLD = [(7, "worker", "one"), (3, "b", "two é\n"), (9, "b", "")]


async def test_the_sizes_of_lines_of_schema_1_are_known(elasticsearch_url: str, elasticsearch_prefix: str) -> None:
    address = ElasticsearchAddress((elasticsearch_url,), elasticsearch_prefix)
    async with schema_at(address) as (schema, _):
        await migrate(schema, steps_of(ENGINE)[:1])
    key = names.owner_key(OWNER)
    async with AsyncElasticsearch(elasticsearch_url) as client:
        for sequence, (timestamp, worker, message) in enumerate(OLD):
            await client.index(
                index=names.index(elasticsearch_prefix, EventType.LOG, OWNER.company),
                routing=key,
                refresh=True,
                document={
                    **{"owner": key, "metric": "", "variant": "", "series": series_key(key, "", "")},
                    **{"timestamp": timestamp, "sequence": sequence, "level": "", "worker": worker},
                    **{"received": 0, "message": message},
                },
            )
    store = ElasticsearchEventStore(address, migrate=True)
    await store.open()
    assert await store.log_sizes(OWNER) == {"worker": LogSize(7, 4), "b": LogSize(3, 8)}
    await store.add(batch(lines(["three"], timestamps=[5])))
    assert await store.log_sizes(OWNER) == {"worker": LogSize(5, 10), "b": LogSize(3, 8)}
    await store.close()
