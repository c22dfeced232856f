"""The embedded event store: the EventStore protocol over the journal, memtables and one SQLite file.

A batch is added at once, or with fsync in groups. All else is done in a few threads, as it may take long. Reads are in
`reading.py`.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from apiserver.events.changes import Changes, ChangesQuery, Cursor
from apiserver.events.model import EventBatch, EventType, LogPosition, Owner, Selection, SeriesName, selection_of
from apiserver.events.queries import EVERYWHERE, Range, SeriesQuery
from apiserver.stores.events import thinned
from apiserver.stores.events.base import EventStoreBusy, EventStoreError
from apiserver.stores.events.codec.lines import BODY_ID, Lines, body_id
from apiserver.stores.events.codec.points import WholePoints
from apiserver.stores.events.embedded import deletion, log_merge, records, whole
from apiserver.stores.events.embedded.bounds import BOUNDS, EmbeddedBounds
from apiserver.stores.events.embedded.commit import GroupCommit
from apiserver.stores.events.embedded.database import Database
from apiserver.stores.events.embedded.kept_curves import KeptCurves
from apiserver.stores.events.embedded.log_numbers import BlockEnds
from apiserver.stores.events.embedded.merge import Merger
from apiserver.stores.events.embedded.names import Registrar, owner_id, state
from apiserver.stores.events.embedded.parts import Parts, run_in, unavailable
from apiserver.stores.events.embedded.reading import EmbeddedReads
from apiserver.stores.events.embedded.scalar_merge import merge_whole
from apiserver.stores.events.embedded.unmerged import Unmerged
from apiserver.stores.events.embedded.usage import usage_in_time
from apiserver.stores.events.embedded.watches import Watch
from apiserver.stores.events.lock import FolderLock
from apiserver.stores.events.parts import in_parts
from apiserver.stores.events.usage import Usage
from apiserver.stores.reserve import Reserve, free_bytes

_READERS = 4
_LEAST_FREE_BYTES = 2**20
#: So often a series is read to be thinned, if it has changed meanwhile.
_TRIES = 5
_NONE: Mapping[str, int] = {}

Result = TypeVar("Result")


class EmbeddedEventStore(EmbeddedReads):
    """Events in one folder, used by one process at a time.

    With `fsync`, acknowledged events survive power loss too, not only kill -9. A merge begins after `merge_points`
    events, `merge_seconds`, `merge_bytes` or half of `max_unmerged_bytes`, whichever comes first. Every `seal_seconds`,
    it looks for chunks to seal (None: it seals only when told to). With more than `max_unmerged_bytes` to merge, `add`
    raises EventStoreBusy. Deletes on a full disk may use the `reserve`. While it is used, `add` raises EventStoreBusy.
    """

    def __init__(
        self,
        folder: Path,
        *,
        fsync: bool = False,
        merge_points: int = 262_144,
        merge_seconds: float = 15.0,
        merge_bytes: int = 32 * 2**20,
        seal_seconds: float | None = 60.0,
        max_unmerged_bytes: int = 128 * 2**20,
        reserve: Reserve | None = None,
        bounds: EmbeddedBounds = BOUNDS,
    ) -> None:
        self._folder = folder
        self._reserve = reserve or Reserve(folder)
        self.bounds = bounds
        self._fsync = fsync
        self._merge_points = merge_points
        self._merge_seconds = merge_seconds
        self._merge_bytes = merge_bytes
        self._seal_seconds = seal_seconds
        self._max_unmerged_bytes = max_unmerged_bytes
        self._lock = FolderLock(folder)
        self._open: Parts | None = None

    # --- life --------------------------------------------------------------------------------------

    @property
    def reads_in_parallel(self) -> bool:
        return False  # reads would wait for one another, as the interpreter's lock lets only one thread run

    async def open(self) -> None:
        """Open the folder; raise EventStoreError if another process has it, or it cannot be used."""
        if self._open is None:
            self._open = await asyncio.to_thread(self._start)

    def _start(self) -> Parts:
        bounds = self.bounds
        with ExitStack() as undone:
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
                self._lock.take()
                undone.callback(self._lock.release)
                database = Database(self._folder, fsync=self._fsync, bounds=bounds)
                undone.callback(database.close)
                size = self._max_unmerged_bytes
                unmerged = Unmerged(self._folder, database, fsync=self._fsync, max_unmerged_bytes=size, bounds=bounds)
            except (OSError, sqlite3.Error) as error:
                raise EventStoreError(f"the events folder {self._folder} cannot be used: {error}") from error
            undone.pop_all()
        curves = KeptCurves(state(database.writer, "merged_journal"), bounds)
        merger = Merger(
            unmerged,
            database,
            curves,
            points=self._merge_points,
            seconds=self._merge_seconds,
            size=min(self._merge_bytes, self._max_unmerged_bytes // 2),
            seal_seconds=self._seal_seconds,
            is_short=lambda: self._reserve.is_gone,
            bounds=bounds,
        )
        merger.start()
        readers = ThreadPoolExecutor(_READERS, thread_name_prefix="events-read")
        changer = ThreadPoolExecutor(1, thread_name_prefix="events-change")
        writer = ThreadPoolExecutor(1, thread_name_prefix="events-commit")
        commit = GroupCommit(unmerged.append, writer) if self._fsync else None
        return Parts(unmerged, database, curves, BlockEnds(bounds), merger, readers, changer, writer, commit)

    async def close(self) -> None:
        """Merge the rest if that works, and release the folder."""
        parts, self._open = self._open, None
        if parts is None:
            return
        if parts.commit is not None:
            await parts.commit.finish()
        await asyncio.to_thread(self._stop, parts)

    def _stop(self, parts: Parts) -> None:
        parts.readers.shutdown()
        parts.changer.shutdown()
        parts.writer.shutdown()
        parts.merger.stop()
        parts.unmerged.close()
        parts.database.close()
        self._lock.release()

    @property
    def _parts(self) -> Parts:
        if self._open is None:
            raise EventStoreError(f"the event store in {self._folder} is not open")
        return self._open

    async def check(self) -> None:
        """Raise EventStoreError if the store is not open, cannot merge, or has no room on its disk."""
        self._parts.unmerged.check()
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
                parts.unmerged.append([record])
        except sqlite3.Error as error:  # raised by the lookup of known log lines
            raise unavailable(error) from error
        parts.merger.notice()
        return _NONE

    async def delete(self, owners: Sequence[Owner], types: Sequence[EventType] | None = None) -> int:
        """Delete the owners' events. Their room is used again, or given back if it is much."""
        each = dict.fromkeys(owners)
        return await self._delete(
            each.keys(),
            lambda conn: sum(deletion.delete_owner(conn, one, types) for one in each),
            whole=types is None,
        )

    async def delete_scalars(self, owner: Owner, up_to: Cursor) -> int:
        types = [EventType.SCALAR]
        return await self._delete_up_to(
            up_to, SeriesQuery(owner, EventType.SCALAR), lambda conn: deletion.delete_owner(conn, owner, types)
        )

    async def delete_logs(
        self, series: SeriesQuery, before: int | None, exclude: Selection = (), up_to: Cursor | None = None
    ) -> int:
        return await self._delete_up_to(
            up_to, series, lambda conn: deletion.delete_lines(conn, series, before, exclude, self.bounds)
        )

    async def delete_samples(
        self,
        series: SeriesQuery,
        iterations: Range = EVERYWHERE,
        before: int | None = None,
        up_to: Cursor | None = None,
    ) -> int:
        return await self._delete_up_to(
            up_to, series, lambda conn: deletion.delete_samples(conn, series, iterations, before)
        )

    async def thin_scalars(
        self, series: SeriesQuery, points: int, checksums: Mapping[tuple[str, str], int] | None = None
    ) -> int:
        """Thin the series, some in a transaction.

        They are read while others merge, and only what stays is written while others wait: to read 15 million points
        takes some seconds, to replace them some ten milliseconds.
        """
        long = [one for one in await self.scalar_stats(series) if one.count > points]
        gone = 0
        for some in in_parts(long, lambda one: one.count, self.bounds.points_at_a_time):
            wanted = replace(series, selection=selection_of((one.metric, one.variant) for one in some))
            gone += await self._thin(wanted, points, checksums)
        return gone

    async def _thin(self, series: SeriesQuery, points: int, checksums: Mapping[tuple[str, str], int] | None) -> int:
        unmerged, owner = self._parts.unmerged, series.owner
        for _ in range(_TRIES):
            if unmerged.holds(owner):
                await self.merge()
            since = ChangesQuery([owner], (await self.changes(ChangesQuery([owner]))).cursor)
            long = await thinned.long_series(self, series, points)
            thinned_series = await thinned.read(self, owner, long, points)
            chosen = [
                curve
                for name, curve in thinned_series.items()
                if checksums is None or checksums.get(name) == curve.checksum
            ]
            if not chosen:
                return 0
            if await self._put_thinned(since, owner, [curve.kept for curve in chosen]):
                return sum([curve.gone for curve in chosen])
        raise EventStoreBusy("these series change again and again while they are thinned", overloaded=False)

    async def _put_thinned(self, since: ChangesQuery, owner: Owner, kept: Sequence[WholePoints]) -> bool:
        """Put these points in place of all others of their series; returns whether none of these has changed."""
        unmerged, is_same = self._parts.unmerged, True

        def work(conn: sqlite3.Connection, registrar: Registrar) -> list[int]:
            nonlocal is_same
            changed = unmerged.look(since).changes(conn).owners.get(owner)
            names = {SeriesName(EventType.SCALAR, *points.series) for points in kept}
            is_same = changed is None or not (changed.everything or names & changed.series.keys())
            if not is_same:
                return []
            wanted = SeriesQuery(owner, EventType.SCALAR, selection_of(points.series for points in kept))
            deletion.delete_points(conn, wanted)
            return merge_whole(conn, owner, kept, registrar, unmerged.worker, self.bounds)

        await self._put(owner, work, are_new=False)
        return is_same

    async def merge(self) -> None:
        """Merge all that was added. The store does so by itself; a backup or a measurement may not want to wait."""
        await run_in(self._parts.changer, self._parts.merger.flush)

    async def seal(self) -> None:
        """Seal all that is merged, as the store does by itself once series do not grow any more."""
        await run_in(self._parts.changer, self._parts.merger.seal)

    async def _delete_up_to(
        self, up_to: Cursor | None, series: SeriesQuery, work: Callable[[sqlite3.Connection], int]
    ) -> int:
        """Let `work` delete events of the owner, unless some of this type came behind the cursor, if there is one."""
        unmerged, owner = self._parts.unmerged, series.owner

        def unless_some_came(conn: sqlite3.Connection) -> int:
            if up_to is not None:
                came = unmerged.look_for_new(owner, up_to).changes(conn).owners.get(owner)
                if came is not None and came.may_have(series.type):
                    return 0
            return work(conn)

        return await self._delete([owner], unless_some_came)

    async def _delete(
        self, owners: Collection[Owner], work: Callable[[sqlite3.Connection], Result], *, whole: bool = False
    ) -> Result:
        """What `work` returns, which deletes merged events of the owners; `whole`: all of them."""
        parts = self._parts

        def run() -> Result:
            self._reserve.make_room(much=True)
            if any(parts.unmerged.holds(owner) for owner in owners):
                parts.merger.flush()
            result = parts.merger.delete(owners, work, whole=whole)
            parts.block_ends.forget(owners)
            return result

        return await run_in(parts.changer, run)

    # --- copies ------------------------------------------------------------------------------------

    async def whole_points(self, series: SeriesQuery) -> AsyncIterator[Sequence[WholePoints]]:
        workers = self._parts.unmerged.workers.names
        for names in await self._read_scalars(series, whole.parts):
            part, place = replace(series, selection=selection_of(names)), None
            while True:
                points, place = await self._read_scalars(part, partial(whole.read_points, place=place, workers=workers))
                if points:
                    yield points
                if place is None:
                    break

    async def put_points(self, owner: Owner, curves: Sequence[WholePoints]) -> None:
        """Put points into chunks, beside those that are merged."""
        worker = self._parts.unmerged.worker
        await self._put(owner, lambda conn, registrar: merge_whole(conn, owner, curves, registrar, worker, self.bounds))

    async def whole_lines(self, owner: Owner) -> AsyncIterator[Lines]:
        after: LogPosition | None = None
        while True:
            lines = await self._read_log(owner, partial(whole.read_lines, after=after))
            if lines is None:
                return
            yield lines
            after = lines.position(len(lines) - 1)

    async def put_lines(self, owner: Owner, lines: Lines) -> None:
        """Put lines into blocks, at their positions."""
        self._parts.unmerged.number_lines_from(int(lines.sequences.max()) + 1)

        def work(conn: sqlite3.Connection, registrar: Registrar) -> list[int]:
            log_merge.merge_whole(conn, owner, lines, registrar, self.bounds)
            return []

        await self._put(owner, work)

    async def known_bodies(self, owner: Owner) -> Collection[bytes]:
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

    async def _put(
        self, owner: Owner, work: Callable[[sqlite3.Connection, Registrar], list[int]], *, are_new: bool = True
    ) -> None:
        parts = self._parts

        def run() -> None:
            if not are_new:  # fewer are put than there were, so a full disk gets room
                self._reserve.make_room(much=True)
            if parts.unmerged.holds(owner):
                parts.merger.flush()
            parts.merger.put(owner, work, are_new=are_new)

        await run_in(parts.changer, run)

    # --- about the store itself --------------------------------------------------------------------

    async def usage(self, company: str) -> Usage:
        bounds = self.bounds
        return await self._read_tables(lambda table: table, lambda conn, hot: usage_in_time(conn, hot, company, bounds))

    def gauges(self) -> Mapping[str, float]:
        """How much is not merged, whether merging works, and how many merges there were."""
        unmerged = self._parts.unmerged
        return {
            "unmerged_bytes": unmerged.unmerged_bytes,
            "unmerged_events": sum([table.events for table in unmerged.tables()]),
            "merging_works": unmerged.stuck is None,
            "merges": self._parts.merger.merges,
        }

    # --- changes -----------------------------------------------------------------------------------

    async def changes(self, query: ChangesQuery) -> Changes:
        """What changed since a cursor: from memory, and from the owners' marks if the cursor is older."""
        return await self._changes(query)

    async def watch(self, query: ChangesQuery) -> AsyncGenerator[Changes, None]:
        """The changes, as they are kept."""
        with self._parts.unmerged.watching(query.owners) as watch:
            changes = await self._changes(query)
            yield changes
            while True:
                await watch.wait()
                changes = await self._changes(replace(query, since=changes.cursor), watch)
                if changes.owners:
                    yield changes

    async def _changes(self, query: ChangesQuery, watch: Watch | None = None) -> Changes:
        parts = self._parts
        return await run_in(parts.readers, lambda: parts.unmerged.look(query, watch).changes(parts.database.reader()))

    # --- recovery ----------------------------------------------------------------------------------

    async def owners_to_restate(self, *, of_all: bool = False) -> AsyncIterator[Owner]:
        """Owners with events since `restated` last named them, in this process or an earlier one."""
        for owner in sorted(self._parts.unmerged.owners_to_restate()):
            yield owner

    async def restated(self, owners: Collection[Owner]) -> None:
        self._parts.unmerged.restated(owners)
