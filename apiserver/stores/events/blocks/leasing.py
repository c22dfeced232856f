"""Takes the lease of an owner, which keeps servers from compacting the same events twice, or deleting meanwhile."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from apiserver.events.model import Owner
from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.blocks.blocks import BlockStore
from apiserver.stores.events.blocks.bounds import ColumnarBounds


@asynccontextmanager
async def leased(store: BlockStore, owner: Owner, bounds: ColumnarBounds) -> AsyncIterator[str]:
    """The holder of a lease, who may make chunks of the owner's events; EventStoreBusy if nobody may for too long."""
    async with leased_if_free(store, owner, bounds) as holder:
        if holder is None:
            raise EventStoreBusy("another server compacts these events, or deletes some of them", overloaded=False)
        yield holder


@asynccontextmanager
async def leased_if_free(store: BlockStore, owner: Owner, bounds: ColumnarBounds) -> AsyncIterator[str | None]:
    """The holder of a lease, or None if others hold it whenever it is asked for.

    It is given back however this ends, also while it is taken. If the store fails then, too, the lease ends by itself.
    """
    holder = uuid.uuid4().hex
    try:
        yield holder if await _takes(store, owner, holder, bounds) else None
    finally:
        with suppress(EventStoreBusy):
            await store.lease(owner, holder, 0)


async def _takes(store: BlockStore, owner: Owner, holder: str, bounds: ColumnarBounds) -> bool:
    """Whether the holder gets the lease of the owner."""
    for question in range(bounds.lease_questions):
        if question:
            await asyncio.sleep(bounds.lease_pause)
        if await store.lease(owner, holder, bounds.lease):
            return True
    return False
