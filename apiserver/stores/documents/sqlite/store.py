"""The DocumentStore on one SQLite file."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from apiserver.stores.documents.base import DocumentStore, Index
from apiserver.stores.documents.dialect.documents import is_name
from apiserver.stores.documents.dialect.filters import names_one, parse_filter, paths_of
from apiserver.stores.documents.dialect.groups import Group, counts_by_item, counts_by_values, distinct_items
from apiserver.stores.documents.dialect.updates import ParsedUpdate
from apiserver.stores.documents.indexes import APART, INDEXES, LISTS, NUMERIC
from apiserver.stores.documents.query import Counted, Document, Filter, FindQuery, Update
from apiserver.stores.documents.sqlite.bounds import BOUNDS, SqliteBounds
from apiserver.stores.documents.sqlite.changing import Transaction, check_size
from apiserver.stores.documents.sqlite.connections import Connections
from apiserver.stores.documents.sqlite.finding import Search
from apiserver.stores.documents.sqlite.groups import Groups
from apiserver.stores.documents.sqlite.remembered import Remembered
from apiserver.stores.documents.sqlite.table import Table, create, dumps
from apiserver.stores.documents.sqlite.translate import Statement
from apiserver.stores.documents.sqlite.varieties import Varieties
from apiserver.stores.documents.sqlite.work import Work
from apiserver.stores.reserve import Reserve

_MANY_FIELDS = 1000
#: Values of more items are put together in a thread.
_MANY_ITEMS = 2000
#: Characters of documents that may be inserted on the event loop.
_SMALL = 64 * 1024


class SqliteDocumentStore(DocumentStore):
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

    async def search(self, collection: str, query: FindQuery) -> list[Document]:
        search = Search(await self._table(collection), query, self._remembered)
        if search.id is not None and search.large:
            return await self._read_large(search, search.id)
        return await self._work.read(
            search.table, search.condition, search.read, search.sides, quick=search.id is not None
        )

    async def _read_large(self, search: Search, id: str) -> list[Document]:
        """The document with this id, or none. Fields of it that may be large are read; `small.py` says if they are."""
        table, small = search.table, self._work.small
        changes = self.changes(table.name, ())
        is_small = small.has(table.name, id, search.large)
        documents = await self._work.read(table, search.condition, search.read, quick=is_small)
        if documents:
            small.read(table.name, id, search.large, search.bytes_read)
            if self.changes(table.name, ()) != changes:  # it may have been deleted meanwhile, and forgotten
                small.forget(table.name, id)
        return documents

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
        return counts_by_values(await self._groups(Groups(await self._table(collection), filter, fields)))

    async def count_items(
        self,
        collection: str,
        filter: Filter,
        field: str,
        *,
        counted: Counted | None = None,
        longest: int | None = None,
    ) -> dict[Any, int]:
        table = await self._table(collection)
        groups = await self._groups(Groups(table, filter, [field], counted=counted, longest=longest))
        return await asyncio.to_thread(counts_by_item, groups) if len(groups) > _MANY_ITEMS else counts_by_item(groups)

    async def distinct(
        self, collection: str, field: str, filter: Filter, *, counted: Counted | None = None
    ) -> list[Any]:
        groups = await self._groups(Groups(await self._table(collection), filter, [field], counted=counted))
        items = sum(len(value) if isinstance(value, list) else 1 for _, value in groups)
        return await asyncio.to_thread(distinct_items, groups) if items > _MANY_ITEMS else distinct_items(groups)

    async def _groups(self, groups: Groups) -> list[Group]:
        return await self._work.read_once(
            groups.table, groups.condition, groups.question, groups.roots, groups.read, worth=lambda: groups.are_small
        )

    async def varieties(self, collection: str, field: str, filter: Filter) -> list[Document]:
        table = await self._table(collection)
        varieties = Varieties(table, field, filter, self._remembered)
        return await self._work.read(table, varieties.condition, varieties.read, varieties.sides)

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

    async def _parsed(self, update: Update) -> ParsedUpdate:
        """The parsed update. An update of very many fields, such as thousands of series, is parsed in a thread."""
        fields = len(update.set) + len(update.unset)
        return await self._work.run(fields < _MANY_FIELDS, lambda: ParsedUpdate(update))
