"""Deletes all points of an owner, unless some came behind a place that the caller knows.

1. Take the lease of the owner, which keeps compaction away. Ask for a place P up to which every write has ended, and
   find what was written up to there.
2. If some of it came behind the place that the caller knows, give up.
3. Note that nothing counts any more that was put up to P. What comes meanwhile has a later place, and stays.
4. When this note has ended, remove the blocks.

Who compacts these blocks meanwhile, because the lease has run out, may put a chunk that says it has everything up to a
place behind P. Its points come back then, and are deleted the next time.
"""

from __future__ import annotations

from apiserver.events.model import EventType, Owner
from apiserver.events.queries import SeriesQuery
from apiserver.stores.events.blocks.compaction import found_up_to
from apiserver.stores.events.blocks.leasing import leased
from apiserver.stores.events.blocks.loading import Loader, begins_again
from apiserver.stores.events.blocks.statistics import count
from apiserver.stores.events.blocks.stretches import stretches


@begins_again()
async def delete_known(loader: Loader, owner: Owner, place: int) -> int:
    """Delete the owner's points, or none if some came behind `place`; return how many there were.

    If a block is gone, another server has compacted these blocks, as the lease had run out.
    """
    store = loader.store
    async with leased(store, owner, loader.bounds):
        found, up_to = await found_up_to(store, SeriesQuery(owner, EventType.SCALAR))
        if any(block.newest > place for block in found.counting):
            return 0
        deleted = await count(loader, stretches(found))
        if deleted:
            await store.delete_before(owner, up_to + 1)
            await store.remove_before({owner: up_to + 1})
        return deleted
