"""Exchanges: what an application receives and sends, without sockets."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from apiserver.http.exchange import Exchange, Flow, Header

pytestmark = pytest.mark.anyio


@dataclass
class Connection:
    """Keeps what is written; `ended` counts complete answers."""

    written: list[bytes] = field(default_factory=list)
    closed: bool = False
    ended: int = 0

    def write(self, data: bytes) -> None:
        self.written.append(bytes(data))

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def end(self) -> None:
        self.ended += 1

    def exchange(self, method: str = "GET", *, keep_alive: bool = True) -> Exchange:
        """A new exchange on this connection, whose request has come as a whole."""
        flow = Flow(cast(asyncio.Transport, self))
        options: Any = {"keep_alive": keep_alive, "waits_for_100": False}
        exchange = Exchange({"type": "http", "method": method}, self, flow, self.end, [(b"date", b"today")], **options)
        exchange.body, exchange.more_body = b"sent", False
        return exchange

    @property
    def head(self) -> list[bytes]:
        return b"".join(self.written).partition(b"\r\n\r\n")[0].split(b"\r\n")

    @property
    def body(self) -> bytes:
        return b"".join(self.written).partition(b"\r\n\r\n")[2]


def answering(*bodies: bytes, status: int = 200, headers: list[Header] | None = None) -> ASGIApp:
    """An application that answers these pieces."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": status, "headers": headers or []})
        for number, body in enumerate(bodies, 1):
            await send({"type": "http.response.body", "body": body, "more_body": number < len(bodies)})

    return app


LENGTH: Header = (b"content-length", b"5")


async def test_an_answer_of_known_length() -> None:
    connection = Connection()
    await connection.exchange().run(answering(b"he", b"llo", headers=[LENGTH]))
    assert connection.head == [b"HTTP/1.1 200 OK", b"date: today", b"content-length: 5"]
    assert (connection.body, connection.ended, connection.closed) == (b"hello", 1, False)


async def test_an_answer_of_unknown_length_comes_in_chunks() -> None:
    connection = Connection()
    await connection.exchange().run(answering(b"he", b"", b"llo"))
    assert b"transfer-encoding: chunked" in connection.head
    assert connection.body == b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 204), ("GET", 304)])
async def test_an_answer_without_body_has_no_chunks(method: str, status: int) -> None:
    connection = Connection()
    await connection.exchange(method).run(answering(b"", status=status))
    assert b"transfer-encoding: chunked" not in connection.head
    assert (connection.body, connection.ended) == (b"", 1)


@pytest.mark.parametrize("says", [b"close", b"Close"])
async def test_the_application_closes_the_connection(says: bytes) -> None:
    connection = Connection()
    await connection.exchange().run(answering(b"hello", headers=[LENGTH, (b"connection", says)]))
    assert connection.closed
    assert connection.head.count(b"connection: " + says) == 1


async def test_the_client_wants_the_connection_closed() -> None:
    connection = Connection()
    await connection.exchange(keep_alive=False).run(answering(b"hello", headers=[LENGTH]))
    assert connection.closed
    assert b"connection: close" in connection.head


@pytest.mark.parametrize(
    "header",
    [
        (b"x-name", b"a\r\nx-other: b"),
        (b"x-name", b"a\0"),
        (b"x name", b"a"),
        (b"x-name\r\nx", b"a"),
        (b"X-Name", b"a"),
    ],
)
async def test_no_header_can_begin_another_one(header: Header) -> None:
    connection = Connection()
    await connection.exchange().run(answering(b"hello", headers=[LENGTH, header]))
    assert connection.written == []
    assert connection.ended == 0


@pytest.mark.parametrize("bodies", [(b"hello!",), (b"hel", b"l"), (b"hello", b"!")])
async def test_an_answer_of_another_length_than_it_says_ends_the_connection(bodies: tuple[bytes, ...]) -> None:
    connection = Connection()
    await connection.exchange().run(answering(*bodies, headers=[LENGTH]))
    assert connection.closed
    assert not connection.ended


async def test_messages_out_of_turn() -> None:
    exchange = Connection().exchange()
    body: Message = {"type": "http.response.body", "body": b""}
    start: Message = {"type": "http.response.start", "status": 200, "headers": []}
    for turns in ([body], [start, start], [start, body, body]):
        exchange = Connection().exchange()
        for message in turns[:-1]:
            await exchange.send(message)
        with pytest.raises(RuntimeError, match="out of turn"):
            await exchange.send(turns[-1])


async def test_an_application_that_fails_is_answered_for() -> None:
    async def fails(scope: Scope, receive: Receive, send: Send) -> None:
        raise ValueError("a secret")

    connection = Connection()
    await connection.exchange().run(fails)
    assert connection.head[0] == b"HTTP/1.1 500 Internal Server Error"
    assert (connection.body, connection.closed, connection.ended) == (b"Internal Server Error", True, 1)


async def test_an_application_that_says_nothing_is_answered_for() -> None:
    async def silent(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()

    connection = Connection()
    await connection.exchange().run(silent)
    assert connection.head[0] == b"HTTP/1.1 500 Internal Server Error"


async def test_the_body_comes_once_and_then_the_end_of_the_exchange() -> None:
    received: list[Message] = []

    async def reads(scope: Scope, receive: Receive, send: Send) -> None:
        received.append(await receive())
        await answering(b"hello", headers=[LENGTH])(scope, receive, send)
        received.append(await receive())

    await Connection().exchange().run(reads)
    assert received == [
        {"type": "http.request", "body": b"sent", "more_body": False},
        {"type": "http.disconnect"},
    ]


async def test_nothing_is_sent_to_a_client_that_has_left() -> None:
    connection = Connection()
    exchange = connection.exchange()
    exchange.disconnected = True
    await exchange.run(answering(b"hello", headers=[LENGTH]))
    assert connection.written == []
