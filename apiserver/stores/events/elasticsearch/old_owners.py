"""The owners of old documents: all of them, or some at a time for a server that moves them beside its other work."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple

from apiserver.events.model import EventType, Owner
from apiserver.stores.events.elasticsearch import names
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.old_indices import OldIndices


async def owners_in(
    cluster: Cluster, type: EventType, company: str, after: str | None = None
) -> AsyncIterator[tuple[Owner, int]]:
    """Each owner of old documents behind an owner's key, in the order of their keys, and how many documents it has."""
    index, behind = names.index(cluster.prefix, type, company), None if after is None else {"owner": after}
    async for bucket in cluster.composite(index, {"match_all": {}}, ["owner"], routing=None, after=behind):
        yield names.owner_of(company, bucket["key"]["owner"]), bucket["doc_count"]


class _Place(NamedTuple):
    """Where a walk over the owners of a company is, and whether it has met documents that have to be moved."""

    after: str | None = None
    met_some: bool = False


class OldOwners:
    """Walks over the owners of one type again and again, until the documents of all of them have been moved."""

    def __init__(
        self, cluster: Cluster, type: EventType, indices: OldIndices, left: Callable[[Owner], Awaitable[int]]
    ) -> None:
        """`left` says how many events of an owner have to be moved."""
        self._cluster = cluster
        self._type = type
        self._indices = indices
        self._left = left
        self._places: dict[str, _Place] = {}

    async def next(self) -> list[Owner]:
        """Some owners with documents that have to be moved; perhaps none, although there are others."""
        found: list[Owner] = []
        for company in await self._indices.companies():
            found += await self._next_of(company)
        return found

    async def _next_of(self, company: str) -> list[Owner]:
        await self._indices.state(company)  # so that nobody writes documents any more
        after, met_some = self._places.get(company, _Place())
        looked = 0
        found: list[Owner] = []
        async for owner, _ in owners_in(self._cluster, self._type, company, after):
            looked += 1
            after = names.owner_key(owner)
            if await self._left(owner):
                found.append(owner)
            if looked == self._cluster.bounds.owners_at_a_time:
                self._places[company] = _Place(after, met_some or bool(found))
                return found
        if not found and not met_some:
            await self._indices.moved(company)
        self._places[company] = _Place()
        return found
