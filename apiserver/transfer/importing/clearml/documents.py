"""Imports documents: companies, users, projects, models, queues and tasks, each kind page by page.

A document is written if it is new, or has changed in the source since it was imported. Other documents of the target
stay as they are. If a document cannot be imported, only that document is missing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from apiserver.stores.documents.base import DocumentStore, DocumentStoreBusy, DuplicateDocument, InvalidDocument
from apiserver.stores.documents.query import Document, HasSize, In, Unequal
from apiserver.transfer.copying.retrying import patiently
from apiserver.transfer.importing.clearml.mapping import others, people, tasks
from apiserver.transfer.importing.clearml.mapping.common import Context, identity
from apiserver.transfer.importing.clearml.marks import ImportMarks, mark
from apiserver.transfer.importing.report import Progress, Report

#: The version of `mapping`. When `mapping` changes, raise it: then the next run writes every document again.
_MAPPING = 2

Mapped = Callable[[Mapping[str, Any], Context], Document]

#: ClearML's kinds of documents: the collection here, and the function that converts them.
KINDS: dict[str, tuple[str, Mapped]] = {
    "project": ("projects", others.project),
    "model": ("models", others.model),
    "task": ("tasks", tasks.task),
    "queue": ("queues", others.queue),
    "storage_settings": ("storage_settings", others.storage_settings),
}


class SourceDocuments(Protocol):
    """The documents of a ClearML server, as JSON."""

    @property
    def escaped(self) -> bool:
        """Whether keys hold users' names in escaped form."""

    async def home(self) -> str:
        """The company that gets the documents of no company."""

    async def total(self, kind: str, database: str = ...) -> int:
        """About how many documents of a kind there are; 0 if that is not known."""

    def pages(self, kind: str, database: str = ...) -> AsyncIterator[list[Document]]:
        """Pages of all documents of a kind."""


@dataclass(slots=True)
class DocumentWriter:
    """Writes the documents of the source that are new or have changed."""

    target: DocumentStore
    marks: ImportMarks
    report: Report
    context: Context

    async def write(self, kind: str, collection: str, page: Sequence[Document], mapped: Mapped) -> None:
        """Import a page of documents of one kind."""
        count = self.report.count(collection)
        count.found += len(page)
        named = {f"{kind}/{identity(document)}": document for document in page}
        moved, home = self.context.urls.pairs, self.context.home
        marks = {name: mark(_MAPPING, document, moved, home) for name, document in named.items()}
        marks_before = await self.marks.of(named)
        documents: dict[str, Document] = {}
        for name, document in named.items():
            if marks_before.get(name) == marks[name]:
                count.known += 1
                continue
            try:
                documents[name] = mapped(document, self.context)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                self._refuse(collection, name, f"it is malformed ({_reason(error)})")
        written = await self._put(collection, documents)
        count.taken += len(written)
        count.updated += sum(name in marks_before for name in written)
        await self.marks.put({name: marks[name] for name in written})

    async def _put(self, collection: str, made: Mapping[str, Document]) -> list[str]:
        """Write documents, at once or, if the store refuses that, one by one; returns the names of the written ones."""
        if not made:
            return []
        try:
            await self._replace(collection, list(made.values()))
            return list(made)
        except (DuplicateDocument, InvalidDocument):
            return [name for name, document in made.items() if await self._put_one(collection, name, document)]

    async def _put_one(self, collection: str, name: str, document: Document) -> bool:
        try:
            await self._replace(collection, [document])
        except DuplicateDocument:
            self._refuse(collection, name, "the target has one with the same name or key, but another id")
            return False
        except InvalidDocument as error:
            self._refuse(collection, name, str(error))
            return False
        return True

    async def _replace(self, collection: str, made: Sequence[Document]) -> None:
        ids = {"id": In([document["id"] for document in made])}
        before = await patiently(self.report.say, self.target.find, collection, ids)
        await patiently(self.report.say, self.target.delete, collection, ids)
        try:
            await patiently(self.report.say, self.target.insert, collection, made)
        except (DuplicateDocument, InvalidDocument, DocumentStoreBusy):
            if before:
                await patiently(self.report.say, self.target.insert, collection, before)
            raise

    def _refuse(self, collection: str, name: str, reason: str) -> None:
        self.report.count(collection).left += 1
        self.report.problem(collection, name.partition("/")[2], reason)


async def take_documents(source: SourceDocuments, writer: DocumentWriter) -> None:
    """Import the documents of all `KINDS`."""
    for kind, (collection, mapped) in KINDS.items():
        progress = Progress(collection, await source.total(kind), writer.report.say)
        async for page in source.pages(kind):
            if kind == "queue":
                await _make_room(writer.target, page)
            await writer.write(kind, collection, page, mapped)
            progress.advance(len(page))


async def _make_room(target: DocumentStore, queues: Sequence[Document]) -> None:
    """Delete empty default queues, which our server made when it started, if the source has one of the same name."""
    for queue in queues:
        same = {"company": queue.get("company"), "name": queue.get("name"), "id": Unequal(identity(queue))}
        await target.delete("queues", {**same, "user": None, "entries": HasSize(0), "system_tags": "default"})


async def take_people(source: SourceDocuments, writer: DocumentWriter) -> None:
    """Import all companies, users and access keys."""
    settings = {
        identity(document): document.get("value") async for page in source.pages("settings") for document in page
    }
    server_uid = str(settings.get("server.uuid") or "") or None
    async for page in source.pages("company"):
        await writer.write("company", "companies", page, lambda document, _: people.company(document, server_uid))
    profiles = {identity(document): document async for page in source.pages("user") for document in page}
    accounts = {identity(document): document async for page in source.pages("user", "auth") for document in page}
    persons = []
    for id in sorted({*profiles, *accounts}):
        try:
            persons.append(people.person(profiles.get(id), accounts.get(id)))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            writer.report.problem("users", id, f"it is malformed ({_reason(error)})")
    taken = [person for person in persons if person is not None]
    await _name_apart(writer, [person.user for person in taken])
    await writer.write("user", "users", [person.user for person in taken], _as_it_is)
    keys = [credential for person in taken for credential in person.credentials]
    await writer.write("credential", "credentials", keys, _as_it_is)
    for person in taken:
        for key, reason in person.left.items():
            writer.report.note(f"the access key {key} of '{person.user['name']}' was not imported: {reason}")


def _as_it_is(document: Mapping[str, Any], context: Context) -> Document:
    return dict(document)


async def _name_apart(writer: DocumentWriter, users: Sequence[Document]) -> None:
    """Rename each user whose name another user of the company has: "Ann" becomes "Ann (0a1b2c3d)", with their id.

    Users that the target has keep their names, and so does the oldest of those that are new.
    """
    there = await writer.target.find("users", {}, projection=("company", "name"))
    taken = {(user["company"], user["name"]): user["id"] for user in there}
    for user in sorted(users, key=lambda user: str(user["created"])):
        name = user["name"]
        if taken.setdefault((user["company"], name), user["id"]) != user["id"]:
            user["name"] = f"{name} ({user['id'][:8]})"
            writer.report.note(f"there is another user '{name}': the user {user['id']} is now named '{user['name']}'")


def _reason(error: Exception) -> str:
    return f"no field {error}" if isinstance(error, KeyError) else str(error)
