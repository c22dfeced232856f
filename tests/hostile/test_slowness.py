"""Every way to be slow: heads, bodies and chunks that hardly come on, and connections that end before their time."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from contextlib import ExitStack
from functools import partial

import pytest

from tests.hostile.conftest import LONG, SECONDS, TOGETHER
from tests.hostile.target import Target, at_once, in_turns

HEAD = b"GET /debug.ping HTTP/1.1\r\nHost: here\r\n"
POST = b"POST /auth.login HTTP/1.1\r\nHost: here\r\n"
#: Connections of each way, in all that are tried at the same time.
CONNECTIONS = 1000

#: By what hardly comes: how it begins, and what comes of it again and again.
WAYS = {
    "nothing": (b"", b""),
    "the first line": (b"GET /debug.ping", b"?"),
    "headers": (HEAD, b"x: y\r\n"),
    "a header": (HEAD + b"x: ", b"y"),
    "a body": (POST + b"Content-Length: 16000\r\n\r\n", b" "),
    "a large body": (POST + b"Content-Length: 16000000\r\n\r\n", b" "),
    "chunks": (POST + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "a chunk's size": (POST + b"Transfer-Encoding: chunked\r\n\r\n", b"0"),
    "trailers": (POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"x: y\r\n"),
    "what was told to come": (POST + b"Expect: 100-continue\r\nContent-Length: 16000\r\n\r\n", b""),
}


def drip(target: Target, ways: list[tuple[bytes, bytes]]) -> None:
    """Connections that send a beginning, then a little again and again."""
    until = time.monotonic() + SECONDS
    with ExitStack() as open_:
        drops = []
        for beginning, drop in ways * (CONNECTIONS // len(ways)):
            with contextlib.suppress(OSError):
                connection = open_.enter_context(target.connect())
                connection.sendall(beginning)
                drops.append((connection, drop))
        while time.monotonic() < until:
            for connection, drop in drops:
                with contextlib.suppress(OSError):
                    connection.sendall(drop)
            time.sleep(0.05)


@pytest.mark.parametrize("names", [[name] for name in WAYS] if LONG else [list(WAYS)], ids=",".join)
def test_what_hardly_comes(target: Target, names: list[str]) -> None:
    with target.attacked():
        drip(target, [WAYS[name] for name in names])


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
