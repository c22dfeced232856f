"""A server on a port of this machine, and clients of it that send and read what they are told to."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import astuple, dataclass, field
from functools import partial
from typing import Any

import pytest
import uvicorn
from starlette.types import Message, Receive, Scope, Send
from uvicorn.server import ServerState

from apiserver.http.bounds import ConnectionBounds
from apiserver.http.certificate import Certificate
from apiserver.http.protocol import Protocol
from apiserver.http.slots import Slots
from apiserver.http.tls import Tls
from apiserver.rpc.body import REST_OF_BODY
from tests.certificates import lasting_pair
from tests.harness import PATIENCE

#: What waits is ended almost at once; whoever may wait longer in a test says so.
SHORT = 0.05
SPOKEN = {"by TLS": False}
_CLIENT = ssl.create_default_context(cafile=lasting_pair().certificate)
GET = b"GET /small HTTP/1.1\r\nHost: here\r\n\r\n"
GET_LARGE, GET_PATIENT = GET.replace(b"small", b"large"), GET.replace(b"small", b"patient")
LARGE = 20 * 2**20

#: Tests that look at what the client's side holds back, or how it ends, which TLS hides.
without_tls = pytest.mark.parametrize("spoken", ["http"], indirect=True)


@dataclass
class App:
    """Remembers its requests. `/small` answers their bodies, `/large` 20 MB, `/deaf` before it has read any.

    `/quick` answers their bodies, too, and waits for what has not come only; `/stays` then waits for the client to go.
    """

    scopes: list[Scope] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    under_way: int = 0
    most_under_way: int = 0
    disconnected: int = 0
    received: int = 0
    go_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scopes.append(scope)
        self.under_way += 1
        self.most_under_way = max(self.under_way, self.most_under_way)
        try:
            if scope["path"] in ("/quick", "/stays"):
                await self._answer_quickly(scope, receive, send)
            else:
                await self._answer(scope["path"], receive, send)
        finally:
            self.under_way -= 1

    async def _answer(self, path: str, receive: Receive, send: Send) -> None:
        body = b""
        if path == "/patient":
            await self.go_on.wait()
        if path == "/starts":
            await send(start(10))
        if path != "/deaf":
            message: Message = {"more_body": True}
            while message.get("more_body"):
                message = await receive()
                if message["type"] == "http.disconnect":
                    self.disconnected += 1
                    return
                body += message["body"]
            self.bodies.append(body)
        content = b"x" * LARGE if path == "/large" else body
        await self._send(content, send)

    async def _answer_quickly(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, rest = b"", scope["extensions"][REST_OF_BODY]()
        while rest is None:
            body += (await receive())["body"]
            self.received += 1
            rest = scope["extensions"][REST_OF_BODY]()
        while scope["path"] == "/stays" and not self.disconnected:
            self.disconnected += (await receive())["type"] == "http.disconnect"
        await self._send(body + rest, send)

    async def _send(self, content: bytes, send: Send) -> None:
        await send(start(len(content)))
        await send({"type": "http.response.body", "body": content})


def start(length: int) -> Message:
    return {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % length)]}


@dataclass
class Server:
    """Serves `app` on a port of 127.0.0.1."""

    app: App
    slots: Slots
    state: ServerState
    port: int
    by_tls: bool

    @asynccontextmanager
    async def connect(
        self, *sent: bytes, source: str = "127.0.0.1", buffer: int | None = None
    ) -> AsyncIterator[Client]:
        """A client that has sent something; `buffer`: bytes that its system takes for it before it reads them."""
        connection = socket.socket()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if buffer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        connection.bind((source, 0))
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", self.port))
        by_tls: dict[str, Any] = {"ssl": _CLIENT, "server_hostname": "localhost"} if self.by_tls else {}
        reader, writer = await asyncio.open_connection(sock=connection, **by_tls)
        try:
            client = Client(reader, writer)
            for piece in sent:
                await client.send(piece)
            yield client
        finally:
            writer.transport.abort()


@dataclass
class Client:
    """One connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        """Send the data; it need not be taken."""
        self.writer.write(data)
        await asyncio.sleep(0.001)

    async def answer(self) -> tuple[int, bytes]:
        """Status and body of the next answer."""
        async with asyncio.timeout(PATIENCE):
            head = (await self.reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
            length = [int(line.partition(b":")[2]) for line in head if line.startswith(b"content-length:")]
            return int(head[0].split()[1]), await self.reader.readexactly(length[0])

    async def status(self) -> int:
        """The status of the next answer."""
        return (await self.answer())[0]

    async def rest(self) -> bytes:
        """All that comes until the server closes the connection; of a reset one, nothing."""
        async with asyncio.timeout(PATIENCE):
            try:
                return await self.reader.read()
            except ConnectionResetError:
                return b""


@asynccontextmanager
async def serving(bounds: ConnectionBounds | None = None, **slots: Any) -> AsyncIterator[Server]:
    app, state, loop = App(), ServerState(), asyncio.get_running_loop()
    of = Slots(bounds=bounds or ConnectionBounds(look_seconds=0.01), **slots)
    config = uvicorn.Config(app, ws="none", lifespan="off", log_config=None, access_log=False, proxy_headers=False)
    config.load()
    protocol = partial(Tls, Certificate(*astuple(lasting_pair())), of) if SPOKEN["by TLS"] else partial(Protocol, of)
    listener = await loop.create_server(
        partial(protocol, config=config, server_state=state, app_state={}), "127.0.0.1", 0
    )
    try:
        yield Server(app, of, state, listener.sockets[0].getsockname()[1], SPOKEN["by TLS"])
    finally:
        listener.close()
        for connection in list(state.connections):
            connection.transport.abort()
        for task in state.tasks:
            task.cancel()
        await wait_until(lambda: not state.connections and not state.tasks)


async def wait_until(condition: Any) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def short(**bounds: Any) -> ConnectionBounds:
    return ConnectionBounds(look_seconds=0.01, **bounds)


def post(body: bytes = b"", path: bytes = b"/small", headers: bytes = b"", length: int | None = None) -> bytes:
    size = b"Content-Length: %d\r\n" % (len(body) if length is None else length)
    return b"POST %b HTTP/1.1\r\nHost: here\r\n%b%b\r\n%b" % (path, size, headers, body)


def chunked(body: bytes, headers: bytes = b"") -> bytes:
    return b"POST /small HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n%b\r\n%b" % (headers, body)
