"""The DocumentStore on one SQLite file."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from apiserver.stores.documents.base import Counted, Index, InvalidFilter
from apiserver.stores.documents.dialect import paths
from apiserver.stores.documents.dialect.documents import is_name
from apiserver.stores.documents.dialect.filters import Condition, named_id, names_one, parse_filter, paths_of
from apiserver.stores.documents.dialect.sorts import Term, parse_sort
from apiserver.stores.documents.dialect.updates import ParsedUpdate
from apiserver.stores.documents.dialect.values import order
from apiserver.stores.documents.indexes import APART, INDEXES, LISTS, NUMERIC
from apiserver.stores.documents.query import Document, Filter, Sort, Update
from apiserver.stores.documents.sqlite.bounds import BOUNDS, SqliteBounds
from apiserver.stores.documents.sqlite.changing import Transaction, check_size
from apiserver.stores.documents.sqlite.connections import Connections
from apiserver.stores.documents.sqlite.pages import Page, is_indexed, rows_in_order, select, select_rows
from apiserver.stores.documents.sqlite.planning import sides_of_first
from apiserver.stores.documents.sqlite.reading import Documents
from apiserver.stores.documents.sqlite.remembered import Remembered
from apiserver.stores.documents.sqlite.side_tables import Names, Side, Sorted
from apiserver.stores.documents.sqlite.table import Table, apart_column, create, decode, dumps
from apiserver.stores.documents.sqlite.translate import Statement
from apiserver.stores.documents.sqlite.work import Work
from apiserver.stores.reserve import Reserve

_MANY_FIELDS = 1000
#: A list with more items is put together in a thread.
_MANY_ITEMS = 2000
_LONG_TAKES = 3
"""How often a long value of a group is in memory, as JSON and decoded."""
#: Bytes of a group besides its value.
_GROUP_TAKES = 200
_LARGE_ANSWER = 256 * 1024
"""Characters of all long values of an answer. An answer with more is not remembered."""
_SMALL = 64 * 1024
"""Characters of documents that may be inserted on the event loop."""


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
        bounds: SqliteBounds = BOUNDS,
    ) -> None:
        """With `fsync`, each change waits for the disk, and survives a loss of power.

        On a full disk, changes of documents may use the `reserve`, because they are small.
        """
        self._bounds = bounds
        self._connections = Connections(path, fsync=fsync, reserve=reserve, bounds=bounds)
        self._remembered = Remembered()
        self._work = Work(self._connections, self._remembered, fsync=fsync)
        self._indexes = tuple(indexes)
        self._apart = apart
        self._numeric = numeric
        self._lists = lists
        self._tables: dict[str, Table] = {}

    def changes(self, collection: str, fields: Collection[str]) -> int:
        return self._remembered.changes(collection, fields)

    @property
    def shared(self) -> bool:
        return False

    @property
    def changes_by_others(self) -> int | None:
        return self._connections.changes_by_others()

    async def open(self) -> None:
        self._work.open()

    async def close(self) -> None:
        await self._work.close()
        self._tables.clear()

    async def collections(self) -> list[str]:
        def work() -> list[str]:
            with self._connections.read() as connection:
                tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
                names = [name for (name,) in tables if is_name(name) and not name.startswith("sqlite_")]
                return [name for name in names if connection.execute(f'SELECT 1 FROM "{name}" LIMIT 1').fetchone()]

        return await self._work.run(False, work)

    async def insert(self, collection: str, documents: Sequence[Document]) -> None:
        table = await self._table(collection)
        rows = [table.encode(document) for document in documents]
        for row in rows:
            check_size(table, zip(table.columns, row, strict=True))
        small = sum(len(value) for row in rows for value in row if isinstance(value, str)) < _SMALL

        await self._work.write(small, lambda transaction: transaction.insert(table, rows))

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
        id = named_id(condition)
        terms = tuple(parse_sort(sort, table.numeric)) if id is None else ()  # one document is in order
        made = Documents(apart, wanted, counted)

        page = Page(terms, skip, limit)

        def ask(statement: Statement) -> list[Document]:
            if page.is_far_down(self._bounds.furthest) and table.apart:
                rows = self._in_order(statement, condition, repr((filter, terms)), terms)[skip:][:limit]
                sql = select_rows(statement, condition, made.columns, rows)
            else:
                sql = select(statement, condition, made.columns, page)
            return made.of(statement.connection.execute(sql, statement.parameters))

        sides = _sides_of_order(terms) if terms and not is_indexed(table, terms) else set[Side]()
        large = [name for name in apart if name in table.large]
        if id is None or not large:
            return await self._work.read(table, condition, ask, sides, quick=id is not None)
        small, changes = self._work.small, self.changes(collection, ())
        found = await self._work.read(table, condition, ask, quick=small.has(table.name, id, large))
        if found:
            small.read(table.name, id, large, made.read)
            if self.changes(collection, ()) != changes:  # it may have been deleted meanwhile, and forgotten
                small.forget(table.name, id)
        return found

    def _in_order(
        self, statement: Statement, condition: Condition, question: str, terms: tuple[Term, ...]
    ) -> array[int]:
        """The row numbers of all documents that meet the condition, in order, as found now or before."""
        table = statement.table

        def ask() -> array[int]:
            with Statement(
                table, self._connections.callbacks, statement.connection, statement.sides, self._bounds
            ) as other:
                return array("q", (row for (row,) in other.found(rows_in_order(other, condition, terms))))

        roots = {path[0] for path in [*paths_of(condition), *(path for term in terms for path in term.paths)]}
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

        return await self._work.read_once(
            table, condition, repr(filter), {path[0] for path in paths_of(condition)}, ask
        )

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

        return await asyncio.to_thread(by_item) if len(found) > _MANY_ITEMS else by_item()

    async def distinct(
        self, collection: str, field: str, filter: Filter, *, counted: Counted | None = None
    ) -> list[Any]:
        found = await self._grouped(collection, filter, [field], counted)
        lists = [value if isinstance(value, list) else [value] for _, value in found]

        def in_order() -> list[Any]:
            distinct = {order(item): item for items in lists for item in items if item is not None}
            return [distinct[key] for key in sorted(distinct)]

        many = sum(map(len, lists)) > _MANY_ITEMS
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

        return await self._work.read(table, condition, ask, {Names(name)} if name in table.large else set())

    async def update(
        self, collection: str, filter: Filter, update: Update, *, many: bool = False, upsert: Document | None = None
    ) -> int:
        change, condition = await self._parsed(update), parse_filter(filter)
        table = await self._table(collection)

        def work(transaction: Transaction) -> int:
            updated = transaction.update(table, condition, change, limit=None if many else 1)
            if not updated and upsert is not None:
                fresh = change.apply(orjson.loads(dumps(upsert)))
                encoded = table.encode(fresh)
                check_size(table, zip(table.columns, encoded, strict=True))
                transaction.insert(table, [encoded])
            return updated

        small = not change.roots & set(table.large)
        return await self._work.write(names_one(condition) and small and upsert is None, work)

    async def update_each(self, collection: str, updates: Sequence[tuple[Filter, Update]]) -> list[int]:
        table = await self._table(collection)

        def work(transaction: Transaction) -> list[int]:
            return [
                transaction.update(table, parse_filter(filter), ParsedUpdate(update), limit=1)
                for filter, update in updates
            ]

        return await self._work.write(False, work)

    async def find_and_update(
        self, collection: str, filter: Filter, update: Update, *, return_new: bool = True
    ) -> Document | None:
        change, condition = ParsedUpdate(update), parse_filter(filter)
        table = await self._table(collection)

        return await self._work.write(
            names_one(condition) and not table.large,
            lambda transaction: transaction.find_and_update(table, condition, change, return_new=return_new),
        )

    async def delete(self, collection: str, filter: Filter) -> int:
        table = await self._table(collection)
        condition = parse_filter(filter)

        return await self._work.write(False, lambda transaction: transaction.delete(table, condition))

    async def _table(self, collection: str) -> Table:
        """The collection's layout. The first call with a collection's name makes its table."""
        table = self._tables.get(collection)
        if table is None:
            layout = (named.get(collection, ()) for named in (self._apart, self._numeric, self._lists))
            table = Table.of(collection, self._indexes, *layout)
            fresh = table
            await self._work.write(False, lambda transaction: create(transaction.connection, fresh))
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
        most = self._bounds.long

        def read(readers: Sequence[Callable[[Any], Any]], number: int, *found: Any) -> list[Any]:
            nonlocal long, short
            size = sum([len(value) for value in found if isinstance(value, str) and len(value) > most])
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
            sql = _groups(table, columns, statement.where(condition, of_all=True), most if lists else None)
            return [read(readers, *row) for row in statement.connection.execute(sql, statement.parameters)]

        roots = {path[0] for path in [*parsed, *paths_of(condition)]}
        question = repr((filter, fields, longest))
        return await self._work.read_once(table, condition, question, roots, ask, worth=lambda: long < _LARGE_ANSWER)

    async def _parsed(self, update: Update) -> ParsedUpdate:
        """The parsed update. An update of very many fields, such as thousands of series, is parsed in a thread."""
        fields = len(update.set) + len(update.unset)
        return await self._work.run(fields < _MANY_FIELDS, lambda: ParsedUpdate(update))


def _sides_of_order(terms: tuple[Term, ...]) -> set[Side]:
    """The side tables that help to sort by some terms."""
    if not any(term.others for term in terms):
        return {Sorted(terms)}
    return set().union(*(sides_of_first(term.paths) for term in terms if term.others))


def _groups(table: Table, columns: Sequence[str], where: str, long: int | None) -> str:
    """SQL of the number of rows with each combination of values, and of these values.

    `long`: the columns are JSON, such as tags. Then each row with a value of more bytes is a group of its own.
    Otherwise SQLite would have the long values of all groups in memory at once.
    """
    values = ", ".join(columns)
    if long is None:
        # "+" keeps SQLite from taking an index in this order, because a covering index is faster.
        groups = ", ".join(f"+{column}" for column in columns)
        return f'SELECT count(*), {values} FROM "{table.name}" WHERE {where} GROUP BY {groups}'
    groups = ", ".join(f"CASE WHEN length(CAST({one} AS BLOB)) > {long} THEN row ELSE {one} END" for one in columns)
    places = f'SELECT count(*) AS number, min(row) AS place FROM "{table.name}" WHERE {where} GROUP BY {groups}'
    return f'SELECT number, {values} FROM ({places}) CROSS JOIN "{table.name}" ON row = place'
