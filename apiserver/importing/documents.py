"""The stage of documents: companies, people, projects, models, queues and tasks, each kind page by page.

A document is written when it is new, or has changed at the source since it was taken. Whatever else the target holds
stays as it is. A document that cannot be taken costs itself only.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from apiserver.copying.copied import patiently
from apiserver.importing.mapping import others, people, tasks
from apiserver.importing.mapping.common import Context, identity
from apiserver.importing.marks import Marks, mark
from apiserver.importing.report import Progress, Report
from apiserver.stores.documents.base import (
    Document,
    DocumentStore,
    DocumentStoreBusy,
    DuplicateDocument,
    InvalidDocument,
)

#: Another one makes a further run write every document anew: to be raised when what `mapping` makes changes.
_MAPPING = 1

Mapped = Callable[[Mapping[str, Any], Context], Document]

#: Kinds by their names there: what they are called here, and what makes them so.
KINDS: dict[str, tuple[str, Mapped]] = {
    "project": ("projects", others.project),
    "model": ("models", others.model),
    "task": ("tasks", tasks.task),
    "queue": ("queues", others.queue),
    "storage_settings": ("storage_settings", others.storage_settings),
}


class Documents(Protocol):
    """The documents of a ClearML server, as JSON."""

    @property
    def escaped(self) -> bool:
        """Whether names that users gave are escaped in keys."""

    async def home(self) -> str:
        """The company that gets what is nobody's."""

    async def total(self, kind: str, database: str = ...) -> int:
        """How many documents there are of a kind, about; 0: that is not known."""

    def pages(self, kind: str, database: str = ...) -> AsyncIterator[list[Document]]:
        """All documents of a kind."""


@dataclass(slots=True)
class Writer:
    """Writes documents of the source that the target has not as they are now."""

    target: DocumentStore
    marks: Marks
    report: Report
    context: Context

    async def write(self, kind: str, collection: str, page: Sequence[Document], mapped: Mapped) -> None:
        """Take a page of documents of one kind."""
        count = self.report.count(collection)
        count.found += len(page)
        named = {f"{kind}/{identity(document)}": document for document in page}
        now = {name: self._mark(document) for name, document in named.items()}
        known = await self.marks.of(named)
        made: dict[str, Document] = {}
        for name, document in named.items():
            if known.get(name) == now[name]:
                count.known += 1
                continue
            try:
                made[name] = mapped(document, self.context)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                self._refuse(collection, name, f"it is not as such documents are ({_said(error)})")
        written = await self._put(collection, made)
        count.taken += len(written)
        await self.marks.put({name: now[name] for name in written})

    def _mark(self, document: Document) -> str:
        return mark(_MAPPING, document, self.context.urls.pairs, self.context.home)

    async def _put(self, collection: str, made: Mapping[str, Document]) -> list[str]:
        """Write documents, all at once or, when that is refused, each by itself; the names of those that were."""
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
            self._refuse(collection, name, "the target has one of that name or key, with another id")
            return False
        except InvalidDocument as error:
            self._refuse(collection, name, str(error))
            return False
        return True

    async def _replace(self, collection: str, made: Sequence[Document]) -> None:
        ids = {"id": {"$in": [document["id"] for document in made]}}
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


async def take_documents(source: Documents, writer: Writer) -> None:
    """Take all of `KINDS`."""
    for kind, (collection, mapped) in KINDS.items():
        progress = Progress(collection, await source.total(kind), writer.report.say)
        async for page in source.pages(kind):
            if kind == "queue":
                await _make_room(writer.target, page)
            await writer.write(kind, collection, page, mapped)
            progress.advance(len(page))


async def _make_room(target: DocumentStore, queues: Sequence[Document]) -> None:
    """Take away empty default queues, which a server makes when it starts, where the source has one of that name."""
    for queue in queues:
        same = {"company": queue.get("company"), "name": queue.get("name"), "id": {"$ne": identity(queue)}}
        await target.delete("queues", {**same, "user": None, "entries": {"$size": 0}, "system_tags": "default"})


async def take_people(source: Documents, writer: Writer) -> None:
    """Take all companies, users and access keys."""
    server_uid = await _server_uid(source)
    async for page in source.pages("company"):
        await writer.write("company", "companies", page, lambda found, _: people.company(found, server_uid))
    profiles = {identity(one): one async for page in source.pages("user") for one in page}
    accounts = {identity(one): one async for page in source.pages("user", "auth") for one in page}
    persons = []
    for id in sorted({*profiles, *accounts}):
        try:
            persons.append(people.person(profiles.get(id), accounts.get(id)))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            writer.report.problem("users", id, f"it is not as such documents are ({_said(error)})")
    taken = [person for person in persons if person is not None]
    await _name_apart(writer, [person.user for person in taken])
    await writer.write("user", "users", [person.user for person in taken], _as_it_is)
    keys = [credential for person in taken for credential in person.credentials]
    await writer.write("credential", "credentials", keys, _as_it_is)
    for person in taken:
        for key, reason in person.left.items():
            writer.report.note(f"the access key {key} of '{person.user['name']}' is not taken: {reason}")


def _as_it_is(document: Mapping[str, Any], context: Context) -> Document:
    return dict(document)


async def _name_apart(writer: Writer, users: Sequence[Document]) -> None:
    """Give a user whose name another one of the company has a name of their own."""
    there = await writer.target.find("users", {}, projection=("company", "name"))
    taken = {(user["company"], user["name"]): user["id"] for user in there}
    for user in sorted(users, key=lambda user: str(user["created"])):
        name = user["name"]
        if taken.setdefault((user["company"], name), user["id"]) != user["id"]:
            user["name"] = f"{name} ({user['id'][:8]})"
            writer.report.note(f"there is another user '{name}': the one with the id {user['id']} is '{user['name']}'")


async def _server_uid(source: Documents) -> str | None:
    settings = {identity(one): one.get("value") async for page in source.pages("settings") for one in page}
    found = settings.get("server.uuid")
    return str(found) if found else None


def _said(error: Exception) -> str:
    return f"no field {error}" if isinstance(error, KeyError) else str(error)
