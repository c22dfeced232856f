"""Whole series for copies: answers all points of an owner, and keeps such points as chunks at once.

To keep points is to compact them before they were fragments. The store says up to which place all has ended, and where
nothing of a series was found among their iterations, a chunk of them has everything up to there. Elsewhere, and if
there are few of them, they become fragments, as a batch does. They count over what was found, and compaction does the
rest. So it does no harm if a copy was interrupted, others write meanwhile, or the owner had points before. For example:

    found     chunk a of loss/train, iterations 0 to 99
    put       loss/train 50 to 149 and accuracy/train 0 to 149, of many points each
    is kept   a fragment of loss/train, 50 to 149; a chunk of accuracy/train, 0 to 149
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Sequence
from functools import partial
from itertools import groupby

from apiserver.common.off_loop import off_loop
from apiserver.events.model import EventType, Owner, selection_of
from apiserver.events.queries import EVERYWHERE, GREATEST, Range, SeriesQuery
from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.blocks.blocks import BlockStore, Gone, NewBlock
from apiserver.stores.events.blocks.bounds import ColumnarBounds
from apiserver.stores.events.blocks.encoding import chunks_of, fragments_of
from apiserver.stores.events.blocks.loading import TRIES, Loaded, Loader, points_in, whole_of
from apiserver.stores.events.blocks.stretches import Stretch, stretches
from apiserver.stores.events.codec.names import Name
from apiserver.stores.events.codec.points import WholePoints, Workers, concat
from apiserver.stores.events.parts import in_parts

_Named = tuple[Name, Stretch]


async def whole_points(loader: Loader, series: SeriesQuery) -> AsyncIterator[list[WholePoints]]:
    """All points of the series, some at a time, as `CopyStore.whole_points` says."""
    done: tuple[Name, int] | None = None
    tries = 0
    while tries < TRIES:
        found = stretches(await loader.store.find(series))
        named = [(name, one) for name, some in found.items() for one in some]
        left = [(name, one) for name, one in named if done is None or (name, one.last) > done]
        try:
            parts = in_parts(left, lambda named: named[1].size, loader.bounds.points_at_a_time)
            async for part, loaded in loader.load_ahead(parts, lambda part: whole_of(one for _, one in part)):
                size = sum([one.size for _, one in part])
                yield await off_loop(size, partial(_points, part, loaded, done))
                done, tries = (part[-1][0], part[-1][1].last), 0
            return
        except Gone:  # what was compacted meanwhile is found again, without what was answered
            tries += 1
    raise EventStoreBusy("these events are compacted again and again", overloaded=False)


def _points(part: Sequence[_Named], loaded: Loaded, done: tuple[Name, int] | None) -> list[WholePoints]:
    """The points of stretches, behind those that were answered."""
    found = []
    for name, some in groupby(part, key=lambda named: named[0]):
        workers = Workers()
        range = Range(done[1] + 1, GREATEST) if done is not None and done[0] == name else EVERYWHERE
        points = concat([points_in(one, loaded, range, workers) for _, one in some])
        if len(points.iters):
            found.append(WholePoints(name, points, workers.names))
    return found


async def put_points(store: BlockStore, owner: Owner, curves: Sequence[WholePoints], bounds: ColumnarBounds) -> None:
    """Keep curves of the owner, as `CopyStore.put_points` says."""
    count = sum([len(curve.points.iters) for curve in curves])
    if count < bounds.copied_points:
        await store.put([block for curve in curves for block in fragments_of(owner, curve, bounds)])
        return
    up_to = await ended(store, owner, bounds)
    ends = {curve.series: Range(int(curve.points.iters[0]), int(curve.points.iters[-1])) for curve in curves}
    together = Range(min(range.least for range in ends.values()), max(range.greatest for range in ends.values()))
    there = stretches(await store.find(SeriesQuery(owner, EventType.SCALAR, selection_of(ends)), together))

    def made() -> list[NewBlock]:
        blocks = []
        for curve in curves:
            range = ends[curve.series]
            if any(stretch.meets(range) for stretch in there.get(curve.series, ())):
                blocks += fragments_of(owner, curve, bounds)
            else:
                blocks += chunks_of(owner, curve, (range.least, range.greatest), up_to, None, bounds)
        return blocks

    await store.put(await off_loop(count, made))


async def ended(store: BlockStore, owner: Owner, bounds: ColumnarBounds) -> int:
    """A place up to which all has ended, which no statement can do without: a store may have no write yet."""
    place = await store.ended(owner)
    if place < 0:
        holder = uuid.uuid4().hex
        await store.lease(owner, holder, bounds.lease)
        await store.lease(owner, holder, 0)
        place = await store.ended(owner)
    return place
