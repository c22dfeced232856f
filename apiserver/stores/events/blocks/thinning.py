"""Thins series: makes chunks of those points of whole series that stay, as compaction makes chunks of all points.

1. Take the lease of the owner, which keeps compaction away. Ask for a place up to which every write has ended, and find
   what was written up to there. The place lies behind all chunks of the series.
2. Of each series with too many points, read all of them, and put chunks with those that stay. They cover all iterations
   of the series, and say that they have everything up to that place. So they count in place of all that was found.
3. When these writes have ended, remove the blocks that count nowhere.

**No point is lost that stays, and none is there twice.** The chunks count where nothing says more, as `precedence.py`
explains. What comes meanwhile has a later place, and counts over them. Who compacts these blocks meanwhile, because the
lease has run out, makes a chunk of what is in the store: of all points, or of those that stay.

**Some points may stay that were to go**: if a server stops before all chunks of a series are put, or if a chunk of such
a compaction goes further. Then the series still has too many points, and is thinned the next time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from apiserver.common.off_loop import off_loop
from apiserver.events.model import BucketAxis, ScalarStats
from apiserver.events.queries import EVERYWHERE, SeriesQuery
from apiserver.stores.events.blocks.blocks import NO_VERSION, Block, NewBlock
from apiserver.stores.events.blocks.compaction import found_up_to, superseded_blocks
from apiserver.stores.events.blocks.curves import ends
from apiserver.stores.events.blocks.encoding import chunks_of
from apiserver.stores.events.blocks.leasing import leased
from apiserver.stores.events.blocks.loading import Loaded, Loader, begins_again, points_in
from apiserver.stores.events.blocks.statistics import scalar_stats
from apiserver.stores.events.blocks.stretches import Numbered, OfSeries, numbered, stretches
from apiserver.stores.events.codec.names import Name
from apiserver.stores.events.codec.points import WholePoints, Workers
from apiserver.stores.events.codec.thinning import Thinning, known_ends
from apiserver.stores.events.parts import in_parts
from apiserver.stores.events.thinned import Thinned


async def thin(loader: Loader, series: SeriesQuery, points: int, checksums: Mapping[Name, int] | None) -> int:
    """Thin series as `ScalarStore.thin_scalars` says; return how many points are gone."""
    async with leased(loader.store, series.owner, loader.bounds) as holder:
        thinner = _Thinner(loader, series, points, checksums, holder)
        await thinner.thin()
        return thinner.gone


class _Thinner:
    """Thins series with more points to `points`, if they have these checksums."""

    def __init__(
        self, loader: Loader, wanted: SeriesQuery, points: int, checksums: Mapping[Name, int] | None, holder: str
    ) -> None:
        self._loader = loader
        self._bounds = loader.bounds
        self._wanted = wanted
        self._owner = wanted.owner
        self._points = points
        self._checksums = checksums
        self._holder = holder
        self._series: OfSeries = {}
        self._up_to = 0
        self.gone = 0
        """How many points are gone so far."""

    @begins_again(lambda thinner: thinner._loader)
    async def thin(self) -> None:
        """Thin all of them. If a block is gone, another server has compacted these, as the lease had run out."""
        store = self._loader.store
        found, self._up_to = await found_up_to(store, self._wanted)
        self._series = stretches(found)
        (stats,) = await scalar_stats(self._loader, [self._owner], [self._series], spread=True)
        long = [one for one in stats if one.count > self._points]
        if self._checksums is not None:
            long = [one for one in long if (one.metric, one.variant) in self._checksums]
        put: list[Block] = []
        for some in in_parts(long, lambda one: one.count, self._bounds.points_at_a_time):
            made, gone = await self._made(some)
            await store.put(made)
            await store.lease(self._owner, self._holder, self._bounds.lease)
            put += [block.at(NO_VERSION) for block in made]
            self.gone += gone
        await store.remove(self._owner, superseded_blocks(found, put, self._up_to))

    async def _made(self, some: Sequence[ScalarStats]) -> tuple[list[NewBlock], int]:
        """Chunks with the points that stay of those of the series that have the checksums, and how many points go."""
        names = [(one.metric, one.variant) for one in some]
        series = [Thinned(await self._thinning(one)) for one in some]
        workers = Workers()
        for part in in_parts(numbered(self._series[name] for name in names), _size, self._bounds.points_at_a_time):
            loaded = await self._loader.whole(stretch for _, stretch in part)

            def read_part(part: Sequence[Numbered] = part, loaded: Loaded = loaded) -> None:
                for number, stretch in part:
                    whole = points_in(stretch, loaded, EVERYWHERE, workers)
                    series[number].read(WholePoints(names[number], whole, workers.names))

            await off_loop(sum(map(_size, part)), read_part)

        def made() -> tuple[list[NewBlock], int]:
            for one in series:
                one.end()
            known = self._checksums
            same = [one for one in series if known is None or known.get(one.kept.series) == one.checksum]
            return [block for one in same for block in self._chunks(one.kept)], sum([one.gone for one in same])

        return await off_loop(sum([one.count for one in some]), made)

    async def _thinning(self, stats: ScalarStats) -> Thinning:
        found = known_ends(stats)
        if found is None:
            name = stats.metric, stats.variant
            found = await ends(self._loader, [{name: self._series[name]}], BucketAxis.ITER)
        assert found is not None  # only a series that is a single value has no curve
        return Thinning.of(stats, found, self._points)

    def _chunks(self, kept: WholePoints) -> list[NewBlock]:
        some = self._series[kept.series]
        newest = max(part.block.newest for stretch in some for part in stretch.parts)
        return chunks_of(self._owner, kept, (some[0].first, some[-1].last), self._up_to, newest, self._bounds)


def _size(one: Numbered) -> int:
    return one.stretch.size
