"""Compacts series: makes chunks of fragments, and removes the blocks that count nowhere then.

1. Ask for a place up to which every write has ended.
2. Find what there is. Of each series with many blocks that are not chunks alone in their stretch, read such stretches,
   and small chunks beside them.
3. Put chunks. They cover these stretches, and say that they have everything that was written up to that place.
4. When these writes have ended, remove the blocks that count nowhere.

A server may stop after each step, and several may do this at once: `precedence.py` says why nothing is lost or doubled.
A write that has not ended may be undone. So nothing is removed because of such a write. Points of it may come into a
chunk, and stay then: to its client, it was not acknowledged, and may be kept.

A small chunk is made anew with its neighbours if it has up to twice as many points as these. So a point is written anew
about as often as the number of points can be halved, and few small chunks are left.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from apiserver.events.model import Owner
from apiserver.events.queries import EVERYWHERE, SeriesQuery
from apiserver.off_loop import off_loop
from apiserver.stores.events.columnar import encoding
from apiserver.stores.events.columnar.blocks import Block, BlockStore, Found, Gone, Name, NewBlock, Version
from apiserver.stores.events.columnar.encoding import Workers
from apiserver.stores.events.columnar.loading import Loaded, Loader, points_in
from apiserver.stores.events.columnar.precedence import Document, superseded
from apiserver.stores.events.columnar.stretches import Stretch, stretches
from apiserver.stores.events.elasticsearch.parts import in_parts
from apiserver.stores.events.embedded.chunks import POINTS_AT_A_TIME
from apiserver.stores.events.embedded.points import concat

#: A series is compacted if it has so many blocks that are not chunks alone in their stretch.
FEWEST = 16
#: Seconds for which a server keeps others from doing the same work, unless it renews that.
LEASE = 60.0
#: Where the version of a chunk does not matter.
_NO_VERSION = Version(0, 0)


async def compact(store: BlockStore, loader: Loader, series: SeriesQuery, holder: str, fewest: int = FEWEST) -> None:
    """Compact those of the series that need it, unless another holder of a lease does."""
    owner = series.owner
    if not await store.lease(owner, holder, LEASE):
        return
    up_to = await store.ended(owner)
    found = await store.find(series)
    if found.deleted > up_to:
        return  # the deletion may still be undone
    runs = [run for name, some in stretches(found).items() for run in _runs(name, some, fewest)]
    put: list[NewBlock] = []
    for some in in_parts(runs, lambda run: run.size, POINTS_AT_A_TIME):
        try:
            made = await _chunks(loader, owner, some, up_to)
        except Gone:
            break  # another server compacted these series meanwhile
        await store.put(made)
        await store.lease(owner, holder, LEASE)
        put += made
    await store.remove(owner, _superseded(found, put, up_to))
    await store.lease(owner, holder, 0)


class _Run(NamedTuple):
    """Neighbouring stretches of a series."""

    series: Name
    stretches: Sequence[Stretch]
    is_settled: bool
    """Whether they are chunks alone, which count as they are."""
    size: int

    def joined(self, other: _Run) -> _Run:
        """This run and the next one."""
        both = [*self.stretches, *other.stretches]
        return _Run(self.series, both, self.is_settled and other.is_settled, self.size + other.size)

    def joins(self, other: _Run) -> bool:
        """Whether both should become the same chunks."""
        if self.is_settled == other.is_settled:
            return not self.is_settled and self.size + other.size <= POINTS_AT_A_TIME
        chunk, new = (self, other) if self.is_settled else (other, self)
        return chunk.size < encoding.SEALED and chunk.size <= 2 * new.size


def _runs(name: Name, some: Sequence[Stretch], fewest: int) -> list[_Run]:
    """What should become chunks of a series."""
    runs: list[_Run] = []
    for one in some:
        is_settled = one.alone is not None and one.alone.statement is not None
        run = _Run(name, [one], is_settled, one.size)
        while runs and runs[-1].joins(run):
            run = runs.pop().joined(run)
        runs.append(run)
    loose = [run for run in runs if not run.is_settled]
    return loose if sum([len(one.parts) for run in loose for one in run.stretches]) >= fewest else []


async def _chunks(loader: Loader, owner: Owner, runs: Sequence[_Run], up_to: int) -> list[NewBlock]:
    loaded = await loader.whole(one for run in runs for one in run.stretches)
    return await off_loop(
        sum([run.size for run in runs]), lambda: [one for run in runs for one in _chunks_of(owner, run, loaded, up_to)]
    )


def _chunks_of(owner: Owner, run: _Run, loaded: Loaded, up_to: int) -> list[NewBlock]:
    workers = Workers()
    points = concat([points_in(one, loaded, EVERYWHERE, workers) for one in run.stretches])
    ends = run.stretches[0].first, run.stretches[-1].last
    newest = max(part.block.newest for one in run.stretches for part in one.parts)
    return encoding.chunks_of(owner, run.series, ends, points, workers.names, up_to, newest)


def _superseded(found: Found, put: Sequence[NewBlock], up_to: int) -> list[Block]:
    """The blocks that count nowhere, if only writes that have ended are counted."""
    ended = {block.id: block for block in found.blocks if block.version.place <= up_to}
    new = (block.at(_NO_VERSION) for block in put)
    by_name: dict[Name, list[Document]] = {}
    for block in chain(ended.values(), new):
        by_name.setdefault(block.series, []).append(block.document)
    none_left = chain.from_iterable(superseded(some, found.deleted) for some in by_name.values())
    return [ended[document.id] for document in none_left if document.id in ended]
