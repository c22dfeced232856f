"""Bodies of log lines that were known where a copy came from: they add nothing if they are sent again.

A client may have sent a body that a server kept and had no time to acknowledge. Then servers were stopped, and all was
copied. The client sends the body again, and its lines are there.

Lines that a copy brought came with no fragment. So blocks of the owner name the bodies, and whoever adds lines asks for
these blocks once for each owner. If a body seems to be known, they are read anew: lines may have been deleted since,
and then the body is new.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from apiserver.events.model import EventBatch, EventType, LogColumns, MetricSelection, Owner
from apiserver.events.queries import SeriesQuery
from apiserver.stores.events.blocks.blocks import NO_SERIES
from apiserver.stores.events.blocks.loading import begins_again
from apiserver.stores.events.blocks.log_batches import whole_bodies
from apiserver.stores.events.blocks.log_blocks import BATCHES, OF_BODIES, batch_id, batches_of, bodies, bodies_of
from apiserver.stores.events.blocks.log_reading import LogLoader
from apiserver.stores.events.blocks.whole_points import ended
from apiserver.stores.events.bounded import Bounded
from apiserver.stores.events.codec.lines import body_id
from apiserver.stores.events.parts import in_parts

#: Owners and ids that are remembered, ids in a block, and blocks whose ids are read at once.
_REMEMBERED, _IDS, _AT_ONCE = 200_000, 10_000, 1000


class KnownBodies:
    """The bodies that copies brought, as one server knows them."""

    def __init__(self, loader: LogLoader) -> None:
        self._loader = loader
        self._known: Bounded[Owner, frozenset[bytes]] = Bounded(_REMEMBERED, lambda _, ids: 1 + len(ids))

    async def without(self, batch: EventBatch) -> EventBatch:
        """The batch without lines of known bodies."""
        seem_known = {columns.owner for columns in batch.logs if await self._knows(columns)}
        for owner in seem_known:
            self.forget(owner)
        if not seem_known:
            return batch
        return replace(batch, logs=[columns for columns in batch.logs if not await self._knows(columns)])

    async def _knows(self, columns: LogColumns) -> bool:
        owner = columns.owner
        if columns.digest is None:
            return False
        bodies = self._known.get(owner)
        if bodies is None:
            bodies = await _brought(self._loader, owner)
            self._known.put(owner, bodies)
        return body_id(columns.digest) in bodies

    def forget(self, owner: Owner) -> None:
        """Ask again next time."""
        self._known.drop(owner)


@begins_again()
async def _brought(loader: LogLoader, owner: Owner) -> frozenset[bytes]:
    """The ids of the bodies that copies brought."""
    selection = [MetricSelection(OF_BODIES[0], (OF_BODIES[1],))]
    found = await loader.store.find(SeriesQuery(owner, EventType.LOG, selection))
    loaded = await loader.column(BATCHES, found.counting)
    return frozenset(id for columns in loaded.values() for id in bodies_of(columns))


@begins_again()
async def known_bodies(loader: LogLoader, owner: Owner) -> set[bytes]:
    """The ids of all bodies that add nothing if they are sent again: they were sent, or a copy brought them."""
    found = (await loader.store.find(SeriesQuery(owner, EventType.LOG))).counting
    lines = [block for block in found if block.series == NO_SERIES]
    ids = whole_bodies(batch_id(block) for block in lines if not block.lasts)
    for some in in_parts([block for block in lines if block.statement is not None], lambda block: 1, _AT_ONCE):
        for columns in (await loader.column(BATCHES, some)).values():
            ids |= whole_bodies(map(bytes, batches_of(columns).ids.tolist()))
    return ids | await _brought(loader, owner)


async def know_bodies(loader: LogLoader, owner: Owner, ids: Collection[bytes]) -> None:
    """Put blocks that name these bodies."""
    up_to = await ended(loader.store, owner, loader.bounds)
    await loader.store.put([bodies(owner, some, up_to) for some in in_parts(sorted(ids), lambda id: 1, _IDS)])
