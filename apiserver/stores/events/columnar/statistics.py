"""Stats of series, and exact numbers of points. Points are read only where no chunk tells their stats.

A chunk has the stats of its points as a column, a row of `embedded/stats.py`. Where it is alone, this row is that of
its stretch. For other stretches, rows are made of points. Then the rows of each series are joined to one:

    chunk a       iterations 0 to 99      stretch 0 to 99: the row of a
    chunk b       100 to 199              stretch 100 to 210: a row of the points of b and f
    fragment f    150 to 210
    fragment g    300                     stretch 300: a row of the points of g
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from apiserver.events.model import Owner, ScalarStats
from apiserver.events.queries import EVERYWHERE
from apiserver.off_loop import off_loop
from apiserver.stores.events.columnar.blocks import Block
from apiserver.stores.events.columnar.encoding import STATS, WHOLE, Workers, stats_of
from apiserver.stores.events.columnar.loading import Loaded, Loader, curve_in, points_in
from apiserver.stores.events.columnar.stretches import OfSeries, Stretch, size_of
from apiserver.stores.events.elasticsearch.parts import in_parts
from apiserver.stores.events.embedded import stats
from apiserver.stores.events.embedded.chunks import POINTS_AT_A_TIME
from apiserver.stores.events.embedded.points import concat
from apiserver.stores.events.embedded.stats import EMPTY, StatsArray

# --- stats -----------------------------------------------------------------------------------------


async def scalar_stats(
    loader: Loader, owners: Sequence[Owner], found: Sequence[OfSeries], *, spread: bool
) -> list[list[ScalarStats]]:
    """The stats of each owner's series, in their order."""
    series = [some for of_owner in found for some in of_owner.values()]
    parts = in_parts(chain.from_iterable(series), _unknown, POINTS_AT_A_TIME)
    of_stretches = [await _rows(loader, some) for some in parts]
    if not of_stretches:
        return [[] for _ in owners]
    rows = stats.fold_each(np.concatenate(of_stretches), np.array([len(some) for some in series]))
    ends = np.cumsum([len(of_owner) for of_owner in found])[:-1]
    return [
        stats.to_models(owner, [*of_owner], some, spread=spread)
        for owner, of_owner, some in zip(owners, found, np.split(rows, ends), strict=True)
    ]


async def _rows(loader: Loader, some: Sequence[Stretch]) -> StatsArray:
    """A row for each stretch."""
    loaded = await loader.load(chain.from_iterable(map(_wanted, some)))
    return await off_loop(len(some) + sum(map(_unknown, some)), lambda: _summed(some, loaded))


def _chunk(stretch: Stretch) -> Block | None:
    """The chunk that is alone in the stretch, if there is one."""
    block = stretch.alone
    return block if block is not None and block.statement is not None else None


def _unknown(stretch: Stretch) -> int:
    """The number of points that have to be read for its stats."""
    return stretch.size if _chunk(stretch) is None else 0


def _wanted(stretch: Stretch) -> Iterator[tuple[Block, Sequence[str]]]:
    columns = WHOLE if _chunk(stretch) is None else (STATS,)
    return ((part.block, columns) for part in stretch.parts)


def _summed(some: Sequence[Stretch], loaded: Loaded) -> StatsArray:
    rows = np.repeat(EMPTY, len(some))
    chunks = [_chunk(one) for one in some]
    rows[[chunk is not None for chunk in chunks]] = stats_of([loaded[one.id] for one in chunks if one is not None])
    workers = Workers()
    read = {n: points_in(some[n], loaded, EVERYWHERE, workers) for n, chunk in enumerate(chunks) if chunk is None}
    if read := {n: points for n, points in read.items() if len(points.iters)}:
        lengths = np.array([len(points.iters) for points in read.values()])
        points = concat([*read.values()])
        starts = np.cumsum(lengths) - lengths
        rows[[*read]] = stats.of_groups(points.iters, points.values, points.timestamps, starts)
    return rows


# --- numbers of points -----------------------------------------------------------------------------


async def count(loader: Loader, found: OfSeries) -> int:
    """The number of points of all series together."""
    alone: list[Stretch] = []
    overlapping: list[Stretch] = []
    for one in chain.from_iterable(found.values()):
        (overlapping if one.alone is None else alone).append(one)
    parts = in_parts(overlapping, lambda one: one.size, POINTS_AT_A_TIME)
    return size_of(alone) + sum([await _counted(loader, some) for some in parts])


async def _counted(loader: Loader, some: Sequence[Stretch]) -> int:
    loaded = await loader.curves(some)
    return await off_loop(size_of(some), lambda: sum([len(curve_in(one, loaded, EVERYWHERE).iters) for one in some]))
