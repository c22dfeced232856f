"""Looks at the indices of one prefix: what is in them, and what waits to be done.

The node itself checks its files (each segment of Lucene has a checksum), so there is little to check here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from apiserver.events.model import JsonObject
from apiserver.stores.events.blocks.bounds import BOUNDS
from apiserver.stores.events.elasticsearch import names
from apiserver.stores.events.elasticsearch.address import ElasticsearchAddress
from apiserver.stores.events.elasticsearch.blocks import BLOCK_TYPES, ElasticsearchBlocks
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.migrations import ElasticsearchSchema
from apiserver.stores.events.elasticsearch.usage import index_sizes, usage
from apiserver.stores.events.inspection import EventInspection
from apiserver.stores.events.usage import Usage
from apiserver.stores.inspection import Finding, Held
from apiserver.stores.migrations import steps_of

_HAS_OWNER: JsonObject = {"exists": {"field": "owner"}}
_IS_CHUNK: JsonObject = {"bool": {"filter": [_HAS_OWNER, {"exists": {"field": "up_to"}}]}}
_IS_DELETION: JsonObject = {"exists": {"field": "deleted"}}


class IndicesInspection(EventInspection):
    """A look at the indices of a cluster's prefix."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def usage(self) -> Usage:
        """How much is kept of each owner, in part estimated."""
        return await usage(self._cluster)

    async def held(self) -> list[Held]:
        """The indices, then what is in those of blocks, then what waits."""
        prefix = self._cluster.prefix
        sizes = await index_sizes(self._cluster, [*names.indices(prefix), f"{prefix}-marks", f"{prefix}-deletions"])
        found = [Held(index.name, index.bytes, index.documents, "documents") for index in sizes]
        for type in BLOCK_TYPES:
            found += await self._blocks(ElasticsearchBlocks(self._cluster, type), type.plural)
        return found

    async def _blocks(self, blocks: ElasticsearchBlocks, what: str) -> list[Held]:
        index = names.blocks_of_all(self._cluster.prefix, blocks.type)
        self._cluster.wrote([index])  # as all servers may have
        sums: JsonObject = {"events": {"sum": {"field": "count"}}}
        filters: dict[str, JsonObject] = {
            "fragments": {"bool": {"filter": [_HAS_OWNER], "must_not": [_IS_CHUNK]}},
            "chunks": _IS_CHUNK,
            "deletions": _IS_DELETION,
            "leases": {"bool": {"must_not": [_HAS_OWNER, _IS_DELETION]}},
        }
        by_kind = {name: {"filter": condition, "aggs": sums} for name, condition in filters.items()}
        answer = await self._cluster.search(index, {"size": 0, "track_total_hits": False, "aggs": by_kind})
        counted = answer.get("aggregations") or {name: {"doc_count": 0, "events": {"value": 0}} for name in filters}
        return [
            *(Held(f"{name} of {what}", None, counted[name]["doc_count"], name) for name in ("fragments", "chunks")),
            *(
                Held(f"{what} in {name}", None, int(counted[name]["events"]["value"]), what)
                for name in ("fragments", "chunks")
            ),
            Held(f"{what} wait for compaction", None, len(await blocks.crowded(BOUNDS.left)), "owners"),
            Held(f"deletions of {what}", None, counted["deletions"]["doc_count"], "noted"),
            Held(f"leases of {what}", None, counted["leases"]["doc_count"], "held, or left by servers that died"),
        ]

    async def findings(self) -> AsyncIterator[Finding]:
        """Differences of the schema from what this version needs, and shards that do not answer."""
        schema, prefix = ElasticsearchSchema(self._cluster.client, self._cluster.prefix), self._cluster.prefix
        missing = [step for step in steps_of("elasticsearch") if step.number not in await schema.applied()]
        for problem in [f"{step.name} is to be applied" for step in missing] or await schema.problems(
            steps_of("elasticsearch")
        ):
            yield Finding(
                *("events", "schema", prefix, f"the schema in {schema.name} is not that of this version: {problem}"),
                "servers of this version do not start: run `apiserver migrate`",
            )
        for index, state in await self._cluster.lost_shards(f"{prefix}-*"):
            yield Finding(
                *("events", "lost-shard", index, f"shards of the index {index} are not there ({state})"),
                "reads and writes of its events fail until its node is back, or the index is restored",
            )


@asynccontextmanager
async def looking_at(address: ElasticsearchAddress) -> AsyncIterator[IndicesInspection]:
    """A look at the indices while the block is open. EventStoreError."""
    cluster = Cluster(address, strict=True)
    try:
        await cluster.check_version()
        yield IndicesInspection(cluster)
    finally:
        await cluster.close()
