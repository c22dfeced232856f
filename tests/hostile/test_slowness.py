"""Every way to be slow: heads, bodies and chunks that hardly come on, and connections that end before their time."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from contextlib import ExitStack
from functools import partial

import pytest

from tests.hostile.conftest import SECONDS, TOGETHER
from tests.hostile.target import Target, at_once, in_turns

HEAD = b"GET /debug.ping HTTP/1.1\r\nHost: here\r\n"
POST = b"POST /auth.login HTTP/1.1\r\nHost: here\r\n"
CONNECTIONS = 200


def drip(target: Target, beginning: bytes, drop: bytes) -> None:
    """Connections that send `beginning`, then a little again and again."""
    until = time.monotonic() + SECONDS
    with ExitStack() as open_:
        connections = [open_.enter_context(target.connect()) for _ in range(CONNECTIONS)]
        with contextlib.suppress(OSError):
            for connection in connections:
                connection.sendall(beginning)
        while time.monotonic() < until:
            for connection in connections:
                with contextlib.suppress(OSError):
                    connection.sendall(drop)
            time.sleep(0.05)


@pytest.mark.parametrize(
    ("beginning", "drop"),
    [
        pytest.param(b"", b"", id="nothing"),
        pytest.param(b"GET /debug.ping", b"?", id="the first line"),
        pytest.param(HEAD, b"x: y\r\n", id="headers"),
        pytest.param(HEAD + b"x: ", b"y", id="a header"),
        pytest.param(POST + b"Content-Length: 16000\r\n\r\n", b" ", id="a body"),
        pytest.param(POST + b"Content-Length: 16000000\r\n\r\n", b" ", id="a large body"),
        pytest.param(POST + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n", id="chunks"),
        pytest.param(POST + b"Transfer-Encoding: chunked\r\n\r\n", b"0", id="a chunk's size"),
        pytest.param(POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"x: y\r\n", id="trailers"),
        pytest.param(POST + b"Expect: 100-continue\r\nContent-Length: 16000\r\n\r\n", b"", id="what was told to come"),
    ],
)
def test_what_hardly_comes(target: Target, beginning: bytes, drop: bytes) -> None:
    with target.attacked():
        drip(target, beginning, drop)


def test_connections_that_are_reset(target: Target) -> None:
    def reset() -> None:
        for _ in range(200):
            with target.connect() as connection:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                with contextlib.suppress(OSError):
                    connection.sendall(POST + b"Content-Length: 1000\r\n\r\n" + b" " * 100)

    with target.attacked():
        at_once(TOGETHER, reset)


def test_connections_that_are_half_closed(target: Target) -> None:
    def half_closed(request: bytes) -> None:
        with target.connect() as connection:
            with contextlib.suppress(OSError):
                connection.sendall(request)
                connection.shutdown(socket.SHUT_WR)
            target.answered(connection)

    requests = [HEAD + b"\r\n", HEAD, POST + b"Content-Length: 1000\r\n\r\n ", b"", (HEAD + b"\r\n") * 100]
    with target.attacked():
        in_turns(TOGETHER, [partial(half_closed, request) for request in requests * 4])
