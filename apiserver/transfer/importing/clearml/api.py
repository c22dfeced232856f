"""Reads a ClearML server over its API, as far as one user may: for users who cannot reach its databases.

The API gives no secrets, and only the names of other users. Events are read task by task.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec

from apiserver.common.times import epoch_millis
from apiserver.events.model import EventType
from apiserver.stores.documents.query import Document
from apiserver.transfer.importing.clearml.elasticsearch import EVENTS, SAMPLES, StoredEvent, Tally
from apiserver.transfer.importing.clearml.http import Http, basic
from apiserver.transfer.importing.report import ImportFailed, SourceRefused

#: Counts that are asked for at once.
_AT_ONCE = 8

#: The service that lists the documents of a kind; the list in its answer has the same name.
_LISTS = {"model": "models", "task": "tasks", "queue": "queues"}


class EventPage(msgspec.Struct):
    """A page of events, and the id by which the next one is asked for."""

    events: list[msgspec.Raw]
    total: int | None = None
    scroll_id: str | None = None


class _EventAnswer(msgspec.Struct):
    data: EventPage


_answers = msgspec.json.Decoder(_EventAnswer)


class PageSizes(NamedTuple):
    """How much an answer has, at most."""

    documents: int = 200
    ids: int = 500
    """Documents of which only the ids are asked for."""
    events: int = EVENTS
    samples: Mapping[EventType, int] = SAMPLES


SIZES = PageSizes()


class Api:
    """The API at one address, called by one user. Answers are as large as `sizes` says."""

    def __init__(self, url: str, key: str, secret: str, sizes: PageSizes = SIZES) -> None:
        self.sizes = sizes
        self._http = Http("the ClearML server", [url])
        self.key = key
        self.secret = secret

    async def open(self) -> None:
        """Log in. Raises ImportFailed."""
        self._http.authorize(basic(self.key, self.secret))
        self._http.authorize(f"Bearer {(await self.call('auth.login', {}))['token']}")

    async def close(self) -> None:
        """Close the connections; a second call does nothing."""
        await self._http.close()

    async def call(self, endpoint: str, request: Document) -> Document:
        """The `data` of an endpoint's answer."""
        answer = await self._http.ask("POST", f"/{endpoint}", request)
        data: Document = answer["data"]
        return data

    async def events(self, endpoint: str, request: Document) -> EventPage:
        """The page of events in an endpoint's answer."""
        try:
            return _answers.decode(await self._http.send("POST", f"/{endpoint}", request)).data
        except msgspec.DecodeError as error:
            raise ImportFailed(f"the answer of the ClearML server holds no events: {error}") from error

    async def listed(self, service: str, fields: Sequence[str] = (), size: int = 0) -> AsyncIterator[list[Document]]:
        """Pages of all documents that `<service>.get_all` answers, by id, without public ones."""
        size = size or self.sizes.documents
        chosen = {"only_fields": list(fields)} if fields else {}
        request = {"search_hidden": True, "allow_public": False, "order_by": ["id"], "page_size": size, **chosen}
        page = 0
        while True:
            found: list[Document] = (await self.call(f"{service}.get_all", {**request, "page": page}))[service]
            if found:
                yield found
            if len(found) < size:
                return
            page += 1


class ApiDocuments:
    """The documents of the user's company."""

    escaped = False

    def __init__(self, api: Api) -> None:
        self._api = api

    async def home(self) -> str:
        """The user's company."""
        return str((await self._me())["company"]["id"])

    async def total(self, kind: str, database: str = "") -> int:
        """0: the number is not known."""
        return 0

    async def pages(self, kind: str, database: str = "backend") -> AsyncIterator[list[Document]]:
        """All documents of a kind."""
        if kind == "project":
            parents = await self._parents()
            async for page in self._api.listed("projects"):
                yield [{**project, "path": _path(project.get("parent"), parents)} for project in page]
        elif kind in _LISTS:
            async for page in self._api.listed(_LISTS[kind]):
                yield page
        elif kind == "company":
            yield [(await self._me())["company"]]
        elif kind == "user":
            async for page in self._api.listed("users"):
                yield await (self._accounts(page) if database == "auth" else self._profiles(page))

    async def _me(self) -> Document:
        user: Document = (await self._api.call("users.get_current_user", {}))["user"]
        return user

    async def _profiles(self, users: Sequence[Document]) -> list[Document]:
        """Users as they are in the database; the API gives only the caller's preferences."""
        me, home = await self._me(), await self.home()
        told = (await self._api.call("users.get_preferences", {}))["preferences"]
        mine = {"preferences": told}
        return [{**user, "company": home, **(mine if user["id"] == me["id"] else {})} for user in users]

    async def _accounts(self, users: Sequence[Document]) -> list[Document]:
        """The caller's account, with the one access key whose secret is known."""
        me = await self._me()
        own = {"key": self._api.key, "secret": self._api.secret}
        account = {"id": me["id"], "company": me["company"]["id"], "role": me.get("role", "user"), "credentials": [own]}
        return [account for user in users if user["id"] == me["id"]]

    async def _parents(self) -> dict[str, str | None]:
        """The parent of each project: the API does not give the whole path."""
        parents: dict[str, str | None] = {}
        async for page in self._api.listed("projects", ("id", "parent"), self._api.sizes.ids):
            parents |= {one["id"]: one.get("parent") for one in page}
        return parents


def _path(parent: str | None, parents: dict[str, str | None]) -> list[str]:
    path: list[str] = []
    while parent and parent not in path:
        path.insert(0, parent)
        parent = parents.get(parent)
    return path


class ApiEvents:
    """The events of the user's company."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._models: set[str] = set()

    async def indices(self, type: EventType) -> list[str]:
        """One index, whose name is the type."""
        return [type.value]

    async def total(self, index: str) -> int:
        """0: the number is not known."""
        return 0

    async def tallies(self, index: str) -> AsyncIterator[list[Tally]]:
        """The number of events of each task or model, and its last update in place of the newest event's time.

        If the server refuses to say how many there are, the number is 1.
        """
        type, turns = EventType(index), asyncio.Semaphore(_AT_ONCE)
        for service in ("tasks",) if type is EventType.LOG else ("tasks", "models"):

            async def tally(document: Document, model: bool = service == "models") -> Tally:
                async with turns:
                    count = await self._count(document["id"], type, model)
                return Tally(document["id"], count, epoch_millis(document.get("last_update")) or 0)

            async for page in self._api.listed(service, ("id", "last_update"), self._api.sizes.ids):
                if service == "models":
                    self._models |= {model["id"] for model in page}
                tallies = await asyncio.gather(*map(tally, page))
                yield [tally_of_owner for tally_of_owner in tallies if tally_of_owner.events]

    async def pages(
        self, index: str, type: EventType, ids: Collection[str], count: int
    ) -> AsyncIterator[Sequence[StoredEvent]]:
        """All events of tasks or models, one after another."""
        for id in ids:
            walk = self._lines(id) if type is EventType.LOG else self._by_iteration(id, type)
            number = 0
            async for page in walk:
                yield [StoredEvent(f"{id} {number + n}", source) for n, source in enumerate(page)]
                number += len(page)

    async def _count(self, id: str, type: EventType, model: bool) -> int:
        endpoint = "events.get_task_log" if type is EventType.LOG else "events.get_task_events"
        request = {"task": id, "event_type": type.value, "model_events": model, "batch_size": 1}
        try:
            return (await self._api.events(endpoint, request)).total or 0
        except SourceRefused:
            return 1

    async def _lines(self, task: str) -> AsyncIterator[list[msgspec.Raw]]:
        request: Document = {"task": task, "batch_size": self._api.sizes.events, "navigate_earlier": False}
        while events := (await self._api.events("events.get_task_log", request)).events:
            yield events
            request["from_timestamp"] = msgspec.json.decode(events[-1])["timestamp"]

    async def _by_iteration(self, id: str, type: EventType) -> AsyncIterator[list[msgspec.Raw]]:
        """Pages of events in the order of iterations.

        After a page that ends at iteration 0, ClearML's server starts from the beginning again. Then this starts again,
        too, with the largest pages that the server allows. If such a page also ends at iteration 0, the rest cannot be
        read: comparing counts will show that.
        """
        sizes = self._api.sizes
        for size in (sizes.samples.get(type, sizes.events), sizes.events):
            request: Document = {"task": id, "event_type": type.value, "order": "asc", "batch_size": size}
            request["model_events"] = id in self._models
            seen = 0
            while True:
                page = await self._api.events("events.get_task_events", request)
                if page.events:
                    yield page.events
                seen += len(page.events)
                if not page.events or seen >= (page.total or 0):
                    return
                if not msgspec.json.decode(page.events[-1]).get("iter"):
                    break
                request["scroll_id"] = page.scroll_id
