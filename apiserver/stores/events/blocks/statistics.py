"""Stats of series, and exact numbers of points. Points are read only where no chunk tells their stats.

A chunk has the stats of its points as a column, a row of `codec/stats.py`. Where it is alone, this row is that of
its stretch. For other stretches, rows are made of points. Then the rows of each series are joined to one:

    chunk a       iterations 0 to 99      stretch 0 to 99: the row of a
    chunk b       100 to 199              stretch 100 to 210: a row of the points of b and f
    fragment f    150 to 210
    fragment g    300                     stretch 300: a row of the points of g
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from apiserver.common.off_loop import off_loop
from apiserver.events.model import Owner, ScalarStats
from apiserver.stores.events.blocks.encoding import STATS, WHOLE, curves_of, stats_of, timed_curves_of
from apiserver.stores.events.blocks.loading import Loader, in_all
from apiserver.stores.events.blocks.stretches import OfSeries, Stretch, size_of
from apiserver.stores.events.codec import stats
from apiserver.stores.events.codec.stats import EMPTY, StatsArray
from apiserver.stores.events.parts import in_parts

# --- stats -----------------------------------------------------------------------------------------


async def scalar_stats(
    loader: Loader, owners: Sequence[Owner], found: Sequence[OfSeries], *, spread: bool
) -> list[list[ScalarStats]]:
    """The stats of each owner's series, in their order."""
    series = [some for of_owner in found for some in of_owner.values()]
    parts = in_parts(
        chain.from_iterable(series), lambda one: one.size if one.chunk is None else 0, loader.bounds.points_at_a_time
    )
    of_stretches = [await _rows(loader, some) for some in parts]
    if not of_stretches:
        return [[] for _ in owners]
    rows = stats.fold_each(np.concatenate(of_stretches), np.array([len(some) for some in series]))
    return stats.models_of_each(owners, [[*of_owner] for of_owner in found], rows, spread=spread)


async def _rows(loader: Loader, some: Sequence[Stretch]) -> StatsArray:
    """A row for each stretch."""
    chunks = [one.chunk for one in some]
    known = [(n, chunk) for n, chunk in enumerate(chunks) if chunk is not None]
    unknown = [(n, some[n]) for n, chunk in enumerate(chunks) if chunk is None]
    stored = [(chunk, (STATS,)) for _, chunk in known]
    loaded = await loader.load([*stored, *((part.block, WHOLE) for _, one in unknown for part in one.parts)])

    def rows() -> StatsArray:
        made = np.repeat(EMPTY, len(some))
        if known:
            made[[n for n, _ in known]] = stats_of([loaded[chunk.id] for _, chunk in known])
        if unknown:
            numbers, points, starts = in_all(unknown, loaded, timed_curves_of)
            if len(numbers):
                made[numbers] = stats.of_groups(points.iters, points.values, points.timestamps, starts)
        return made

    return await off_loop(len(known) + sum([one.size for _, one in unknown]), rows)


# --- numbers of points -----------------------------------------------------------------------------


async def count(loader: Loader, found: OfSeries) -> int:
    """The number of points of all series together."""
    alone: list[Stretch] = []
    overlapping: list[Stretch] = []
    for one in chain.from_iterable(found.values()):
        (overlapping if one.alone is None else alone).append(one)
    parts = in_parts(overlapping, lambda one: one.size, loader.bounds.points_at_a_time)
    return size_of(alone) + sum([await _counted(loader, some) for some in parts])


async def _counted(loader: Loader, some: Sequence[Stretch]) -> int:
    loaded = await loader.curves(some)
    _, curve, _ = await off_loop(size_of(some), lambda: in_all(enumerate(some), loaded, curves_of))
    return len(curve.iters)
