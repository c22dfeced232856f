"""What searches of a cluster see: an index is refreshed before it is searched, if it was written to since.

A search sees a written event only after the next refresh of its index. So a write marks its index, and a read refreshes
a marked index first. This keeps writing fast, and a server sees its acknowledged events at once. With `strict`, every
read refreshes, and so sees what other servers acknowledged, too. For example:

    write, write, write   the index has count 3
    read                  refreshes, notes that searches see count 3, and searches
    read                  searches

A node that is cut off from the others does not know that for a while, and answers searches with what it had. But it
cannot refresh all copies. So a search counts only if the node that answered it has refreshed the index, after the last
write. Else both are done again. A node that cannot refresh all copies is left for another one:

    write                 acknowledged by node 1; node 2 is cut off
    read                  refreshes by node 1, which fails then; node 2 searches, and its answer does not count
    read again            node 2 cannot refresh; node 3 refreshes and searches
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Collection
from typing import Any

from elastic_transport import ApiResponse, NodeConfig
from elasticsearch import AsyncElasticsearch

from apiserver.events.model import Owner
from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.elasticsearch.bounds import BOUNDS, ElasticsearchBounds
from apiserver.stores.events.elasticsearch.errors import AWAY_AGAIN, errors, no_index
from apiserver.stores.events.elasticsearch.looks import Looks
from apiserver.stores.events.elasticsearch.node import leave
from apiserver.stores.events.elasticsearch.unreachable import Unreachable

#: How often a search is made again because another node answered it than the one that had refreshed the index.
_SEARCHES_AGAIN = 5


class Visibility:
    """When each index was written to, and which nodes have refreshed it since."""

    def __init__(self, client: AsyncElasticsearch, *, strict: bool, bounds: ElasticsearchBounds = BOUNDS) -> None:
        self.client = client
        self.bounds = bounds
        self.looks = Looks(shared=bounds.shared)
        self.strict = strict
        self._written: Counter[str] = Counter()
        self._refreshed: defaultdict[str, dict[NodeConfig, int]] = defaultdict(dict)
        """By index and node, how many writes the node's last refresh of the index made visible."""
        self._refreshing: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._failed: dict[str, EventStoreBusy] = {}
        """By index, why it could not be refreshed the last time that this failed."""
        self._unreachable = Unreachable(client)
        self._known: set[str] = set()
        """The indices that were there for this server."""

    async def close(self) -> None:
        """Stop what is done in the background."""
        await self._unreachable.close()

    def wrote(self, indices: Collection[str], owners: Collection[Owner] = ()) -> None:
        """Note that the indices have events of these owners, or else of any, that searches do not see yet."""
        self.looks.changed(owners or indices)
        self.is_behind(indices)

    def written(self, index: str) -> int:
        """How many writes to the index this server has noted so far."""
        return self._written[index]

    def is_behind(self, indices: Collection[str]) -> None:
        """Note that other servers may have written what searches of the indices do not see yet."""
        for index in indices:
            self._written[index] += 1

    async def make_visible(self, indices: Collection[str]) -> None:
        """Return when searches see all events that this server acknowledged, also before a restart."""
        for index in indices:
            await self._showing(index, self._to_see(index))

    def _to_see(self, index: str) -> int:
        """The count of writes that a read of the index, which begins now, has to see."""
        if self.strict:
            self.wrote([index])
        return self._written[index]

    async def _showing(self, index: str, writes: int, lacking: NodeConfig | None = None) -> set[NodeConfig]:
        """The nodes that have refreshed the index since this count of writes.

        If there is none, or `lacking` is none of them, the index is refreshed. If that fails, all who waited for it
        fail. Otherwise, while the nodes do not answer, each would wait for the refreshes of those before it, and then
        for its own.
        """
        if nodes := self._refreshed_since(index, writes, lacking):
            return nodes
        failed_before = self._failed.get(index)
        async with self._refreshing[index]:
            if nodes := self._refreshed_since(index, writes, lacking):
                return nodes
            failed = self._failed.get(index)
            if failed is not None and failed is not failed_before:
                raise EventStoreBusy(str(failed), retry_after=failed.retry_after, overloaded=failed.overloaded)
            written = self._written[index]
            try:
                node = await self.refresh(index)
            except EventStoreBusy as error:
                self._failed[index] = error
                if error.retry_after == AWAY_AGAIN:  # else Elasticsearch is overloaded, or waits for a person
                    self._unreachable.refresh_failed(index)
                raise
            self._refreshed[index][node] = written
        return self._refreshed_since(index, writes)

    def _refreshed_since(self, index: str, writes: int, lacking: NodeConfig | None = None) -> set[NodeConfig]:
        """The nodes that have refreshed the index since this count of writes; none unless `lacking` is one of them."""
        nodes = {node for node, seen in self._refreshed[index].items() if seen >= writes}
        return nodes if lacking is None or lacking in nodes else set()

    async def refresh(self, index: str) -> NodeConfig:
        """Refresh all copies of the index's shards, as a search may ask any of them; return the node that did it.

        A node that is cut off does not know an index that was made since. So most nodes have to say that an index is
        missing which was there for this server.
        """
        without: set[NodeConfig] = set()
        for pause in (*self.bounds.refresh_pauses, None):
            with errors(), no_index() as missing:
                answer = await self.client.indices.refresh(index=index)
            node = missing[0].meta.node if missing else answer.meta.node
            if missing:
                without.add(node)
                if index not in self._known or 2 * len(without) > len(self.client.transport.node_pool):
                    self._known.discard(index)
                    return node
            elif not answer["_shards"]["failed"]:
                return node
            leave(self.client, node)
            if pause is not None:
                await asyncio.sleep(pause)
        raise EventStoreBusy("a copy of the events is behind", retry_after=AWAY_AGAIN, overloaded=False)

    async def _ask(
        self, index: str, search: Callable[[], Awaitable[ApiResponse[Any]]], writes: int | None = None
    ) -> ApiResponse[Any] | None:
        """The answer of a node that has made the index visible before it searched; None: there is no such index.

        writes: it shows so many writes (`written`), and need not show later ones.
        """
        writes, lacking = self._to_see(index) if writes is None else writes, None
        for _ in range(_SEARCHES_AGAIN):
            showing = await self._showing(index, writes, lacking)
            with errors(), no_index() as missing:
                answer = await search()
            node = missing[0].meta.node if missing else answer.meta.node
            if node in showing:
                return None if missing else answer
            lacking = node
        raise EventStoreBusy("one node of Elasticsearch after another fails", retry_after=AWAY_AGAIN, overloaded=False)
