"""The store of most tests here: empty, by a prefix of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from apiserver.stores.events.elasticsearch.address import ElasticsearchAddress
from apiserver.stores.events.elasticsearch.store import ElasticsearchEventStore


@pytest.fixture
async def store(elasticsearch_url: str, elasticsearch_prefix: str) -> AsyncIterator[ElasticsearchEventStore]:
    opened = ElasticsearchEventStore(ElasticsearchAddress((elasticsearch_url,), elasticsearch_prefix), migrate=True)
    await opened.open()
    yield opened
    await opened.close()
