"""The connections to one SQLite file: one for writing, behind a lock, and one for reading in each thread.

A committed transaction is in the write-ahead log, so it survives kill -9. Errors of SQLite become errors of the store.
The caller decides when to move the log into the file (`checkpoint`), because that waits for the disk.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from apiserver.common import resources
from apiserver.stores.documents.base import (
    DocumentStoreBusy,
    DocumentStoreError,
    DuplicateDocument,
    InvalidDocument,
    InvalidFilter,
)
from apiserver.stores.documents.sqlite.bounds import BOUNDS, SqliteBounds
from apiserver.stores.reserve import Reserve
from apiserver.stores.sqlite_steps import NewerSchema, bring_up_to_date

_APPLICATION = 0x45564453
_LOG_KEPT = 2**20
_OLDEST_SQLITE = (3, 35, 0)
#: Steps of SQLite's virtual machine between two looks at the clock. They take some milliseconds.
_STEPS = 100_000


#: Values of more bytes are given to Python functions one at a time, because decoding takes a multiple of their size.
_LARGE = 2**20
_asking_of_large = threading.Lock()


class Callbacks(dict[int, list[Callable[[Any], Any]]]):
    """Python functions of running statements. SQL calls one with `ask(statement, place, value)`."""

    def ask(self, statement: int, place: int, value: Any) -> Any:
        """The result of the function at this place of the statement's list."""
        if not isinstance(value, str | bytes) or len(value) <= _LARGE:
            return self[statement][place](value)
        with _asking_of_large:
            return self[statement][place](value)


class Connections:
    """The connections, for any thread. With `fsync`, transactions survive a loss of power."""

    def __init__(
        self, path: Path, *, fsync: bool = False, reserve: Reserve | None = None, bounds: SqliteBounds = BOUNDS
    ) -> None:
        self.bounds = bounds
        self._path = path
        self._reserve = reserve or Reserve(path)
        self._log = path.with_name(path.name + "-wal")
        self._synchronous = "FULL" if fsync else "NORMAL"
        self._lock = threading.Lock()
        self._local = threading.local()
        self._open: list[sqlite3.Connection] = []
        self._writer: sqlite3.Connection | None = None
        self._ending = False
        self._by_others = 0
        self.callbacks = Callbacks()

    def open(self) -> None:
        """Make or check the file. DocumentStoreError if it belongs to another program or to a newer version."""
        if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
            raise DocumentStoreError(f"SQLite 3.35 or newer is needed, this is {sqlite3.sqlite_version}")
        try:
            with errors(self._path):
                self._path.parent.mkdir(parents=True, exist_ok=True)
                writer = self._connect()
                if not writer.execute("SELECT 1 FROM pragma_module_list WHERE name = 'fts5'").fetchone():
                    raise DocumentStoreError("SQLite with its full-text search (FTS5) is needed")
                self._migrate(writer)
                self._writer = writer
                self._ending = False
        except DocumentStoreError:
            self.close()
            raise

    def close(self) -> None:
        """Close all connections. No other thread may use one any more."""
        while self._open:
            self._open.pop().close()
        self._writer = None
        self._local = threading.local()

    def end_reads(self) -> None:
        """Let all running reads end with DocumentStoreBusy, so that closing need not wait for them."""
        self._ending = True

    @property
    def free(self) -> bool:
        """Whether a write could start without waiting."""
        return not self._lock.locked()

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """This thread's connection. InvalidFilter if the read takes longer than `longest_read`.

        A read inside another read shares its time.
        """
        if self._writer is None:
            raise DocumentStoreError("the document store is not open")
        if self._ending:
            raise DocumentStoreBusy(f"{self._path} is being closed")
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        with errors(self._path):
            if connection is None:
                connection = self._local.connection = self._connect()
                connection.set_progress_handler(self._is_over, _STEPS)
            outermost = getattr(self._local, "until", None) is None
            if outermost:
                self._local.until = time.monotonic() + self.bounds.longest_read
            try:
                yield connection
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
                    raise
                if self._ending:
                    raise DocumentStoreBusy(f"{self._path} is being closed") from None
                raise InvalidFilter(
                    f"this takes longer than {self.bounds.longest_read} seconds: ask for less"
                ) from None
            finally:
                if outermost:
                    self._local.until = None

    def _is_over(self) -> bool:
        """Whether this thread's read has to end. SQLite calls this every `_STEPS` steps."""
        return self._ending or (self._local.until is not None and time.monotonic() > self._local.until)

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """This thread's connection, inside a transaction: all reads see the documents as they are at one moment."""
        with self.read() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    @contextmanager
    def write(self, *, spare_reserve: bool = False) -> Iterator[sqlite3.Connection]:
        """The writing connection, inside a transaction. It is committed at the end, or rolled back on any error.

        `spare_reserve`: on a full disk, fail instead of using the reserve.
        """
        with self._lock, errors(self._path):
            if self._writer is None:
                raise DocumentStoreError("the document store is not open")
            if not spare_reserve:
                self._reserve.make_room()
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise

    def changes_by_others(self) -> int:
        """A number that differs after another process, such as a command line, has changed the file.

        While a transaction is under way, this is the number from before.
        """
        if self._writer is not None and self._lock.acquire(blocking=False):
            try:
                with errors(self._path):
                    (self._by_others,) = self._writer.execute("PRAGMA data_version").fetchone()
            finally:
                self._lock.release()
        return self._by_others

    def log_size(self) -> int:
        """Bytes of the log. The first write after a checkpoint cuts the log to a megabyte or less."""
        try:
            return self._log.stat().st_size
        except OSError:
            return 0

    def checkpoint(self) -> None:
        """Move the log into the file, without holding up readers or the writer."""
        with self.read() as connection:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, timeout=5, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        self._open.append(connection)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute(f"PRAGMA journal_size_limit = {_LOG_KEPT}")
        connection.create_function("ask", 3, self.callbacks.ask)
        return connection

    def _migrate(self, connection: sqlite3.Connection) -> None:
        """Bring the file up to date, if it is one of documents."""
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if tables and application != _APPLICATION:
            raise DocumentStoreError(f"{self._path} is not a file of this server's documents")
        try:
            bring_up_to_date(connection, resources.path("migrations/sqlite/documents"))
        except NewerSchema as error:
            raise DocumentStoreError(f"{self._path} {error}") from None


@contextmanager
def errors(path: Path) -> Iterator[None]:
    """Turn SQLite's errors, and errors about values that SQLite cannot hold, into errors of the store."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise DuplicateDocument(_duplicate(str(error))) from None
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF in _PASSING:
            raise DocumentStoreBusy(f"{path}: {error}") from error
        raise DocumentStoreError(f"{path}: {error}") from error
    except sqlite3.Error as error:
        raise DocumentStoreError(f"{path}: {error}") from error
    except OSError as error:
        raise DocumentStoreError(f"{path}: {error.strerror}") from error
    except UnicodeEncodeError:
        raise InvalidDocument("text that is not valid Unicode") from None
    except RecursionError:
        raise InvalidDocument("nested too deeply") from None


_PASSING = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM}


def _duplicate(message: str) -> str:
    """The message for SQLite's "UNIQUE constraint failed: projects.key.company, projects.key.name"."""
    columns = [column.strip().partition(".") for column in message.partition(": ")[2].split(",")]
    fields = ", ".join(column.removeprefix("key.") for _, _, column in columns)
    return f"{columns[0][0]}: a document with the same {fields} is there already"
