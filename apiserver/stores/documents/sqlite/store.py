"""The DocumentStore on one SQLite file.

A call that names one document by its `id` takes less time than handing it to another thread, so it runs at once, unless
a longer write is under way or it needs fields kept apart, which may be large. All other calls run in worker threads.
"""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import orjson

from apiserver.stores.documents.base import (
    Counted,
    Document,
    DocumentStoreError,
    Filter,
    Index,
    InvalidDocument,
    InvalidFilter,
    Sort,
    Update,
)
from apiserver.stores.documents.dialect import paths
from apiserver.stores.documents.dialect.filters import Condition, names_one, parse_filter, paths_of
from apiserver.stores.documents.dialect.sorts import Term, parse_sort
from apiserver.stores.documents.dialect.updates import ParsedUpdate
from apiserver.stores.documents.dialect.values import order
from apiserver.stores.documents.indexes import APART, INDEXES, LISTS, NUMERIC
from apiserver.stores.documents.sqlite.connections import Connections
from apiserver.stores.documents.sqlite.memory import Memory
from apiserver.stores.documents.sqlite.pages import select
from apiserver.stores.documents.sqlite.reading import Documents
from apiserver.stores.documents.sqlite.table import Table, apart_column, create, decode, dumps
from apiserver.stores.documents.sqlite.translate import Statement
from apiserver.stores.reserve import Reserve

T = TypeVar("T")

_THREADS = 4
_LARGE_LOG = 4 * 2**20
_MANY_FIELDS = 1000
#: After so many calls that were done at once, the event loop has its turn: a handler that asks for one document after
#: the other keeps nobody waiting.
_TURN = 16
_SMALL = 64 * 1024
"""Characters of documents that are inserted at once."""
_LARGEST = 17 * 2**20
"""The most characters of one field that has a column of its own, and of all other fields of a document together. The
largest request fits. Each change writes them anew, so a document that grew with every change would cost ever more."""
_DERIVED = frozenset([apart_column("last_metrics")])
"""What the server writes itself, for as many series as a task may have. A task that had more before there was a
bound would never be brought up to date again."""


class SqliteDocumentStore:
    """Collections as tables of one file, which one process owns. For use by one event loop at a time."""

    def __init__(
        self,
        path: Path,
        *,
        indexes: Iterable[Index] = INDEXES,
        apart: Mapping[str, Sequence[str]] = APART,
        numeric: Mapping[str, Sequence[str]] = NUMERIC,
        lists: Mapping[str, Sequence[str]] = LISTS,
        fsync: bool = False,
        reserve: Reserve | None = None,
    ) -> None:
        """With `fsync`, what a call changed survives the loss of power too, and the call waits for the disk.

        Changes of documents are small: on a full disk they may have the `reserve`.
        """
        self._connections = Connections(path, fsync=fsync, reserve=reserve)
        self._fsync = fsync
        self._indexes = tuple(indexes)
        self._apart = apart
        self._numeric = numeric
        self._lists = lists
        self._tables: dict[str, Table] = {}
        self._threads: ThreadPoolExecutor | None = None
        self._checkpoint: Future[None] | None = None
        self._at_once = 0
        self._changes = 0
        self._numbers = itertools.count(1)
        self._memory = Memory(self._connections)
        self._changed: list[tuple[str, Collection[int], set[str] | None]] = []
        """Rows of tables, and their top-level fields, that the transaction under way has changed."""

    @property
    def changes(self) -> int:
        return self._changes

    @property
    def shared(self) -> bool:
        return False

    async def open(self) -> None:
        self._connections.open()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="documents")

    async def close(self) -> None:
        if self._threads is not None:
            threads, self._threads = self._threads, None
            self._connections.end_reads()
            await asyncio.to_thread(threads.shutdown)
            self._connections.close()
            self._tables.clear()

    async def collections(self) -> list[str]:
        def work() -> list[str]:
            with self._connections.read() as connection:
                tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
                names = [name for (name,) in tables if not name.startswith("sqlite_")]
                return [name for name in names if connection.execute(f'SELECT 1 FROM "{name}" LIMIT 1').fetchone()]

        return await self._run(False, work)

    async def insert(self, collection: str, documents: Sequence[Document]) -> None:
        table = await self._table(collection)
        rows = [table.encode(document) for document in documents]
        for row in rows:
            _check_size(table, zip(table.columns, row, strict=True))
        small = sum(len(value) for row in rows for value in row if isinstance(value, str)) < _SMALL

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(table.insertion(), rows)
            self._changed.append((table.name, _last(connection, table, len(rows)), None))

        await self._write(small, work)

    async def find(
        self,
        collection: str,
        filter: Filter,
        *,
        projection: Sequence[str] | None = None,
        sort: Sort = (),
        skip: int = 0,
        limit: int | None = None,
        counted: Counted | None = None,
    ) -> list[Document]:
        table = await self._table(collection)
        wanted = None if projection is None else [paths.parse(path) for path in projection]
        apart = [name for name in table.apart if wanted is None or any(path[0] == name for path in wanted)]
        condition, terms = parse_filter(filter), parse_sort(sort, table.numeric)
        names = names_one(condition)
        terms = [] if names else terms  # one document is in order

        def work() -> list[Document]:
            columns = ["doc", *map(apart_column, apart)]
            made = Documents(apart, wanted, counted)
            return self._memory.page(table, condition, columns, terms, skip, limit, made)

        return await self._run(names and not set(apart) & set(table.large), work)

    async def find_one(
        self,
        collection: str,
        filter: Filter,
        *,
        projection: Sequence[str] | None = None,
        sort: Sort = (),
        counted: Counted | None = None,
    ) -> Document | None:
        found = await self.find(collection, filter, projection=projection, sort=sort, limit=1, counted=counted)
        return found[0] if found else None

    async def count(self, collection: str, filter: Filter) -> int:
        table = await self._table(collection)
        condition = parse_filter(filter)

        def ask() -> int:
            with self._memory.statement(table, condition) as statement, self._connections.read() as connection:
                sql = f'SELECT count(*) FROM "{table.name}" WHERE {statement.where(condition)}'
                (number,) = connection.execute(sql, statement.parameters).fetchone()
                return int(number)

        if names_one(condition) or not table.apart:
            return await self._run(names_one(condition), ask)
        roots = {path[0] for path in paths_of(condition)}
        return await self._run(False, lambda: self._memory.answers.of(table.name, roots, repr(filter), ask))

    async def count_by(self, collection: str, filter: Filter, fields: Sequence[str]) -> dict[tuple[Any, ...], int]:
        counts: dict[tuple[Any, ...], int] = {}
        for number, *found in await self._grouped(collection, filter, fields):
            key = tuple(dumps(value) if isinstance(value, dict | list) else value for value in found)
            counts[key] = counts.get(key, 0) + number
        return counts

    async def distinct(self, collection: str, field: str, filter: Filter) -> list[Any]:
        found = [value for _, value in await self._grouped(collection, filter, [field])]
        items = (item for value in found for item in (value if isinstance(value, list) else [value]))
        distinct = {order(item): item for item in items if item is not None}
        return [distinct[key] for key in sorted(distinct)]

    async def varieties(self, collection: str, field: str, filter: Filter) -> list[Document]:
        table = await self._table(collection)
        condition, path = parse_filter(filter), paths.parse(field)[:1]

        def work() -> list[tuple[str, int]]:
            with self._memory.statement(table, condition) as statement, self._connections.read() as connection:
                where = statement.where(condition)
                sql = f'SELECT min(id), {statement.shape(path[0])} FROM "{table.name}" WHERE {where} GROUP BY 2'
                return connection.execute(sql, statement.parameters).fetchall()

        def at_once() -> list[Document]:
            apart = [name for name in path if name in table.apart]
            columns = ", ".join(["doc", *map(apart_column, apart)])
            with Statement(table, self._connections.callbacks) as statement, self._connections.read() as connection:
                where = statement.where(condition)
                ids = f'SELECT min(id) FROM "{table.name}" WHERE {where} GROUP BY {statement.shape(path[0])}'
                rows = connection.execute(
                    f'SELECT {columns} FROM "{table.name}" WHERE id IN ({ids})', statement.parameters
                ).fetchall()
            return [paths.project(decode(doc, apart, texts), [path]) for doc, *texts in rows]

        roots, question = {path[0], *(asked[0] for asked in paths_of(condition))}, repr((filter, "varieties", field))
        shapes = dict(await self._run(False, lambda: self._memory.answers.of(table.name, roots, question, work)))
        found = await self.find(collection, {"id": {"$in": list(shapes)}}, projection=path)
        if {paths.shape_of(document.get(path[0])) for document in found} >= set(shapes.values()):
            return found
        return await self._run(False, at_once)  # one has changed meanwhile

    async def update(
        self, collection: str, filter: Filter, update: Update, *, many: bool = False, upsert: Document | None = None
    ) -> int:
        change, condition = await self._parsed(update), parse_filter(filter)
        table = await self._table(collection)
        apart = [name for name in table.apart if name in change.roots]

        def work(connection: sqlite3.Connection) -> int:
            rows = self._matching(connection, table, condition, apart, (), None if many else 1)
            for row, doc, *texts in rows:
                _store(connection, table, row, change.apply(decode(doc, apart, texts)), change.roots)
            self._changed.append((table.name, [row for row, *_ in rows], change.roots))
            if not rows and upsert is not None:
                fresh = change.apply(orjson.loads(dumps(upsert)))
                encoded = table.encode(fresh)
                _check_size(table, zip(table.columns, encoded, strict=True))
                connection.execute(table.insertion(), encoded)
                self._changed.append((table.name, _last(connection, table, 1), None))
            return len(rows)

        small = not change.roots & set(table.large)
        return await self._write(names_one(condition) and small and upsert is None, work)

    async def find_and_update(
        self, collection: str, filter: Filter, update: Update, *, sort: Sort = (), return_new: bool = True
    ) -> Document | None:
        change, condition = ParsedUpdate(update), parse_filter(filter)
        table = await self._table(collection)
        terms = parse_sort(sort, table.numeric)

        def work(connection: sqlite3.Connection) -> Document | None:
            rows = self._matching(connection, table, condition, table.apart, terms, 1)
            for row, doc, *texts in rows:
                new = change.apply(decode(doc, table.apart, texts))
                _store(connection, table, row, new, change.roots)
                self._changed.append((table.name, [row], change.roots))
                return new if return_new else decode(doc, table.apart, texts)
            return None

        return await self._write(names_one(condition) and not table.large, work)

    async def delete(self, collection: str, filter: Filter) -> int:
        table = await self._table(collection)
        condition = parse_filter(filter)

        def work(connection: sqlite3.Connection) -> int:
            with Statement(table, self._connections.callbacks) as statement:
                sql = f'DELETE FROM "{table.name}" WHERE {statement.where(condition)} RETURNING row'
                rows = [row for (row,) in connection.execute(sql, statement.parameters)]
            self._changed.append((table.name, rows, None))
            return len(rows)

        return await self._write(False, work)

    async def _table(self, collection: str) -> Table:
        """The collection's layout; its table is made when it is first named."""
        table = self._tables.get(collection)
        if table is None:
            layout = (named.get(collection, ()) for named in (self._apart, self._numeric, self._lists))
            table = Table.of(collection, self._indexes, *layout)
            fresh = table
            await self._write(False, lambda connection: create(connection, fresh))
            self._tables[collection] = table
        return table

    async def _grouped(self, collection: str, filter: Filter, fields: Sequence[str]) -> list[list[Any]]:
        """The number of matching documents, and the values of the fields they share, for each group of the same."""
        if not fields:
            raise InvalidFilter("a field to group by is needed")
        table = await self._table(collection)
        condition, parsed = parse_filter(filter), [paths.parse(field) for field in fields]

        def ask() -> list[list[Any]]:
            with self._memory.statement(table, condition) as statement, self._connections.read() as connection:
                columns, readers = zip(*(statement.grouped(path) for path in parsed), strict=True)
                values = ", ".join(columns)
                groups = ", ".join(f"+{column}" for column in columns)  # in no index's order: one that covers is faster
                where = statement.where(condition)
                sql = f'SELECT count(*), {values} FROM "{table.name}" WHERE {where} GROUP BY {groups}'
                rows = connection.execute(sql, statement.parameters).fetchall()
            return [
                [number, *(read(value) for read, value in zip(readers, found, strict=True))] for number, *found in rows
            ]

        if not table.apart:
            return await self._run(False, ask)
        roots = {path[0] for path in [*parsed, *paths_of(condition)]}
        return await self._run(False, lambda: self._memory.answers.of(table.name, roots, repr((filter, fields)), ask))

    def _matching(
        self,
        connection: sqlite3.Connection,
        table: Table,
        condition: Condition,
        apart: Sequence[str],
        terms: Sequence[Term],
        limit: int | None,
    ) -> list[tuple[Any, ...]]:
        """Row number, `doc` and columns kept apart of the documents to update."""
        with Statement(table, self._connections.callbacks) as statement:
            where = statement.where(condition)
            sql = select(statement, where, ["row", "doc", *map(apart_column, apart)], terms, 0, limit)
            return connection.execute(sql, statement.parameters).fetchall()

    async def _parsed(self, update: Update) -> ParsedUpdate:
        """The update, parsed; one of very many fields (a task's thousands of series) in a thread."""
        fields = sum(len(changes) for changes in update.values() if isinstance(changes, Mapping))
        return await self._run(fields < _MANY_FIELDS, lambda: ParsedUpdate(update))

    async def _write(self, quick: bool, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run one transaction; afterwards, when the log has grown, have it moved into the file."""

        def transaction() -> T:
            try:
                with self._connections.write() as connection:
                    changed = self._changed = []
                    result = work(connection)
                for table, rows, roots in changed:
                    self._memory.forget(table, rows, roots)
                return result
            finally:
                self._changes = next(self._numbers)  # of several threads, each sets a number of its own

        result = await self._run(quick and not self._fsync and self._connections.free, transaction)
        running = self._checkpoint is not None and not self._checkpoint.done()
        if not running and self._threads is not None and self._connections.log_size() > _LARGE_LOG:
            self._checkpoint = self._threads.submit(self._connections.checkpoint)
        return result

    async def _run(self, quick: bool, work: Callable[[], T]) -> T:
        if self._threads is None:
            raise DocumentStoreError("the document store is not open")
        if quick:
            done = work()
            self._at_once += 1
            if self._at_once % _TURN == 0:
                await asyncio.sleep(0)
            return done
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def _last(connection: sqlite3.Connection, table: Table, count: int) -> range:
    """The rows of so many documents that were just inserted."""
    (last,) = connection.execute(f'SELECT max("row") FROM "{table.name}"').fetchone()
    return range((last or 0) - count + 1, (last or 0) + 1)


def _store(connection: sqlite3.Connection, table: Table, row: int, document: Document, roots: set[str]) -> None:
    """Write back a document that changed in some top-level fields: the columns, and indexes, of no others."""
    changed = table.encode_changed(document, roots)
    _check_size(table, changed.items())
    assigned = ", ".join(f"{column} = ?" for column in changed)
    connection.execute(f'UPDATE "{table.name}" SET {assigned} WHERE row = ?', (*changed.values(), row))


def _check_size(table: Table, values: Iterable[tuple[str, Any]]) -> None:
    """InvalidDocument for a value that is too large, by its column."""
    if any(isinstance(value, str) and len(value) > _LARGEST and column not in _DERIVED for column, value in values):
        raise InvalidDocument(f"{table.name}: a document is larger than the {_LARGEST >> 20} MB that are kept")
