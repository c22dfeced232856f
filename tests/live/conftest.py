"""Hubs on either pair of stores, and short ways to fill the stores and to read what a watcher is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import orjson
import pytest

from apiserver.live.hub import Hub, Reader
from apiserver.live.telling import Chunk
from apiserver.live.watchers import Subscription, Watcher
from apiserver.reading.scroll import Scrolls
from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.documents.query import Update
from apiserver.stores.events.base import EventStore
from tests.contract import document_stores, event_stores
from tests.contract.event_stores import Case
from tests.longer import beyond

COMPANY = "company"
#: Seconds that a test waits for what must come.
PATIENCE = 120


async def always() -> bool:
    return True


@dataclass
class Stores:
    """Open stores, and a hub on them."""

    events: EventStore
    documents: DocumentStore
    hub: Hub

    async def task(self, id: str, **fields: Any) -> str:
        """A new task."""
        document = {"id": id, "company": COMPANY, "name": id, "status": "created", "project": "p", **fields}
        await self.documents.insert("tasks", [document])
        return id

    async def change(self, id: str, **fields: Any) -> None:
        assert await self.documents.update("tasks", {"id": id}, Update(set=fields)) == 1

    @asynccontextmanager
    async def watching(
        self, *tasks: str, since: str | None = None, projects: tuple[str, ...] = (), reader: Reader | None = None
    ) -> AsyncIterator[Reading]:
        """What a watcher of these tasks reads."""
        asked = Subscription(frozenset(tasks), frozenset(projects))
        watcher = await self.hub.join(reader or Reader(COMPANY, "user", always), asked, since)
        try:
            yield Reading(watcher)
        finally:
            self.hub.leave(watcher)


class Reading:
    """Reads chunk by chunk, and keeps the newest cursor."""

    def __init__(self, watcher: Watcher) -> None:
        self.watcher = watcher
        self.cursor = ""

    async def chunk(self) -> Chunk:
        """The next chunk; StopAsyncIteration at the end."""
        chunk = await asyncio.wait_for(anext(self.watcher), PATIENCE)
        self.cursor = chunk.cursor or self.cursor
        return chunk

    async def next(self) -> list[tuple[str, Any]]:
        """The events up to the next cursor, each with its name."""
        told: list[tuple[str, Any]] = []
        while True:
            chunk = await self.chunk()
            told += [(event.name, orjson.loads(event.data)) for event in chunk.events]
            if chunk.cursor is not None or self.watcher.reason is not None:
                return told

    async def until(self, name: str) -> list[tuple[str, Any]]:
        """The events up to one of this name."""
        told: list[tuple[str, Any]] = []
        while name not in [one for one, _ in told]:
            told += await self.next()
        return told

    async def names(self) -> list[str]:
        """The names of the next events."""
        return [name for name, _ in await self.next()]


#: Of a test about what engines do in their own way.
ON_EACH = pytest.mark.parametrize(
    "stores", ["embedded", pytest.param("engines", marks=pytest.mark.check)], indirect=True
)


@pytest.fixture(params=beyond(["embedded"], ["embedded", "engines"]))
async def stores(request: pytest.FixtureRequest) -> AsyncIterator[Stores]:
    """Empty stores. Those of engines are for `make longer`, but for tests that are marked ON_EACH."""
    embedded = request.param == "embedded"
    documents = (document_stores.sqlite if embedded else document_stores.mongo)(request)
    if embedded:
        case: Case = event_stores.CASES["embedded-hot"](request.getfixturevalue("tmp_path"))
    else:
        case = event_stores.elasticsearch(request)
    await documents.open()
    await case.store.open()
    mark = request.node.get_closest_marker("bounds")
    hub = Hub(case.store, documents, Scrolls("secret"), mark.args[0].live if mark else None)
    yield Stores(case.store, documents, hub)
    hub.close()
    await case.store.close()
    await documents.close()
