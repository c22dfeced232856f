"""The block stores that the contract is tested on."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from apiserver.stores.events.blocks.blocks import BlockStore
from tests.engines import elasticsearch as engine
from tests.stores.events.blocks.plain_blocks import PlainBlocks


@pytest.fixture(params=["plain", pytest.param("elasticsearch", marks=pytest.mark.check)])
async def blocks(request: pytest.FixtureRequest) -> AsyncIterator[BlockStore]:
    """A store with nothing in it."""
    if request.param == "plain":
        yield PlainBlocks()
        return
    from apiserver.stores.events.elasticsearch.address import elasticsearch_address
    from apiserver.stores.events.elasticsearch.blocks import ElasticsearchBlocks
    from apiserver.stores.events.elasticsearch.cluster import Cluster
    from apiserver.stores.events.elasticsearch.migrations import check_schema

    prefix = request.getfixturevalue("elasticsearch_shared_prefix")
    address = elasticsearch_address(engine.address(request.getfixturevalue("elasticsearch_url"), prefix))
    cluster = Cluster(address, strict=False)
    await check_schema(cluster.client, prefix, migrate=True)
    yield ElasticsearchBlocks(cluster)
    await cluster.close()
