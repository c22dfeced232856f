"""Compacts series: makes chunks of fragments, and removes the blocks that count nowhere then.

1. Ask for a place up to which every write has ended.
2. Find what there is. Of each series with many blocks that are not chunks alone in their stretch, read such stretches,
   and small chunks beside them.
3. Put chunks. They cover these stretches, and say that they have everything that was written up to that place.
4. When these writes have ended, remove the blocks that count nowhere. This server remembers which blocks there are
   now (`finding.py`).

A server may stop after each step, and several may do this at once: `precedence.py` says why nothing is lost or doubled.
A write that has not ended may be undone. So nothing is removed because of such a write. Points of it may come into a
chunk, and stay then: to its client, it was not acknowledged, and may be kept.

A bundle is removed only when all its series are compacted. Until then, readers of a series in it find the bundle, even
if chunks have all its points of this series. So if a series is in many bundles that would stay, all series in these
bundles are compacted. For example, where two are many:

    two bundles     loss at 1, first at 1;  loss at 2, second at 2
    three chunks    loss at 1 to 2; first at 1; second at 2

A small chunk is made anew with its neighbours if it has up to twice as many points as these. So a point is written anew
about as often as the number of points can be halved, and few small chunks are left.
"""

from __future__ import annotations

import asyncio
import uuid
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from apiserver.common.off_loop import off_loop
from apiserver.events.model import EventType, Owner
from apiserver.events.queries import EVERYWHERE, SeriesQuery
from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.blocks import encoding
from apiserver.stores.events.blocks.blocks import Block, BlockStore, Found, Gone, NewBlock, Version
from apiserver.stores.events.blocks.bounds import ColumnarBounds
from apiserver.stores.events.blocks.loading import Loaded, Loader, points_in
from apiserver.stores.events.blocks.precedence import BlockPart, superseded
from apiserver.stores.events.blocks.stretches import Stretch, stretches
from apiserver.stores.events.codec.names import Name
from apiserver.stores.events.codec.points import WholePoints, Workers, concat
from apiserver.stores.events.parts import in_parts

#: Where the version of a chunk does not matter.
NO_VERSION = Version(0, 0)


class Maker(ABC):
    """Makes chunks of events of one type."""

    type: EventType

    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    @property
    @abstractmethod
    def at_a_time(self) -> int:
        """The most that is made at once, as `size` counts it."""

    @property
    @abstractmethod
    def sealed(self) -> int:
        """Chunks of this size are not made anew with their neighbours."""

    def size(self, stretch: Stretch) -> int:
        """How much there is in a stretch, about."""
        return stretch.size

    def pieces(self, stretch: Stretch) -> list[Stretch]:
        """The stretch, cut into parts of it if it is too large to be made at once."""
        return [stretch]

    async def may_begin(self, found: Found, up_to: int) -> bool:
        """Whether chunks may be made now of what was found, if writes up to a place have ended."""
        return True

    def is_settled(self, stretch: Stretch) -> bool:
        """Whether the stretch may stay as it is: a chunk is alone there."""
        return stretch.chunk is not None

    async def seen(self, found: Found, up_to: int) -> tuple[Found, list[Block]]:
        """The blocks that become chunks, or are chunks, if writes up to a place have ended; and some to be removed."""
        return found, []

    def at(self, block: NewBlock) -> Block:
        """The block that is found once this one is put; its version does not matter."""
        return block.at(NO_VERSION)

    @abstractmethod
    async def chunks(self, owner: Owner, runs: Sequence[Run], up_to: int) -> list[NewBlock]:
        """Chunks with everything of these runs."""


async def compact(maker: Maker, series: SeriesQuery, fewest: int | None) -> bool:
    """Compact those of the series that need it, unless another holder of a lease does. Returns whether it was done."""
    store, owner, bounds = maker.loader.store, series.owner, maker.loader.bounds
    fewest = bounds.fewest if fewest is None else fewest
    async with _leased(store, owner, replace(bounds, lease_questions=1)) as holder:
        if holder is None:
            return False
        up_to = await store.ended(owner)
        found = await store.find(series)
        may_begin = found.noted <= up_to and await maker.may_begin(found, up_to)  # else a deletion may still be undone
        return may_begin and await make_chunks(maker, owner, found, up_to, holder, fewest)


@asynccontextmanager
async def leased(store: BlockStore, owner: Owner, bounds: ColumnarBounds) -> AsyncIterator[str]:
    """The holder of a lease, who may make chunks of the owner's events; EventStoreBusy if nobody may for too long."""
    async with _leased(store, owner, bounds) as holder:
        if holder is None:
            raise EventStoreBusy("another server compacts these events, or deletes some of them", overloaded=False)
        yield holder


@asynccontextmanager
async def _leased(store: BlockStore, owner: Owner, bounds: ColumnarBounds) -> AsyncIterator[str | None]:
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


async def found_up_to(store: BlockStore, series: SeriesQuery) -> tuple[Found, int]:
    """What was written up to a place up to which all has ended, and that place. It lies behind all chunks."""
    place = 0
    while True:
        up_to = await store.until_ended(series.owner, place)
        found = await store.find(series)
        chunks = [block.version.place for block in found.blocks if block.statement is not None]
        place = max([found.noted, *chunks])
        if up_to >= place:
            return found._replace(blocks=[block for block in found.blocks if block.version.place <= up_to]), up_to


async def make_chunks(maker: Maker, owner: Owner, found: Found, up_to: int, holder: str, fewest: int) -> bool:
    """Make chunks of what was found, after all writes up to a place have ended.

    Returns whether all were made: another server may have compacted the same blocks meanwhile.
    """
    store = maker.loader.store
    there = [block for block in found.blocks if block.version.place <= up_to]
    try:
        found, useless = await maker.seen(found, up_to)
    except Gone:
        return False
    runs = _runs(maker, found, fewest)
    put: list[Block] = []
    is_gone = False
    for number, some in enumerate(in_parts(runs, lambda run: run.size, maker.at_a_time)):
        if number:
            await store.lease(owner, holder, maker.loader.bounds.lease)
        try:
            made = await maker.chunks(owner, some, up_to)
        except Gone:
            is_gone = True
            break
        await store.put(made)
        put += map(maker.at, made)
    removed = [*useless, *superseded_blocks(found, put, up_to)]
    await store.remove(owner, removed)
    removed_ids = {block.id for block in removed}
    left = [block for block in there if block.id not in removed_ids]
    await maker.loader.finder.compacted(SeriesQuery(owner, maker.type), left, len(put), up_to)
    return not is_gone


class Run(NamedTuple):
    """Neighbouring stretches of a series."""

    series: Name
    stretches: Sequence[Stretch]
    is_settled: bool
    """Whether they may stay as they are, as chunks alone may."""
    size: int

    def joined(self, other: Run) -> Run:
        """This run and the next one."""
        both = [*self.stretches, *other.stretches]
        return Run(self.series, both, self.is_settled and other.is_settled, self.size + other.size)

    @property
    def ends(self) -> tuple[int, int]:
        """The first and the last iteration that chunks of it have to cover."""
        return self.stretches[0].first, self.stretches[-1].last

    @property
    def parts(self) -> list[BlockPart]:
        """The parts of blocks that count there."""
        return [part for one in self.stretches for part in one.parts]

    @property
    def newest(self) -> int:
        """The greatest place of the fragments that its points came with."""
        return max(part.block.newest for part in self.parts)


def _join(maker: Maker, run: Run, next: Run) -> bool:
    """Whether both should become the same chunks."""
    if run.is_settled == next.is_settled:
        return not run.is_settled and run.size + next.size <= maker.at_a_time
    chunk, new = (run, next) if run.is_settled else (next, run)
    return chunk.size < maker.sealed and chunk.size <= 2 * new.size


def _runs(maker: Maker, found: Found, fewest: int) -> list[Run]:
    """The runs that should become chunks: all loose runs of some series.

    These are the series whose loose runs have many blocks, and those in bundles that have to go.
    """
    loose = {name: _loose(maker, name, some) for name, some in stretches(found).items()}
    blocks = {name: [part.block for run in some for part in run.parts] for name, some in loose.items()}
    chosen = {name for name, some in blocks.items() if len(some) >= fewest}
    staying = {block.id for name, some in blocks.items() if name not in chosen for block in some}
    bundled = [block for block in found.blocks if block.in_bundle is not None and block.id in staying]
    bundles = Counter(block.series for block in bundled)
    useless = {block.id for block in bundled if bundles[block.series] >= fewest}
    chosen |= {block.series for block in bundled if block.id in useless}
    return [run for name, some in loose.items() if name in chosen for run in some]


def _loose(maker: Maker, name: Name, some: Sequence[Stretch]) -> list[Run]:
    """What of a series is not settled."""
    runs: list[Run] = []
    for one in chain.from_iterable(map(maker.pieces, some)):
        run = Run(name, [one], maker.is_settled(one), maker.size(one))
        while runs and _join(maker, runs[-1], run):
            run = runs.pop().joined(run)
        runs.append(run)
    return [run for run in runs if not run.is_settled]


class PointsMaker(Maker):
    """Makes chunks of points. Points of a write that is undone may stay in a chunk."""

    type = EventType.SCALAR

    @property
    def at_a_time(self) -> int:
        """In points."""
        return self.loader.bounds.points_at_a_time

    @property
    def sealed(self) -> int:
        """In points."""
        return self.loader.bounds.sealed_points

    async def chunks(self, owner: Owner, runs: Sequence[Run], up_to: int) -> list[NewBlock]:
        """Chunks with all points of these runs. Nobody will read what they are made of."""
        loaded = await self.loader.whole(one for run in runs for one in run.stretches)
        made = await off_loop(
            sum([run.size for run in runs]),
            lambda: [one for run in runs for one in _chunks_of(owner, run, loaded, up_to, self.loader.bounds)],
        )
        self.loader.replaced([part.block for run in runs for part in run.parts], made)
        return made


def _chunks_of(owner: Owner, run: Run, loaded: Loaded, up_to: int, bounds: ColumnarBounds) -> list[NewBlock]:
    workers = Workers()
    points = concat([points_in(one, loaded, EVERYWHERE, workers) for one in run.stretches])
    some = WholePoints(run.series, points, workers.names)
    return encoding.chunks_of(owner, some, run.ends, up_to, run.newest, bounds)


def superseded_blocks(found: Found, put: Sequence[Block], up_to: int) -> list[Block]:
    """The blocks that count nowhere, if only writes that have ended are counted. A bundle goes as a whole."""
    ended = {block.id: block for block in found.blocks if block.version.place <= up_to}
    by_name: dict[Name, list[Block]] = {}
    for block in chain([block for block in found.blocks if block.id in ended], put):
        by_name.setdefault(block.series, []).append(block)
    none_left = chain.from_iterable(superseded(some, found.deleted) for some in by_name.values())
    blocks = Counter(block.id for block in none_left)
    return [ended[id] for id, count in blocks.items() if id in ended and count == ended[id].blocks]
