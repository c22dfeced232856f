"""Company isolation, in one place: documents as one company sees them.

Services get only this view, never the store itself, so that no query can forget the company.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from apiserver.stores.documents.base import Document, DocumentStore, Filter, InvalidFilter, Sort, Update


class CompanyDocuments:
    """The documents of one company. Every call is the store's own, narrowed to `company`."""

    def __init__(self, store: DocumentStore, company: str) -> None:
        self._store = store
        self.company = company

    def _own(self, filter: Filter) -> Filter:
        return {"$and": [{"company": self.company}, filter]} if filter else {"company": self.company}

    def _kept(self, update: Update) -> Update:
        """The update, unless it would move a document to another company."""
        for op, fields in update.items():
            for name in fields if isinstance(fields, Mapping) else ():
                if str(name).partition(".")[0] == "company" and (op, fields[name]) != ("$set", self.company):
                    raise InvalidFilter("field 'company': cannot be changed")
        return update

    async def insert(self, collection: str, document: Document) -> None:
        await self._store.insert(collection, [{**document, "company": self.company}])

    async def find(
        self,
        collection: str,
        filter: Filter,
        *,
        projection: Sequence[str] | None = None,
        sort: Sort = (),
        skip: int = 0,
        limit: int | None = None,
    ) -> list[Document]:
        return await self._store.find(
            collection, self._own(filter), projection=projection, sort=sort, skip=skip, limit=limit
        )

    async def find_one(
        self, collection: str, filter: Filter, *, projection: Sequence[str] | None = None, sort: Sort = ()
    ) -> Document | None:
        return await self._store.find_one(collection, self._own(filter), projection=projection, sort=sort)

    async def count(self, collection: str, filter: Filter) -> int:
        return await self._store.count(collection, self._own(filter))

    async def count_by(self, collection: str, filter: Filter, fields: Sequence[str]) -> dict[tuple[Any, ...], int]:
        return await self._store.count_by(collection, self._own(filter), fields)

    async def distinct(self, collection: str, field: str, filter: Filter) -> list[Any]:
        return await self._store.distinct(collection, field, self._own(filter))

    async def update(
        self, collection: str, filter: Filter, update: Update, *, many: bool = False, upsert: Document | None = None
    ) -> int:
        if upsert is not None:
            upsert = {**upsert, "company": self.company}
        return await self._store.update(collection, self._own(filter), self._kept(update), many=many, upsert=upsert)

    async def find_and_update(
        self, collection: str, filter: Filter, update: Update, *, sort: Sort = (), return_new: bool = True
    ) -> Document | None:
        return await self._store.find_and_update(
            collection, self._own(filter), self._kept(update), sort=sort, return_new=return_new
        )

    async def delete(self, collection: str, filter: Filter) -> int:
        return await self._store.delete(collection, self._own(filter))
