"""Lets nodes give up copies of shards that they do not reach, though nobody writes to these shards.

If two nodes do not reach each other, and neither is the master, both stay in the cluster. Elasticsearch takes away a
copy at one of them only because of a write: the node that has the shard's first copy tries for a minute to reach the
other one, and then tells the master. A refresh tells nobody, and fails again and again. So when a refresh has failed,
the server writes to all shards of the index, though it changes nothing: it deletes documents that do not exist.

    refresh fails      readers are told to come again; the server deletes
    a minute later     the master takes away the copy that is out of reach
    refresh            readers see all events
"""

from __future__ import annotations

import asyncio
import logging

from elasticsearch import AsyncElasticsearch

from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.elasticsearch.errors import errors, no_index

log = logging.getLogger(__name__)

#: So many documents are deleted for each shard. Each goes to a shard by its routing, so that no shard gets none.
_DELETED_A_SHARD = 20
_SHARDS = "index.number_of_shards"
_ID = "does not exist"
#: Seconds for the answer, which comes after a minute.
_TIMEOUT = 120.0
#: So many indices are written to at once: each takes one of the connections to a node for that minute.
_AT_ONCE = 4


class Unreachable:
    """Deletes documents that do not exist, in the background, from indices that could not be refreshed."""

    def __init__(self, client: AsyncElasticsearch) -> None:
        self._client = client
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._writing: dict[str, asyncio.Task[None]] = {}
        """By index."""
        self._is_closed = False

    def refresh_failed(self, index: str) -> None:
        """Note that an index could not be refreshed."""
        if self._is_closed or "*" in index or index in self._writing:  # a bulk takes no patterns
            return
        self._writing[index] = asyncio.create_task(self._write(index), name="deleting what does not exist")

    async def close(self) -> None:
        """Stop."""
        self._is_closed = True
        tasks = [*self._writing.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _write(self, index: str) -> None:
        client = self._client.options(request_timeout=_TIMEOUT)
        try:
            async with self._turns:
                with errors(), no_index():
                    settings = await client.indices.get_settings(index=index, name=_SHARDS, flat_settings=True)
                    # By its own name, where `index` is an alias.
                    deleted = _DELETED_A_SHARD * max(int(own["settings"][_SHARDS]) for own in settings.values())
                    deletions = [{"delete": {"_id": _ID, "routing": str(number)}} for number in range(deleted)]
                    answer = await client.bulk(index=index, operations=deletions, filter_path="errors")
                    if answer.get("errors"):
                        log.debug("Elasticsearch does not let this server write to %s", index)
        except EventStoreBusy as error:
            log.debug("could not write to %s: %s", index, error)
        finally:
            self._writing.pop(index, None)
