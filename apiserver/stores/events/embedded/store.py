"""The embedded event store: the EventStore protocol over the journal, memtables and one SQLite file.

A batch is added at once, or with fsync in groups. All else is done in a few threads, as it may take long. Each read is
one consistent `Live.snapshot`.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TypeVar

from apiserver import answers
from apiserver.events.aggregates import Buckets, CurvesInBuckets, Neighbours
from apiserver.events.changes import Changes, ChangesQuery
from apiserver.events.log_filter import LineFilter, LogHits
from apiserver.events.model import (
    SAMPLE_TYPES,
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
    selection_of,
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
from apiserver.off_loop import in_thread
from apiserver.stores.events.base import EventStoreBusy, EventStoreError
from apiserver.stores.events.columns import stats
from apiserver.stores.events.columns.bodies import BODY_ID, body_id
from apiserver.stores.events.columns.checked import Damaged, Kind, Place
from apiserver.stores.events.columns.lines import Lines, LogPart
from apiserver.stores.events.columns.log_pages import WantedLines
from apiserver.stores.events.columns.names import Name, matcher
from apiserver.stores.events.columns.whole import WholePoints
from apiserver.stores.events.embedded import (
    by_worker,
    deletion,
    log_hits,
    log_merge,
    log_sizes,
    logs,
    records,
    scalars,
    whole,
)
from apiserver.stores.events.embedded.buckets import all_buckets
from apiserver.stores.events.embedded.commit import GroupCommit
from apiserver.stores.events.embedded.curves import ends, in_buckets, neighbours, views_of
from apiserver.stores.events.embedded.database import Database
from apiserver.stores.events.embedded.hot import HotOwner, HotPoints, Memtable
from apiserver.stores.events.embedded.known import KnownCurves
from apiserver.stores.events.embedded.live import Live
from apiserver.stores.events.embedded.log_numbers import BlockEnds, NumberedLog
from apiserver.stores.events.embedded.merge import Merger
from apiserver.stores.events.embedded.names import TYPES, Registrar, owner_id, state
from apiserver.stores.events.embedded.samples import Samples
from apiserver.stores.events.embedded.scalar_merge import merge_whole
from apiserver.stores.events.embedded.series import VIEW_BYTES, Series, views
from apiserver.stores.events.embedded.usage import usage_in_time
from apiserver.stores.events.embedded.watches import Watch
from apiserver.stores.events.lock import FolderLock
from apiserver.stores.events.usage import Usage
from apiserver.stores.reserve import Reserve, free_bytes

_READERS = 4
_LEAST_FREE_BYTES = 2**20
_NONE: Mapping[str, int] = {}

Picked = TypeVar("Picked")
Result = TypeVar("Result")
Some = TypeVar("Some", bound=Sized)


@dataclass(slots=True)
class _Parts:
    """The parts of an open store."""

    live: Live
    database: Database
    curves: KnownCurves
    block_ends: BlockEnds
    merger: Merger
    readers: ThreadPoolExecutor
    changer: ThreadPoolExecutor
    """For deletes and merges. They wait for one another, and reads must not wait for them."""
    writer: ThreadPoolExecutor
    commit: GroupCommit | None


class EmbeddedEventStore:
    """Events in one folder, used by one process at a time.

    With `fsync`, acknowledged events survive power loss too, not only kill -9. A merge begins after `merge_points`
    events, `merge_seconds`, `merge_bytes` or half of `max_unmerged_bytes`, whichever comes first. Every `seal_seconds`,
    it looks for chunks to seal. With more than `max_unmerged_bytes` to merge, `add` raises EventStoreBusy. Deletes on a
    full disk may use the `reserve`. While it is used, `add` raises EventStoreBusy.
    """

    def __init__(
        self,
        folder: Path,
        *,
        fsync: bool = False,
        merge_points: int = 262_144,
        merge_seconds: float = 15.0,
        merge_bytes: int = 32 * 2**20,
        seal_seconds: float = 60.0,
        max_unmerged_bytes: int = 128 * 2**20,
        reserve: Reserve | None = None,
    ) -> None:
        self._folder = folder
        self._reserve = reserve or Reserve(folder)
        self._fsync = fsync
        self._merge_points = merge_points
        self._merge_seconds = merge_seconds
        self._merge_bytes = merge_bytes
        self._seal_seconds = seal_seconds
        self._max_unmerged_bytes = max_unmerged_bytes
        self._lock = FolderLock(folder)
        self._open: _Parts | None = None

    # --- life --------------------------------------------------------------------------------------

    @property
    def reads_in_parallel(self) -> bool:
        return False  # reads would wait for one another, as the interpreter's lock lets only one thread run

    async def open(self) -> None:
        """Open the folder; raise EventStoreError if another process has it, or it cannot be used."""
        if self._open is None:
            self._open = await asyncio.to_thread(self._start)

    def _start(self) -> _Parts:
        with ExitStack() as undone:
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
                self._lock.take()
                undone.callback(self._lock.release)
                database = Database(self._folder, fsync=self._fsync)
                undone.callback(database.close)
                live = Live(self._folder, database, fsync=self._fsync, max_unmerged_bytes=self._max_unmerged_bytes)
            except (OSError, sqlite3.Error) as error:
                raise EventStoreError(f"the events folder {self._folder} cannot be used: {error}") from error
            undone.pop_all()
        curves = KnownCurves(state(database.writer, "merged_journal"))
        merger = Merger(
            live,
            database,
            curves,
            points=self._merge_points,
            seconds=self._merge_seconds,
            size=min(self._merge_bytes, self._max_unmerged_bytes // 2),
            seal_seconds=self._seal_seconds,
            is_short=lambda: self._reserve.is_gone,
        )
        merger.start()
        readers = ThreadPoolExecutor(_READERS, thread_name_prefix="events-read")
        changer = ThreadPoolExecutor(1, thread_name_prefix="events-change")
        writer = ThreadPoolExecutor(1, thread_name_prefix="events-commit")
        commit = GroupCommit(live.append, writer) if self._fsync else None
        return _Parts(live, database, curves, BlockEnds(), merger, readers, changer, writer, commit)

    async def close(self) -> None:
        """Merge the rest if that works, and release the folder."""
        parts, self._open = self._open, None
        if parts is None:
            return
        if parts.commit is not None:
            await parts.commit.finish()
        await asyncio.to_thread(self._stop, parts)

    def _stop(self, parts: _Parts) -> None:
        parts.readers.shutdown()
        parts.changer.shutdown()
        parts.writer.shutdown()
        parts.merger.stop()
        parts.live.close()
        parts.database.close()
        self._lock.release()

    @property
    def _parts(self) -> _Parts:
        if self._open is None:
            raise EventStoreError(f"the event store in {self._folder} is not open")
        return self._open

    async def check(self) -> None:
        """Raise EventStoreError if the store is not open, cannot merge, or has no room on its disk."""
        self._parts.live.check()
        if await asyncio.to_thread(free_bytes, self._folder) < _LEAST_FREE_BYTES:
            raise self._full()

    def _full(self) -> EventStoreBusy:
        return EventStoreBusy(f"there is no room on the disk of {self._folder}", retry_after=5, overloaded=False)

    # --- writing -----------------------------------------------------------------------------------

    async def add(self, batch: EventBatch) -> Mapping[str, int]:
        """Keep the whole batch; raise EventStoreBusy if the disk is full, or merging does not work or is behind."""
        if not batch:
            return _NONE
        parts = self._parts
        if not self._reserve.held():
            raise self._full()
        record = records.make(batch)
        try:
            if parts.commit is not None:
                await parts.commit.add(record)
            else:
                parts.live.append([record])
        except sqlite3.Error as error:  # raised by the lookup of known log lines
            raise _unavailable(error) from error
        parts.merger.notice()
        return _NONE

    async def delete(self, owners: Sequence[Owner], types: Sequence[EventType] | None = None) -> int:
        """Delete the owners' events. Their room is used again, or given back if it is much."""
        each = dict.fromkeys(owners)
        return await self._delete(owners, lambda conn: sum(deletion.delete_owner(conn, one, types) for one in each))

    async def delete_logs(self, series: SeriesQuery, before: int | None, exclude: Selection = ()) -> int:
        """Delete log lines by age and series."""
        return await self._delete([series.owner], lambda conn: deletion.delete_lines(conn, series, before, exclude))

    async def delete_samples(
        self, series: SeriesQuery, iterations: Range = EVERYWHERE, before: int | None = None
    ) -> int:
        """Delete samples by iteration and age."""
        return await self._delete(
            [series.owner], lambda conn: deletion.delete_samples(conn, series, iterations, before)
        )

    async def merge(self) -> None:
        """Merge all that was added. The store does so by itself; a backup or a measurement may not want to wait."""
        await self._in_thread(self._parts.changer, self._parts.merger.flush)

    async def seal(self) -> None:
        """Seal all that is merged, as the store does by itself once series do not grow any more."""
        await self._in_thread(self._parts.changer, self._parts.merger.seal)

    async def _delete(self, owners: Sequence[Owner], work: Callable[[sqlite3.Connection], Result]) -> Result:
        parts = self._parts

        def run() -> Result:
            self._reserve.make_room(much=True)
            if any(parts.live.holds(owner) for owner in owners):
                parts.merger.flush()
            return parts.merger.delete(owners, work)

        return await self._in_thread(parts.changer, run)

    # --- reading -----------------------------------------------------------------------------------

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
            pick_owner, lambda conn, hot: work(conn, [one for one in hot if one is not None])
        )

    async def _read_tables(
        self, pick: Callable[[Memtable], Picked], work: Callable[[sqlite3.Connection, list[Picked]], Result]
    ) -> Result:
        parts = self._parts

        def run() -> Result:
            with parts.live.snapshot(pick) as (conn, hot):
                try:
                    return work(conn, hot)
                except Damaged as error:
                    raise EventStoreBusy(f"{error}{_where(conn, error.place)}", overloaded=False) from None

        with answers.reading():
            return await self._in_thread(parts.readers, run)

    async def _in_thread(self, threads: ThreadPoolExecutor, run: Callable[[], Result]) -> Result:
        try:
            return await asyncio.get_running_loop().run_in_executor(threads, copy_context().run, in_thread(run))
        except (sqlite3.Error, OSError) as error:
            raise _unavailable(error) from error

    async def owners(self) -> AsyncIterator[Owner]:
        """Every owner that has events, sorted."""
        parts = self._parts
        # Owners move from memtables to the database, so none is missed in this order.
        found = parts.live.owners()
        found |= await self._in_thread(parts.readers, parts.database.owners)
        for owner in sorted(found):
            yield owner

    async def series(self, owner: Owner, types: Sequence[EventType] | None = None) -> list[SeriesName]:
        """Every series of the owner."""

        def work(conn: sqlite3.Connection, hot: list[tuple[set[SeriesName], list[LogPart]]]) -> list[SeriesName]:
            rows = conn.execute("SELECT type, metric, variant FROM series WHERE owner = ?", (owner_id(conn, owner),))
            found = {SeriesName(TYPES[code], metric, variant) for code, metric, variant in rows}
            for names, parts in hot:
                found |= names
                found |= {SeriesName(EventType.LOG, *name) for name in logs.names_of(parts)}
            return sorted(name for name in found if types is None or name.type in types)

        return await self._read(owner, HotOwner.names, work)

    async def _read_scalars(self, series: SeriesQuery, work: Callable[[list[Series]], Result]) -> Result:
        matches = matcher(series.selection)
        return await self._read(
            series.owner, lambda hot: hot.points(matches), lambda conn, hot: work(views(conn, series, hot))
        )

    async def scalar_stats(self, series: SeriesQuery, *, spread: bool = False) -> list[ScalarStats]:
        """Stats of each series."""
        return await self._read_scalars(series, lambda found: scalars.scalar_stats(series.owner, found, spread=spread))

    async def _read_many(self, queries: Sequence[SeriesQuery], work: Callable[[list[list[Series]]], Result]) -> Result:
        """The result of `work` on each query's series, by one read.

        `answers.will_read` counts the series of several queries, so that the caller may ask for fewer at once.
        """
        matchers = {id(one.selection): matcher(one.selection) for one in queries}  # many owners, one long selection
        asked = [(one, matchers[id(one.selection)]) for one in queries]

        def counted(found: Some) -> Some:
            if len(queries) > 1:
                answers.will_read(VIEW_BYTES * len(found))
            return found

        def pick(table: Memtable) -> list[dict[Name, HotPoints]]:
            owners = table.owners
            return [counted(owners[one.owner].points(matches)) if one.owner in owners else {} for one, matches in asked]

        def view(conn: sqlite3.Connection, hot: list[list[dict[Name, HotPoints]]]) -> list[list[Series]]:
            return [counted(views(conn, one, [table[n] for table in hot])) for n, one in enumerate(queries)]

        return await self._read_tables(pick, lambda conn, hot: work(view(conn, hot)))

    async def scalar_stats_of_each(self, queries: Sequence[SeriesQuery]) -> list[list[ScalarStats]]:
        """Stats of each query's series, by one read."""

        def work(found: list[list[Series]]) -> list[list[ScalarStats]]:
            rows = scalars.stats_of([series for some in found for series in some])
            stops = accumulate(map(len, found))
            return [
                stats.to_models(
                    one.owner, [series.name for series in some], rows[stop - len(some) : stop], spread=False
                )
                for one, some, stop in zip(queries, found, stops, strict=True)
            ]

        return await self._read_many(queries, work)

    async def scalar_buckets(self, series: SeriesQuery, buckets: BucketQuery) -> list[Buckets]:
        """Buckets of each series that has a curve."""
        curves = self._parts.curves
        return await self._read_scalars(series, lambda found: all_buckets([found], buckets, curves)[0])

    async def scalar_buckets_of_each(self, queries: Sequence[SeriesQuery], buckets: BucketQuery) -> list[list[Buckets]]:
        """Buckets of each query's series, by one read."""
        curves = self._parts.curves
        return await self._read_many(queries, lambda found: all_buckets(found, buckets, curves))

    async def _read_curves(self, asked: CurvesQuery, work: Callable[[list[Series]], Result]) -> Result:
        name = (asked.metric, asked.variant)
        return await self._read_tables(
            lambda table: table.points_of(asked.owners, name), lambda conn, hot: work(views_of(conn, asked, hot))
        )

    async def curve_ends(self, asked: CurvesQuery) -> tuple[int, int] | None:
        """The ends of all curves together."""
        return await self._read_curves(asked, lambda found: ends(found, asked.axis))

    async def curve_buckets(self, asked: CurvesQuery, buckets: CommonBuckets) -> CurvesInBuckets:
        """All curves in common buckets, by one read."""
        return await self._read_curves(asked, lambda found: in_buckets(found, asked, buckets))

    async def curve_neighbours(self, asked: CurvesQuery, buckets: CommonBuckets, *, before: bool) -> Neighbours:
        """The nearest buckets outside, by one read."""
        return await self._read_curves(asked, lambda found: neighbours(found, asked, buckets, before=before))

    async def scalar_points(self, series: SeriesQuery, page: PageQuery[ScalarPosition]) -> ScalarPoints:
        """A page of points."""
        workers = self._parts.live.workers.names
        return await self._read_scalars(series, lambda found: scalars.page(found, page, workers))

    async def earliest_points(self, series: SeriesQuery, limit: int, after: int | None = None) -> ScalarPoints:
        """The first points beyond a timestamp."""
        workers = self._parts.live.workers.names
        return await self._read_scalars(series, lambda found: scalars.earliest_page(found, after, limit, workers))

    async def last_values(self, series: SeriesQuery, n: int) -> dict[tuple[str, str], list[float]]:
        """The last values of each series."""
        return await self._read_scalars(series, lambda found: scalars.last_values(found, n))

    async def worker_spans(self, series: SeriesQuery) -> list[WorkerSpan]:
        """What each worker reported of each series."""
        workers = self._parts.live.workers.names
        return await self._read_scalars(series, lambda found: by_worker.spans(found, workers))

    async def worker_means(self, series: SeriesQuery, grid: Grid) -> list[WorkerMeans]:
        """Means by worker and step."""
        workers = self._parts.live.workers.names
        return await self._read_scalars(series, lambda found: by_worker.means(found, workers, grid))

    async def log_lines(
        self, series: SeriesQuery, page: PageQuery[LogPosition], workers: Collection[str] | None = None
    ) -> list[LogLine]:
        """A page of log lines."""
        wanted = WantedLines.of(series, page, workers)
        return await self._read(
            series.owner, lambda hot: hot.logs.copy(), lambda conn, hot: logs.page(conn, series.owner, hot, wanted)
        )

    async def log_count(self, series: SeriesQuery) -> int:
        """How many log lines there are."""
        return await self._read(
            series.owner, lambda hot: hot.logs.copy(), lambda conn, hot: logs.count(conn, series, hot)
        )

    async def log_page(self, series: SeriesQuery, page: PageQuery[LogPosition]) -> tuple[list[LogLine], int]:
        """A page of log lines, and how many there are."""
        wanted = WantedLines.of(series, page, None)
        return await self._read(
            series.owner,
            lambda hot: hot.logs.copy(),
            lambda conn, hot: (logs.page(conn, series.owner, hot, wanted), logs.count(conn, series, hot)),
        )

    async def log_numbered(self, owner: Owner, numbers: Sequence[int]) -> tuple[list[LogLine], int]:
        """Lines by their numbers, and how many there are."""
        known = self._parts.block_ends

        def work(conn: sqlite3.Connection, hot: list[list[LogPart]]) -> tuple[list[LogLine], int]:
            log = NumberedLog(conn, owner, hot, known)
            return log.lines(numbers), log.count

        return await self._read(owner, lambda hot: hot.logs.copy(), work)

    async def log_number(self, owner: Owner, position: LogPosition) -> int:
        """How many lines lie before a position."""
        known = self._parts.block_ends
        return await self._read(
            owner, lambda hot: hot.logs.copy(), lambda conn, hot: NumberedLog(conn, owner, hot, known).number(position)
        )

    async def log_hits(self, owner: Owner, wanted: LineFilter, after: LogPosition | None) -> LogHits:
        """Search the next part of a log."""
        return await self._read(
            owner, lambda hot: hot.logs.copy(), lambda conn, hot: log_hits.hits(conn, owner, hot, wanted, after)
        )

    async def log_sizes(self, owner: Owner) -> dict[str, LogSize]:
        """How much each worker logged."""
        return await self._read(owner, lambda hot: hot.logs.copy(), lambda conn, hot: log_sizes.sizes(conn, owner, hot))

    async def _read_samples(self, series: SeriesQuery, work: Callable[[Samples], Result]) -> Result:
        matches = matcher(series.selection)
        return await self._read(
            series.owner,
            lambda hot: hot.samples_of(series.type, matches),
            lambda conn, hot: work(Samples.view(conn, series, hot)),
        )

    async def sample_series(self, series: SeriesQuery) -> list[SampleSeries]:
        """What is known of each series of samples."""
        return await self._read_samples(series, Samples.series)

    async def samples(
        self, series: SeriesQuery, page: PageQuery[SamplePosition], iterations: Range = EVERYWHERE
    ) -> list[Sample]:
        """A page of samples."""
        return await self._read_samples(series, lambda view: view.page(page, iterations))

    async def latest_samples(
        self, series: SeriesQuery, iterations: int, after: SamplePosition | None = None
    ) -> list[Sample]:
        """A page of the newest samples of each series."""
        return await self._read_samples(series, lambda view: view.latest(iterations, after))

    async def sample_iterations(self, series: SeriesQuery, page: PageQuery[int]) -> list[int]:
        """Iterations that hold a sample."""
        return await self._read_samples(series, lambda view: view.iterations(page))

    async def events_count(self, owner: Owner, types: Sequence[EventType] | None = None) -> int:
        """How many events the owner has."""
        wanted = set(EventType) if types is None else set(types)

        def work(conn: sqlite3.Connection, hot: list[HotOwner]) -> int:
            count = 0
            if EventType.SCALAR in wanted:
                points = [table.points(matcher(())) for table in hot]
                series = views(conn, SeriesQuery(owner, EventType.SCALAR), points)
                count += int(scalars.stats_of(series)["count"].sum())
            if EventType.LOG in wanted:
                count += logs.count(conn, SeriesQuery(owner, EventType.LOG), [table.logs for table in hot])
            for type in wanted.intersection(SAMPLE_TYPES):
                recent = [table.samples.get(type, {}) for table in hot]
                count += Samples.view(conn, SeriesQuery(owner, type), recent).count()
            return count

        return await self._read(owner, HotOwner.everything, work)

    # --- copies ------------------------------------------------------------------------------------

    async def whole_points(self, series: SeriesQuery) -> AsyncIterator[Sequence[WholePoints]]:
        """All points of the series, some at a time."""
        workers = self._parts.live.workers.names
        for names in await self._read_scalars(series, whole.parts):
            part, place = replace(series, selection=selection_of(names)), None
            while True:
                points, place = await self._read_scalars(part, partial(whole.read_points, place=place, workers=workers))
                if points:
                    yield points
                if place is None:
                    break

    async def put_points(self, owner: Owner, some: Sequence[WholePoints]) -> None:
        """Put points into chunks, beside those that are merged."""
        parts = self._parts

        await self._put(owner, lambda conn, registrar: merge_whole(conn, owner, some, registrar, parts.live.worker))

    async def whole_lines(self, owner: Owner) -> AsyncIterator[Lines]:
        """All log lines of the owner in their order, some at a time."""
        after: LogPosition | None = None
        while True:
            lines = await self._read(owner, lambda hot: hot.logs.copy(), partial(whole.read_lines, owner, after))
            if lines is None:
                return
            yield lines
            after = lines.position(len(lines) - 1)

    async def put_lines(self, owner: Owner, lines: Lines) -> None:
        """Put lines into blocks, at their positions."""
        self._parts.live.number_lines_from(int(lines.sequences.max()) + 1)

        def work(conn: sqlite3.Connection, registrar: Registrar) -> list[int]:
            log_merge.merge_whole(conn, owner, lines, registrar)
            return []

        await self._put(owner, work)

    async def known_bodies(self, owner: Owner) -> Collection[bytes]:
        """The ids of all bodies of log lines that add nothing if they are sent again."""

        def work(conn: sqlite3.Connection, hot: list[set[bytes]]) -> set[bytes]:
            rows = conn.execute("SELECT digest FROM log_digests WHERE owner = ?", (owner_id(conn, owner),))
            digests = {digest for (digest,) in rows}.union(*hot)
            return {digest if len(digest) == BODY_ID else body_id(digest) for digest in digests}

        return await self._read(owner, lambda hot: hot.digests.copy(), work)

    async def know_bodies(self, owner: Owner, ids: Collection[bytes]) -> None:
        """Keep the ids among the digests of bodies that were sent."""

        def work(conn: sqlite3.Connection, registrar: Registrar) -> list[int]:
            number = registrar.owner(owner)
            conn.executemany("INSERT OR IGNORE INTO log_digests VALUES (?, ?)", ((number, id) for id in ids))
            return []

        await self._put(owner, work)

    async def _put(self, owner: Owner, work: Callable[[sqlite3.Connection, Registrar], list[int]]) -> None:
        parts = self._parts

        def run() -> None:
            if parts.live.holds(owner):
                parts.merger.flush()
            parts.merger.put(owner, work)

        await self._in_thread(parts.changer, run)

    # --- about the store itself --------------------------------------------------------------------

    async def usage(self, company: str) -> Usage:
        """How much is kept of each owner of a company."""
        return await self._read_tables(lambda table: table, lambda conn, hot: usage_in_time(conn, hot, company))

    def gauges(self) -> Mapping[str, float]:
        """How much is not merged, whether merging works, and how many merges there were."""
        live = self._parts.live
        return {
            "unmerged_bytes": live.unmerged_bytes,
            "unmerged_events": sum([table.events for table in live.tables()]),
            "merging_works": live.stuck is None,
            "merges": self._parts.merger.merges,
        }

    # --- changes -----------------------------------------------------------------------------------

    async def changes(self, query: ChangesQuery) -> Changes:
        """What changed since a cursor: from memory, and from the owners' marks if the cursor is older."""
        return await self._changes(query)

    async def watch(self, query: ChangesQuery) -> AsyncGenerator[Changes, None]:
        """The changes, as they are kept."""
        with self._parts.live.watching(query.owners) as watch:
            changes = await self._changes(query)
            yield changes
            while True:
                await watch.wait()
                changes = await self._changes(replace(query, since=changes.cursor), watch)
                if changes.owners:
                    yield changes

    async def _changes(self, query: ChangesQuery, watch: Watch | None = None) -> Changes:
        parts = self._parts
        return await self._in_thread(
            parts.readers, lambda: parts.live.look(query, watch).changes(parts.database.reader())
        )

    # --- recovery ----------------------------------------------------------------------------------

    async def owners_to_restate(self) -> AsyncIterator[Owner]:
        """Owners with events since `restated` last named them, in this process or an earlier one."""
        for owner in sorted(self._parts.live.owners_to_restate()):
            yield owner

    async def restated(self, owners: Collection[Owner]) -> None:
        """Note that these owners' documents are up to date."""
        self._parts.live.restated(owners)


def _where(conn: sqlite3.Connection, place: Place | None) -> str:
    """The series of a chunk, for people."""
    if place is None or place.kind is not Kind.CHUNK:
        return ""
    found = conn.execute(
        "SELECT name, metric, variant FROM chunk_index AS chunk JOIN series ON series.id = chunk.series"
        " JOIN owners ON owners.id = owner WHERE chunk.id = ?",
        (place.id,),
    ).fetchone()
    return " (task {}, metric {}, variant {})".format(*found) if found else ""


def _unavailable(error: Exception) -> EventStoreBusy:
    return EventStoreBusy(f"the events database failed: {error}", overloaded=False)
