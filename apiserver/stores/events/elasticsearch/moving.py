"""Moves all old documents into blocks, owner by owner, while servers serve (`old_documents.py`).

To move the documents of an owner is to compact it until none of them counts any more. So this may be stopped anywhere,
and goes on when it is begun again, and several may do it at once. When all owners of an index have been moved, nothing
needs the index any more. Servers do the same beside their other work, some owners a minute (`old_owners.py`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from apiserver.events.model import Owner
from apiserver.off_loop import together
from apiserver.sizes import counted
from apiserver.stores.events.base import EventStoreBusy, EventStoreError
from apiserver.stores.events.columnar.compactor import Compact
from apiserver.stores.events.columnar.logs import ColumnarLogs
from apiserver.stores.events.columnar.scalars import ColumnarScalars
from apiserver.stores.events.elasticsearch import names
from apiserver.stores.events.elasticsearch.address import ElasticsearchAddress
from apiserver.stores.events.elasticsearch.bounds import BOUNDS, ElasticsearchBounds
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.old_documents import LogsWithOldDocuments, WithOldDocuments
from apiserver.stores.events.elasticsearch.old_owners import owners_in
from apiserver.stores.events.elasticsearch.old_scalars import OldScalars

#: Owners that are moved at once.
_AT_ONCE = 4
#: Seconds between two lines about how far it is.
_SAY = 10.0
#: How many times as long as a lease moving an owner may make no progress, and how often a node may be busy.
_LEASES, _ATTEMPTS = 4, 60

#: Shows a line to the user.
Say = Callable[[str], None]
T = TypeVar("T")


@asynccontextmanager
async def moving(
    address: ElasticsearchAddress, say: Say, bounds: ElasticsearchBounds = BOUNDS
) -> AsyncIterator[Moving]:
    """What moves the documents at an address."""
    cluster = Cluster(address, strict=False, bounds=bounds)
    try:
        await cluster.check_version()
        yield Moving(cluster, say)
    finally:
        await cluster.close()


class Moving:
    """Moves the old documents of one prefix."""

    def __init__(self, cluster: Cluster, say: Say) -> None:
        self._cluster = cluster
        self._say = say

    async def left(self) -> bool:
        """Say which companies have documents to move; whether there are any."""
        left = False
        for store, _ in self._types():
            for company in await store.indices.companies():
                count = sum([events async for _, events in owners_in(self._cluster, store.type, company)])
                self._say(f"to be moved: {counted(count, store.type.plural)} of '{company}'")
                left = True
        return left

    async def run(self) -> None:
        """Move all documents. EventStoreError: an owner cannot be moved now."""
        for store, compact in self._types():
            for company in await store.indices.companies():
                await store.indices.state(company)  # so that nobody writes documents any more
                await self._cluster.ensure([names.blocks(self._cluster.prefix, store.type, company)])
                owners = [one async for one in owners_in(self._cluster, store.type, company)]
                await _OfCompany(company, store, compact, owners, self._say, self._cluster.bounds).run()

    def _types(self) -> Iterator[tuple[WithOldDocuments, Compact]]:
        bounds = self._cluster.bounds.columnar
        points = WithOldDocuments(self._cluster, OldScalars(self._cluster))
        yield points, ColumnarScalars(points, bounds=bounds).compact
        lines = LogsWithOldDocuments(self._cluster)
        yield lines, ColumnarLogs(lines, bounds=bounds).compact


@dataclass
class _OfCompany:
    """Moves the documents of one type and company."""

    company: str
    store: WithOldDocuments
    compact: Compact
    owners: list[tuple[Owner, int]]
    say: Say
    bounds: ElasticsearchBounds
    done: int = 0
    said: float = field(default_factory=time.monotonic)

    async def run(self) -> None:
        what, total = f"{self.store.type.plural} of '{self.company}'", sum([events for _, events in self.owners])
        self.say(f"to be moved: {counted(total, self.store.type.plural)} of '{self.company}'")
        todo = iter(self.owners)

        async def work() -> None:
            for owner, events in todo:
                await self._move(owner)
                self.done += events
                if time.monotonic() - self.said > _SAY:
                    self.said = time.monotonic()
                    self.say(f"moved: {self.done:,} of {total:,} {what}")

        await together(*(work() for _ in range(_AT_ONCE)))
        await self._patiently(lambda: self.store.indices.moved(self.company))
        self.say(f"moved: all {what}")

    async def _move(self, owner: Owner) -> None:
        left = await self._patiently(lambda: self.store.left(owner))
        progress = time.monotonic()
        while left:
            await self._patiently(lambda: self.compact(owner, fewest=1))
            before, left = left, await self._patiently(lambda: self.store.left(owner))
            if left < before:
                progress = time.monotonic()
            elif time.monotonic() - progress < _LEASES * self.bounds.columnar.lease:
                await asyncio.sleep(self.bounds.move_pause)  # another server compacts it
            else:
                raise EventStoreError(
                    f"it cannot be moved now: {counted(left, 'events')} of '{owner.id}'; try again later"
                )

    async def _patiently(self, ask: Callable[[], Awaitable[T]]) -> T:
        """What `ask` returns, which is called again while nodes are busy."""
        for _ in range(_ATTEMPTS):
            try:
                return await ask()
            except EventStoreBusy as busy:
                self.say(f"waiting: {busy}")
                await asyncio.sleep(busy.retry_after)
        return await ask()
