"""Compacts series: makes chunks of fragments, and removes the blocks that count nowhere then.

1. Ask for a place up to which every write has ended.
2. Find the blocks. Of each series with many blocks that are not chunks alone in their stretch, read such stretches, and
   small chunks beside them (`runs.py`).
3. Put chunks (`makers.py`). They cover these stretches, and say that they have everything that was written up to that
   place.
4. When these writes have ended, remove the blocks that count nowhere. This server remembers which blocks there are
   now (`finding.py`).

A server may stop after each step, and several may do this at once: `precedence.py` says why nothing is lost or doubled.
A write that has not ended may be undone. So nothing is removed because of such a write. Points of it may come into a
chunk, and stay then: to its client, it was not acknowledged, and may be kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain

from apiserver.events.model import Owner
from apiserver.events.queries import SeriesQuery
from apiserver.stores.events.blocks.blocks import Block, BlockStore, Found, Gone
from apiserver.stores.events.blocks.leasing import leased_if_free
from apiserver.stores.events.blocks.makers import Maker, Run
from apiserver.stores.events.blocks.precedence import superseded
from apiserver.stores.events.blocks.runs import runs_to_make
from apiserver.stores.events.codec.names import Name
from apiserver.stores.events.parts import in_parts


async def compact(maker: Maker, series: SeriesQuery, fewest: int | None) -> bool:
    """Compact those of the series that need it, unless another holder of a lease does. Returns whether it was done."""
    store, owner, bounds = maker.loader.store, series.owner, maker.loader.bounds
    async with leased_if_free(store, owner, replace(bounds, lease_questions=1)) as holder:
        if holder is None:
            return False
        up_to = await store.ended(owner)
        found = await store.find(series)
        may_begin = found.noted <= up_to and await maker.may_begin(found, up_to)  # else a deletion may still be undone
        fewest = bounds.fewest if fewest is None else fewest
        return may_begin and await make_chunks(maker, owner, found, up_to, holder, fewest)


async def found_up_to(store: BlockStore, series: SeriesQuery) -> tuple[Found, int]:
    """The blocks up to a place, and the place: all writes up to it have ended, and no chunk lies behind it."""
    place = 0
    while True:
        up_to = await store.until_ended(series.owner, place)
        found = await store.find(series)
        chunks = [block.version.place for block in found.blocks if block.statement is not None]
        place = max([found.noted, *chunks])
        if up_to >= place:
            return found._replace(blocks=_up_to(up_to, found.blocks)), up_to


async def make_chunks(maker: Maker, owner: Owner, found: Found, up_to: int, holder: str, fewest: int) -> bool:
    """Make chunks of the blocks that were found, after all writes up to a place have ended.

    Returns whether all were made: another server may have compacted the same blocks meanwhile.
    """
    before = _up_to(up_to, found.blocks)
    try:
        found, sent_again = await maker.seen(found, up_to)
    except Gone:
        return False
    chunks, are_all = await _put_chunks(maker, owner, runs_to_make(maker, found, fewest), up_to, holder)
    useless = [*sent_again, *superseded_blocks(found, chunks, up_to)]
    await maker.loader.store.remove(owner, useless)
    useless_ids = {block.id for block in useless}
    left = [block for block in before if block.id not in useless_ids]
    await maker.loader.finder.compacted(SeriesQuery(owner, maker.type), left, len(chunks), up_to)
    return are_all


async def _put_chunks(
    maker: Maker, owner: Owner, runs: Iterable[Run], up_to: int, holder: str
) -> tuple[list[Block], bool]:
    """Put chunks of the runs, and renew the lease meanwhile. Returns the chunks, and whether they are of all runs.

    They are not if a block is gone, as another server has compacted it.
    """
    store, bounds = maker.loader.store, maker.loader.bounds
    put: list[Block] = []
    for number, part in enumerate(in_parts(runs, lambda run: run.size, maker.at_a_time)):
        if number:
            await store.lease(owner, holder, bounds.lease)
        try:
            chunks = await maker.chunks(owner, part, up_to)
        except Gone:
            return put, False
        await store.put(chunks)
        put += map(maker.at, chunks)
    return put, True


def superseded_blocks(found: Found, chunks: Sequence[Block], up_to: int) -> list[Block]:
    """The blocks that count nowhere beside these chunks, which were put since.

    Blocks that have not ended are neither counted nor removed. A bundle goes only if it counts nowhere in any series.
    """
    ended = {block.id: block for block in _up_to(up_to, found.blocks)}
    by_series: dict[Name, list[Block]] = {}
    for block in chain([block for block in found.blocks if block.id in ended], chunks):
        by_series.setdefault(block.series, []).append(block)
    count_nowhere = chain.from_iterable(superseded(blocks, found.deleted) for blocks in by_series.values())
    series = Counter(block.id for block in count_nowhere)
    return [ended[id] for id, count in series.items() if id in ended and count == ended[id].blocks]


def _up_to(place: int, blocks: Iterable[Block]) -> list[Block]:
    """The blocks that were written up to a place."""
    return [block for block in blocks if block.version.place <= place]
