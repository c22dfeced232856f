"""Says what people should set in a cluster, for the log of servers that start and for `apiserver doctor`."""

from __future__ import annotations

from contextlib import suppress

from elasticsearch import AsyncElasticsearch

from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.elasticsearch.address import ElasticsearchAddress
from apiserver.stores.events.elasticsearch.errors import errors
from apiserver.stores.events.elasticsearch.node import client_of

#: Seconds for each answer.
_TIMEOUT = 3
_ALL = "all"


async def advice(address: ElasticsearchAddress) -> list[str]:
    """What to set, in a sentence each. A cluster that does not tell how it is set gets no advice."""
    client = client_of(address)
    try:
        with suppress(EventStoreBusy), errors():
            return await _about_splits(client.options(request_timeout=_TIMEOUT), address.hosts[0])
    finally:
        await client.close()
    return []


async def _about_splits(client: AsyncElasticsearch, url: str) -> list[str]:
    """A single node is never cut off from others."""
    nodes = (await client.cluster.health())["number_of_nodes"]
    if nodes < 2:
        return []
    found = (await client.cluster.get_settings(include_defaults=True, filter_path="*.cluster.no_master_block")).body
    levels = [found[level] for level in ("transient", "persistent", "defaults") if level in found]
    block = levels[0]["cluster"]["no_master_block"] if levels else _ALL
    if block == _ALL:
        return []
    return [
        f"Elasticsearch has {nodes} nodes, and its setting cluster.no_master_block is '{block}': a node that is cut off"
        " from the others answers reads without the events that came since. Let it refuse reads then:"
        f" curl -X PUT {url}/_cluster/settings -H 'Content-Type: application/json'"
        ' -d \'{"persistent": {"cluster.no_master_block": "all"}}\''
    ]
