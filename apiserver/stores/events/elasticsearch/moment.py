"""The events as they are at one moment, read while servers write, compact and delete: for backups.

Elasticsearch keeps each index as it was at a *point in time*, until that is closed. A cluster of a moment sends its
searches there. All points are made at about the same time, after a refresh. So what was acknowledged before is in them.
Of batches that are under way meanwhile, the points may be there without the log lines, say: nobody was told yet that
they are kept.

Whoever copies reads documents first, and events later. So the store also tells of which owners something came since it
was opened, or shortly before: what their documents say of their events may be older than the events.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from typing import Any

from elasticsearch import ApiError

from apiserver.common.off_loop import together
from apiserver.events.changes import Cursor
from apiserver.events.model import JsonObject, Owner
from apiserver.stores.events.base import EventStoreError
from apiserver.stores.events.elasticsearch import names
from apiserver.stores.events.elasticsearch.address import ElasticsearchAddress
from apiserver.stores.events.elasticsearch.changes import shards_of
from apiserver.stores.events.elasticsearch.cluster import NOTHING, VISIBLE, Cluster
from apiserver.stores.events.elasticsearch.errors import errors
from apiserver.stores.events.elasticsearch.node import CBOR
from apiserver.stores.events.elasticsearch.queries import all_of, between
from apiserver.stores.events.elasticsearch.store import ElasticsearchEventStore

#: For how long Elasticsearch keeps a point in time that nobody asks, and seconds after which all of them are asked.
_KEPT, _ASKED_EVERY = "10m", 60.0
_LOST = "Elasticsearch has lost the moment that was being copied, as when a node is restarted: begin again"


class ClusterOfAMoment(Cluster):
    """A cluster whose searches, from `begin` on, show what there was then."""

    def __init__(self, address: ElasticsearchAddress) -> None:
        super().__init__(address, strict=True)
        self._points: dict[str, str] | None = None
        """By index, the id of its point in time."""
        self._keeping: asyncio.Task[None] | None = None

    async def begin(self, patterns: Sequence[str]) -> None:
        """Begin the moment of the indices whose names match."""
        found = await super().indices(patterns)
        ids = await together(*map(self._point, found))
        self._points = {index: id for index, id in zip(found, ids, strict=True) if id is not None}
        self._keeping = asyncio.create_task(self._keep(found), name="keeping a moment")

    async def _point(self, index: str) -> str | None:
        """The id of a point in time at which all is seen that was acknowledged; None: the index is gone."""
        answer = await self._ask(index, lambda: self.client.open_point_in_time(index=index, keep_alive=_KEPT))
        return None if answer is None else str(answer.body["id"])

    async def _keep(self, indices: Sequence[str]) -> None:
        """Ask for each point now and then, as some are not needed for long."""
        while True:
            await asyncio.sleep(_ASKED_EVERY)
            for index in indices:
                with suppress(EventStoreError):  # whoever needs it is told
                    await self.search(index, {"size": 0, "track_total_hits": False})

    async def close(self) -> None:
        """Give the points back, and close the connections."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)
        for id in (self._points or {}).values():
            with suppress(EventStoreError), errors():
                await self.client.close_point_in_time(id=id)
        await super().close()

    async def indices(self, patterns: Sequence[str]) -> list[str]:
        """The indices that were there at the moment whose names match."""
        if self._points is None:
            return await super().indices(patterns)
        return [name for name in self._points if any(fnmatchcase(name, pattern) for pattern in patterns)]

    async def search(
        self, index: str, body: JsonObject, *, routing: str | None = None, preference: str | None = None
    ) -> JsonObject:
        if self._points is None:
            return await super().search(index, body, routing=routing, preference=preference)
        if index not in self._points:
            return NOTHING
        with errors(), _may_be_lost():
            answer = await self.client.search(body=self._at(index, body), allow_partial_search_results=False)
        self._points[index] = answer["pit_id"]
        return _as_asked(dict(answer.body), body)

    async def visible(
        self, index: str, body: JsonObject, *, routing: str | None, preference: str, binary: bool
    ) -> JsonObject:
        if self._points is None:
            return await super().visible(index, body, routing=routing, preference=preference, binary=binary)
        if index not in self._points:
            return NOTHING
        params = {"allow_partial_search_results": "false", "filter_path": VISIBLE}
        headers = {"accept": CBOR if binary else "application/json", "content-type": "application/json"}
        with errors(), _may_be_lost():
            answer = await self.client.perform_request(
                "POST", "/_search", params=params, headers=headers, body=self._at(index, body)
            )
        return dict(NOTHING | answer.body)

    async def searches(self, index: str, bodies: Sequence[JsonObject], *, routing: str) -> list[JsonObject]:
        if self._points is None:
            return await super().searches(index, bodies, routing=routing)
        return await together(*(self.search(index, body) for body in bodies))

    def _at(self, index: str, body: JsonObject) -> JsonObject:
        """A search of the index as it was. It can name neither a routing nor a copy: the point has both."""
        assert self._points is not None
        return {**body, "pit": {"id": self._points[index], "keep_alive": _KEPT}}


@contextmanager
def _may_be_lost() -> Iterator[None]:
    """EventStoreError if a point in time is not there any more: to ask again would not help."""
    try:
        yield
    except ApiError as error:
        if error.status_code == 404:
            raise EventStoreError(_LOST) from error
        raise


def _as_asked(answer: JsonObject, body: JsonObject) -> JsonObject:
    """The answer without the last value by which hits of a point in time are sorted, which nobody asked for."""
    for hit in answer["hits"]["hits"]:
        if "sort" in hit:
            del hit["sort"][len(body["sort"]) :]
    return answer


class ElasticsearchMoment(ElasticsearchEventStore):
    """The events of one moment, from `begin` on. It is only read."""

    compacts = False

    def __init__(self, address: ElasticsearchAddress) -> None:
        super().__init__(address, strict=True)
        self._marked: set[Owner] = set()
        self._place: dict[str, list[Any]] = {}

    def _connect(self) -> Cluster:
        return ClusterOfAMoment(self._address)

    @property
    def place(self) -> Cursor:
        """By index, its uuid, and up to which write all of its shards had done everything when the store was opened."""
        return self._place

    async def open(self) -> None:
        """Connect, and note what there is."""
        await super().open()
        shards = await shards_of(self._cluster, names.indices(self._cluster.prefix))
        self._place = {index: [one.uuid, min(one.checkpoints)] for index, one in shards.items()}
        self._marked = {owner async for owner in super().owners_to_restate(of_all=True)}

    async def begin(self) -> None:
        """Begin the moment."""
        assert isinstance(self._cluster, ClusterOfAMoment)
        await self._cluster.begin([*names.indices(self._cluster.prefix), self._opened.marks.index])

    async def changed_since(self, place: Cursor) -> set[Owner]:
        """Owners of whom something was written behind a place; all of an index that the place does not know."""
        cluster, owners = self._cluster, set[Owner]()
        for index in await cluster.indices(names.indices(cluster.prefix)):
            uuid, number = place.get(index, ["", -1])
            since = number + 1 if uuid == self._place.get(index, [""])[0] else 0
            behind = all_of(*between("_seq_no", since, None))
            async for bucket in cluster.composite(index, behind, ["owner"], routing=None):
                owners.add(names.owner_of(names.company_of(cluster.prefix, index), bucket["key"]["owner"]))
        return owners

    async def owners_to_restate(self, *, of_all: bool = True) -> AsyncIterator[Owner]:
        """Owners of all servers whose documents may be older than their events, if they were read after `open`."""
        marked = {owner async for owner in super().owners_to_restate(of_all=True)}
        for owner in sorted(self._marked | marked | await self.changed_since(self._place)):
            yield owner
