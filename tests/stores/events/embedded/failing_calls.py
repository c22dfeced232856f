"""A store of events that is opened, adds, merges, seals and deletes while calls to the disk fail (`injecting.py`)."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable
from dataclasses import dataclass, field, replace
from pathlib import Path

from apiserver.events.model import EventBatch, EventType, Owner
from apiserver.events.queries import SeriesQuery
from apiserver.stores.events.base import EventStoreError
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.contract.event_stores import batch, lines, sample, scalars
from tests.contract.plain_event_store import PlainEventStore
from tests.engines.load import contents
from tests.robustness.injecting import PATIENCE, main
from tests.stores.events.embedded.sizes import SMALL

KEPT, DELETED, CLEARED = (Owner("company", name) for name in ("kept", "deleted", "cleared"))
BATCHES = 6
#: Little is much, so that all parts of the store have something to do.
BOUNDS = replace(SMALL, retry_seconds=[0.001])


def numbered(n: int, owner: Owner) -> EventBatch:
    """Batch n of an owner: points, of which one overwrites an earlier one, a line and a plot."""
    return batch(
        scalars([n + i / 8 for i in range(20)], iters=range(n * 19, n * 19 + 20), owner=owner),
        scalars([float(n)], iters=[n % 2], metric="overwritten", owner=owner),
        lines([f"line {n}"], timestamps=[n], digest=b"%d" % n, owner=owner),
        sample(n % 3, owner=owner, document=b'{"n":%d}' % n),
    )


@dataclass
class Attempt:
    """A store in one folder, and what must be in it."""

    folder: Path
    plain: PlainEventStore = field(default_factory=PlainEventStore)
    acknowledged: int = 0
    unsure: set[Owner] = field(default_factory=set)
    """Owners of whom a deletion was not acknowledged: it was done or not."""

    def __post_init__(self) -> None:
        self.store = EmbeddedEventStore(
            self.folder, fsync=True, merge_points=70, merge_seconds=0.05, seal_seconds=0.01, bounds=BOUNDS
        )

    async def fill(self) -> None:
        """Do what a server does. Each call ends well, or says why not by an EventStoreError."""
        if not await self._done(self.store.open()):
            return
        for n in range(BATCHES):
            for owner in (KEPT, DELETED, CLEARED):
                await self.add(n, owner)
            if n % 2:
                await self._done(self.store.merge())
            if n == BATCHES // 2:
                await self._change(DELETED, self.store.delete([DELETED]), self.plain.delete([DELETED]))
                everything = SeriesQuery(CLEARED, EventType.LOG)
                await self._change(
                    CLEARED, self.store.delete_logs(everything, 2), self.plain.delete_logs(everything, 2)
                )
        await self._done(self.store.close())

    async def add(self, n: int, owner: Owner) -> bool:
        """Add a batch; whether it was acknowledged."""
        added = await self._done(self.store.add(numbered(n, owner)))
        if added:
            await self.plain.add(numbered(n, owner))
            self.acknowledged += 1
        return added

    async def _change(self, owner: Owner, change: Awaitable[object], same: Awaitable[object]) -> None:
        if not await self._done(change):
            self.unsure.add(owner)
        await same

    async def _done(self, call: Awaitable[object]) -> bool:
        try:
            await call
        except EventStoreError:
            return False
        return True

    async def check(self) -> None:
        """What was acknowledged is there, and everything goes on."""
        await self._done(self.store.close())
        await self.store.open()
        await self._compare()
        async with asyncio.timeout(PATIENCE):
            while not await self.add(BATCHES, KEPT):  # noqa: ASYNC110 - merging tries again by itself
                await asyncio.sleep(0.01)
        await self.store.merge()
        await self._compare()
        await self.store.close()
        await self.store.open()
        await self._compare()
        await self.store.close()

    async def _compare(self) -> None:
        for owner in (KEPT, DELETED, CLEARED):
            if owner not in self.unsure:
                assert await contents(self.store, owner) == await contents(self.plain, owner), owner
                assert await self.store.events_count(owner) == await self.plain.events_count(owner), owner
            else:
                await contents(self.store, owner)


if __name__ == "__main__":
    main(Attempt, sys.argv[1:])
