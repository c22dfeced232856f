"""The merging thread: it moves events from the journal into the database, seals chunks, and shrinks the database.

- Only the `Merger` changes the database, one transaction at a time, under `_working`.
- A merge is one transaction: the memtable's events, ids, counters and "segment n is merged". Readers see its result at
  the moment when the memtable disappears. Then the segment is deleted.
- A merge that fails changes nothing. It is tried again after 0.5 seconds, then after 1, 2, 5 and 10.
- A merge takes its time: now and then it rests, so that requests are answered meanwhile (`pace.py`). It does not if
  somebody waits for it, and rests less the more of the next one has come.
- Chunks are sealed while no merge is due, or one step after each merge.
- Pages that are freed are used again. If over a tenth of the file is free, it shrinks (incremental vacuum). It gives
  back all free pages if the disk is short of room, and if over a twentieth is free while all is sealed and nothing
  comes. Less stays free: to give a page back, SQLite moves another one, which the next backup copies.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from apiserver.events.model import Owner
from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.codec.checked import Damaged
from apiserver.stores.events.embedded.bounds import BOUNDS, EmbeddedBounds
from apiserver.stores.events.embedded.database import Database
from apiserver.stores.events.embedded.feed import mark_deleted, write_marks
from apiserver.stores.events.embedded.hot import Memtable
from apiserver.stores.events.embedded.kept_curves import KeptCurves
from apiserver.stores.events.embedded.log_merge import merge_logs
from apiserver.stores.events.embedded.names import Ids, Registrar, set_state, state
from apiserver.stores.events.embedded.pace import Pace
from apiserver.stores.events.embedded.samples import merge_samples
from apiserver.stores.events.embedded.scalar_merge import merge_scalars
from apiserver.stores.events.embedded.sealing import Sealer
from apiserver.stores.events.embedded.unmerged import Unmerged

#: The share of the file that is kept free for new events.
_FREE_SHARE_KEPT = 0.1
#: The share of the file that may be free when all chunks are sealed and nothing comes. Of more, nothing is kept.
_FREE_SHARE_WHEN_QUIET = 0.05

logger = logging.getLogger(__name__)

Result = TypeVar("Result")


class Merger:
    """Merges in its own thread, from `start` until `stop`."""

    def __init__(
        self,
        unmerged: Unmerged,
        database: Database,
        curves: KeptCurves,
        *,
        points: int,
        seconds: float,
        size: int,
        seal_seconds: float | None,
        is_short: Callable[[], bool],
        bounds: EmbeddedBounds = BOUNDS,
    ) -> None:
        """`is_short` says whether the disk is short of room."""
        self._unmerged = unmerged
        self._database = database
        self._curves = curves
        self._points = points
        self._seconds = seconds
        self._size = size
        self._bounds = bounds
        self._sealer = Sealer(bounds)
        self._seal_seconds = seal_seconds
        self._is_short = is_short
        self._look_at = 0.0
        self._working = threading.Lock()
        self._hurry = threading.Event()
        """Set while somebody waits for the merging thread."""
        self._wake = threading.Event()
        self._stopping = False
        self._idle = False
        self._failures = 0
        self._retry_at = 0.0
        self._ids = Ids()
        self.merges = 0
        """How many merges there were."""
        self._thread = threading.Thread(target=self._run, name="events-merge", daemon=True)

    def start(self) -> None:
        """Begin the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Finish the current merge, merge the rest if that works, and end the thread."""
        self._stopping = True
        self._hurry.set()
        self._wake.set()
        self._thread.join()

    def notice(self) -> None:
        """Note that something was appended."""
        if self._idle or self._must_merge():
            self._wake.set()

    def flush(self) -> None:
        """Merge everything that was acknowledged before; raise EventStoreBusy if that does not work."""
        with self._turn():
            self._merge_all()
        self._wake.set()  # there may be something to seal

    def seal(self) -> None:
        """Seal all chunks, as if no series grew any more."""
        with self._turn():
            sealer = Sealer(self._bounds)
            sealer.look(self._database.writer)
            while sealer.is_busy:
                with self._write() as conn:
                    sealer.step(conn)
                self._checkpoint()
        self._wake.set()

    def delete(
        self, owners: Collection[Owner], work: Callable[[sqlite3.Connection], Result], *, whole: bool = False
    ) -> Result:
        """Let `work` delete merged events of the owners, in one transaction; raise EventStoreBusy if that fails.

        `whole`: it deletes all of them.
        """
        with (
            self._turn(),
            self._transaction(lambda commit: self._unmerged.deleted(owners, commit, whole=whole)) as conn,
        ):
            self._ids.forget()
            if whole:  # else the curves that are left stay as they are
                self._curves.will_delete(owners)
            result = work(conn)
            mark_deleted(conn, owners, self._unmerged.active)  # no other segment begins meanwhile
        self._wake.set()
        return result

    def put(
        self, owner: Owner, work: Callable[[sqlite3.Connection, Registrar], list[int]], *, are_new: bool = True
    ) -> None:
        """Let `work` put events of the owner beside the merged ones, in one transaction; EventStoreBusy if that fails.

        It returns the ids of the series that got points. To readers, everything of the owner has changed then. If
        the events are new, it is noted that the owner's document has to show them.
        """
        with self._turn():
            with self._transaction(lambda commit: self._unmerged.deleted([owner], commit, brings=are_new)) as conn:
                registrar = Registrar(conn, self._ids)
                self._sealer.note(work(conn, registrar))
                self._write_workers(conn)
                mark_deleted(conn, [owner], self._unmerged.active)
                if are_new:
                    self._unmerged.note([owner])
                    self._write_unstated(conn)
                registrar.finish()
                self._curves.will_change(owner)
            self._checkpoint()
        self._wake.set()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """`_working` for another thread, for which the merging thread hurries. One thread at a time may call this."""
        self._hurry.set()
        try:
            with self._working:
                yield
        finally:
            self._hurry.clear()

    def _run(self) -> None:
        while not self._stopping:
            self._wake.wait(self._pause())
            self._wake.clear()
            if not self._stopping and self._is_due():
                self._try_to_merge()
            if not self._stopping:
                self._seal()
            self._give_room_back()
            self._shorten_log()
        self._try_to_merge()
        self._remember_unstated()

    def _pause(self) -> float | None:
        """Seconds until there is something to do. None: nothing to do before something is added."""
        pauses = [self._merge_pause()]
        if self._sealer.is_busy and not self._failures:
            pauses.append(self._bounds.long_log_seconds if self._database.log_is_long else 0)
        elif self._sealer.must_look and self._seal_seconds is not None:
            pauses.append(max(0.0, self._look_at - time.monotonic()))
        return min((pause for pause in pauses if pause is not None), default=None)

    def _merge_pause(self) -> float | None:
        """Seconds until a merge is due, or the log may be truncated. None: nothing to do before something is added."""
        self._idle = False
        if self._failures:
            return max(0.0, self._retry_at - time.monotonic())
        if self._unmerged.frozen:
            return 0
        self._idle = True  # set before looking, so that what is appended after the look wakes the thread
        if not self._unmerged.active.events:
            return self._bounds.long_log_seconds if self._database.log_is_long else None
        self._idle = False
        return max(0.0, self._unmerged.active_since + self._seconds - time.monotonic())

    def _is_due(self) -> bool:
        """Whether a merge is to begin now."""
        return self._must_merge() or self._merge_pause() == 0

    def _must_merge(self) -> bool:
        """Whether so much is in memory that a merge must begin now. After a failure, it begins no sooner for that."""
        return not self._failures and self._due() >= 1

    def _due(self) -> float:
        """How much of the next merge has come: 0 nothing, from 1 on all that it takes to begin."""
        table = self._unmerged.active
        return max(table.events / self._points, table.size / self._size)

    def _try_to_merge(self) -> None:
        try:
            with self._working:
                if self._stopping or self._is_due():  # else another thread has just merged
                    self._merge_all()
        except EventStoreBusy as error:
            logger.warning("merging failed and is tried again: %s", error)
        except Exception:
            self._unmerged.stuck = "an unexpected error, see the log"
            logger.exception("merging failed and is tried again")
        else:
            self._failures = 0
            return
        pauses = self._bounds.retry_seconds
        self._retry_at = time.monotonic() + pauses[min(self._failures, len(pauses) - 1)]
        self._failures += 1

    def _merge_all(self) -> None:
        self._merge_frozen()
        self._unmerged.freeze()
        self._merge_frozen()
        if self._due() >= 1:
            self._wake.set()

    def _merge_frozen(self) -> None:
        while self._unmerged.frozen:
            self._merge(self._unmerged.frozen[0])

    def _merge(self, table: Memtable) -> None:
        with self._transaction(lambda commit: self._unmerged.drop(table, commit)) as conn:
            bounds = self._bounds
            registrar, pace = Registrar(conn, self._ids), Pace(self._hurry, self._due, bounds)
            self._write_workers(conn)
            self._sealer.note(merge_scalars(conn, table, registrar, pace, bounds))
            merge_logs(conn, table, registrar, pace, bounds)
            merge_samples(conn, table, registrar)
            write_marks(conn, table, registrar)
            self._write_unstated(conn)
            registrar.finish()
            set_state(conn, "merged_journal", table.segment)
            if table.next_sequence:
                set_state(conn, "next_sequence", max(state(conn, "next_sequence"), table.next_sequence))
            self._curves.will_merge(table)
        self._curves.has_merged(table.segment)
        self.merges += 1
        self._checkpoint()

    def _seal(self) -> None:
        """Look for chunks to seal if it is time, and seal some. If that fails, the next look finds them again."""
        if self._seal_seconds is None:
            return
        if self._database.log_is_long:
            return  # a long read keeps it so, and sealing would make it longer
        try:
            if not self._sealer.is_busy:
                if not self._sealer.must_look or time.monotonic() < self._look_at:
                    return
                self._look_at = time.monotonic() + self._seal_seconds
                self._sealer.look(self._database.reader())
            with self._working:
                with self._write() as conn:
                    self._sealer.step(conn)
                self._checkpoint()
        except Exception:
            logger.exception("sealing failed and is tried again")
            self._sealer, self._look_at = Sealer(self._bounds), time.monotonic() + self._seal_seconds

    @contextmanager
    def _transaction(
        self, finish: Callable[[Callable[[], object]], object] = lambda commit: commit()
    ) -> Iterator[sqlite3.Connection]:
        """A write transaction without which events cannot be merged or deleted; the caller holds `_working`."""
        try:
            with self._write(finish) as conn:
                yield conn
        except BaseException as error:
            self._ids.forget()
            if isinstance(error, sqlite3.Error | OSError | Damaged):
                self._unmerged.stuck = str(error)
                raise EventStoreBusy(f"the events database failed: {error}", retry_after=5, overloaded=False) from error
            raise
        self._unmerged.stuck = None

    @contextmanager
    def _write(
        self, finish: Callable[[Callable[[], object]], object] = lambda commit: commit()
    ) -> Iterator[sqlite3.Connection]:
        """A write transaction that `finish` commits; the caller holds `_working`."""
        conn = self._database.writer
        try:
            conn.execute("BEGIN IMMEDIATE")
            yield conn
            finish(lambda: conn.execute("COMMIT"))
        except BaseException:
            if conn.in_transaction:
                conn.execute("ROLLBACK")
            raise

    def _write_workers(self, conn: sqlite3.Connection) -> None:
        known = conn.execute("SELECT count(*) FROM workers").fetchone()[0]
        names = self._unmerged.workers.names
        conn.executemany("INSERT INTO workers VALUES (?, ?)", [(n, names[n]) for n in range(known, len(names))])

    def _remember_unstated(self) -> None:
        """Write down for the next process which documents may be out of date; if that fails, it reads too many."""
        with suppress(EventStoreBusy), self._working, self._transaction() as conn:
            self._write_unstated(conn)

    def _write_unstated(self, conn: sqlite3.Connection) -> None:
        known = set(conn.execute("SELECT company, name, is_model FROM restate"))
        owners = self._unmerged.unstated
        if known != owners:
            conn.execute("DELETE FROM restate")
            conn.executemany("INSERT INTO restate VALUES (?, ?, ?)", owners)

    def _checkpoint(self, *, end_log: bool = False) -> None:
        try:
            self._database.checkpoint()
            if end_log or self._database.log_is_long:  # readers overlap, so new ones wait until the current ones end
                with self._unmerged.entrance:
                    self._database.truncate_log()
        except sqlite3.Error as error:  # the log stays as it is, and the next merge tries again
            logger.warning("the events database could not be checkpointed: %s", error)

    def _give_room_back(self) -> None:
        """Shrink the file, a little at a time, if much of it is free. Then truncate the log, which grew by that.

        A merge that is due goes first, and so does another thread that waits for its turn.
        """
        shrunk = False
        while not (self._stopping or self._database.log_is_long or self._hurry.is_set() or self._is_due()):
            if not self._shrink(go_on=shrunk):
                break
            shrunk = True
        if shrunk:
            with self._working:
                self._checkpoint(end_log=True)

    def _shorten_log(self) -> None:
        """Truncate the log if it is long, after a deletion or a long read."""
        if self._database.log_is_long and not self._stopping:
            with self._working:
                self._checkpoint()

    def _shrink(self, *, go_on: bool) -> bool:
        """Give some pages back if too many are free. Returns whether some were given back.

        `go_on`: some were given back just now. Then fewer free pages are too many.
        """
        with self._working:
            writer = self._database.writer
            try:
                free = writer.execute("PRAGMA freelist_count").fetchone()[0]
                pages = writer.execute("PRAGMA page_count").fetchone()[0]
                if free <= self._free_pages_kept(pages, go_on):
                    return False
                self._database.shrink(self._bounds.shrink_pages)
                self._checkpoint()
                left: int = writer.execute("PRAGMA freelist_count").fetchone()[0]
            except sqlite3.Error as error:
                logger.warning("the events database could not be shrunk: %s", error)
                return False
        return bool(left < free)  # files that were made without incremental vacuum do not shrink

    def _free_pages_kept(self, pages: int, go_on: bool) -> float:
        if self._is_short():
            return 0
        if self._sealer.must_look or self._sealer.is_busy:
            return max(self._bounds.free_pages, pages * _FREE_SHARE_KEPT)
        return 0 if go_on else pages * _FREE_SHARE_WHEN_QUIET
