"""The reads of the embedded store. Each is of one consistent view: merged data, and what is in memtables."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Collection, Sequence, Sized
from typing import TypeVar

from apiserver.common import answers
from apiserver.events.aggregates import Buckets, CurvesInBuckets, Neighbours
from apiserver.events.log_filter import LineFilter, LogHits
from apiserver.events.model import (
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
from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.codec.checked import Damaged, Kind, Place
from apiserver.stores.events.codec.lines import LogPart
from apiserver.stores.events.codec.log_pages import WantedLines
from apiserver.stores.events.codec.names import Name, matcher
from apiserver.stores.events.embedded import by_worker, log_sizes, logs, scalars
from apiserver.stores.events.embedded.bounds import EmbeddedBounds
from apiserver.stores.events.embedded.buckets import all_buckets
from apiserver.stores.events.embedded.curves import ends, in_buckets, neighbours, views_of
from apiserver.stores.events.embedded.earliest import earliest
from apiserver.stores.events.embedded.hot import HotOwner, HotPoints, Memtable
from apiserver.stores.events.embedded.log_numbers import NumberedLog
from apiserver.stores.events.embedded.log_walk import Log
from apiserver.stores.events.embedded.names import TYPES, owner_id
from apiserver.stores.events.embedded.parts import Parts, run_in
from apiserver.stores.events.embedded.samples import Samples
from apiserver.stores.events.embedded.series import Series, views

Picked = TypeVar("Picked")
Result = TypeVar("Result")
Some = TypeVar("Some", bound=Sized)


class EmbeddedReads:
    """The methods of the protocols that read (`stores/events/protocols`), which say what each of them answers."""

    bounds: EmbeddedBounds

    @property
    def _parts(self) -> Parts:
        """The parts of the store, which is open."""
        raise NotImplementedError

    async def _read(
        self,
        owner: Owner,
        pick: Callable[[HotOwner], Picked],
        work: Callable[[sqlite3.Connection, list[Picked]], Result],
    ) -> Result:
        """The result of `work` on one consistent view: merged data, and what `pick` copies from each memtable."""

        def pick_owner(table: Memtable) -> Picked | None:
            return pick(table.owners[owner]) if owner in table.owners else None

        return await self._read_tables(
            pick_owner, lambda conn, hot: work(conn, [one for one in hot if one is not None]), owner
        )

    async def _read_tables(
        self,
        pick: Callable[[Memtable], Picked],
        work: Callable[[sqlite3.Connection, list[Picked]], Result],
        owner: Owner | None = None,
    ) -> Result:
        """As `_read`, of any owners; `owner` is only named if something is damaged."""
        parts = self._parts

        def run() -> Result:
            with parts.unmerged.snapshot(pick) as (conn, hot):
                try:
                    return work(conn, hot)
                except Damaged as error:
                    raise EventStoreBusy(f"{error}{_where(conn, error.place, owner)}", overloaded=False) from None

        with answers.reading():
            return await run_in(parts.readers, run)

    async def owners(self) -> AsyncIterator[Owner]:
        """Every owner that has events, sorted."""
        parts = self._parts
        # Owners move from memtables to the database, so none is missed in this order.
        found = parts.unmerged.owners()
        found |= await run_in(parts.readers, parts.database.owners)
        for owner in sorted(found):
            yield owner

    async def series(self, owner: Owner, types: Sequence[EventType] | None = None) -> list[SeriesName]:
        def work(conn: sqlite3.Connection, hot: list[tuple[set[SeriesName], list[LogPart]]]) -> list[SeriesName]:
            rows = conn.execute("SELECT type, metric, variant FROM series WHERE owner = ?", (owner_id(conn, owner),))
            names_of_owner = {SeriesName(TYPES[code], metric, variant) for code, metric, variant in rows}
            for names, parts in hot:
                names_of_owner |= names
                names_of_owner |= {SeriesName(EventType.LOG, *name) for name in logs.names_of(parts)}
            return sorted(name for name in names_of_owner if types is None or name.type in types)

        return await self._read(owner, HotOwner.names, work)

    async def _read_scalars(self, series: SeriesQuery, work: Callable[[list[Series]], Result]) -> Result:
        matches, bounds = matcher(series.selection), self.bounds
        return await self._read(
            series.owner, lambda hot: hot.points(matches), lambda conn, hot: work(views(conn, series, hot, bounds))
        )

    async def scalar_stats(self, series: SeriesQuery, *, spread: bool = False) -> list[ScalarStats]:
        return await self._read_scalars(
            series, lambda found: scalars.scalar_stats([series.owner], [found], spread=spread)[0]
        )

    async def _read_many(self, queries: Sequence[SeriesQuery], work: Callable[[list[list[Series]]], Result]) -> Result:
        """The result of `work` on each query's series, by one read.

        `answers.will_read` counts the series of several queries, so that the caller may ask for fewer at once.
        """
        # Many owners may have one long selection, so each is made into a matcher once.
        matchers = {id(query.selection): matcher(query.selection) for query in queries}
        asked = [(query, matchers[id(query.selection)]) for query in queries]
        bounds = self.bounds

        def counted(found: Some) -> Some:
            if len(queries) > 1:
                answers.will_read(bounds.series_bytes * len(found))
            return found

        def pick(table: Memtable) -> list[dict[Name, HotPoints]]:
            owners = table.owners
            return [
                counted(owners[query.owner].points(matches)) if query.owner in owners else {}
                for query, matches in asked
            ]

        def view(conn: sqlite3.Connection, hot: list[list[dict[Name, HotPoints]]]) -> list[list[Series]]:
            found = enumerate(queries)
            return [counted(views(conn, query, [table[n] for table in hot], bounds)) for n, query in found]

        return await self._read_tables(pick, lambda conn, hot: work(view(conn, hot)))

    async def scalar_stats_of_each(self, queries: Sequence[SeriesQuery]) -> list[list[ScalarStats]]:
        """Stats of each query's series, by one read."""
        owners = [one.owner for one in queries]
        return await self._read_many(queries, lambda found: scalars.scalar_stats(owners, found, spread=False))

    async def scalar_buckets(self, series: SeriesQuery, buckets: BucketQuery) -> list[Buckets]:
        curves = self._parts.curves
        return await self._read_scalars(series, lambda found: all_buckets([found], buckets, curves)[0])

    async def scalar_buckets_of_each(self, queries: Sequence[SeriesQuery], buckets: BucketQuery) -> list[list[Buckets]]:
        """Buckets of each query's series, by one read."""
        curves = self._parts.curves
        return await self._read_many(queries, lambda found: all_buckets(found, buckets, curves))

    async def _read_curves(self, asked: CurvesQuery, work: Callable[[list[Series]], Result]) -> Result:
        name, bounds = (asked.metric, asked.variant), self.bounds
        return await self._read_tables(
            lambda table: table.points_of(asked.owners, name),
            lambda conn, hot: work(views_of(conn, asked, hot, bounds)),
        )

    async def curve_ends(self, asked: CurvesQuery) -> tuple[int, int] | None:
        return await self._read_curves(asked, lambda found: ends(found, asked.axis))

    async def curve_buckets(self, asked: CurvesQuery, buckets: CommonBuckets) -> CurvesInBuckets:
        """All curves in common buckets, by one read."""
        return await self._read_curves(asked, lambda found: in_buckets(found, asked, buckets))

    async def curve_neighbours(self, asked: CurvesQuery, buckets: CommonBuckets, *, before: bool) -> Neighbours:
        """The nearest buckets outside, by one read."""
        return await self._read_curves(asked, lambda found: neighbours(found, asked, buckets, before=before))

    async def scalar_points(self, series: SeriesQuery, page: PageQuery[ScalarPosition]) -> ScalarPoints:
        workers = self._parts.unmerged.workers.names
        return await self._read_scalars(series, lambda found: scalars.page(found, page, workers))

    async def earliest_points(self, series: SeriesQuery, limit: int, after: int | None = None) -> ScalarPoints:
        workers = self._parts.unmerged.workers.names
        return await self._read_scalars(series, lambda found: earliest(found, limit, after, workers))

    async def last_values(self, series: SeriesQuery, n: int) -> dict[tuple[str, str], list[float]]:
        return await self._read_scalars(series, lambda found: scalars.last_values(found, n))

    async def worker_spans(self, series: SeriesQuery) -> list[WorkerSpan]:
        workers = self._parts.unmerged.workers.names
        return await self._read_scalars(series, lambda found: by_worker.spans(found, workers))

    async def worker_means(self, series: SeriesQuery, grid: Grid) -> list[WorkerMeans]:
        workers = self._parts.unmerged.workers.names
        return await self._read_scalars(series, lambda found: by_worker.means(found, workers, grid))

    async def _read_log(self, owner: Owner, work: Callable[[Log], Result]) -> Result:
        bounds = self.bounds
        return await self._read(
            owner, lambda hot: hot.logs.copy(), lambda conn, hot: work(Log(conn, owner, hot, bounds))
        )

    async def log_lines(
        self, series: SeriesQuery, page: PageQuery[LogPosition], workers: Collection[str] | None = None
    ) -> list[LogLine]:
        wanted = WantedLines.of(series, page, workers)
        return await self._read_log(series.owner, lambda log: logs.page(log, wanted))

    async def log_count(self, series: SeriesQuery) -> int:
        return await self._read_log(series.owner, lambda log: logs.count(log, series.selection))

    async def log_page(self, series: SeriesQuery, page: PageQuery[LogPosition]) -> tuple[list[LogLine], int]:
        wanted = WantedLines.of(series, page, None)
        return await self._read_log(
            series.owner, lambda log: (logs.page(log, wanted), logs.count(log, series.selection))
        )

    async def log_numbered(self, owner: Owner, numbers: Sequence[int]) -> tuple[list[LogLine], int]:
        known = self._parts.block_ends.reading()

        def work(log: Log) -> tuple[list[LogLine], int]:
            numbered = NumberedLog(log, known)
            return numbered.lines(numbers), numbered.count

        return await self._read_log(owner, work)

    async def log_number(self, owner: Owner, position: LogPosition) -> int:
        known = self._parts.block_ends.reading()
        return await self._read_log(owner, lambda log: NumberedLog(log, known).number(position))

    async def log_hits(self, owner: Owner, line_filter: LineFilter, after: LogPosition | None) -> LogHits:
        return await self._read_log(owner, lambda log: logs.hits(log, line_filter, after))

    async def log_sizes(self, owner: Owner) -> dict[str, LogSize]:
        return await self._read_log(owner, log_sizes.sizes)

    async def _read_samples(self, series: SeriesQuery, work: Callable[[Samples], Result]) -> Result:
        matches, bounds = matcher(series.selection), self.bounds
        return await self._read(
            series.owner,
            lambda hot: hot.samples_of(series.type, matches),
            lambda conn, hot: work(Samples.view(conn, series, hot, bounds)),
        )

    async def sample_series(self, series: SeriesQuery) -> list[SampleSeries]:
        return await self._read_samples(series, Samples.series)

    async def samples(
        self, series: SeriesQuery, page: PageQuery[SamplePosition], iterations: Range = EVERYWHERE
    ) -> list[Sample]:
        return await self._read_samples(series, lambda view: view.page(page, iterations))

    async def latest_samples(
        self, series: SeriesQuery, iterations: int, after: SamplePosition | None = None
    ) -> list[Sample]:
        return await self._read_samples(series, lambda view: view.latest(iterations, after))

    async def sample_iterations(self, series: SeriesQuery, page: PageQuery[int]) -> list[int]:
        return await self._read_samples(series, lambda view: view.iterations(page))

    async def events_count(self, owner: Owner, types: Sequence[EventType] | None = None) -> int:
        return sum([await self._count(SeriesQuery(owner, type)) for type in set(EventType if types is None else types)])

    async def _count(self, series: SeriesQuery) -> int:
        if series.type is EventType.SCALAR:
            return await self._read_scalars(series, lambda found: int(scalars.stats_of(found)["count"].sum()))
        if series.type is EventType.LOG:
            return await self.log_count(series)
        return await self._read_samples(series, Samples.count)


def _where(conn: sqlite3.Connection, place: Place | None, owner: Owner | None) -> str:
    """The series of a chunk, for people; of what else is damaged, the owner."""
    if place is None or place.kind is not Kind.CHUNK:
        return "" if owner is None else f" ({'model' if owner.is_model else 'task'} {owner.id})"
    row = conn.execute(
        "SELECT name, metric, variant FROM chunk_index AS chunk JOIN series ON series.id = chunk.series"
        " JOIN owners ON owners.id = owner WHERE chunk.id = ?",
        (place.id,),
    ).fetchone()
    return " (task {}, metric {}, variant {})".format(*row) if row else ""
