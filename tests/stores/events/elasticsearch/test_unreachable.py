"""A write that changes nothing, so that nodes give up copies they do not reach (`tests/engines/test_split.py`)."""

from __future__ import annotations

import asyncio

import pytest
from elasticsearch import AsyncElasticsearch

from apiserver.stores.events.elasticsearch.unreachable import Unreachable

pytestmark = [pytest.mark.anyio, pytest.mark.check]

#: Of 100 deletions, some six of these get none.
_SHARDS = 48


async def test_all_shards_of_an_index_are_written_to(elasticsearch_url: str, elasticsearch_prefix: str) -> None:
    index = f"{elasticsearch_prefix}-of-many-shards"
    async with AsyncElasticsearch(elasticsearch_url, request_timeout=60) as client:
        settings = {"number_of_shards": _SHARDS, "number_of_replicas": 0}
        await client.indices.create(index=index, settings=settings)
        unreachable = Unreachable(client)
        unreachable.refresh_failed(index)
        await asyncio.gather(*unreachable._writing.values())
        found = await client.indices.stats(index=index, level="shards", metric="docs")
        shards = found["indices"][index]["shards"]
        assert len(shards) == _SHARDS
        assert [number for number, [copy] in shards.items() if copy["seq_no"]["max_seq_no"] < 0] == []
