"""Where reads and writes of the store run, and what they get there: a connection, side tables, the documents' moment.

A call that names one document by its `id` runs on the event loop, because handing it to a thread would take longer. It
runs in a thread if it needs fields that may be large, unless they are known to be small (`small.py`), or if a
longer write is under way. All other calls run in threads.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from apiserver.common.off_loop import in_thread
from apiserver.stores.documents.base import DocumentStoreError
from apiserver.stores.documents.dialect.filters import Condition, names_one
from apiserver.stores.documents.query import AllOf
from apiserver.stores.documents.sqlite.changing import Transaction
from apiserver.stores.documents.sqlite.connections import Connections
from apiserver.stores.documents.sqlite.planning import sides_for
from apiserver.stores.documents.sqlite.remembered import Remembered
from apiserver.stores.documents.sqlite.side_tables import Side, text_of
from apiserver.stores.documents.sqlite.small import SmallFields
from apiserver.stores.documents.sqlite.table import Table
from apiserver.stores.documents.sqlite.translate import Statement
from apiserver.stores.documents.sqlite.upkeep import Upkeep

T = TypeVar("T")
Ask = Callable[[Statement], T]

logger = logging.getLogger(__name__)

#: Threads that read and write.
READERS = 4
_LARGE_LOG = 4 * 2**20
#: After so many calls that ran on the event loop, other tasks have their turn: a handler may ask for many documents.
_TURN = 16
_MOST_WAITING = 8
"""Side tables that may wait to be made. A query that would need another one does without it."""


class _Threads:
    """The threads of an open store, by what they do."""

    def __init__(self) -> None:
        self.all = ThreadPoolExecutor(READERS, thread_name_prefix="documents")
        """They read and write, except what follows."""
        self.lookup = ThreadPoolExecutor(1, thread_name_prefix="documents-lookup")
        """Reads collections without large fields, so that a caller is identified even while tasks are searched."""
        self.fill = ThreadPoolExecutor(1, thread_name_prefix="documents-fill")
        """Makes side tables, one after another."""

    def end(self) -> None:
        """Wait for the work that was given to these threads, then end them."""
        for threads in (self.fill, self.all, self.lookup):
            threads.shutdown()


class _WithoutSides(Exception):
    """A read would be quicker with these side tables, which are not there yet."""

    def __init__(self, sides: Sequence[Side]) -> None:
        super().__init__(sides)
        self.sides = sides


class Work:
    """Runs the reads and writes of an open store."""

    def __init__(self, connections: Connections, remembered: Remembered, *, fsync: bool) -> None:
        """With `fsync`, each change waits for the disk."""
        self._connections = connections
        self._bounds = connections.bounds
        self._remembered = remembered
        self._fsync = fsync
        self.small = SmallFields()
        self._threads: _Threads | None = None
        self._checkpoint: Future[None] | None = None
        self._at_once = 0
        self._upkeep = Upkeep(connections)
        self._waiting = 0

    def open(self) -> None:
        self._connections.open()
        self._threads = _Threads()

    async def close(self) -> None:
        """Wait for what is under way, and close the connections."""
        if self._threads is not None:
            threads, self._threads = self._threads, None
            self._connections.end_reads()
            await asyncio.to_thread(threads.end)
            self._connections.close()

    async def read_once(
        self,
        table: Table,
        condition: Condition,
        question: str,
        roots: set[str],
        ask: Ask[T],
        *,
        worth: Callable[[], bool] = lambda: True,
    ) -> T:
        """What `ask` finds or, if the top-level fields in `roots` have not changed since, has found before."""
        if names_one(condition) or not table.apart:
            return await self.read(table, condition, ask, quick=names_one(condition))

        return await self.read(
            table,
            condition,
            lambda statement: self._remembered.of(table.name, roots, question, lambda: ask(statement), worth=worth),
        )

    async def read(
        self, table: Table, condition: Condition, ask: Ask[T], sides: Collection[Side] = (), *, quick: bool = False
    ) -> T:
        """What `ask` finds. It sees all documents as they are at one moment.

        The side tables that the condition needs, and `sides`, help to find it. Those that are not there yet are made
        first, if many documents would have to be read without them.
        """
        useful, without_sides = set(sides), list[Condition]()
        if table.apart and not names_one(condition):
            sides_of_condition, without_sides = sides_for(table, condition)
            useful |= sides_of_condition

        def work(*, make: bool) -> T:
            moment = self._connections.read() if quick else self._connections.snapshot()
            with moment as connection:
                names = self._upkeep.known(connection, table) if useful else {}
                if make and (missing := useful.difference(names)) and self._are_many(connection, table, without_sides):
                    raise _WithoutSides(sorted(missing, key=text_of))
                used = {side: name for side, name in names.items() if side in useful and name is not None}
                self._upkeep.used(used.values())
                with Statement(table, self._connections.callbacks, connection, used, self._bounds) as statement:
                    return ask(statement)

        try:
            return await self.run(quick, partial(work, make=True), small=not table.apart)
        except _WithoutSides as error:
            await self._make(table, error.sides)
        return await self.run(quick, partial(work, make=False), small=not table.apart)

    def _are_many(self, connection: sqlite3.Connection, table: Table, conditions: Sequence[Condition]) -> bool:
        """Whether many documents meet some conditions that need no side table."""
        with Statement(table, self._connections.callbacks, connection, None, self._bounds) as statement:
            where = statement.where(AllOf(conditions))
            many = self._bounds.many
            return len(statement.found(f'SELECT 1 FROM "{table.name}" WHERE {where} LIMIT {many + 1}')) > many

    async def _make(self, table: Table, sides: Iterable[Side]) -> None:
        """Make side tables, unless too many are waiting to be made."""
        for side in sides:
            if self._threads is None or self._waiting >= _MOST_WAITING:
                return
            self._waiting += 1
            try:
                await asyncio.get_running_loop().run_in_executor(self._threads.fill, self._upkeep.fill, table, side)
            except DocumentStoreError as error:
                logger.warning("no side table was made of %s: %s", table.name, error)
            finally:
                self._waiting -= 1

    async def write(self, quick: bool, work: Callable[[Transaction], T]) -> T:
        """Run one transaction. Afterwards move SQLite's log into the file if the log is large."""

        def run() -> T:
            changed: Sequence[tuple[str, set[str] | None]] = ()
            deleted: Sequence[tuple[str, str]] = ()
            try:
                with self._connections.write() as connection:
                    transaction = Transaction(connection, self._connections.callbacks, self.small, self._bounds)
                    changed, deleted = transaction.changed, transaction.deleted
                    return work(transaction)
            finally:
                for table, roots in changed:
                    self._remembered.changed(table, roots)
                for table, id in deleted:
                    self.small.forget(table, id)

        result = await self.run(quick and not self._fsync and self._connections.free, run)
        running = self._checkpoint is not None and not self._checkpoint.done()
        if not running and self._threads is not None and self._connections.log_size() > _LARGE_LOG:
            self._checkpoint = self._threads.all.submit(self._connections.checkpoint)
        return result

    async def run(self, quick: bool, work: Callable[[], T], *, small: bool = False) -> T:
        if self._threads is None:
            raise DocumentStoreError("the document store is not open")
        if quick:
            done = work()
            self._at_once += 1
            if self._at_once % _TURN == 0:
                await asyncio.sleep(0)
            return done
        threads = self._threads.lookup if small else self._threads.all
        return await asyncio.get_running_loop().run_in_executor(threads, in_thread(work))
