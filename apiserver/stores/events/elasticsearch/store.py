"""The EventStore on Elasticsearch: blocks of scalars and of log lines, and a document for each other event.

`stores/events/blocks/` has the engine of blocks. Samples, marks, deletions of samples, and changes are here.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import ClassVar, TypeVar

from apiserver.common.off_loop import together
from apiserver.events.changes import Changes, ChangesQuery, Cursor
from apiserver.events.model import (
    SAMPLE_TYPES,
    EventBatch,
    EventType,
    Owner,
    Sample,
    SamplePosition,
    SampleSeries,
    Selection,
    SeriesName,
)
from apiserver.events.queries import EVERYWHERE, PageQuery, Range, SeriesQuery
from apiserver.stores.events.base import EventStoreError
from apiserver.stores.events.blocks.blocks import Refused
from apiserver.stores.events.blocks.compactor import Compactor, Compacts
from apiserver.stores.events.blocks.loading import Loader
from apiserver.stores.events.blocks.log_reading import LogLoader
from apiserver.stores.events.blocks.logs import ColumnarLogs, LogReads
from apiserver.stores.events.blocks.scalars import ColumnarScalars, ScalarReads
from apiserver.stores.events.codec.lines import Lines
from apiserver.stores.events.codec.points import WholePoints
from apiserver.stores.events.elasticsearch import bulk, names
from apiserver.stores.events.elasticsearch.address import ElasticsearchAddress
from apiserver.stores.events.elasticsearch.blocks import BLOCK_TYPES, ElasticsearchBlocks
from apiserver.stores.events.elasticsearch.bounds import BOUNDS, ElasticsearchBounds
from apiserver.stores.events.elasticsearch.changes import POLL, Deletions, changes_since, place_at
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.marks import ABANDONED, Marks
from apiserver.stores.events.elasticsearch.migrations import check_schema
from apiserver.stores.events.elasticsearch.queries import between, inside, of, of_owners
from apiserver.stores.events.elasticsearch.samples import Samples
from apiserver.stores.events.elasticsearch.usage import usage_in_time
from apiserver.stores.events.elasticsearch.writing import index_of, items, repeats
from apiserver.stores.events.parts import in_parts
from apiserver.stores.events.usage import Usage

Result = TypeVar("Result")

#: Owners whose events are counted at once before they are deleted.
_COUNTED_AT_ONCE = 16


@dataclass(slots=True, frozen=True)
class _Parts:
    """The parts of an open store."""

    cluster: Cluster
    scalars: ColumnarScalars
    logs: ColumnarLogs
    compactor: Compactor
    marks: Marks
    deletions: Deletions


class ElasticsearchEventStore(ScalarReads, LogReads):
    """Events in the indices of one prefix, which any number of servers may use at once.

    A server sees its own acknowledged events at once, and those of other servers within a second, or with `strict` at
    once. With `migrate`, `open` brings an older schema up to date. Marks of other servers count after `abandoned`
    seconds.
    """

    compacts: ClassVar[bool] = True
    """Whether it compacts what is there, as long as it is open."""

    def __init__(
        self,
        address: ElasticsearchAddress,
        *,
        strict: bool = False,
        migrate: bool = False,
        abandoned: float = ABANDONED,
        bounds: ElasticsearchBounds = BOUNDS,
    ) -> None:
        self.bounds = bounds
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
        cluster = self._connect()
        try:
            await cluster.check_version()
            await check_schema(cluster.client, cluster.prefix, migrate=self._migrate)
        except BaseException:
            await cluster.close()
            raise
        marks = Marks(cluster, abandoned=self._abandoned)
        deletions = Deletions(cluster)
        await cluster.ensure([marks.index, deletions.index])
        points, lines = (ElasticsearchBlocks(cluster, type) for type in BLOCK_TYPES)
        bounds = self.bounds.columnar
        scalars, logs = ColumnarScalars(points, bounds=bounds), ColumnarLogs(lines, bounds=bounds)
        compactor = Compactor(
            {
                EventType.SCALAR: Compacts(scalars.compact, points.crowded),
                EventType.LOG: Compacts(logs.compact, lines.crowded),
            },
            bounds,
        )
        if self.compacts:
            compactor.start()
        self._parts = _Parts(cluster, scalars, logs, compactor, marks, deletions)

    def _connect(self) -> Cluster:
        return Cluster(self._address, strict=self._strict, bounds=self.bounds)

    async def close(self) -> None:
        """Stop compacting, and close the connections."""
        parts, self._parts = self._parts, None
        if parts is not None:
            await parts.compactor.close()
            await parts.cluster.close()

    async def check(self) -> None:
        """Raise EventStoreError unless a node answers."""
        await self._cluster.check()

    # --- writing -----------------------------------------------------------------------------------

    async def add(self, batch: EventBatch) -> Mapping[str, int]:
        """Put blocks of points, blocks of lines, and samples and marks, at the same time.

        If that fails, a part of the batch may be kept, and adding it again completes it.
        """
        if not batch:
            return {}
        opened = self._opened
        owners = {
            EventType.SCALAR: dict.fromkeys(batch.scalars.owners),
            EventType.LOG: dict.fromkeys(lines.owner for lines in batch.logs),
        }
        for type, owners_of_type in owners.items():
            await opened.compactor.until_there_is_room(type, owners_of_type)
        everybody = [*owners[EventType.SCALAR], *owners[EventType.LOG], *(sample.owner for sample in batch.samples)]
        refused: Counter[str] = Counter()
        work = [self._add_documents(batch.samples, dict.fromkeys(everybody))]
        if batch.scalars:
            work.append(_refused(opened.scalars.add(batch)))
        if batch.logs:
            work.append(_refused(opened.logs.add(batch)))
        for outcome in await asyncio.gather(*work, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome
            refused.update(outcome)
        for type, owners_of_type in owners.items():
            opened.compactor.wrote(type, owners_of_type)
        return refused

    async def _add_documents(self, samples: Sequence[Sample], owners: Iterable[Owner]) -> Mapping[str, int]:
        """Write samples, and marks of owners that have none yet."""
        cluster, marks = self._opened.cluster, self._opened.marks
        now = time.time()
        unmarked = marks.items(owners, now)
        if not samples and not unmarked:
            return {}
        indices = {index_of(cluster.prefix, sample) for sample in samples}
        await cluster.ensure(indices)
        try:
            sent = chain(unmarked.values(), items(cluster.prefix, samples, cluster.bounds.large_sample))
            refused = await bulk.send(cluster, marks.index, sent, in_order=repeats(samples))
        finally:
            cluster.wrote(indices)
        marks.are_set(unmarked, now)
        return Counter(refusal.reason for refusal in refused)

    async def delete(self, owners: Sequence[Owner], types: Sequence[EventType] | None = None) -> int:
        """Delete the owners' blocks and samples."""
        asked = set(EventType if types is None else types)
        work = [self._delete_samples(owners, [type for type in SAMPLE_TYPES if type in asked])]
        if EventType.SCALAR in asked:
            work.append(self._delete_blocks(EventType.SCALAR, owners))
        if EventType.LOG in asked:
            work.append(self._delete_blocks(EventType.LOG, owners))
        return sum(await together(*work))

    async def delete_scalars(self, owner: Owner, up_to: Cursor) -> int:
        opened, type = self._opened, EventType.SCALAR
        known = await place_at(self._cluster, up_to, names.blocks(self._cluster.prefix, type, owner.company), owner)
        deleted = await opened.scalars.delete_known(owner, known)
        opened.compactor.deleted(type, [owner])
        return deleted

    async def _delete_blocks(self, type: EventType, owners: Sequence[Owner]) -> int:
        events = self._opened.scalars if type is EventType.SCALAR else self._opened.logs
        # Others may have written just now.
        self._cluster.wrote({names.blocks(self._cluster.prefix, type, owner.company) for owner in owners})
        deleted = 0
        for some in in_parts(dict.fromkeys(owners), lambda owner: 1, _COUNTED_AT_ONCE):
            deleted += sum(await together(*(self._count(SeriesQuery(owner, type)) for owner in some)))
        await events.delete(owners)
        self._opened.compactor.deleted(type, owners)
        return deleted

    async def _delete_samples(self, owners: Sequence[Owner], types: Sequence[EventType]) -> int:
        """Delete the owners' samples, company by company."""
        deleted = 0
        by_company: dict[str, list[Owner]] = {}
        for owner in owners if types else ():
            by_company.setdefault(owner.company, []).append(owner)
        for company, of_company in by_company.items():
            indices = [names.index(self._cluster.prefix, type, company) for type in types]
            async with self._opened.deletions.noted(of_company):
                deleted += await self._cluster.delete(indices, of_owners(of_company))
        return deleted

    async def delete_logs(
        self, series: SeriesQuery, before: int | None, exclude: Selection = (), up_to: Cursor | None = None
    ) -> int:
        place = None
        if up_to is not None:
            index = names.blocks(self._cluster.prefix, EventType.LOG, series.owner.company)
            place = await place_at(self._cluster, up_to, index, series.owner)
        return await self._opened.logs.delete_logs(series, before, exclude, place)

    async def delete_samples(
        self,
        series: SeriesQuery,
        iterations: Range = EVERYWHERE,
        before: int | None = None,
        up_to: Cursor | None = None,
    ) -> int:
        """Delete samples by iteration and age. Those that came since stay."""
        older = [] if before is None else [{"range": {"timestamp": {"lt": before}}}]
        index, key = names.index_of(self._cluster.prefix, series), names.owner_key(series.owner)
        if up_to is not None:
            older += between("_seq_no", None, await place_at(self._cluster, up_to, index, series.owner))
        doomed = of(series, *inside("iter", iterations), *older)
        async with self._opened.deletions.noted([series.owner]):
            return await self._cluster.delete([index], doomed, routing=key)

    async def thin_scalars(
        self, series: SeriesQuery, points: int, checksums: Mapping[tuple[str, str], int] | None = None
    ) -> int:
        """Thin series. To readers of changes, everything of the owner changes meanwhile."""
        async with self._opened.deletions.noted([series.owner]):
            return await self._opened.scalars.thin_scalars(series, points, checksums)

    # --- reading -----------------------------------------------------------------------------------

    async def owners(self) -> AsyncIterator[Owner]:
        """Every owner with events, company by company."""
        cluster, prefix = self._cluster, self._cluster.prefix
        patterns = [f"{prefix}-{type.plural}-*" for type in SAMPLE_TYPES]
        patterns += [names.blocks_of_all(prefix, type) for type in BLOCK_TYPES]
        by_company: dict[str, list[str]] = {}
        for index in await cluster.indices(patterns):
            by_company.setdefault(names.company_of(prefix, index), []).append(index)
        for company, indices in by_company.items():
            keys = set[str]()
            for index in indices:
                async for bucket in cluster.composite(index, {"match_all": {}}, ["owner"], routing=None):
                    keys.add(bucket["key"]["owner"])
            for key in keys:
                yield names.owner_of(company, key)

    async def series(self, owner: Owner, types: Sequence[EventType] | None = None) -> list[SeriesName]:
        asked = set(EventType if types is None else types)
        found = await together(*(self._series_of(owner, type) for type in asked))
        return sorted(chain.from_iterable(found))

    async def _series_of(self, owner: Owner, type: EventType) -> list[SeriesName]:
        if type is EventType.SCALAR:
            return await self._opened.scalars.series(owner)
        if type is EventType.LOG:
            return await self._opened.logs.series(owner)
        return [SeriesName(type, *name) for name in await self._samples(SeriesQuery(owner, type)).counts()]

    async def sample_series(self, series: SeriesQuery) -> list[SampleSeries]:
        return await self._samples(series).series()

    async def samples(
        self, series: SeriesQuery, page: PageQuery[SamplePosition], iterations: Range = EVERYWHERE
    ) -> list[Sample]:
        return await self._samples(series).page(page, iterations)

    async def latest_samples(
        self, series: SeriesQuery, iterations: int, after: SamplePosition | None = None
    ) -> list[Sample]:
        return await self._samples(series).latest(iterations, after)

    async def sample_iterations(self, series: SeriesQuery, page: PageQuery[int]) -> list[int]:
        return await self._samples(series).iterations(page)

    async def events_count(self, owner: Owner, types: Sequence[EventType] | None = None) -> int:
        asked = set(EventType if types is None else types)
        return sum(await together(*(self._count(SeriesQuery(owner, type)) for type in asked)))

    async def _count(self, series: SeriesQuery) -> int:
        if series.type is EventType.SCALAR:
            return await self._opened.scalars.count(series)
        if series.type is EventType.LOG:
            return await self.log_count(series)
        return await self._samples(series).count()

    # --- copies ------------------------------------------------------------------------------------

    async def put_points(self, owner: Owner, curves: Sequence[WholePoints]) -> None:
        """Keep points of whole series, most of them as chunks at once."""
        await self._add_documents((), [owner])
        await self._opened.scalars.put_points(owner, curves)

    async def put_lines(self, owner: Owner, lines: Lines) -> None:
        """Keep log lines at their positions, as chunks at once."""
        await self._add_documents((), [owner])
        await self._opened.logs.put_lines(owner, lines)

    async def know_bodies(self, owner: Owner, ids: Collection[bytes]) -> None:
        await self._opened.logs.know_bodies(owner, ids)

    # --- about the store itself --------------------------------------------------------------------

    async def usage(self, company: str) -> Usage:
        """How much is kept of each owner of a company, in part estimated."""
        return await usage_in_time(self._opened.cluster, company)

    def gauges(self) -> Mapping[str, float]:
        """How many owners wait for compaction."""
        return {"owners_to_compact": self._opened.compactor.waiting}

    async def changes(self, query: ChangesQuery) -> Changes:
        return await changes_since(self._cluster, self._opened.deletions, query)

    async def watch(self, query: ChangesQuery) -> AsyncGenerator[Changes, None]:
        """The changes: somebody has to ask again and again."""
        changes = await self.changes(query)
        yield changes
        while True:
            await asyncio.sleep(POLL)
            changes = await self.changes(replace(query, since=changes.cursor))
            if changes.owners:
                yield changes

    # --- recovery ----------------------------------------------------------------------------------

    def owners_to_restate(self, *, of_all: bool = False) -> AsyncIterator[Owner]:
        """Owners whose marks expired: their servers died, or cannot write documents. `of_all`: all that have marks."""
        return self._opened.marks.owners(of_all=of_all)

    async def restated(self, owners: Collection[Owner]) -> None:
        """Delete the owners' marks."""
        await self._opened.marks.take_away(owners)

    # --- compaction --------------------------------------------------------------------------------

    async def compact(self, owner: Owner) -> None:
        """Compact all that the owner has, now."""
        await self._opened.scalars.compact(owner, fewest=1)
        await self._opened.logs.compact(owner, fewest=1)

    # --- parts -------------------------------------------------------------------------------------

    @property
    def _opened(self) -> _Parts:
        if self._parts is None:
            raise EventStoreError("the event store is not open")
        return self._parts

    @property
    def _points(self) -> Loader:
        return self._opened.scalars.loader

    @property
    def _log(self) -> LogLoader:
        return self._opened.logs.loader

    @property
    def _cluster(self) -> Cluster:
        return self._opened.cluster

    def _samples(self, series: SeriesQuery) -> Samples:
        return Samples(self._cluster, series)


async def _refused(adding: Awaitable[None]) -> Mapping[str, int]:
    """How many events were refused, by reason."""
    try:
        await adding
    except Refused as refusal:
        return refusal.events
    return {}
