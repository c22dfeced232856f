"""Scalars over a block store: writes fragments, reads points, stats and buckets of blocks.

The methods are those of `ScalarStore` (`protocols/scalars.py`) with the same names. A read asks the store once for what
there is of the series, and then for columns. If a block is gone by then, it was compacted, and the read begins again.
An event store inherits the reads.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from apiserver.common import answers
from apiserver.common.off_loop import off_loop
from apiserver.events.aggregates import Buckets, CurvesInBuckets, Neighbours
from apiserver.events.model import (
    EventBatch,
    EventType,
    Owner,
    ScalarPoints,
    ScalarPosition,
    ScalarStats,
    SeriesName,
    WorkerMeans,
    WorkerSpan,
)
from apiserver.events.queries import BucketQuery, CommonBuckets, CurvesQuery, Grid, PageQuery, SeriesQuery
from apiserver.stores.events.blocks import buckets as bucketing
from apiserver.stores.events.blocks import by_worker, curves, last_values, pages, statistics
from apiserver.stores.events.blocks.blocks import BlockStore, Refused
from apiserver.stores.events.blocks.bounds import BOUNDS, ColumnarBounds
from apiserver.stores.events.blocks.compaction import compact
from apiserver.stores.events.blocks.deletion import delete_known
from apiserver.stores.events.blocks.earliest import earliest
from apiserver.stores.events.blocks.encoding import fragments
from apiserver.stores.events.blocks.loading import Loader, begins_again
from apiserver.stores.events.blocks.makers import PointsMaker
from apiserver.stores.events.blocks.stretches import OfSeries
from apiserver.stores.events.blocks.thinning import thin
from apiserver.stores.events.blocks.whole_points import put_points, whole_points
from apiserver.stores.events.codec.names import Name
from apiserver.stores.events.codec.points import WholePoints

#: Bytes of chunks that are kept in memory.
CACHE = 32 * 2**20

Result = TypeVar("Result")


class ScalarReads:
    """The methods of `ScalarStore` that read; it says what each of them answers."""

    @property
    def _points(self) -> Loader:
        """Where the points are."""
        raise NotImplementedError

    @answers.counted
    @begins_again(lambda reads: reads._points)
    async def _read(
        self, queries: Sequence[SeriesQuery], work: Callable[[Loader, list[OfSeries]], Awaitable[Result]]
    ) -> Result:
        """What `work` makes of each query's series, which are found by one request."""
        return await work(self._points, await self._points.finder.series_of_each(queries))

    async def scalar_stats(self, series: SeriesQuery, *, spread: bool = False) -> list[ScalarStats]:
        (found,) = await self._stats([series], spread=spread)
        return found

    async def scalar_stats_of_each(self, queries: Sequence[SeriesQuery]) -> list[list[ScalarStats]]:
        return await self._stats(queries, spread=False)

    async def _stats(self, queries: Sequence[SeriesQuery], *, spread: bool) -> list[list[ScalarStats]]:
        owners = [series.owner for series in queries]
        return await self._read(
            queries, lambda loader, found: statistics.scalar_stats(loader, owners, found, spread=spread)
        )

    async def scalar_buckets(self, series: SeriesQuery, buckets: BucketQuery) -> list[Buckets]:
        (found,) = await self.scalar_buckets_of_each([series], buckets)
        return found

    async def scalar_buckets_of_each(self, queries: Sequence[SeriesQuery], buckets: BucketQuery) -> list[list[Buckets]]:
        return await self._read(queries, lambda loader, found: bucketing.buckets(loader, found, buckets))

    async def curve_ends(self, asked: CurvesQuery) -> tuple[int, int] | None:
        return await self._read_curves(asked, lambda loader, found: curves.ends(loader, found, asked.axis))

    async def curve_buckets(self, asked: CurvesQuery, buckets: CommonBuckets) -> CurvesInBuckets:
        return await self._read_curves(asked, lambda loader, found: curves.in_buckets(loader, found, asked, buckets))

    async def curve_neighbours(self, asked: CurvesQuery, buckets: CommonBuckets, *, before: bool) -> Neighbours:
        return await self._read_curves(
            asked, lambda loader, found: curves.neighbours(loader, found, asked, buckets, before=before)
        )

    async def scalar_points(self, series: SeriesQuery, page: PageQuery[ScalarPosition]) -> ScalarPoints:
        return await self._read_one(series, lambda loader, found: pages.page(loader, found, page))

    async def last_values(self, series: SeriesQuery, n: int) -> dict[Name, list[float]]:
        return await self._read_one(series, lambda loader, found: last_values.last_values(loader, found, n))

    async def earliest_points(self, series: SeriesQuery, limit: int, after: int | None = None) -> ScalarPoints:
        return await self._read_one(series, lambda loader, found: earliest(loader, found, limit, after))

    async def worker_spans(self, series: SeriesQuery) -> list[WorkerSpan]:
        return await self._read_one(series, by_worker.spans)

    async def worker_means(self, series: SeriesQuery, grid: Grid) -> list[WorkerMeans]:
        return await self._read_one(series, lambda loader, found: by_worker.means(loader, found, grid))

    async def _read_one(self, series: SeriesQuery, work: Callable[[Loader, OfSeries], Awaitable[Result]]) -> Result:
        return await self._read([series], lambda loader, found: work(loader, found[0]))

    async def _read_curves(
        self, asked: CurvesQuery, work: Callable[[Loader, list[OfSeries]], Awaitable[Result]]
    ) -> Result:
        return await self._read([asked.of(owner) for owner in asked.owners], work)

    def whole_points(self, series: SeriesQuery) -> AsyncIterator[list[WholePoints]]:
        return whole_points(self._points, series)


class ColumnarScalars(ScalarReads):
    """The scalars of all owners, as one server reads and writes them."""

    def __init__(self, store: BlockStore, *, cache: int = CACHE, bounds: ColumnarBounds = BOUNDS) -> None:
        self.loader = Loader(store, cache, bounds)

    @property
    def _points(self) -> Loader:
        return self.loader

    # --- writing -----------------------------------------------------------------------------------

    async def add(self, batch: EventBatch) -> None:
        """Keep the batch's points. Refused if the store does not take some of its series; it keeps all others.

        Each series of a bundle that is refused is put by itself, so that one costs no other.
        """
        scalars, received, bounds = batch.scalars, batch.received, self.loader.bounds
        made = await off_loop(len(scalars.iters), lambda: fragments(scalars, received, bounds))
        try:
            await self.loader.store.put(made)
        except Refused as refusal:
            if not any(block.members for block in refusal.blocks):
                raise
            refused = {(block.owner, name) for block in refusal.blocks for name in block.names}
            alone = await off_loop(
                len(scalars.iters), lambda: fragments(scalars, received, replace(bounds, bundle_series=1))
            )
            await self.loader.store.put([block for block in alone if (block.owner, block.series) in refused])

    async def put_points(self, owner: Owner, curves: Sequence[WholePoints]) -> None:
        await put_points(self.loader.store, owner, curves, self.loader.bounds)

    async def delete(self, owners: Sequence[Owner]) -> None:
        await self.loader.store.remove_before(await self.loader.store.delete(owners))

    async def delete_known(self, owner: Owner, known: int) -> int:
        """Delete the owner's points, or none if some came behind the place `known`; return how many there were."""
        return await delete_known(self.loader, owner, known)

    async def thin_scalars(
        self, series: SeriesQuery, points: int, checksums: Mapping[tuple[str, str], int] | None = None
    ) -> int:
        return await thin(self.loader, series, points, checksums)

    async def compact(self, owner: Owner, *, fewest: int | None = None) -> bool:
        """Make chunks of fragments, and remove what counts nowhere. Any server may do it at any time.

        Returns whether it was done: perhaps another server does it just now.
        """
        return await compact(PointsMaker(self.loader), SeriesQuery(owner, EventType.SCALAR), fewest)

    # --- what there is -----------------------------------------------------------------------------

    async def series(self, owner: Owner) -> list[SeriesName]:
        found = await self.loader.finder.series(SeriesQuery(owner, EventType.SCALAR))
        return [SeriesName(EventType.SCALAR, *name) for name in found]

    async def count(self, series: SeriesQuery) -> int:
        """How many points the series have, exactly. Each iteration of a series counts once."""
        return await self._read_one(series, statistics.count)
