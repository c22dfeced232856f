"""Connections over real sockets: slow clients, hasty ones, and those whose requests are no requests."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import astuple, dataclass, field
from functools import partial
from ipaddress import ip_network
from typing import Any
from weakref import ref

import pytest
import uvicorn
from starlette.types import Message, Receive, Scope, Send
from uvicorn.server import ServerState

from apiserver.connections.bounds import ConnectionBounds
from apiserver.connections.certificate import Certificate
from apiserver.connections.protocol import Protocol
from apiserver.connections.proxies import Proxies
from apiserver.connections.slots import Slots
from apiserver.connections.tls import Tls
from apiserver.rpc.body import REST_OF_BODY
from tests.certificates import lasting_pair
from tests.harness import PATIENCE

pytestmark = pytest.mark.anyio

#: What waits is ended almost at once; whoever may wait longer in a test says so.
SHORT = 0.05
SPOKEN = {"by TLS": False}
_CLIENT = ssl.create_default_context(cafile=lasting_pair().certificate)
GET = b"GET /small HTTP/1.1\r\nHost: here\r\n\r\n"
GET_LARGE, GET_PATIENT = GET.replace(b"small", b"large"), GET.replace(b"small", b"patient")
LARGE = 20 * 2**20


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": True}


@pytest.fixture(autouse=True, params=["http", "https"])
def spoken(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All tests are done with and without TLS."""
    monkeypatch.setitem(SPOKEN, "by TLS", request.param == "https")


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


# --- requests as they should be -----------------------------------------------------------------------


async def test_requests_one_after_the_other() -> None:
    async with serving() as server, server.connect() as client:
        for body in (b"one", b"", b"x" * 1_000_000):
            await client.send(post(body))
            assert await client.answer() == (200, body)
        await client.send(chunked(b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: 1\r\n\r\n"))
        assert await client.answer() == (200, b"abcde")
        await client.send(GET)
        assert await client.answer() == (200, b"")


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50, 1000])
async def test_requests_in_pieces(size: int) -> None:
    text = post(b"sized") + b"\r\n\r\n" + chunked(b"3\r\nabc\r\n0\r\n\r\n") + GET + post(b"last")
    async with serving() as server, server.connect() as client:
        for at in range(0, len(text), size):
            await client.send(text[at : at + size])
        assert [await client.answer() for _ in range(4)] == [(200, b"sized"), (200, b"abc"), (200, b""), (200, b"last")]


async def test_headers_reach_the_application_and_trailers_do_not() -> None:
    async with serving() as server, server.connect(chunked(b"0\r\nLate: 1\r\n\r\n", b"Name: Value\r\n")) as client:
        assert await client.status() == 200
        await client.send(chunked(b"0\r\nLate: 1\r\nHost: there\r\n\r\n"))
        assert await client.status() == 200
        assert (b"name", b"Value") in server.app.scopes[0]["headers"]
        for scope in server.app.scopes:
            assert not [value for name, value in scope["headers"] if name == b"late" or value == b"there"]


async def test_http_1_0_is_answered_and_closed() -> None:
    async with serving() as server, server.connect(b"GET /small HTTP/1.0\r\n\r\n") as client:
        assert (await client.rest()).startswith(b"HTTP/1.1 200")


async def test_a_client_that_waits_for_100_gets_it_when_its_body_is_wanted() -> None:
    async with serving() as server:
        async with server.connect(post(path=b"/patient", headers=b"Expect: 100-continue\r\n", length=3)) as client:
            await wait_until(lambda: server.app.under_way)
            server.app.go_on.set()
            assert await client.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
            await client.send(b"abc")
            assert await client.answer() == (200, b"abc")
        async with server.connect(post(path=b"/deaf", headers=b"Expect: 100-continue\r\n", length=3)) as client:
            assert (await client.rest()).startswith(b"HTTP/1.1 200")  # and closed: a body may come, or a request


@pytest.mark.parametrize("body", [b"", b"hello"])
async def test_another_protocol_is_an_offer_that_is_passed_over(body: bytes) -> None:
    offer = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
    async with serving() as server, server.connect(post(body, headers=offer) + GET) as client:
        assert await client.answer() == (200, body)
        assert await client.answer() == (200, b"")
        assert [scope["path"] for scope in server.app.scopes] == ["/small", "/small"]


# --- requests that are none ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        post(b"", headers=b"Transfer-Encoding: chunked\r\n") + b"0\r\n\r\n",
        post(b"abc", headers=b"Content-Length: 4\r\n"),
        post(b"abc", headers=b"Content-Length: 3\r\n"),
        post(b"abc", headers=b"Content-Length: 3, 3\r\n"),
        post(b"abc").replace(b": 3", b": +3"),
        post(b"abc").replace(b": 3", b": 0x3"),
        post(b"abc").replace(b": 3", b": " + b"9" * 30),
        post(b"abc").replace(b"Length:", b"Length :"),
        chunked(b"0\r\n\r\n").replace(b"chunked", b"chunked, identity"),
        chunked(b"0\r\n\r\n").replace(b"chunked", b"xchunked"),
        chunked(b"0\r\n\r\n", b"Transfer-Encoding: identity\r\n"),
        chunked(b"zz\r\n\r\n"),
        chunked(b"3\nabc\n0\n\n"),
        chunked(b"3\r\nabcdef\r\n0\r\n\r\n"),
        chunked(b"ffffffffffffffff1\r\nabc"),
        chunked(b"1;" + b"x" * 1000),
        GET.replace(b"\r\nHost", b"\nHost"),
        GET.replace(b"\r\n\r\n", b"\n\n") + b"GET /hidden HTTP/1.1\r\n\r\n",
        GET.replace(b"\r\n\r\n", b"\r\n\n") + b"GET /hidden HTTP/1.1\r\n\r\n",
        b"GET /small HTTP/1.1\r\nHost: here\r\n folded\rGET /hidden HTTP/1.1\r\n\r\n",
        b"GET /small HTTP/1.1\r\nName\x00: value\r\n\r\n",
        b"CONNECT here:80 HTTP/1.1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"get /",
        b"X" * 30,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    ],
)
async def test_what_is_no_request_is_refused_and_ends_the_connection(text: bytes) -> None:
    async with serving() as server, server.connect(text, GET) as client:
        assert (await client.rest()).count(b"HTTP/1.1 ") == 1
        assert not [scope for scope in server.app.scopes if scope["path"] == "/hidden"]
        await wait_until(lambda: not server.app.under_way)
        assert len(server.app.scopes) <= 1
        assert not server.app.bodies


async def test_trailers_have_an_end() -> None:
    async with serving() as server, server.connect(chunked(b"0\r\n"), b"Name: value\r\n" * 1000) as client:
        assert await client.status() == 400
        assert await client.rest() == b""


@pytest.mark.parametrize("piece", [b"a" * 1000, b"x-name: value\r\n" * 65])
async def test_a_head_has_an_end(piece: bytes) -> None:
    async with serving() as server, server.connect(b"GET /small HTTP/1.1\r\n", *[piece] * 80) as client:
        assert await client.status() == 431
        assert await client.rest() == b""
        assert not server.app.scopes
        async with server.connect(b"GET /small?" + b"a" * 60_000 + b" HTTP/1.1\r\n\r\n") as other:
            assert await other.status() == 200
        async with server.connect(b"GET /small?" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n") as other:
            assert await other.status() == 431


# --- clients that do not wait -------------------------------------------------------------------------


@without_tls
async def test_requests_behind_others_wait_in_the_socket() -> None:
    bounds = ConnectionBounds(look_seconds=0.01, kept_bytes=2**20)
    async with serving(bounds) as server, server.connect(GET_PATIENT) as client:
        client.writer.write(GET * 500_000)  # 18 MB
        await wait_until(lambda: server.app.under_way)
        [connection] = server.state.connections
        assert isinstance(connection, Protocol)
        await wait_until(lambda: connection.flow.held)
        waiting = client.writer.transport.get_write_buffer_size()
        await asyncio.sleep(0.05)
        assert client.writer.transport.get_write_buffer_size() == waiting > 0
        assert len(server.app.scopes) == 1
        server.app.go_on.set()
        assert [await client.status() for _ in range(2000)] == [200] * 2000
        assert server.app.most_under_way == 1


async def test_a_client_that_takes_no_answers_gets_no_more_of_them() -> None:
    async with serving() as server, server.connect(GET_LARGE * 100, buffer=4096) as client:
        await wait_until(lambda: server.app.bodies)
        await asyncio.sleep(0.05)
        assert len(server.app.scopes) == 1
        assert (await client.answer())[0] == 200
        await wait_until(lambda: len(server.app.scopes) == 2)


async def test_others_are_served_between_the_requests_of_one() -> None:
    async with serving() as server, server.connect() as hasty, server.connect() as other:
        hasty.writer.write(GET * 100_000)
        await wait_until(lambda: server.app.scopes)
        before = len(server.app.scopes)
        await other.send(GET)
        assert await other.status() == 200
        assert len(server.app.scopes) - before < 5000


@without_tls
async def test_a_body_is_read_when_it_is_asked_for() -> None:
    body = b"x" * 20_000_000
    async with serving() as server, server.connect(post(path=b"/patient", length=len(body))) as client:
        await wait_until(lambda: server.app.under_way)
        client.writer.write(body)
        await asyncio.sleep(0.05)
        [connection] = server.state.connections
        assert not connection.exchange.body  # type: ignore[union-attr]
        assert client.writer.transport.get_write_buffer_size() > 0
        server.app.go_on.set()
        assert await client.answer() == (200, body)


async def test_a_body_that_has_come_is_not_waited_for() -> None:
    async with serving() as server, server.connect() as client:
        for request in (post(b"abc", b"/quick"), post(b"", b"/quick"), GET.replace(b"small", b"quick")):
            await client.send(request)
            assert await client.answer() == (200, request.partition(b"\r\n\r\n")[2])
        assert server.app.received == 0


@pytest.mark.parametrize("size", [300, 100_000, 2_000_000])
async def test_of_a_body_that_comes_in_pieces_the_rest_is_not_waited_for(size: int) -> None:
    body = bytes(range(256)) * (size // 256) + b"abc"
    async with serving() as server, server.connect(post(body, b"/quick")[:-7]) as client:
        await wait_until(lambda: server.app.received)
        await client.send(body[-7:])
        assert await client.answer() == (200, body)
        await client.send(post(b"abc", b"/quick"))
        assert await client.answer() == (200, b"abc")


async def test_who_has_the_rest_of_a_body_still_hears_that_the_client_goes() -> None:
    async with serving() as server:
        async with server.connect(post(b"x" * 100_000, b"/stays")):
            await wait_until(lambda: server.app.under_way)
        await wait_until(lambda: server.app.disconnected)


async def test_the_rest_of_an_answered_body_is_passed_over() -> None:
    async with serving() as server, server.connect(post(b"x" * 100, path=b"/deaf", length=200_000)) as client:
        assert await client.answer() == (200, b"")
        await client.send(b"x" * 199_900 + GET)
        assert await client.answer() == (200, b"")
        assert [scope["path"] for scope in server.app.scopes] == ["/deaf", "/small"]
    text = post(path=b"/deaf", length=2_000_000)
    async with serving(short(rest_seconds=SHORT)) as server, server.connect(text) as client:
        assert await client.answer() == (200, b"")
        assert await client.rest() == b""


async def test_all_that_came_too_early_is_bounded_together() -> None:
    async with serving(short(kept_bytes=20_000)) as server, AsyncExitStack() as opened:
        for _ in range(3):
            client = await opened.enter_async_context(server.connect(b"GET /" + b"a" * 12_000))
        assert await client.status() == 503
        assert await client.rest() == b""


# --- clients that are late ----------------------------------------------------------------------------


async def test_who_says_nothing_is_left() -> None:
    async with serving(short(silent_seconds=SHORT)) as server, server.connect() as client:
        assert await client.rest() == b""
        assert len(server.slots) == 0


@pytest.mark.parametrize("piece", [b"GET /", b"\r\n", b"\r\nGET /small HTTP/1.1\r\nName: "])
async def test_a_head_that_trickles_is_ended(piece: bytes) -> None:
    async with serving(short(head_seconds=SHORT)) as server, server.connect(piece) as client:
        ended = asyncio.ensure_future(client.rest())
        while not ended.done():
            await client.send(b"\r\n" if piece == b"\r\n" else b"x")
        assert (await ended).startswith(b"HTTP/1.1 408")
        assert not server.app.scopes


async def test_an_idle_connection_ends() -> None:
    async with serving(short(idle_seconds=SHORT, silent_seconds=30)) as server, server.connect(GET) as client:
        assert await client.status() == 200
        assert await client.rest() == b""


async def test_a_body_that_does_not_come_is_ended() -> None:
    for text in (post(b"x", length=100), chunked(b""), chunked(b"5\r\nhel")):
        async with serving(short(stall_seconds=SHORT)) as server, server.connect(text) as client:
            assert await client.status() == 408
            assert await client.rest() == b""
            await wait_until(lambda: server.app.disconnected == 1)


async def test_a_body_that_trickles_is_ended() -> None:
    async with serving(short(stall_seconds=SHORT, least_rate=2**20)) as server, server.connect(chunked(b"")) as client:
        ended = asyncio.ensure_future(client.rest())
        while not ended.done():
            await client.send(b"1\r\nx\r\n")
        assert (await ended).startswith(b"HTTP/1.1 408")
        await wait_until(lambda: server.app.disconnected == 1)


async def test_no_second_answer_follows_one_that_has_begun() -> None:
    text = post(path=b"/starts", length=100)
    async with serving(short(stall_seconds=SHORT)) as server, server.connect(text) as client:
        assert await client.rest() == b""
        await wait_until(lambda: server.app.disconnected == 1)


async def test_a_body_may_take_long_if_it_goes_on() -> None:
    async with serving(short(stall_seconds=0.3, least_rate=1)) as server, server.connect(post(length=100)) as client:
        for _ in range(100):
            await client.send(b"x")
            await asyncio.sleep(0.01)
        assert await client.answer() == (200, b"x" * 100)


async def test_the_server_is_not_in_a_hurry_with_what_it_does_not_read() -> None:
    text = post(path=b"/patient", length=3)
    async with serving(short(stall_seconds=SHORT)) as server, server.connect(text) as client:
        await asyncio.sleep(3 * SHORT)
        server.app.go_on.set()
        await client.send(b"abc")
        assert await client.answer() == (200, b"abc")


async def test_an_answer_that_nobody_takes_is_ended() -> None:
    for keep in (b"", b"Connection: close\r\n"):
        text = GET_LARGE.replace(b"\r\n\r\n", b"\r\n" + keep + b"\r\n")
        async with serving(short(stall_seconds=SHORT)) as server, server.connect(text, buffer=4096):
            await wait_until(lambda: server.app.bodies)
            await wait_until(lambda: not server.state.connections)
            assert len(server.slots) == 0


@without_tls
async def test_an_answer_may_take_long_if_it_goes_on() -> None:
    bounds = short(stall_seconds=0.2, idle_seconds=SHORT, least_rate=2**20)
    async with serving(bounds) as server, server.connect(GET_LARGE, buffer=2**16) as client:
        left = LARGE
        await client.reader.readuntil(b"\r\n\r\n")
        while left:
            piece = await client.reader.read(min(2**19, left))
            assert piece, "the connection was closed"
            left -= len(piece)
            await asyncio.sleep(0.01)


# --- how many -----------------------------------------------------------------------------------------


async def test_beyond_the_bound_a_new_connection_is_told_when_to_come_again() -> None:
    async with serving(total=4, per_address=2) as server, AsyncExitStack() as opened:
        for _ in range(2):
            await opened.enter_async_context(server.connect(GET_PATIENT))
        await wait_until(lambda: server.app.under_way == 2)
        async with server.connect(GET) as client:
            answer = await client.rest()
            assert answer.startswith(b"HTTP/1.1 503 ")
            assert b"\r\nretry-after: 2\r\n" in answer
            assert b"\r\nconnection: close\r\n" in answer
        async with server.connect(GET, source="127.0.0.2") as client:
            assert await client.status() == 200
        assert len(server.app.scopes) == 3


@without_tls
async def test_silent_connections_keep_nobody_out() -> None:
    async with serving(short(grace_seconds=0), total=4) as server, AsyncExitStack() as opened:
        silent = [await opened.enter_async_context(server.connect()) for _ in range(20)]
        answers: list[int] = []
        while answers[-10:] != [200] * 10:  # who may give way is found at each look
            async with server.connect(GET) as client:
                answers.append(await client.status())
        assert (await silent[0].rest()).startswith(b"HTTP/1.1 503 ")


@without_tls
async def test_half_closed_connections_end() -> None:
    async with serving() as server:
        for text in (b"", b"GET /", GET, post(b"x", length=5)):
            async with server.connect(text) as client:
                client.writer.write_eof()
                await client.rest()
                await wait_until(lambda: not server.state.connections and not server.app.under_way)
        assert len(server.slots) == 0


async def test_a_shutdown_waits_for_answers_alone() -> None:
    async with serving() as server, AsyncExitStack() as opened:
        idle = [await opened.enter_async_context(server.connect(text)) for text in (b"", b"GET /", b"\x00\r\n\r\n")]
        busy = await opened.enter_async_context(server.connect(GET_PATIENT + GET))
        await wait_until(lambda: server.app.under_way)
        for connection in list(server.state.connections):
            connection.shutdown()
        for client in idle:
            await client.rest()
        server.app.go_on.set()
        assert (await busy.rest()).count(b"HTTP/1.1 200") == 1
        await wait_until(lambda: not server.state.connections)


async def test_a_request_that_was_on_its_way_at_a_shutdown_is_answered() -> None:
    bounds = short(parting_seconds=PATIENCE)
    async with serving(bounds) as server, server.connect() as new, server.connect(GET) as idle:
        assert await idle.status() == 200
        await wait_until(lambda: len(server.state.connections) == 2)
        for connection in list(server.state.connections):
            connection.shutdown()
        for client in (new, idle):
            await client.send(GET)
            answer = await client.rest()
            assert answer.startswith(b"HTTP/1.1 200")
            assert b"\r\nconnection: close\r\n" in answer
        assert not server.state.connections


# --- proxies ------------------------------------------------------------------------------------------

FORWARDED = b"X-Forwarded-For: 6.6.6.6, 198.51.100.7\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: ui\r\n"


async def seen(server: Server, headers: bytes) -> tuple[str, set[bytes]]:
    """The client's address, and the headers of proxies, as the application sees them."""
    async with server.connect(post(headers=headers)) as client:
        assert await client.status() == 200
    scope = server.app.scopes[-1]
    return scope["client"][0], {name for name, _ in scope["headers"] if name.startswith(b"x-forwarded")}


async def test_a_trusted_proxy_tells_the_address() -> None:
    everything = {b"x-forwarded-for", b"x-forwarded-proto", b"x-forwarded-host"}
    async with serving(proxies=Proxies([ip_network("127.0.0.1")])) as server:
        assert await seen(server, FORWARDED) == ("198.51.100.7", everything)
        assert await seen(server, b"") == ("127.0.0.1", set())
        assert await seen(server, b"X-Forwarded-For: unknown\r\n") == ("127.0.0.1", {b"x-forwarded-for"})


async def test_nobody_else_does() -> None:
    async with serving(proxies=Proxies([ip_network("10.0.0.1")])) as server:
        assert await seen(server, FORWARDED) == ("127.0.0.1", set())
    async with serving() as server:  # whose operator says nothing of a proxy that there may be
        address, headers = await seen(server, FORWARDED)
        assert address == "127.0.0.1"
        assert b"x-forwarded-proto" in headers


async def test_only_a_trusted_proxy_says_who_has_signed_in() -> None:
    async def said(server: Server, headers: bytes) -> list[bytes]:
        async with server.connect(post(headers=headers)) as client:
            assert await client.status() == 200
        return [value for name, value in server.app.scopes[-1]["headers"] if name == b"remote-user"]

    async with serving(proxies=Proxies([ip_network("127.0.0.1")], "Remote-User")) as server:
        assert await said(server, b"") == []
        assert await said(server, b"Remote-User: ada\r\n") == [b"ada"]
        assert await said(server, b"remote-user: ada\r\nX-Other: x\r\nREMOTE-USER: eve\r\n") == [b"ada, eve"]
    async with serving(proxies=Proxies([ip_network("10.0.0.1")], "Remote-User")) as server:
        assert await said(server, b"Remote-User: ada\r\nREMOTE-USER: eve\r\n") == []


async def test_a_request_is_freed_with_its_connection_and_not_by_the_garbage_collector() -> None:
    gc.disable()
    try:
        async with serving() as server:
            async with server.connect(post(b"body", b"/quick")) as client:
                assert await client.answer() == (200, b"body")
                requests = [ref(connection.exchange) for connection in server.state.connections]  # type: ignore[union-attr]
            await wait_until(lambda: not server.state.connections and not server.state.tasks)
        assert [request() for request in requests] == [None]
    finally:
        gc.enable()
