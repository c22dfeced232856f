"""Lets nodes give up copies of shards that they do not reach, though nobody writes to these shards.

If two nodes do not reach each other, and neither is the master, both stay in the cluster. Elasticsearch takes away a
copy at one of them only because of a write: the node that has the shard's first copy tries for a minute to reach the
other one, and then tells the master. A refresh tells nobody, and fails again and again. So when a refresh has failed,
something is written to all shards of the index that changes nothing: documents are deleted that are not there.

    refresh fails      readers are told to come again; documents are deleted
    a minute later     the master takes away the copy that is out of reach
    refresh            readers see all events
"""

from __future__ import annotations

import asyncio
import logging

from elasticsearch import AsyncElasticsearch

from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.elasticsearch.errors import errors

log = logging.getLogger(__name__)

#: So many documents are deleted. Each goes to a shard by its routing, so that hardly any shard gets none.
_DELETED = 100
_ID = "nothing"


class Unreachable:
    """Writes nothing, in the background, to indices that could not be refreshed."""

    def __init__(self, client: AsyncElasticsearch) -> None:
        self._client = client
        self._writing: dict[str, asyncio.Task[None]] = {}
        """By index."""

    def was_met(self, index: str) -> None:
        """Note that a refresh of an index has failed."""
        if "*" not in index and index not in self._writing:  # a bulk takes no patterns
            self._writing[index] = asyncio.create_task(self._write(index), name="writing nothing")

    async def close(self) -> None:
        """Stop."""
        tasks = [*self._writing.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _write(self, index: str) -> None:
        deletions = [{"delete": {"_id": _ID, "routing": str(number)}} for number in range(_DELETED)]
        try:
            with errors(writing=True):
                await self._client.bulk(index=index, operations=deletions, filter_path="took")
        except EventStoreBusy as error:
            log.debug("nothing could be written to %s: %s", index, error)
        finally:
            del self._writing[index]
