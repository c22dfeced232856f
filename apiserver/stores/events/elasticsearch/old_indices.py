"""The indices in which older versions kept points and log lines, a document each: closed to writes, moved, deleted.

Whoever looks at an index first closes it to writes. When all of its documents have been moved into blocks, it goes
(`moving.py`). But an index of log lines stays until a day after its last line came: its ids tell which lines of a batch
an older version has kept, if a client sends the batch again.

A server remembers for ten minutes what it has seen. So it sees an index that a server of an older version makes late.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from apiserver.events.model import EventType, JsonObject
from apiserver.stores.events.elasticsearch import names
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.errors import errors

#: Seconds for which clients may send a batch again that they got no answer for.
SENT_AGAIN = 24 * 3600
#: Seconds after which a server looks again.
LOOK = 600.0
_WANTED = "*.settings.index.uuid,*.settings.index.blocks.write,*.mappings._meta"


class State(Enum):
    """What is left of the old documents of a company."""

    NOTHING = "nothing"
    IDS = "ids"
    """All of them have been moved, and count nowhere; they are there still."""
    EVERYTHING = "everything"


class _Known(NamedTuple):
    state: State
    until: float


class OldIndices:
    """The indices of old documents of one type."""

    def __init__(
        self,
        cluster: Cluster,
        type: EventType,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """By `clock`, indices are looked at again, and by `wall_clock`, they go."""
        self._cluster = cluster
        self._type = type
        self._clock = clock
        self._wall_clock = wall_clock
        self._known: dict[str, _Known] = {}

    async def companies(self) -> list[str]:
        """The companies with documents that have to be moved. Indices that nobody needs any more go meanwhile."""
        prefix, pattern = self._cluster.prefix, f"{self._cluster.prefix}-{self._type.plural}-*"
        with errors():
            found = await self._cluster.client.indices.get(index=pattern, filter_path=_WANTED)
        is_moved = {names.company_of(prefix, index): "mappings" in one for index, one in found.items()}
        for company in (company for company, moved in is_moved.items() if moved):
            await self.state(company)
        return sorted(company for company, moved in is_moved.items() if not moved)

    async def state(self, company: str) -> State:
        """What is left of a company's documents. If there are some, nobody writes to their index from now on."""
        known = self._known.get(company)
        if known is None or known.until < self._clock():
            known = _Known(await self._look(self._index(company)), self._clock() + LOOK)
            self._known[company] = known
        return known.state

    def forget(self, company: str) -> None:
        """Look again before the next answer."""
        self._known.pop(company, None)

    async def _look(self, index: str) -> State:
        indices = self._cluster.client.indices
        with errors():
            found = await indices.get(index=index, ignore_unavailable=True, filter_path=_WANTED)
            if index not in found:
                return State.NOTHING
            if found[index]["settings"]["index"].get("blocks", {}).get("write") != "true":
                await indices.add_block(index=index, block="write", ignore_unavailable=True)
        needed_until = found[index].get("mappings", {}).get("_meta", {}).get("needed_until")
        if needed_until is None:
            return State.EVERYTHING
        return State.IDS if self._wall_clock() < needed_until else await self._delete(index)

    async def moved(self, company: str) -> None:
        """Note that all documents of the company are in blocks; delete what is not needed any more."""
        blocks = names.blocks(self._cluster.prefix, self._type, company)
        self._cluster.wrote([blocks])
        await self._cluster.make_visible([blocks])  # to all servers
        index, newest = self._index(company), {"newest": {"max": {"field": "received"}}}
        body: JsonObject = {"size": 0, "track_total_hits": False, "aggs": newest}
        answer = (await self._cluster.search(index, body)).get("aggregations", {"newest": {"value": None}})
        needed_until = (answer["newest"]["value"] or 0) / 1000 + SENT_AGAIN
        if self._type is EventType.LOG and self._wall_clock() < needed_until:
            with errors():
                await self._cluster.client.indices.put_mapping(index=index, meta={"needed_until": needed_until})
        else:
            await self._delete(index)
        self.forget(company)

    async def _delete(self, index: str) -> State:
        with errors():
            await self._cluster.client.indices.delete(index=index, ignore_unavailable=True)
        return State.NOTHING

    def _index(self, company: str) -> str:
        return names.index(self._cluster.prefix, self._type, company)
