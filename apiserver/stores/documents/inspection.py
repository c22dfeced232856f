"""What every engine of documents shows of itself."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import orjson

from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.documents.paging import pages_by_id
from apiserver.stores.documents.query import Document
from apiserver.stores.inspection import Finding, Held, Inspection

#: Documents that are read at once, whole and in part.
_WHOLE, _IN_PART = 20, 1000


class DocumentInspection(Inspection):
    """A look at the documents that an engine keeps."""

    @abstractmethod
    def each(self, collection: str, fields: Sequence[str]) -> AsyncIterator[list[Document]]:
        """The documents of a collection with their ids and these top-level fields, some at a time."""

    @abstractmethod
    def texts(self, collection: str) -> AsyncIterator[list[bytes]]:
        """The documents of a collection as JSON, some at a time; a document may be in several pieces."""


class StoreInspection(DocumentInspection):
    """A look at an open store through its own methods, for an engine that checks its files itself."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store

    async def held(self) -> list[Held]:
        names = await self._store.collections()
        return [Held(name, None, await self._store.count(name, {}), "documents") for name in names]

    async def findings(self) -> AsyncIterator[Finding]:
        """None: the engine itself watches over its files."""
        return
        yield

    async def each(self, collection: str, fields: Sequence[str]) -> AsyncIterator[list[Document]]:
        async for page in pages_by_id(self._store, collection, projection=fields, limit=_IN_PART):
            yield page

    async def texts(self, collection: str) -> AsyncIterator[list[bytes]]:
        async for page in pages_by_id(self._store, collection, limit=_WHOLE):
            yield list(map(orjson.dumps, page))


@asynccontextmanager
async def looking_through(store: DocumentStore) -> AsyncIterator[StoreInspection]:
    """A look at a store, which is opened for it."""
    await store.open()
    try:
        yield StoreInspection(store)
    finally:
        await store.close()
