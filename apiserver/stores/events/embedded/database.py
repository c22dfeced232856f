"""The SQLite file of merged events: its schema, one connection for writing, and one for reading in each thread.

Only the `Merger` changes the file and checkpoints its write-ahead log. The steps in `migrations/sqlite/events` make the
schema.
"""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

from apiserver.common import resources
from apiserver.events.model import Owner
from apiserver.stores.events.base import EventStoreError
from apiserver.stores.events.embedded.bounds import BOUNDS, EmbeddedBounds
from apiserver.stores.sqlite_steps import NewerSchema, bring_up_to_date

#: Bytes of a page of new files. Larger pages read no faster, and leave more bytes unused after each chunk.
_PAGE = 4096
#: Bytes of the file that are mapped into memory. Reads of them take a quarter less time. Pages that were read count as
#: memory of the process, but the system takes them back when it needs memory.
_MMAP = 2**29
_BUSY_MS = 5000


class Database:
    """`events.db` in the store's folder."""

    def __init__(self, folder: Path, *, fsync: bool, bounds: EmbeddedBounds = BOUNDS) -> None:
        self._path = folder / "events.db"
        self._log = folder / "events.db-wal"
        self._fsync = fsync
        self._bounds = bounds
        self._local = threading.local()
        self._readers: list[sqlite3.Connection] = []
        self._readers_lock = threading.Lock()
        self.writer = self._connect()
        try:
            self._prepare()
        except BaseException:
            self.writer.close()
            raise

    def reader(self) -> sqlite3.Connection:
        """This thread's connection for reading."""
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._connect()
            connection.execute("PRAGMA query_only = ON")
            with self._readers_lock:
                self._readers.append(connection)
        return connection

    def owners(self) -> set[Owner]:
        """Every owner that has something in the file."""
        rows = self.reader().execute("SELECT company, name, is_model FROM owners")
        return {Owner(company, name, bool(is_model)) for company, name, is_model in rows}

    @property
    def log_is_long(self) -> bool:
        """Whether the write-ahead log should be truncated."""
        try:
            return self._log.stat().st_size > self._bounds.log_bytes
        except FileNotFoundError:
            return False

    def checkpoint(self) -> None:
        """Copy as much of the log into the database as readers allow."""
        self.writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def truncate_log(self) -> None:
        """Truncate the log, if all readers end their transactions soon."""
        self.writer.execute(f"PRAGMA busy_timeout = {round(1000 * self._bounds.readers_leave_seconds)}")
        try:
            self.writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            self.writer.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")

    def shrink(self, pages: int) -> None:
        """Give back this many free pages at the most.

        SQLite frees a page at each step of the pragma. `execute` would take one step only, as the rows have no columns.
        """
        self.writer.executescript(f"PRAGMA incremental_vacuum({pages})")

    def close(self) -> None:
        """Close every connection. None may be in use."""
        with self._readers_lock:
            for connection in self._readers:
                connection.close()
            self._readers.clear()
        self.writer.close()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, timeout=_BUSY_MS / 1000, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        connection.execute(f"PRAGMA mmap_size = {_MMAP}")
        return connection

    def _prepare(self) -> None:
        execute = self.writer.execute
        execute(f"PRAGMA page_size = {_PAGE}")
        execute("PRAGMA auto_vacuum = INCREMENTAL")
        execute("PRAGMA journal_mode = WAL")
        execute(f"PRAGMA synchronous = {'FULL' if self._fsync else 'NORMAL'}")
        execute("PRAGMA wal_autocheckpoint = 0")
        # Debian's SQLite would overwrite deleted content with zeros, so the log would grow by as much as is deleted.
        execute("PRAGMA secure_delete = OFF")
        execute(f"PRAGMA journal_size_limit = {self._bounds.log_bytes}")
        # Readers wait for commits. A small cache makes them short, as it writes pages while a transaction goes on.
        execute("PRAGMA cache_size = -1024")
        try:
            bring_up_to_date(self.writer, resources.path("migrations/sqlite/events"))
        except NewerSchema as error:
            raise EventStoreError(f"{self._path} {error}") from None
