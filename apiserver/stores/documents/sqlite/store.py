"""The DocumentStore on one SQLite file.

A call that names one document by its `id` runs on the event loop, because handing it to a thread would take longer. It
runs in a thread if it needs large fields, or if a longer write is under way. All other calls run in threads.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import orjson

from apiserver.off_loop import in_thread
from apiserver.stores.documents.base import Counted, DocumentStoreError, Index, InvalidDocument, InvalidFilter
from apiserver.stores.documents.dialect import paths
from apiserver.stores.documents.dialect.documents import is_name
from apiserver.stores.documents.dialect.filters import Condition, names_one, parse_filter, paths_of
from apiserver.stores.documents.dialect.sorts import Term, parse_sort
from apiserver.stores.documents.dialect.updates import ParsedUpdate
from apiserver.stores.documents.dialect.values import order
from apiserver.stores.documents.indexes import APART, INDEXES, LISTS, NUMERIC
from apiserver.stores.documents.query import AllOf, Document, Filter, Sort, Update
from apiserver.stores.documents.sqlite.connections import Connections
from apiserver.stores.documents.sqlite.pages import Page, is_indexed, rows_in_order, select, select_rows
from apiserver.stores.documents.sqlite.reading import Documents
from apiserver.stores.documents.sqlite.remembered import Remembered
from apiserver.stores.documents.sqlite.side_tables import Names, Side, Sorted, text_of
from apiserver.stores.documents.sqlite.table import Table, apart_column, create, decode, dumps
from apiserver.stores.documents.sqlite.translate import Statement, sides_for
from apiserver.stores.documents.sqlite.upkeep import Changes, Upkeep
from apiserver.stores.reserve import Reserve

T = TypeVar("T")
Ask = Callable[[Statement], T]

logger = logging.getLogger(__name__)

#: Threads that read and write.
READERS = 4
_LARGE_LOG = 4 * 2**20
_MANY_FIELDS = 1000
#: After so many calls that ran on the event loop, other tasks have their turn: a handler may ask for many documents.
_TURN = 16
LONG, _LONG_TAKES = 1000, 3
"""A grouped value of more characters counts for the answer; and how often it is in memory, as JSON and decoded."""
#: Bytes of a group besides its value.
_GROUP_TAKES = 200
_LARGE_ANSWER = 256 * 1024
"""Characters of all long values of an answer. An answer with more is not remembered."""
_SMALL = 64 * 1024
"""Characters of documents that may be inserted on the event loop."""
_LARGEST = 17 * 2**20
"""The most characters of a field with a column of its own, and of all other fields of a document together. The largest
request fits. Each change writes them anew, so each change of an ever growing document would cost more than the last."""
_DERIVED = frozenset([apart_column("last_metrics")])
"""Columns that may be larger, because the server itself writes them. Tasks from before there was a limit of series may
have more series, and have to be kept up to date, too."""
MANY = 2000
"""A side table is made if the JSON of more documents would have to be read without it."""
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


class SqliteDocumentStore:
    """Collections are tables of one file, which one process owns. One event loop uses the store at a time."""

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
        """With `fsync`, each change waits for the disk, and survives a loss of power.

        On a full disk, changes of documents may use the `reserve`, because they are small.
        """
        self._connections = Connections(path, fsync=fsync, reserve=reserve)
        self._fsync = fsync
        self._indexes = tuple(indexes)
        self._apart = apart
        self._numeric = numeric
        self._lists = lists
        self._tables: dict[str, Table] = {}
        self._threads: _Threads | None = None
        self._checkpoint: Future[None] | None = None
        self._at_once = 0
        self._remembered = Remembered()
        self._upkeep = Upkeep(self._connections)
        self._waiting = 0
        self._changed: list[tuple[str, set[str] | None]] = []
        """Tables, and their top-level fields, that the transaction changes. None: documents are added or deleted."""

    def changes(self, collection: str, fields: Collection[str]) -> int:
        return self._remembered.changes(collection, fields)

    @property
    def shared(self) -> bool:
        return False

    @property
    def changes_by_others(self) -> int | None:
        return self._connections.changes_by_others()

    async def open(self) -> None:
        self._connections.open()
        self._threads = _Threads()

    async def close(self) -> None:
        if self._threads is not None:
            threads, self._threads = self._threads, None
            self._connections.end_reads()
            await asyncio.to_thread(threads.end)
            self._connections.close()
            self._tables.clear()

    async def collections(self) -> list[str]:
        def work() -> list[str]:
            with self._connections.read() as connection:
                tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
                names = [name for (name,) in tables if is_name(name) and not name.startswith("sqlite_")]
                return [name for name in names if connection.execute(f'SELECT 1 FROM "{name}" LIMIT 1').fetchone()]

        return await self._run(False, work)

    async def insert(self, collection: str, documents: Sequence[Document]) -> None:
        table = await self._table(collection)
        rows = [table.encode(document) for document in documents]
        for row in rows:
            _check_size(table, zip(table.columns, row, strict=True))
        small = sum(len(value) for row in rows for value in row if isinstance(value, str)) < _SMALL

        def work(connection: sqlite3.Connection) -> None:
            self._insert(connection, table, rows)

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
        condition = parse_filter(filter)
        names = names_one(condition)
        terms = () if names else tuple(parse_sort(sort, table.numeric))  # one document is in order
        made = Documents(apart, wanted, counted)

        page = Page(terms, skip, limit)

        def ask(statement: Statement) -> list[Document]:
            if page.is_far_down and table.apart:
                rows = self._in_order(statement, condition, repr((filter, terms)), terms)[skip:][:limit]
                sql = select_rows(statement, condition, made.columns, rows)
            else:
                sql = select(statement, condition, made.columns, page)
            return made.of(statement.connection.execute(sql, statement.parameters))

        sides = {Sorted(terms)} if terms and not is_indexed(table, terms) else set[Side]()
        return await self._read(table, condition, ask, sides, quick=names and not set(apart) & set(table.large))

    def _in_order(
        self, statement: Statement, condition: Condition, question: str, terms: tuple[Term, ...]
    ) -> array[int]:
        """The row numbers of all documents that meet the condition, in order, as found now or before."""
        table = statement.table

        def ask() -> array[int]:
            with Statement(table, self._connections.callbacks, statement.connection, statement.sides) as other:
                return array("q", (row for (row,) in other.found(rows_in_order(other, condition, terms))))

        roots = {path[0] for path in [*paths_of(condition), *(term.path for term in terms)]}
        return self._remembered.of(table.name, roots, question, ask)

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

        def ask(statement: Statement) -> int:
            where = statement.where(condition, of_all=True)
            ((number,),) = statement.found(f'SELECT count(*) FROM "{table.name}" WHERE {where}')
            return int(number)

        return await self._read_once(table, condition, repr(filter), {path[0] for path in paths_of(condition)}, ask)

    async def count_by(self, collection: str, filter: Filter, fields: Sequence[str]) -> dict[tuple[Any, ...], int]:
        counts: dict[tuple[Any, ...], int] = {}
        for number, *found in await self._grouped(collection, filter, fields):
            key = tuple(dumps(value) if isinstance(value, dict | list) else value for value in found)
            counts[key] = counts.get(key, 0) + number
        return counts

    async def count_items(
        self,
        collection: str,
        filter: Filter,
        field: str,
        *,
        counted: Counted | None = None,
        longest: int | None = None,
    ) -> dict[Any, int]:
        found = await self._grouped(collection, filter, [field], counted, longest)

        def by_item() -> dict[Any, int]:
            counts: dict[Any, int] = {}
            for number, value in found:
                for item in value or [None] if isinstance(value, list) else [value]:
                    key = dumps(item) if isinstance(item, dict | list) else item
                    counts[key] = counts.get(key, 0) + number
            return counts

        return await asyncio.to_thread(by_item) if len(found) > MANY else by_item()

    async def distinct(
        self, collection: str, field: str, filter: Filter, *, counted: Counted | None = None
    ) -> list[Any]:
        found = await self._grouped(collection, filter, [field], counted)
        lists = [value if isinstance(value, list) else [value] for _, value in found]

        def in_order() -> list[Any]:
            distinct = {order(item): item for items in lists for item in items if item is not None}
            return [distinct[key] for key in sorted(distinct)]

        many = sum(map(len, lists)) > MANY
        return await asyncio.to_thread(in_order) if many else in_order()

    async def varieties(self, collection: str, field: str, filter: Filter) -> list[Document]:
        table = await self._table(collection)
        condition, (name, *_) = parse_filter(filter), paths.parse(field)
        roots = {name, *(path[0] for path in paths_of(condition))}
        apart = [name] if name in table.apart else []
        columns = ", ".join(["doc", *map(apart_column, apart)])

        def ask(statement: Statement) -> list[Document]:
            def shapes() -> list[tuple[str, int]]:
                rows = statement.shapes(name, statement.where(condition, of_all=True))
                return statement.found(f'SELECT id, shape FROM ({rows}) CROSS JOIN "{table.name}" ON row = first')

            def documents(ids: list[str]) -> list[Document]:
                sql = f'SELECT {columns} FROM "{table.name}" WHERE id IN (SELECT value FROM json_each(?))'
                rows = statement.connection.execute(sql, (dumps(ids),))
                return [paths.project(decode(doc, apart, texts), [(name,)]) for doc, *texts in rows]

            named = self._remembered.of(table.name, roots, repr((filter, "varieties", field)), shapes)
            found = documents([id for id, _ in named])
            if {paths.shape_of(document.get(name)) for document in found} >= {shape for _, shape in named}:
                return found
            return documents([id for id, _ in shapes()])  # a remembered document has changed since

        return await self._read(table, condition, ask, {Names(name)} if name in table.large else set())

    async def update(
        self, collection: str, filter: Filter, update: Update, *, many: bool = False, upsert: Document | None = None
    ) -> int:
        change, condition = await self._parsed(update), parse_filter(filter)
        table = await self._table(collection)

        def work(connection: sqlite3.Connection) -> int:
            updated = self._update(connection, table, condition, change, Page(limit=None if many else 1))
            if not updated and upsert is not None:
                fresh = change.apply(orjson.loads(dumps(upsert)))
                encoded = table.encode(fresh)
                _check_size(table, zip(table.columns, encoded, strict=True))
                self._insert(connection, table, [encoded])
            return updated

        small = not change.roots & set(table.large)
        return await self._write(names_one(condition) and small and upsert is None, work)

    async def update_each(self, collection: str, updates: Sequence[tuple[Filter, Update]]) -> list[int]:
        table = await self._table(collection)

        def work(connection: sqlite3.Connection) -> list[int]:
            return [
                self._update(connection, table, parse_filter(filter), ParsedUpdate(update), Page(limit=1))
                for filter, update in updates
            ]

        return await self._write(False, work)

    async def find_and_update(
        self, collection: str, filter: Filter, update: Update, *, return_new: bool = True
    ) -> Document | None:
        change, condition = ParsedUpdate(update), parse_filter(filter)
        table = await self._table(collection)

        def work(connection: sqlite3.Connection) -> Document | None:
            rows = self._matching(connection, table, condition, table.apart, Page(limit=1))
            for row, doc, *texts in rows:
                changes = Changes(connection, table, change.roots)
                new = _change(connection, table, row, decode(doc, table.apart, texts), change, changes)
                self._changed.append((table.name, change.roots))
                return new if return_new else decode(doc, table.apart, texts)
            return None

        return await self._write(names_one(condition) and not table.large, work)

    async def delete(self, collection: str, filter: Filter) -> int:
        table = await self._table(collection)
        condition = parse_filter(filter)

        def work(connection: sqlite3.Connection) -> int:
            with Statement(table, self._connections.callbacks, connection) as statement:
                sql = f'DELETE FROM "{table.name}" WHERE {statement.where(condition)} RETURNING row'
                rows = [row for (row,) in statement.found(sql)]
            Changes(connection, table).remove(rows)
            self._changed.append((table.name, None))
            return len(rows)

        return await self._write(False, work)

    async def _table(self, collection: str) -> Table:
        """The collection's layout. The first call with a collection's name makes its table."""
        table = self._tables.get(collection)
        if table is None:
            layout = (named.get(collection, ()) for named in (self._apart, self._numeric, self._lists))
            table = Table.of(collection, self._indexes, *layout)
            fresh = table
            await self._write(False, lambda connection: create(connection, fresh))
            self._tables[collection] = table
        return table

    async def _grouped(
        self,
        collection: str,
        filter: Filter,
        fields: Sequence[str],
        counted: Counted | None = None,
        longest: int | None = None,
    ) -> list[list[Any]]:
        """For each combination of values of the fields: the number of documents that have it, and the values."""
        if not fields:
            raise InvalidFilter("a field to group by is needed")
        table = await self._table(collection)
        condition, parsed = parse_filter(filter), [paths.parse(field) for field in fields]

        lists = all(len(path) == 1 and path[0] in table.apart for path in parsed)
        long = short = 0

        def read(readers: Sequence[Callable[[Any], Any]], number: int, *found: Any) -> list[Any]:
            nonlocal long, short
            size = sum([len(value) for value in found if isinstance(value, str) and len(value) > LONG])
            long += size
            if size and counted is not None:
                counted(_LONG_TAKES * size)
            short += _GROUP_TAKES + sum([len(value) for value in found if isinstance(value, str)]) - size
            if short > _SMALL and counted is not None:
                counted(short)
                short = 0
            return [number, *(reader(value) for reader, value in zip(readers, found, strict=True))]

        def ask(statement: Statement) -> list[list[Any]]:
            columns, readers = zip(*(statement.grouped(path, longest) for path in parsed), strict=True)
            sql = _groups(table, columns, statement.where(condition, of_all=True), lists=lists)
            return [read(readers, *row) for row in statement.connection.execute(sql, statement.parameters)]

        roots = {path[0] for path in [*parsed, *paths_of(condition)]}
        question = repr((filter, fields, longest))
        return await self._read_once(table, condition, question, roots, ask, worth=lambda: long < _LARGE_ANSWER)

    async def _read_once(
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
            return await self._read(table, condition, ask, quick=names_one(condition))

        return await self._read(
            table,
            condition,
            lambda statement: self._remembered.of(table.name, roots, question, lambda: ask(statement), worth=worth),
        )

    async def _read(
        self, table: Table, condition: Condition, ask: Ask[T], sides: Collection[Side] = (), *, quick: bool = False
    ) -> T:
        """What `ask` finds. It sees all documents as they are at one moment.

        The side tables that the condition needs, and `sides`, help to find it. Those that are not there yet are made
        first, if many documents would have to be read without them.
        """
        wanted, others = set(sides), list[Condition]()
        if table.apart and not names_one(condition):
            helping, others = sides_for(table, condition)
            wanted |= helping

        def work(*, make: bool) -> T:
            moment = self._connections.read() if quick else self._connections.snapshot()
            with moment as connection:
                known = self._upkeep.known(connection, table) if wanted else {}
                if make and (missing := wanted.difference(known)) and self._are_many(connection, table, others):
                    raise _WithoutSides(sorted(missing, key=text_of))
                used = {side: name for side, name in known.items() if side in wanted and name is not None}
                self._upkeep.used(used.values())
                with Statement(table, self._connections.callbacks, connection, used) as statement:
                    return ask(statement)

        try:
            return await self._run(quick, partial(work, make=True), small=not table.apart)
        except _WithoutSides as error:
            await self._make(table, error.sides)
        return await self._run(quick, partial(work, make=False), small=not table.apart)

    def _are_many(self, connection: sqlite3.Connection, table: Table, conditions: Sequence[Condition]) -> bool:
        """Whether many documents meet some conditions that need no side table."""
        with Statement(table, self._connections.callbacks, connection) as statement:
            where = statement.where(AllOf(conditions))
            return len(statement.found(f'SELECT 1 FROM "{table.name}" WHERE {where} LIMIT {MANY + 1}')) > MANY

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

    def _insert(self, connection: sqlite3.Connection, table: Table, rows: Sequence[Sequence[Any]]) -> None:
        connection.executemany(table.insertion(), rows)
        if changes := Changes(connection, table):
            (last,) = connection.execute(f'SELECT max("row") FROM "{table.name}"').fetchone()
            for row, values in enumerate(rows, last - len(rows) + 1):
                changes.put(row, table.as_stored({}, dict(zip(table.columns, values, strict=True))))
        self._changed.append((table.name, None))

    def _update(
        self, connection: sqlite3.Connection, table: Table, condition: Condition, change: ParsedUpdate, page: Page
    ) -> int:
        """Update the matching documents; returns how many there are."""
        changes = Changes(connection, table, change.roots)
        apart = [name for name in table.apart if name in change.roots | changes.roots]
        rows = self._matching(connection, table, condition, apart, page)
        for row, doc, *texts in rows:
            _change(connection, table, row, decode(doc, apart, texts), change, changes)
        self._changed.append((table.name, change.roots))
        return len(rows)

    def _matching(
        self,
        connection: sqlite3.Connection,
        table: Table,
        condition: Condition,
        apart: Sequence[str],
        page: Page,
    ) -> list[tuple[Any, ...]]:
        """The row number, `doc` and the `apart` columns of the documents to update."""
        with Statement(table, self._connections.callbacks, connection) as statement:
            return statement.found(select(statement, condition, ["row", "doc", *map(apart_column, apart)], page))

    async def _parsed(self, update: Update) -> ParsedUpdate:
        """The parsed update. An update of very many fields, such as thousands of series, is parsed in a thread."""
        fields = len(update.set) + len(update.unset)
        return await self._run(fields < _MANY_FIELDS, lambda: ParsedUpdate(update))

    async def _write(self, quick: bool, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run one transaction. Afterwards move SQLite's log into the file if the log is large."""

        def transaction() -> T:
            changed: list[tuple[str, set[str] | None]] = []
            try:
                with self._connections.write() as connection:
                    self._changed = changed
                    return work(connection)
            finally:
                for table, roots in changed:
                    self._remembered.changed(table, roots)

        result = await self._run(quick and not self._fsync and self._connections.free, transaction)
        running = self._checkpoint is not None and not self._checkpoint.done()
        if not running and self._threads is not None and self._connections.log_size() > _LARGE_LOG:
            self._checkpoint = self._threads.all.submit(self._connections.checkpoint)
        return result

    async def _run(self, quick: bool, work: Callable[[], T], *, small: bool = False) -> T:
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


def _groups(table: Table, columns: Sequence[str], where: str, *, lists: bool) -> str:
    """SQL of the number of rows with each combination of values, and of these values.

    `lists`: the columns are JSON, such as tags. Then each row with a long value is a group of its own. Otherwise SQLite
    would have the long values of all groups in memory at once.
    """
    values = ", ".join(columns)
    if not lists:
        # "+" keeps SQLite from taking an index in this order, because a covering index is faster.
        groups = ", ".join(f"+{column}" for column in columns)
        return f'SELECT count(*), {values} FROM "{table.name}" WHERE {where} GROUP BY {groups}'
    groups = ", ".join(f"CASE WHEN length(CAST({one} AS BLOB)) > {LONG} THEN row ELSE {one} END" for one in columns)
    places = f'SELECT count(*) AS number, min(row) AS place FROM "{table.name}" WHERE {where} GROUP BY {groups}'
    return f'SELECT number, {values} FROM ({places}) CROSS JOIN "{table.name}" ON row = place'


def _change(
    connection: sqlite3.Connection,
    table: Table,
    row: int,
    document: Document,
    change: ParsedUpdate,
    changes: Changes,
) -> Document:
    """Change a document and return it. Only columns and indexes of the top-level fields that change are written."""
    before = changes.values(document)
    new = change.apply(document)
    columns = table.encode_changed(new, change.roots)
    _check_size(table, columns.items())
    assigned = ", ".join(f"{column} = ?" for column in columns)
    connection.execute(f'UPDATE "{table.name}" SET {assigned} WHERE row = ?', (*columns.values(), row))
    if changes:
        changes.put(row, table.as_stored(new, columns), before)
    return new


def _check_size(table: Table, values: Iterable[tuple[str, Any]]) -> None:
    """InvalidDocument if a value is too large. `values` are pairs of column and value."""
    if any(isinstance(value, str) and len(value) > _LARGEST and column not in _DERIVED for column, value in values):
        raise InvalidDocument(f"{table.name}: a document is larger than the {_LARGEST >> 20} MB that are kept")
