"""Reads live streams: from the app in this process, whose answers httpx gives only when they are complete."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.harness import Api, basic

#: Seconds that a test waits for what must come.
PATIENCE = 120


@dataclass
class Told:
    """One server-sent event."""

    event: str
    data: Any
    id: str | None


def events_of(lines: Iterable[str]) -> Iterator[Told]:
    """The events of a stream, as they come; an event without data is one without a name."""
    fields: dict[str, str] = {}
    for line in lines:
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
        elif fields:
            yield Told(fields.get("event", ""), json.loads(fields.get("data", "null")), fields.get("id"))
            fields = {}


class Stream:
    """An answer of the app that goes on."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.cursor = ""
        self.left = asyncio.Event()
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._text = ""

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            await self._pieces.put(message["body"])
            if not message.get("more_body"):
                await self._pieces.put(None)

    async def receive(self) -> Any:
        if not self.left.is_set():
            await self.left.wait()
        return {"type": "http.disconnect"}

    async def piece(self) -> str | None:
        """What is sent next; None at the end."""
        piece = await asyncio.wait_for(self._pieces.get(), PATIENCE)
        return None if piece is None else piece.decode()

    async def next(self) -> list[tuple[str, Any]]:
        """The events up to the next id; StopAsyncIteration at the end."""
        while "id: " not in self._text or not self._text.endswith("\n\n"):
            piece = await self.piece()
            if piece is None:
                raise StopAsyncIteration
            self._text += piece
        told, self._text = list(events_of(self._text.split("\n"))), ""
        self.cursor = [one.id for one in told if one.id][-1] or ""
        return [(one.event, one.data) for one in told if one.event]


@asynccontextmanager
async def stream(api: Api, address: str, **headers: str) -> AsyncIterator[Stream]:
    """The answer to a request, whose client leaves at the end."""
    path, _, query = address.partition("?")
    sent = {"authorization": basic(*api.auth), **headers}
    opened = Stream()
    scope = {
        **{"type": "http", "method": "GET", "path": path, "query_string": query.encode(), "root_path": ""},
        "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in sent.items()],
    }
    answering = asyncio.create_task(api.app(scope, opened.receive, opened.send))
    try:
        yield opened
    finally:
        opened.left.set()
        await asyncio.wait_for(answering, PATIENCE)
