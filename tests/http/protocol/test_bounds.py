"""Connections over real sockets are bounded: how long clients may take, and how many there may be."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from apiserver.http.bounds import ConnectionBounds
from tests.clock import still_clock
from tests.harness import PATIENCE
from tests.http.protocol.serving import (
    GET,
    GET_LARGE,
    GET_PATIENT,
    LARGE,
    SHORT,
    chunked,
    post,
    serving,
    short,
    wait_until,
    without_tls,
)

pytestmark = pytest.mark.anyio


# --- clients that are late ---------------------------------------------------------------------------


async def test_who_says_nothing_is_left() -> None:
    async with serving(short(silent_seconds=SHORT)) as server, server.connect() as client:
        assert await client.rest() == b""
        assert len(server.slots) == 0


@pytest.mark.test
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
    bounds = ConnectionBounds(stall_seconds=5, least_rate=1)
    async with serving(bounds) as server, server.connect(post(length=100)) as client:
        with still_clock() as clock:
            for _ in range(100):
                client.writer.write(b"x")
                await clock.passes(1)
        assert await client.answer() == (200, b"x" * 100)


async def test_the_server_is_not_in_a_hurry_with_what_it_does_not_read() -> None:
    text = post(path=b"/patient", length=3)
    async with serving(ConnectionBounds(stall_seconds=3)) as server, server.connect(text) as client:
        await wait_until(lambda: server.app.under_way)
        with still_clock() as clock:
            for _ in range(10):
                await clock.passes(1)
        server.app.go_on.set()
        await client.send(b"abc")
        assert await client.answer() == (200, b"abc")


@pytest.mark.test
async def test_an_answer_that_nobody_takes_is_ended() -> None:
    for keep in (b"", b"Connection: close\r\n"):
        text = GET_LARGE.replace(b"\r\n\r\n", b"\r\n" + keep + b"\r\n")
        async with serving(short(stall_seconds=SHORT)) as server, server.connect(text, buffer=4096):
            await wait_until(lambda: server.app.bodies)
            await wait_until(lambda: not server.state.connections)
            assert len(server.slots) == 0


@without_tls
async def test_an_answer_may_take_long_if_it_goes_on() -> None:
    bounds = ConnectionBounds(stall_seconds=3, idle_seconds=2, least_rate=2**20)
    async with serving(bounds) as server, server.connect(GET_LARGE, buffer=2**16) as client:
        await client.reader.readuntil(b"\r\n\r\n")
        with still_clock() as clock:
            for _ in range(LARGE // 2**20):
                await client.reader.readexactly(2**20)  # else the connection was closed
                await clock.passes(0.875)


# --- how many ----------------------------------------------------------------------------------------


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
