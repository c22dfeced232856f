"""The documents within a project: what an access key sees and changes that is limited to a project.

`WithinProject` is a store that has nothing else in it, so no service has to know of such keys. It has

- the project, and all projects below it;
- the tasks and models in these;
- the caller's own user, their company, and the queues, which say where tasks run. Queues cannot be added or deleted.

Everything else seems to be missing, and cannot be added. Documents cannot be moved out. The project itself keeps its
place and name, because these are not within it. Which projects lie below is asked of the store at each call, so that
a project that was moved away a moment ago is not seen any more.

For example, if the project "vision" has the project "vision/old" in it, then a search for all tasks finds those in
both, and a search for the task of another project by its id finds nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apiserver.stores.documents.base import DocumentStore, DocumentStoreError
from apiserver.stores.documents.narrowed import NarrowedReads
from apiserver.stores.documents.query import AllOf, AnyOf, Document, Filter, In, Update

#: Filters that no document meets, and that every document meets.
_NOTHING: Filter = AnyOf([])
_ALL: Filter = AllOf([])
#: The fields that say where a project is in the tree.
_PLACE = frozenset({"name", "basename", "parent", "path"})
_IN_PROJECTS = ("tasks", "models")
#: How far a caller has come in a list. They can be added and deleted by everybody who knows their random ids.
_SCROLLS = "scrolls"
_QUEUES = "queues"


class OutOfProject(DocumentStoreError):
    """A document would be added, or moved, to where an access key that is limited to a project may not put it."""


class WithinProject(NarrowedReads[DocumentStore]):
    """The documents of `store` that a user sees within a project of their company."""

    def __init__(self, store: DocumentStore, company: str, project: str, user: str) -> None:
        super().__init__(store)
        self._company = company
        self._project = project
        self._user = user

    async def insert(self, collection: str, documents: Sequence[Document]) -> None:
        for document in documents:
            await self._check_place(collection, document)
        await self._store.insert(collection, documents)

    async def update(
        self, collection: str, filter: Filter, update: Update, *, many: bool = False, upsert: Document | None = None
    ) -> int:
        within = await self._to_change(collection, filter, update)
        if upsert is not None:
            await self._check_place(collection, {**upsert, **update.set})
        return await self._store.update(collection, within, update, many=many, upsert=upsert)

    async def find_and_update(
        self, collection: str, filter: Filter, update: Update, *, return_new: bool = True
    ) -> Document | None:
        within = await self._to_change(collection, filter, update)
        return await self._store.find_and_update(collection, within, update, return_new=return_new)

    async def delete(self, collection: str, filter: Filter) -> int:
        deletable = (*_IN_PROJECTS, "projects", _SCROLLS)
        within = await self._narrowed(collection, filter) if collection in deletable else _NOTHING
        return await self._store.delete(collection, within)

    # --- where things are ----------------------------------------------------------------------------

    async def _narrowed(self, collection: str, filter: Filter) -> Filter:
        within = await self._place(collection)
        return AllOf([within, filter]) if filter else within

    async def _place(self, collection: str) -> Filter:
        own: Document = {"company": self._company}
        if collection in _IN_PROJECTS:
            return {**own, "project": In(await self._projects())}
        match collection:
            case "projects":
                return self._of_projects
            case "users":
                return {**own, "id": self._user}
            case "companies":
                return {"id": self._company}
            case "queues" | "scrolls":
                return own
        return _NOTHING

    @property
    def _of_projects(self) -> Filter:
        return AllOf([{"company": self._company}, AnyOf([{"id": self._project}, {"path": self._project}])])

    async def _projects(self) -> list[str]:
        """The ids of the project and of all below it, as of now."""
        projects = await self._store.find("projects", self._of_projects, projection=["id"])
        return [project["id"] for project in projects]

    async def _check_place(self, collection: str, document: Document) -> None:
        """Raise OutOfProject unless a new document would be within the project."""
        if collection in _IN_PROJECTS:
            fits = document.get("project") in await self._projects()
        elif collection == "projects":
            fits = self._project in document.get("path", ())
        else:
            fits = collection == _SCROLLS
        if not fits or document.get("company") != self._company:
            raise OutOfProject(f"the access key is limited to a project: nothing else in {collection} can be added")

    async def _to_change(self, collection: str, filter: Filter, update: Update) -> Filter:
        """The filter for documents that may be changed. OutOfProject if the update would move one of them out."""
        changeable = (*_IN_PROJECTS, "projects", _QUEUES, _SCROLLS)
        within = await self._narrowed(collection, filter) if collection in changeable else _NOTHING
        for word, fields in update.by_word().items():
            for name, value in fields.items():
                moved = await self._moved_out(collection, word, name, value)
                if moved is not None and await self._store.count(collection, AllOf([within, moved])):
                    raise OutOfProject(
                        f"the access key is limited to a project: nothing in {collection} can be moved out of it"
                    )
        return within

    async def _moved_out(self, collection: str, word: str, name: str, value: Any) -> Filter | None:
        """The documents that a change of a field would move out of the project; None if it moves none."""
        field, sets = name.partition(".")[0], word == "set" and "." not in name
        if field in ("id", "company"):
            return None if field == "company" and sets and value == self._company else _ALL
        if collection in _IN_PROJECTS and field == "project":
            return None if sets and value in await self._projects() else _ALL
        if collection == "projects" and field == "path" and not (sets and self._project in value):
            return _ALL
        return {"id": self._project} if collection == "projects" and field in _PLACE else None
