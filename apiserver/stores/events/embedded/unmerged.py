"""Acknowledged events that are not merged yet: the journal, its memtables, and the lock that makes reads consistent.

- A record goes to the journal first, and to a memtable right after. Both have the same order, thanks to `_appending`.
- `lock` guards the memtables. A reader copies hot data and begins its SQLite transaction under `entrance` and `lock`. A
  merge commits and drops its memtable under `entrance`. So each reader sees every event once, either hot or merged.
- A commit takes long, so nobody holds `lock` meanwhile: those who add events, on the event loop, need only `lock`.
- `frozen` holds the memtables of ended segments, oldest first. Only `active` grows.

For example, segment 6 is being merged, and segment 7 is active:

    a reader begins now     it copies from memtables 6 and 7, and sees a database without the events of 6
    the merge commits       memtable 6 is dropped in the same step
    a reader begins now     it copies from memtable 7, and sees the events of 6 in the database
    segment 6 is deleted    after a crash before that, the next start deletes it, as the database says that 6 is merged
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from apiserver.events.changes import ChangesQuery, Cursor
from apiserver.events.model import Owner
from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.codec.lines import body_id
from apiserver.stores.events.codec.points import Workers
from apiserver.stores.events.embedded import journal, records
from apiserver.stores.events.embedded.bounds import BOUNDS, EmbeddedBounds
from apiserver.stores.events.embedded.database import Database
from apiserver.stores.events.embedded.feed import Feed, Look
from apiserver.stores.events.embedded.hot import Memtable
from apiserver.stores.events.embedded.names import state
from apiserver.stores.events.embedded.records import Record
from apiserver.stores.events.embedded.summaries import Summaries
from apiserver.stores.events.embedded.watches import Watch, Watches

logger = logging.getLogger(__name__)

Picked = TypeVar("Picked")


class Unmerged:
    """The unmerged part of a store, and consistent views of the whole."""

    def __init__(
        self,
        folder: Path,
        database: Database,
        *,
        fsync: bool,
        max_unmerged_bytes: int,
        bounds: EmbeddedBounds = BOUNDS,
    ) -> None:
        self._folder = folder
        self._at_once = bounds.owners_at_once
        self._database = database
        self._max_unmerged = max_unmerged_bytes
        self._appending = threading.Lock()
        self.lock = threading.Lock()
        self.entrance = threading.Lock()
        """While this lock is held, no new snapshot begins. It is taken before `lock`."""
        self.workers = Workers(name for (name,) in database.writer.execute("SELECT name FROM workers ORDER BY id"))
        self._unstated = {
            Owner(company, name, bool(is_model))
            for company, name, is_model in database.writer.execute("SELECT company, name, is_model FROM restate")
        }
        """Owners whose documents may not show their newest events: they got events since `restated` last named them."""
        self._untold: set[Owner] = set()
        """Owners of `_unstated` that an earlier process left, and that `owners_to_restate` has not returned yet."""
        self.frozen: list[Memtable] = []
        self.stuck: str | None = None
        """Why merging does not work at the moment, or None if it works."""
        merged = state(database.writer, "merged_journal")
        self._next_sequence = state(database.writer, "next_sequence")
        self._replay(merged)
        self._untold.update(self._unstated)
        newest = max([merged, *(table.segment for table in self.frozen)])
        # Numbers go on from the time, so that also a folder that was restored from a backup gives none a second time:
        # a reader may come back who has a place in the segment that had this number before (`feed.py`).
        first = max(newest + 1, time.time_ns() // 1_000_000)
        self._journal = journal.Journal(folder, first, fsync=fsync)
        self.active = Memtable(first)
        self.active_since = 0.0
        """When (monotonic) the active memtable got its first record."""
        self._feed = Feed(merged, bounds)
        self._summaries = Summaries()
        self._watches = Watches()

    def _replay(self, merged: int) -> None:
        for number, path in journal.segments(self._folder):
            if number <= merged:  # after the merge committed, a crash came before the segment was deleted
                path.unlink()
                continue
            table = Memtable(number)
            for record in journal.replay(path):
                table.add(record, self.workers)
                self._note(record.owners)
            self._next_sequence = max(self._next_sequence, table.next_sequence)
            self.frozen.append(table)

    def append(self, group: Sequence[Record]) -> None:
        """Keep all records; keep none and raise EventStoreBusy if that is not possible now."""
        with self._appending:
            if self.unmerged_bytes > self._max_unmerged:
                self.check()
                raise EventStoreBusy("events arrive faster than they can be merged", retry_after=1)
            fresh: list[Record] = []
            next_sequence = self._next_sequence
            for record in group:
                kept = self._without_known_logs(record, fresh)
                if kept is not None:
                    kept.sequence = next_sequence
                    next_sequence += kept.lines
                    fresh.append(kept)
            if not fresh:
                return
            self._journal.append(fresh)
            with self.lock:
                if not self.active.events:
                    self.active_since = time.monotonic()
                self._next_sequence = next_sequence
                for record in fresh:
                    self.active.add(record, self.workers)
                    self._note(record.owners)
                    self._watches.changed(record.owners)

    def _note(self, owners: Iterable[Owner]) -> None:
        """Note the owners whose documents should show new events."""
        self._unstated.update(owner for owner in owners if owner.has_document)

    def note(self, owners: Iterable[Owner]) -> None:
        """The same, for a caller without the lock."""
        with self.lock:
            self._note(owners)

    def number_lines_from(self, sequence: int) -> None:
        """Give no line that is added from now on a lower sequence."""
        with self._appending:
            self._next_sequence = max(self._next_sequence, sequence)

    def worker(self, name: str) -> int:
        """The number of a worker's name."""
        with self.lock:
            return self.workers.number(name)

    def check(self) -> None:
        """Raise EventStoreBusy if merging does not work."""
        if self.stuck is not None:
            raise EventStoreBusy(f"merging does not work: {self.stuck}", retry_after=5, overloaded=False)

    def _without_known_logs(self, record: Record, fresh: list[Record]) -> Record | None:
        """The record without log lines of request bodies that came before; None if nothing is left."""
        known_logs = [
            logs for logs in record.logs if logs.digest is not None and self._knows(logs.owner, logs.digest, fresh)
        ]
        if not known_logs:
            return record
        rest = [logs for logs in record.logs if not any(logs is one for one in known_logs)]
        if not (rest or record.scalars.lengths or record.samples):
            return None
        return records.with_logs(record, rest)

    def _knows(self, owner: Owner, digest: bytes, fresh: list[Record]) -> bool:
        if any(logs.owner == owner and logs.digest == digest for record in fresh for logs in record.logs):
            return True
        # Digests move from memtables to the database, so none is missed in this order.
        with self.lock:
            if any(owner in table.owners and digest in table.owners[owner].digests for table in self.tables()):
                return True
        rows = self._database.reader().execute(
            "SELECT 1 FROM owners JOIN log_digests ON owner = id"
            " WHERE company = ? AND name = ? AND is_model = ? AND digest IN (?, ?)",
            (owner.company, owner.id, int(owner.is_model), digest, body_id(digest)),
        )
        return rows.fetchone() is not None

    def tables(self) -> list[Memtable]:
        """Every memtable, oldest first. The caller holds the lock, or is the merging thread."""
        return [*self.frozen, self.active]

    @property
    def unmerged_bytes(self) -> int:
        """Bytes of all records in the journal."""
        return sum(table.size for table in self.tables())

    def holds(self, owner: Owner) -> bool:
        """Whether the owner has events that are not merged."""
        with self.lock:
            return any(owner in table.owners for table in self.tables())

    def owners(self) -> set[Owner]:
        """Every owner with events that are not merged."""
        with self.lock:
            return {owner for table in self.tables() for owner in table.owners}

    def freeze(self) -> None:
        """End the active segment, unless it is empty."""
        with self._appending:
            if not self.active.events:
                return
            self._journal.rotate()
            with self.lock:
                self.frozen.append(self.active)
                self.active = Memtable(self._journal.number)

    def drop(self, table: Memtable, commit: Callable[[], object]) -> None:
        """Drop the oldest frozen memtable, and `commit` the transaction that merged it, in one step for readers."""
        summary = self._summaries.of(table)
        with self.entrance:
            commit()
            with self.lock:
                self.frozen.remove(table)
                self._feed.merged(summary)
        segment = journal.segment_path(self._folder, table.segment)
        try:
            segment.unlink(missing_ok=True)
        except OSError as error:  # the next start deletes it
            logger.warning("the merged journal %s cannot be deleted now: %s", segment, error.strerror)

    def deleted(
        self, owners: Collection[Owner], commit: Callable[[], object], *, brings: bool = False, whole: bool = False
    ) -> None:
        """`commit` the transaction that deleted merged events of the owners, and tell of it in the same step.

        `brings`: the transaction puts events beside merged ones instead. In both cases, readers are told that
        everything may have changed. `whole`: it deleted all merged events of the owners.
        """
        with self.entrance:
            commit()
            with self.lock:
                self._feed.deleted(owners, brings=brings, whole=whole)
                self._watches.changed(owners)

    def look(self, query: ChangesQuery, watch: Watch | None = None) -> Look:
        """What changed of the query's owners or, with a `watch`, of those that it noted. The rest needs no lock."""
        with self.lock:
            owners = list(query.owners if watch is None else watch.take())
            look = self._feed.look(self.active, query)
        for start in range(0, len(owners) if query.since is not None else 0, self._at_once):
            with self.lock:  # not for all owners at once, as those who add events would wait too long
                self._feed.look_at(look, self.tables(), owners[start : start + self._at_once])
        return look

    def look_for_new(self, owner: Owner, since: Cursor) -> Look:
        """What came of an owner, without what went."""
        with self.lock:
            return self._feed.look_for_new(self.active, self.tables(), owner, since)

    @contextmanager
    def watching(self, owners: Collection[Owner]) -> Iterator[Watch]:
        """A watch of the owners, while the block is open."""
        watch = Watch(owners)
        with self.lock:
            self._watches.add(watch)
        try:
            yield watch
        finally:
            with self.lock:
                self._watches.remove(watch)

    @contextmanager
    def snapshot(self, pick: Callable[[Memtable], Picked]) -> Iterator[tuple[sqlite3.Connection, list[Picked]]]:
        """A consistent view: a connection in a read transaction, and what `pick` copies of memtables, oldest first."""
        conn = self._database.reader()
        with self.entrance, self.lock:
            conn.execute("BEGIN")
            try:
                conn.execute("SELECT 1 FROM state").fetchone()  # SQLite begins a transaction with its first read
                picked = [pick(table) for table in self.tables()]
            except BaseException:
                conn.execute("ROLLBACK")
                raise
        try:
            yield conn, picked
        finally:
            conn.execute("ROLLBACK")

    @property
    def unstated(self) -> set[Owner]:
        """Owners with events since `restated` last named them, in this process or an earlier one."""
        with self.lock:
            return set(self._unstated)

    def owners_to_restate(self) -> set[Owner]:
        """The same, for a caller who will write their documents."""
        with self.lock:
            self._untold.clear()
            return set(self._unstated)

    def restated(self, owners: Collection[Owner]) -> None:
        """Note that the documents of these owners show all events so far.

        Owners that an earlier process left stay noted until `owners_to_restate` has returned them.
        """
        with self.lock:
            self._unstated.difference_update(set(owners) - self._untold)

    def close(self) -> None:
        """Close the journal, and wake those who watch."""
        with self._appending:
            self._journal.close()
        with self.lock:
            self._watches.wake_all()
