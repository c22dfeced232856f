"""The store of most tests here: empty, by a prefix of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from apiserver.stores.events.elasticsearch.address import ElasticsearchAddress
from apiserver.stores.events.elasticsearch.bounds import BOUNDS, ElasticsearchBounds
from apiserver.stores.events.elasticsearch.store import ElasticsearchEventStore


@pytest.fixture
def bounds() -> ElasticsearchBounds:
    """Those of the store. Tests may have others."""
    return BOUNDS


@pytest.fixture
async def store(
    elasticsearch_url: str, elasticsearch_prefix: str, bounds: ElasticsearchBounds
) -> AsyncIterator[ElasticsearchEventStore]:
    address = ElasticsearchAddress((elasticsearch_url,), elasticsearch_prefix)
    opened = ElasticsearchEventStore(address, migrate=True, bounds=bounds)
    await opened.open()
    yield opened
    await opened.close()
