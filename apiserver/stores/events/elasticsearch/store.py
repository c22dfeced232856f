"""The EventStore on Elasticsearch. Each kind of read has a module of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from apiserver.answers import reading
from apiserver.events.aggregates import Buckets, CurvesInBuckets, Neighbours
from apiserver.events.changes import Changes, ChangesQuery
from apiserver.events.log_filter import LineFilter, LogHits
from apiserver.events.model import (
    EventBatch,
    EventType,
    LogLine,
    LogPosition,
    LogSize,
    Owner,
    Sample,
    SamplePosition,
    SampleSeries,
    ScalarPoints,
    ScalarPosition,
    ScalarStats,
    Selection,
    SeriesName,
    WorkerMeans,
    WorkerSpan,
)
from apiserver.events.queries import (
    EVERYWHERE,
    BucketQuery,
    CommonBuckets,
    CurvesQuery,
    Grid,
    PageQuery,
    Range,
    SeriesQuery,
)
from apiserver.off_loop import together
from apiserver.stores.events.base import EventStoreError, hits_in_page
from apiserver.stores.events.elasticsearch import buckets as bucketing
from apiserver.stores.events.elasticsearch import (
    bulk,
    by_worker,
    curves,
    log_numbers,
    log_sizes,
    logs,
    names,
    scalars,
    stats,
)
from apiserver.stores.events.elasticsearch.address import ElasticsearchAddress
from apiserver.stores.events.elasticsearch.changes import POLL, Deletions, changes_since
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.marks import ABANDONED, Marks
from apiserver.stores.events.elasticsearch.migrations import check_schema
from apiserver.stores.events.elasticsearch.queries import of, of_owners
from apiserver.stores.events.elasticsearch.samples import Samples
from apiserver.stores.events.elasticsearch.series import SeriesIndex
from apiserver.stores.events.elasticsearch.writing import Items, repeats

#: Pages of a log that are searched as one, because the first request of a page takes longest (see `paging.texts`).
_PAGES_SEARCHED = 10


@dataclass(slots=True, frozen=True)
class _Parts:
    """The parts of an open store."""

    cluster: Cluster
    series: SeriesIndex
    items: Items
    marks: Marks
    deletions: Deletions


class ElasticsearchEventStore:
    """Events in the indices of one prefix, which any number of servers may use at once.

    A server sees its own acknowledged events at once, and those of other servers within a second, or with `strict` at
    once. With `migrate`, `open` brings an older schema up to date. Marks of other servers count after `abandoned`
    seconds.
    """

    def __init__(
        self,
        address: ElasticsearchAddress,
        *,
        strict: bool = False,
        migrate: bool = False,
        abandoned: float = ABANDONED,
    ) -> None:
        self._address = address
        self._strict = strict
        self._migrate = migrate
        self._abandoned = abandoned
        self._parts: _Parts | None = None

    # --- life --------------------------------------------------------------------------------------

    @property
    def reads_in_parallel(self) -> bool:
        return True

    async def open(self) -> None:
        """Connect; raise EventStoreError if no node answers, or the schema is not that of this version."""
        if self._parts is not None:
            return
        cluster = Cluster(self._address, strict=self._strict)
        try:
            await cluster.check_version()
            await check_schema(cluster.client, cluster.prefix, migrate=self._migrate)
        except BaseException:
            await cluster.close()
            raise
        marks = Marks(cluster, abandoned=self._abandoned)
        deletions = Deletions(cluster)
        await cluster.ensure([marks.index, deletions.index])
        self._parts = _Parts(cluster, SeriesIndex(cluster), Items(cluster.prefix), marks, deletions)

    async def close(self) -> None:
        """Close the connections."""
        parts, self._parts = self._parts, None
        if parts is not None:
            await parts.cluster.close()

    async def check(self) -> None:
        """Raise EventStoreError unless a node answers."""
        await self._cluster.check()

    # --- writing -----------------------------------------------------------------------------------

    async def add(self, batch: EventBatch) -> Mapping[str, int]:
        """Send the batch. If that fails, a part of it may be kept, and adding it again completes it."""
        if not batch:
            return {}
        cluster, items, marks = self._opened.cluster, self._opened.items, self._opened.marks
        indices, owners = _touched(batch, cluster.prefix)
        await cluster.ensure(indices)
        now = time.time()
        unmarked = marks.items(owners, now)
        try:
            main = next(iter(indices))
            sent = chain(unmarked.values(), items.of(batch, main))
            refused = await bulk.send(cluster, main, sent, in_order=repeats(batch))
        finally:
            cluster.wrote(indices)
        marks.are_set(unmarked, now)
        return refused

    async def delete(self, owners: Sequence[Owner], types: Sequence[EventType] | None = None) -> int:
        """Delete the owners' events, company by company."""
        deleted = 0
        by_company: dict[str, list[Owner]] = {}
        for owner in owners:
            by_company.setdefault(owner.company, []).append(owner)
        for company, of_company in by_company.items():
            indices = [
                names.index(self._cluster.prefix, type, company) for type in set(EventType if types is None else types)
            ]
            async with self._opened.deletions.noted(of_company):
                deleted += await self._cluster.delete(indices, of_owners(of_company))
        return deleted

    async def delete_logs(self, series: SeriesQuery, before: int | None, exclude: Selection = ()) -> int:
        """Delete log lines by age and series."""
        async with self._opened.deletions.noted([series.owner]):
            return await logs.delete_logs(self._cluster, series, before, exclude)

    # --- reading -----------------------------------------------------------------------------------

    async def owners(self) -> AsyncIterator[Owner]:
        """Every owner with events, company by company."""
        cluster = self._cluster
        by_company: dict[str, list[str]] = {}
        for index in await cluster.indices(names.indices(cluster.prefix)):
            by_company.setdefault(names.company_of(cluster.prefix, index), []).append(index)
        for company, indices in by_company.items():
            found: set[str] = set()
            for index in indices:
                async for bucket in cluster.composite(index, {"match_all": {}}, ["owner"], routing=None):
                    found.add(bucket["key"]["owner"])
            for key in found:
                yield names.owner_of(company, key)

    async def series(self, owner: Owner, types: Sequence[EventType] | None = None) -> list[SeriesName]:
        """Every series of the owner, sorted."""
        asked = set(EventType if types is None else types)
        found = await asyncio.gather(*(self._series.find(SeriesQuery(owner, type)) for type in asked))
        return sorted(
            SeriesName(type, one.metric, one.variant) for type, its in zip(asked, found, strict=True) for one in its
        )

    async def scalar_stats(self, series: SeriesQuery, *, spread: bool = False) -> list[ScalarStats]:
        """Stats of each series."""
        return await stats.stats(self._cluster, self._series, series, spread=spread)

    async def scalar_stats_of_each(self, queries: Sequence[SeriesQuery]) -> list[list[ScalarStats]]:
        """Stats of each query's series."""
        return list(await asyncio.gather(*map(self.scalar_stats, queries)))

    async def scalar_buckets(self, series: SeriesQuery, buckets: BucketQuery) -> list[Buckets]:
        """Buckets of each series that has a curve."""
        with reading():
            return await bucketing.buckets(self._cluster, self._series, bucketing.Request(series, buckets))

    async def scalar_buckets_of_each(self, queries: Sequence[SeriesQuery], buckets: BucketQuery) -> list[list[Buckets]]:
        """Buckets of each query's series."""
        return await together(*(self.scalar_buckets(one, buckets) for one in queries))

    async def curve_ends(self, asked: CurvesQuery) -> tuple[int, int] | None:
        """The ends of all curves together."""
        return await curves.ends(self._cluster, self._series, asked)

    async def curve_buckets(self, asked: CurvesQuery, buckets: CommonBuckets) -> CurvesInBuckets:
        """All curves in common buckets, by a read for each owner."""
        return await curves.in_buckets(self._cluster, self._series, asked, buckets)

    async def curve_neighbours(self, asked: CurvesQuery, buckets: CommonBuckets, *, before: bool) -> Neighbours:
        """The nearest buckets outside, by reads for each owner."""
        return await curves.neighbours(self._cluster, self._series, asked, buckets, before=before)

    async def scalar_points(self, series: SeriesQuery, page: PageQuery[ScalarPosition]) -> ScalarPoints:
        """A page of points by iteration."""
        return await scalars.points(self._cluster, series, page)

    async def earliest_points(self, series: SeriesQuery, limit: int, after: int | None = None) -> ScalarPoints:
        """A page of points by time."""
        return await scalars.earliest_points(self._cluster, series, limit, after)

    async def last_values(self, series: SeriesQuery, n: int) -> dict[tuple[str, str], list[float]]:
        """The last values of each series."""
        return await scalars.last_values(self._cluster, self._series, series, n)

    async def worker_spans(self, series: SeriesQuery) -> list[WorkerSpan]:
        """What each worker reported of each series."""
        return await by_worker.spans(self._cluster, series)

    async def worker_means(self, series: SeriesQuery, grid: Grid) -> list[WorkerMeans]:
        """Means by worker and step."""
        return await by_worker.means(self._cluster, self._series, series, grid)

    async def log_lines(
        self, series: SeriesQuery, page: PageQuery[LogPosition], workers: Collection[str] | None = None
    ) -> list[LogLine]:
        """A page of log lines."""
        return await logs.log_lines(self._cluster, series, page, workers)

    async def log_count(self, series: SeriesQuery) -> int:
        """How many lines there are."""
        return await self._count(series)

    async def log_page(self, series: SeriesQuery, page: PageQuery[LogPosition]) -> tuple[list[LogLine], int]:
        """A page of log lines, and how many there are."""
        return await self.log_lines(series, page), await self.log_count(series)

    async def log_numbered(self, owner: Owner, numbers: Sequence[int]) -> tuple[list[LogLine], int]:
        """Lines by their numbers, and how many there are."""
        return await log_numbers.numbered(self._cluster, owner, numbers)

    async def log_number(self, owner: Owner, position: LogPosition) -> int:
        """How many lines lie before a position."""
        return await log_numbers.number(self._cluster, owner, position)

    async def log_hits(self, owner: Owner, wanted: LineFilter, after: LogPosition | None) -> LogHits:
        """Search the next part of a log."""
        return await hits_in_page(self, owner, wanted, after, _PAGES_SEARCHED)

    async def log_sizes(self, owner: Owner) -> dict[str, LogSize]:
        """How much each worker logged."""
        return await log_sizes.sizes(self._cluster, owner)

    async def sample_series(self, series: SeriesQuery) -> list[SampleSeries]:
        """What is known of each series of samples."""
        return await self._samples(series).series()

    async def samples(
        self, series: SeriesQuery, page: PageQuery[SamplePosition], iterations: Range = EVERYWHERE
    ) -> list[Sample]:
        """A page of samples."""
        return await self._samples(series).page(page, iterations)

    async def latest_samples(
        self, series: SeriesQuery, iterations: int, after: SamplePosition | None = None
    ) -> list[Sample]:
        """A page of the samples of each series' newest iterations."""
        return await self._samples(series).latest(iterations, after)

    async def sample_iterations(self, series: SeriesQuery, page: PageQuery[int]) -> list[int]:
        """Distinct iterations in walk order."""
        return await self._samples(series).iterations(page)

    async def events_count(self, owner: Owner, types: Sequence[EventType] | None = None) -> int:
        """How many events the owner has."""
        asked = set(EventType if types is None else types)
        return sum(await asyncio.gather(*(self._count(SeriesQuery(owner, type)) for type in asked)))

    async def _count(self, series: SeriesQuery) -> int:
        return await self._cluster.count(
            names.index_of(self._cluster.prefix, series), of(series), routing=names.owner_key(series.owner)
        )

    # --- changes -----------------------------------------------------------------------------------

    def gauges(self) -> Mapping[str, float]:
        return {}

    async def changes(self, query: ChangesQuery) -> Changes:
        """What changed since a cursor."""
        return await changes_since(self._cluster, self._opened.deletions, query)

    async def watch(self, query: ChangesQuery) -> AsyncGenerator[Changes, None]:
        """The changes: somebody has to ask again and again."""
        found = await self.changes(query)
        yield found
        while True:
            await asyncio.sleep(POLL)
            found = await self.changes(replace(query, since=found.cursor))
            if found.owners:
                yield found

    # --- recovery ----------------------------------------------------------------------------------

    def owners_to_restate(self) -> AsyncIterator[Owner]:
        """Owners whose marks expired: their servers died, or cannot write documents."""
        return self._opened.marks.owners()

    async def restated(self, owners: Collection[Owner]) -> None:
        """Delete the owners' marks."""
        await self._opened.marks.take_away(owners)

    # --- parts -------------------------------------------------------------------------------------

    @property
    def _opened(self) -> _Parts:
        if self._parts is None:
            raise EventStoreError("the event store is not open")
        return self._parts

    @property
    def _cluster(self) -> Cluster:
        return self._opened.cluster

    @property
    def _series(self) -> SeriesIndex:
        return self._opened.series

    def _samples(self, series: SeriesQuery) -> Samples:
        return Samples(self._cluster, self._series, series)


def _touched(batch: EventBatch, prefix: str) -> tuple[set[str], list[Owner]]:
    """The indices and the owners of a batch's events."""
    held = [(EventType.SCALAR, owner) for owner in batch.scalars.owners]
    held += [(EventType.LOG, logs.owner) for logs in batch.logs]
    held += [(sample.type, sample.owner) for sample in batch.samples]
    owners = list(dict.fromkeys(owner for _, owner in held))
    return {
        names.index(prefix, type, company) for type, company in {(type, owner.company) for type, owner in held}
    }, owners
