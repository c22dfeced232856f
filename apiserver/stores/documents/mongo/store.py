"""The DocumentStore on a MongoDB database, which any number of servers share."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from apiserver.stores.documents.base import DocumentStore, DocumentStoreError, Index, InvalidFilter
from apiserver.stores.documents.dialect.documents import is_name
from apiserver.stores.documents.dialect.filters import parse_filter
from apiserver.stores.documents.dialect.groups import Group, counts_by_item, counts_by_values, distinct_items
from apiserver.stores.documents.dialect.paths import parse, project
from apiserver.stores.documents.dialect.queries import parse_query
from apiserver.stores.documents.dialect.updates import ParsedUpdate
from apiserver.stores.documents.indexes import APART, INDEXES, NUMERIC
from apiserver.stores.documents.mongo.database import Database, Find
from apiserver.stores.documents.mongo.layout import Layout, decode
from apiserver.stores.documents.mongo.migrations import RECORDS, check_schema
from apiserver.stores.documents.mongo.native import MANY_FIELDS, NativeUpdate, native_update
from apiserver.stores.documents.mongo.reading import Reader
from apiserver.stores.documents.mongo.writing import Writer
from apiserver.stores.documents.query import Counted, Document, Filter, FindQuery, Update


class MongoDocumentStore(DocumentStore):
    """Collections of one database. For use by one event loop at a time."""

    def __init__(
        self,
        uri: str,
        *,
        migrate: bool = False,
        indexes: Iterable[Index] = INDEXES,
        large: Mapping[str, Sequence[str]] = APART,
        numeric: Mapping[str, Sequence[str]] = NUMERIC,
    ) -> None:
        """`uri` is an address for MongoDB's clients, with the database. `migrate`: apply missing schema steps first."""
        self._database = Database(uri)
        self._reader = Reader(self._database)
        self._writer = Writer(self._database, self._reader)
        self._migrate = migrate
        self._indexes = tuple(indexes)
        self._large = large
        self._numeric = numeric
        self._layouts: dict[str, Layout] = {}

    def changes(self, collection: str, fields: Collection[str]) -> int:
        return self._database.changes

    @property
    def shared(self) -> bool:
        return True

    @property
    def changes_by_others(self) -> int | None:
        return None

    async def open(self) -> None:
        try:
            await self._database.open()
            await check_schema(self._database, migrate=self._migrate)
        except DocumentStoreError:
            await self.close()
            raise

    async def close(self) -> None:
        await self._database.close()

    async def collections(self) -> list[str]:
        names = [name for name in await self._database.collections() if is_name(name) and name != RECORDS]
        return [name for name in names if await self._database.find(name, Find({}, {"_id": 1}, limit=1))]

    async def insert(self, collection: str, documents: Sequence[Document]) -> None:
        await self._writer.insert(self._layout(collection), documents)

    async def search(self, collection: str, query: FindQuery) -> list[Document]:
        parsed = parse_query(query, self._numeric.get(collection, ()))
        documents = map(decode, await self._reader.find(self._layout(collection).collection, parsed))
        return list(documents) if parsed.fields is None else [project(each, parsed.fields) for each in documents]

    async def count(self, collection: str, filter: Filter) -> int:
        return await self._reader.count(self._layout(collection).collection, parse_filter(filter))

    async def count_by(self, collection: str, filter: Filter, fields: Sequence[str]) -> dict[tuple[Any, ...], int]:
        return counts_by_values(await self._groups(collection, filter, fields))

    async def count_items(
        self,
        collection: str,
        filter: Filter,
        field: str,
        *,
        counted: Counted | None = None,
        longest: int | None = None,
    ) -> dict[Any, int]:
        return counts_by_item(await self._groups(collection, filter, [field], by_item=True, counted=counted))

    async def distinct(
        self, collection: str, field: str, filter: Filter, *, counted: Counted | None = None
    ) -> list[Any]:
        items = distinct_items(await self._groups(collection, filter, [field], by_item=True))
        if counted is not None:
            counted(sum(len(item) for item in items if isinstance(item, str)))
        return items

    async def varieties(self, collection: str, field: str, filter: Filter) -> list[Document]:
        layout, condition = self._layout(collection), parse_filter(filter)
        path = parse(field)[:1]
        varieties = self._reader.varieties(layout.collection, condition, path)
        return [project(decode(stored), [path]) async for stored in varieties]

    async def update(
        self, collection: str, filter: Filter, update: Update, *, many: bool = False, upsert: Document | None = None
    ) -> int:
        layout, condition = self._layout(collection), parse_filter(filter)
        change, native = await _parsed(layout, update)
        if many and (changed := await self._writer.update_all(layout, condition, change, native)):
            return changed
        if many and upsert is None:
            return 0
        return await self._writer.update(layout, condition, change, native, upsert)

    async def update_each(self, collection: str, updates: Sequence[tuple[Filter, Update]]) -> list[int]:
        return [await self.update(collection, filter, update) for filter, update in updates]

    async def find_and_update(
        self, collection: str, filter: Filter, update: Update, *, return_new: bool = True
    ) -> Document | None:
        layout, condition = self._layout(collection), parse_filter(filter)
        change, native = await _parsed(layout, update)
        before_and_after = await self._writer.find_and_update(layout, condition, change, native)
        return None if before_and_after is None else before_and_after[return_new]

    async def delete(self, collection: str, filter: Filter) -> int:
        return await self._writer.delete(self._layout(collection), parse_filter(filter))

    def _layout(self, collection: str) -> Layout:
        if collection not in self._layouts:
            self._layouts[collection] = Layout.of(collection, self._indexes, self._large.get(collection, ()))
        return self._layouts[collection]

    async def _groups(
        self,
        collection: str,
        filter: Filter,
        fields: Sequence[str],
        *,
        by_item: bool = False,
        counted: Counted | None = None,
    ) -> list[Group]:
        if not fields:
            raise InvalidFilter("a field to group by is needed")
        layout, condition, paths = self._layout(collection), parse_filter(filter), [parse(field) for field in fields]
        return await self._reader.groups(layout.collection, condition, paths, by_item=by_item, counted=counted)


async def _parsed(layout: Layout, update: Update) -> tuple[ParsedUpdate, NativeUpdate | None]:
    """The parsed update. One with very many fields (a task's thousands of series) is parsed in a thread."""

    def work() -> tuple[ParsedUpdate, NativeUpdate | None]:
        change = ParsedUpdate(update)
        return change, native_update(layout, update, change)

    many = len(update.set) + len(update.unset)
    return await asyncio.to_thread(work) if many > MANY_FIELDS else work()
