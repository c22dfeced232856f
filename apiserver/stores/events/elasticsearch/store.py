"""The EventStore on Elasticsearch: this is the face alone, each read is in a module of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from apiserver.events.model import (
    BucketAxis,
    Buckets,
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
from apiserver.stores.addresses import ElasticsearchAddress
from apiserver.stores.events.base import CountedBuckets, EventStoreError, Width
from apiserver.stores.events.elasticsearch import buckets, bulk, by_worker, log_sizes, logs, names, scalars, stats
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.marks import ABANDONED, Marks
from apiserver.stores.events.elasticsearch.migrations import check_schema
from apiserver.stores.events.elasticsearch.queries import of_owner, of_owners
from apiserver.stores.events.elasticsearch.samples import Samples
from apiserver.stores.events.elasticsearch.series import SeriesIndex
from apiserver.stores.events.elasticsearch.writing import Items, repeats


@dataclass(slots=True, frozen=True)
class _Parts:
    """What an open store consists of."""

    cluster: Cluster
    series: SeriesIndex
    items: Items
    marks: Marks


class ElasticsearchEventStore:
    """Events in the indices of one prefix, which any number of servers may use at once.

    A server sees what it acknowledged at once, and what others did within a second; with `strict` that, too. `migrate`:
    bring an older schema up to date when opening. Marks of other servers count after `abandoned` seconds.
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
        """Connect; raise EventStoreError when no node answers, or the schema is not the one that is known."""
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
        await cluster.ensure([marks.index])
        self._parts = _Parts(cluster, SeriesIndex(cluster), Items(cluster.prefix), marks)

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
        """Send the batch; when that fails, what was kept of it stays, and adding it again completes it."""
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
            deleted += await self._cluster.delete(indices, of_owners(of_company))
        return deleted

    async def delete_logs(self, owner: Owner, before: int | None, exclude: Selection, include: Selection) -> int:
        """Delete log lines by age and series."""
        return await logs.delete_logs(self._cluster, owner, before, exclude, include)

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
        found = await asyncio.gather(*(self._series.find(owner, type) for type in asked))
        return sorted(
            SeriesName(type, one.metric, one.variant) for type, its in zip(asked, found, strict=True) for one in its
        )

    async def scalar_stats(self, owners: Sequence[Owner], selection: Selection = ()) -> list[ScalarStats]:
        """Stats of each selected series of each owner."""
        asked = sorted(set(owners))
        found = await asyncio.gather(*(stats.stats(self._cluster, self._series, one, selection) for one in asked))
        return [one for of_owner in found for one in of_owner]

    async def scalar_buckets(
        self,
        owner: Owner,
        axis: BucketAxis,
        width: Width,
        selection: Selection = (),
        *,
        start: int | None = None,
        stop: int | None = None,
        envelope: bool = False,
        ends: bool = True,
        counted: CountedBuckets | None = None,
    ) -> list[Buckets]:
        """Buckets of each selected series that has a curve."""
        request = buckets.Request(owner, axis, start, stop, envelope, envelope and ends)
        return await buckets.buckets(self._cluster, self._series, request, width, selection, counted)

    async def scalar_points(
        self,
        owner: Owner,
        selection: Selection = (),
        *,
        after: ScalarPosition | None = None,
        descending: bool = False,
        limit: int,
        whole_iterations: bool = False,
    ) -> ScalarPoints:
        """A page of points by iteration."""
        return await scalars.points(
            self._cluster,
            owner,
            selection,
            after,
            descending=descending,
            limit=limit,
            whole_iterations=whole_iterations,
        )

    async def earliest_points(
        self, owner: Owner, selection: Selection = (), *, after: int | None = None, limit: int
    ) -> ScalarPoints:
        """A page of points by time."""
        return await scalars.earliest_points(self._cluster, owner, selection, after, limit)

    async def last_values(self, owner: Owner, selection: Selection, n: int) -> dict[tuple[str, str], list[float]]:
        """The last values of each selected series."""
        return await scalars.last_values(self._cluster, self._series, owner, selection, n)

    async def worker_spans(self, owner: Owner, selection: Selection = ()) -> list[WorkerSpan]:
        """What each worker reported of each selected series."""
        return await by_worker.spans(self._cluster, owner, selection)

    async def worker_means(
        self, owner: Owner, selection: Selection = (), *, start: int, stop: int, step: int
    ) -> list[WorkerMeans]:
        """Means by worker and step."""
        steps = by_worker.Steps(start, stop, step)
        return await by_worker.means(self._cluster, self._series, owner, selection, steps)

    async def log_lines(
        self,
        owner: Owner,
        selection: Selection = (),
        *,
        after: LogPosition | None = None,
        descending: bool = False,
        limit: int,
        whole_timestamps: bool = False,
        workers: Collection[str] | None = None,
    ) -> list[LogLine]:
        """A page of log lines."""
        return await logs.log_lines(
            self._cluster,
            owner,
            selection,
            after,
            descending=descending,
            limit=limit,
            whole_timestamps=whole_timestamps,
            workers=workers,
        )

    async def log_count(self, owner: Owner, selection: Selection = ()) -> int:
        """How many lines there are."""
        index = names.index(self._cluster.prefix, EventType.LOG, owner.company)
        return await self._cluster.count(index, of_owner(owner, selection), routing=names.owner_key(owner))

    async def log_sizes(self, owner: Owner) -> dict[str, LogSize]:
        """How much each worker logged."""
        return await log_sizes.sizes(self._cluster, owner)

    async def sample_series(self, owner: Owner, type: EventType, selection: Selection = ()) -> list[SampleSeries]:
        """The selected series of a type."""
        return await self._samples(owner, type, selection).series()

    async def samples(
        self,
        owner: Owner,
        type: EventType,
        selection: Selection = (),
        *,
        after: SamplePosition | None = None,
        descending: bool = False,
        limit: int,
        min_iter: int | None = None,
        max_iter: int | None = None,
    ) -> list[Sample]:
        """A page of samples."""
        return await self._samples(owner, type, selection).page(
            after, descending=descending, limit=limit, min_iter=min_iter, max_iter=max_iter
        )

    async def latest_samples(
        self,
        owner: Owner,
        type: EventType,
        selection: Selection = (),
        *,
        iterations: int,
        after: SamplePosition | None = None,
    ) -> list[Sample]:
        """A page of the samples of each series' newest iterations."""
        return await self._samples(owner, type, selection).latest(iterations, after)

    async def sample_iterations(
        self,
        owner: Owner,
        type: EventType,
        selection: Selection = (),
        *,
        beyond: int | None = None,
        descending: bool = True,
        limit: int,
    ) -> list[int]:
        """Distinct iterations in walk order."""
        return await self._samples(owner, type, selection).iterations(beyond, descending=descending, limit=limit)

    async def events_count(self, owner: Owner, types: Sequence[EventType] | None = None) -> int:
        """How many events the owner has."""
        asked = set(EventType if types is None else types)
        indices = [names.index(self._cluster.prefix, type, owner.company) for type in asked]
        query, routing = of_owner(owner), names.owner_key(owner)
        return sum(await asyncio.gather(*(self._cluster.count(index, query, routing=routing) for index in indices)))

    # --- recovery ----------------------------------------------------------------------------------

    def owners_to_restate(self) -> AsyncIterator[Owner]:
        """Owners whose marks nobody renewed for long: of servers that died, or cannot write documents."""
        return self._opened.marks.owners()

    async def restated(self, owners: Collection[Owner]) -> None:
        """Take the owners' marks away."""
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

    def _samples(self, owner: Owner, type: EventType, selection: Selection) -> Samples:
        return Samples(self._cluster, self._series, owner, type, selection)


def _touched(batch: EventBatch, prefix: str) -> tuple[set[str], list[Owner]]:
    """The indices and the owners of what a batch holds."""
    held = [(EventType.SCALAR, owner) for owner in batch.scalars.owners]
    held += [(EventType.LOG, logs.owner) for logs in batch.logs]
    held += [(sample.type, sample.owner) for sample in batch.samples]
    owners = list(dict.fromkeys(owner for _, owner in held))
    return {
        names.index(prefix, type, company) for type, company in {(type, owner.company) for type, owner in held}
    }, owners
