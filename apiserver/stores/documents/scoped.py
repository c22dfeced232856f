"""Isolates companies from each other: these views narrow all calls to the documents of one company.

Services get only these views, never the store itself. So no query can forget the company. `VisibleDocuments` has the
documents that a company may read: its own, and the public ones of all companies. `CompanyDocuments` has those that it
may change: its own private ones.

A public document keeps its company, and has the field `PUBLIC`. Views return it without this field, and with an empty
`company`. Nobody can change it while it is public. Only its company can make it private again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from apiserver.stores.documents.base import DocumentStore, InvalidFilter
from apiserver.stores.documents.narrowed import NarrowedReads
from apiserver.stores.documents.query import AllOf, AnyOf, Document, Filter, FindQuery, In, Unequal, Update
from apiserver.stores.documents.within import WithinProject

#: The field of a public document that is true.
PUBLIC = "public"
#: Collections whose documents can be made public.
SHARED = frozenset({"tasks", "models", "projects"})

_IS_PUBLIC: Document = {PUBLIC: True}
_IS_PRIVATE: Document = {PUBLIC: Unequal(True)}


#: A store, or a part of one that looks like a store.
PartOfStore: TypeAlias = "DocumentStore | WithinProject"


class VisibleDocuments(NarrowedReads[PartOfStore]):
    """The documents that a company may read. Each call is that of the store, narrowed to these documents."""

    def __init__(self, store: PartOfStore, company: str) -> None:
        super().__init__(store)
        self.company = company
        self.whole = not isinstance(store, WithinProject)
        """Whether these are all of the company's documents, not only those within a project."""

    async def _allowed(self, collection: str, filter: Filter) -> Filter:
        """The condition for documents that the company may read, to be used together with `filter`."""
        own: Document = {"company": self.company}
        if collection not in SHARED:
            return own
        # With public documents of others, a list cannot use its index. Mostly there are none, so look first.
        if not (isinstance(filter, Mapping) and "id" in filter) and not await self.sees_others(collection):
            return own
        return AnyOf([own, _IS_PUBLIC])

    async def sees_others(self, collection: str) -> bool:
        """Whether there are public documents of other companies."""
        others: Filter = {**_IS_PUBLIC, "company": Unequal(self.company)}
        return bool(await self._store.find(collection, others, projection=["id"], limit=1))

    async def _narrowed(self, collection: str, filter: Filter) -> Filter:
        allowed = await self._allowed(collection, filter)
        return AllOf([allowed, filter]) if filter else allowed

    async def search(self, collection: str, query: FindQuery) -> list[Document]:
        documents = await super().search(collection, _with_mark(query))
        return [_shown(document) for document in documents] if collection in SHARED else documents

    async def find_kept(self, collection: str, ids: Collection[str], fields: Sequence[str]) -> list[Document]:
        """The documents of these ids, with the `company` that they belong to, even if they are public."""
        listed = list(ids)
        by_id: Filter = {"id": listed[0] if len(listed) == 1 else In(listed)}
        return await super().search(collection, FindQuery(by_id, projection=[*fields, "company"]))


class CompanyDocuments(VisibleDocuments):
    """The documents that a company may change."""

    async def _allowed(self, collection: str, filter: Filter) -> Filter:
        return self._own(collection)

    def _own(self, collection: str) -> Filter:
        own: Document = {"company": self.company}
        return {**own, **_IS_PRIVATE} if collection in SHARED else own

    def _matching(self, collection: str, filter: Filter) -> Filter:
        return AllOf([self._own(collection), filter]) if filter else self._own(collection)

    def _kept(self, update: Update) -> Update:
        """The update; InvalidFilter if it would move a document to another company, or make it public."""
        for word, fields in update.by_word().items():
            for name, what in fields.items():
                root = name.partition(".")[0]
                if root == PUBLIC or (root == "company" and (word, what) != ("set", self.company)):
                    raise InvalidFilter(f"field '{root}': cannot be changed")
        return update

    def _owned(self, document: Document) -> Document:
        return {**{name: value for name, value in document.items() if name != PUBLIC}, "company": self.company}

    async def insert(self, collection: str, document: Document) -> None:
        await self._store.insert(collection, [self._owned(document)])

    async def update(
        self, collection: str, filter: Filter, update: Update, *, many: bool = False, upsert: Document | None = None
    ) -> int:
        return await self._store.update(
            collection,
            self._matching(collection, filter),
            self._kept(update),
            many=many,
            upsert=None if upsert is None else self._owned(upsert),
        )

    async def find_and_update(
        self, collection: str, filter: Filter, update: Update, *, return_new: bool = True
    ) -> Document | None:
        return await self._store.find_and_update(
            collection, self._matching(collection, filter), self._kept(update), return_new=return_new
        )

    async def delete(self, collection: str, filter: Filter) -> int:
        return await self._store.delete(collection, self._matching(collection, filter))

    async def own_public(self, collection: str, filter: Filter) -> list[str]:
        """The ids of the company's own public documents that match."""
        published = await self._store.find(collection, AllOf([self._published, filter]), projection=["id"])
        return [document["id"] for document in published]

    async def make_public(self, collection: str, ids: Collection[str], stamps: Document) -> int:
        """Make private documents of the company public, and set the `stamps`; return how many there were."""
        update = Update(set={**self._kept(Update(set=stamps)).set, PUBLIC: True})
        chosen = self._matching(collection, {"id": In(list(ids))})
        return await self._store.update(collection, chosen, update, many=True)

    async def make_private(self, collection: str, ids: Collection[str], stamps: Document) -> int:
        """Make public documents of the company private, and set the `stamps`; return how many there were."""
        update = replace(self._kept(Update(set=stamps)), unset=[PUBLIC])
        chosen: Filter = AllOf([self._published, {"id": In(list(ids))}])
        return await self._store.update(collection, chosen, update, many=True)

    @property
    def _published(self) -> Filter:
        return {"company": self.company, **_IS_PUBLIC}


def _with_mark(query: FindQuery) -> FindQuery:
    """The query, which also reads the mark of public documents if it reads their company."""
    fields = query.projection
    return query if fields is None or "company" not in fields else replace(query, projection=[*fields, PUBLIC])


def _shown(document: Document) -> Document:
    """The document as views return it: with an empty company if it is public."""
    if document.pop(PUBLIC, None) and "company" in document:
        document["company"] = ""
    return document
