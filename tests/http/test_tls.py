"""TLS: handshakes that do not come on, clients that speak something else, and a certificate that changes.

`protocol/` does all its tests by TLS, too.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import astuple
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from apiserver.http.bounds import ConnectionBounds
from apiserver.http.certificate import Certificate
from apiserver.http.slots import Slots
from apiserver.http.tls import Tls
from tests.certificates import lasting_pair, new_pair
from tests.harness import PATIENCE
from tests.http.protocol.serving import GET, SHORT, App, short, wait_until

pytestmark = pytest.mark.anyio

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": True}


@asynccontextmanager
async def serving(
    bounds: ConnectionBounds | None = None, certificate: Certificate | None = None, **slots: Any
) -> AsyncIterator[tuple[int, Slots, App]]:
    """The port of a server with a certificate, its slots, and what answers."""
    app, state, of = App(), ServerState(), Slots(bounds=bounds or ConnectionBounds(look_seconds=0.01), **slots)
    config = uvicorn.Config(app, ws="none", lifespan="off", log_config=None, access_log=False, proxy_headers=False)
    config.load()
    protocol = partial(Tls, certificate or Certificate(*astuple(lasting_pair())), of)
    made = partial(protocol, config=config, server_state=state, app_state={})
    listener = await asyncio.get_running_loop().create_server(made, "127.0.0.1", 0)
    try:
        yield listener.sockets[0].getsockname()[1], of, app
    finally:
        listener.close()
        for connection in list(state.connections):
            connection.transport.abort()
        await wait_until(lambda: not state.connections)


def trusting(certificate: Path) -> ssl.SSLContext:
    """What a client needs to trust it."""
    return ssl.create_default_context(cafile=certificate)


def hello() -> bytes:
    """The first message of a client."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting(lasting_pair().certificate).wrap_bio(incoming, outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


@asynccontextmanager
async def connected(port: int, trusts: ssl.SSLContext | None = None) -> AsyncIterator[Stream]:
    """A connection, by TLS if it trusts somebody."""
    async with asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusts)
        try:
            yield reader, writer
        finally:
            writer.transport.abort()


async def answers(stream: Stream) -> bool:
    """Whether a request is answered."""
    stream[1].write(GET)
    return await stream[0].read(12) == b"HTTP/1.1 200"


async def rest(reader: asyncio.StreamReader) -> bytes:
    """What comes until the server closes the connection."""
    try:
        return await reader.read()
    except ConnectionError:
        return b""


async def in_the_clear(port: int, *pieces: bytes) -> bytes:
    """Send some bytes; return what the server sends until it closes the connection."""
    async with connected(port) as (reader, writer):
        for piece in pieces:
            writer.write(piece)
            await asyncio.sleep(0.001)
        return await rest(reader)


@pytest.mark.parametrize("pieces", [(), (hello(),), (hello()[:3],), (hello()[:-1],)])
async def test_a_handshake_that_does_not_come_on_is_ended(pieces: tuple[bytes, ...]) -> None:
    async with serving(short(silent_seconds=SHORT)) as (port, slots, app):
        await in_the_clear(port, *pieces)
        await wait_until(lambda: not len(slots))
        assert not app.scopes


async def test_a_handshake_may_not_take_longer_by_coming_slowly() -> None:
    async with serving(short(silent_seconds=SHORT)) as (port, slots, app), connected(port) as (reader, writer):
        for piece in hello()[:-1]:
            if writer.is_closing():
                break
            writer.write(bytes([piece]))
            await asyncio.sleep(0.005)
        await rest(reader)
        await wait_until(lambda: not len(slots))
        assert not app.scopes


async def test_who_has_shaken_hands_and_says_nothing_is_ended() -> None:
    context = trusting(lasting_pair().certificate)
    async with serving(short(silent_seconds=SHORT)) as (port, _, app), connected(port, context) as (reader, _):
        assert await rest(reader) == b""
        assert not app.scopes


async def test_silent_connections_keep_nobody_out() -> None:
    context = trusting(lasting_pair().certificate)
    async with serving(short(grace_seconds=0), total=4) as (port, _, app), AsyncExitStack() as opened:
        for text in [b"", hello(), hello()[:7]] * 7:
            _, writer = await opened.enter_async_context(connected(port))
            writer.write(text)
        answered = 0
        while answered < 10:  # who may give way is found at each look
            with suppress(ConnectionError):
                async with connected(port, context) as stream:
                    answered += await answers(stream)
        assert len(app.scopes) == answered


@pytest.mark.parametrize("text", [GET, b"POST /small HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"])
async def test_who_speaks_http_is_told_in_the_clear(text: bytes) -> None:
    async with serving() as (port, _, app):
        answer = await in_the_clear(port, text)
        assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert answer.endswith(b"\r\n\r\nThis port speaks TLS: use an address with https://\n")
        assert not app.scopes


@pytest.mark.parametrize("text", [b"\0" * 100, os.urandom(1000), b"\x16\x03\x01\xff\xff" + b"\1" * 70_000, b"\r\n"])
async def test_what_is_no_handshake_is_ended_at_once(text: bytes) -> None:
    async with serving() as (port, slots, app):
        assert not (await in_the_clear(port, text + b"\0" * 20)).startswith(b"HTTP")
        await wait_until(lambda: not len(slots))
        assert not app.scopes


async def test_a_handshake_may_come_in_pieces_with_the_first_requests_behind_it() -> None:
    async with serving() as (port, _, app), connected(port) as (reader, writer):
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = trusting(lasting_pair().certificate).wrap_bio(incoming, outgoing, server_hostname="localhost")
        while client.version() is None or outgoing.pending == 0:
            try:
                client.do_handshake()
            except ssl.SSLWantReadError:
                message = outgoing.read()
                for at in range(0, len(message), 50):
                    writer.write(message[at : at + 50])
                    await asyncio.sleep(0.001)
                incoming.write(await reader.read(2**16))
        client.write(GET + GET)
        writer.write(outgoing.read())  # the end of the handshake and two requests, at once
        answered = b""
        while answered.count(b"HTTP/1.1 200") < 2:
            incoming.write(await reader.read(2**16))
            with suppress(ssl.SSLWantReadError):
                while piece := client.read(2**16):
                    answered += piece
        assert [scope["scheme"] for scope in app.scopes] == ["https", "https"]


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
async def test_new_versions_are_spoken(version: str) -> None:
    context = trusting(lasting_pair().certificate)
    context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
    async with serving() as (port, _, _), connected(port, context) as stream:
        assert await answers(stream)
        assert stream[1].get_extra_info("ssl_object").version() == version.replace("_", ".")


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
async def test_old_versions_are_not_spoken() -> None:
    context = trusting(lasting_pair().certificate)
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    async with serving() as (port, slots, _):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await asyncio.open_connection("127.0.0.1", port, ssl=context)
        await wait_until(lambda: not len(slots))


async def test_the_end_of_an_answer_is_told_from_a_broken_connection() -> None:
    def ask(port: int) -> bytes:
        context = trusting(lasting_pair().certificate)
        with (
            socket.create_connection(("127.0.0.1", port), PATIENCE) as plain,
            context.wrap_socket(plain, server_hostname="localhost", suppress_ragged_eofs=False) as client,
        ):
            client.sendall(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
            answer = b""
            while piece := client.recv(2**16):  # SSLEOFError if the connection ends without a word
                answer += piece
            return answer

    async with serving() as (port, _, _):
        assert (await asyncio.to_thread(ask, port)).startswith(b"HTTP/1.1 200")


@pytest.mark.test
async def test_a_new_certificate_is_for_new_connections(tmp_path: Path) -> None:
    pair, new = new_pair(tmp_path), new_pair(tmp_path, "b")
    certificate, context = Certificate(pair.certificate, pair.key), trusting(pair.certificate)
    async with serving(certificate=certificate) as (port, _, _), connected(port, context) as stream:
        for source, target in zip(astuple(new), astuple(pair), strict=True):
            os.replace(source, target)
        await certificate.refresh()
        assert await answers(stream)
        with pytest.raises(ssl.SSLCertVerificationError):
            await asyncio.open_connection("127.0.0.1", port, ssl=context)
        async with connected(port, trusting(pair.certificate)) as another:
            assert await answers(another)
