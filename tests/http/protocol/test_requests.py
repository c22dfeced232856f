"""Requests over real sockets: as they should be, hasty ones, some that are none, and those of proxies."""

from __future__ import annotations

import gc
from contextlib import AsyncExitStack
from ipaddress import ip_network
from weakref import ref

import pytest

from apiserver.http.bounds import ConnectionBounds
from apiserver.http.protocol import Protocol
from apiserver.http.proxies import Proxies
from tests.clock import turns
from tests.http.protocol.serving import (
    GET,
    GET_LARGE,
    GET_PATIENT,
    SHORT,
    Server,
    chunked,
    post,
    serving,
    short,
    wait_until,
    without_tls,
)

pytestmark = pytest.mark.anyio


# --- requests as they should be ----------------------------------------------------------------------


async def test_requests_one_after_the_other() -> None:
    async with serving() as server, server.connect() as client:
        for body in (b"one", b"", b"x" * 1_000_000):
            await client.send(post(body))
            assert await client.answer() == (200, body)
        await client.send(chunked(b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: 1\r\n\r\n"))
        assert await client.answer() == (200, b"abcde")
        await client.send(GET)
        assert await client.answer() == (200, b"")


@pytest.mark.test
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


# --- requests that are none --------------------------------------------------------------------------


@pytest.mark.test
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


@pytest.mark.test
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


# --- clients that do not wait ------------------------------------------------------------------------


@pytest.mark.test
@without_tls
async def test_requests_behind_others_wait_in_the_socket() -> None:
    bounds = ConnectionBounds(look_seconds=0.01, kept_bytes=2**20)
    async with serving(bounds) as server, server.connect(GET_PATIENT) as client:
        client.writer.write(GET * 500_000)  # 18 MB
        await wait_until(lambda: server.app.under_way)
        [connection] = server.state.connections
        assert isinstance(connection, Protocol)
        await wait_until(lambda: connection.flow.held)
        await turns(100)
        waiting = client.writer.transport.get_write_buffer_size()
        await turns(100)
        assert client.writer.transport.get_write_buffer_size() == waiting > 0
        assert len(server.app.scopes) == 1
        server.app.go_on.set()
        assert [await client.status() for _ in range(2000)] == [200] * 2000
        assert server.app.most_under_way == 1


@pytest.mark.test
async def test_a_client_that_takes_no_answers_gets_no_more_of_them() -> None:
    async with serving() as server, server.connect(GET_LARGE * 100, buffer=4096) as client:
        await wait_until(lambda: server.app.bodies)
        await turns(100)
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


@pytest.mark.test
@without_tls
async def test_a_body_is_read_when_it_is_asked_for() -> None:
    body = b"x" * 20_000_000
    async with serving() as server, server.connect(post(path=b"/patient", length=len(body))) as client:
        await wait_until(lambda: server.app.under_way)
        client.writer.write(body)
        await turns(100)
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


# --- proxies -----------------------------------------------------------------------------------------

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


# --- afterwards --------------------------------------------------------------------------------------


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
