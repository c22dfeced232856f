"""Reads of a part of the documents: each is that of the store, with a filter that is narrowed to the part."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from apiserver.stores.documents.base import DocumentReads, DocumentStore
from apiserver.stores.documents.query import Counted, Document, Filter, FindQuery

Store = TypeVar("Store", bound="DocumentStore | NarrowedReads[Any]")


class NarrowedReads(DocumentReads, ABC, Generic[Store]):
    """The reads of a part of `store`. A subclass says in `_narrowed` which documents its part has."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @abstractmethod
    async def _narrowed(self, collection: str, filter: Filter) -> Filter:
        """The filter, narrowed to the documents of the part."""

    async def search(self, collection: str, query: FindQuery) -> list[Document]:
        return await self._store.search(collection, query.within(await self._narrowed(collection, query.filter)))

    async def count(self, collection: str, filter: Filter) -> int:
        return await self._store.count(collection, await self._narrowed(collection, filter))

    async def count_by(self, collection: str, filter: Filter, fields: Sequence[str]) -> dict[tuple[Any, ...], int]:
        return await self._store.count_by(collection, await self._narrowed(collection, filter), fields)

    async def count_items(
        self,
        collection: str,
        filter: Filter,
        field: str,
        *,
        counted: Counted | None = None,
        longest: int | None = None,
    ) -> dict[Any, int]:
        narrowed = await self._narrowed(collection, filter)
        return await self._store.count_items(collection, narrowed, field, counted=counted, longest=longest)

    async def distinct(
        self, collection: str, field: str, filter: Filter, *, counted: Counted | None = None
    ) -> list[Any]:
        narrowed = await self._narrowed(collection, filter)
        return await self._store.distinct(collection, field, narrowed, counted=counted)

    async def varieties(self, collection: str, field: str, filter: Filter) -> list[Document]:
        return await self._store.varieties(collection, field, await self._narrowed(collection, filter))
