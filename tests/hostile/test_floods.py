"""Connections that want much: requests, heads and bodies without end, and many that are silent."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial

import pytest

from tests.hostile.conftest import SECONDS
from tests.hostile.target import Target, at_once

HEAD = b"GET /debug.ping HTTP/1.1\r\nHost: here\r\n"
POST = b"POST /auth.login HTTP/1.1\r\nHost: here\r\n"
#: As many come from one address, or from several: a server may refuse some of them, but nobody else.
SILENT, UNREAD, ADDRESSES = 3000, 1500, 10


def flood(target: Target, beginning: bytes, piece: bytes, size: int) -> None:
    """One connection that sends `beginning`, then `piece` until it is that many bytes, and never reads."""
    with target.connect() as connection:
        connection.settimeout(SECONDS)
        with contextlib.suppress(OSError):
            connection.sendall(beginning)
            block = piece * max(1, 2**16 // len(piece))
            for _ in range(size // len(block)):
                connection.sendall(block)


FLOODS: dict[str, Callable[[Target], None]] = {
    "pipelined requests": partial(flood, beginning=b"", piece=HEAD + b"\r\n", size=40 * 2**20),
    "pipelined bodies": partial(
        flood, beginning=b"", piece=POST + b"Content-Length: 1000\r\n\r\n" + b" " * 1000, size=40 * 2**20
    ),
    "a first line without end": partial(flood, beginning=b"GET /", piece=b"x", size=40 * 2**20),
    "headers without end": partial(flood, beginning=HEAD, piece=b"a: b\r\n", size=40 * 2**20),
    "a header without end": partial(flood, beginning=HEAD + b"a: ", piece=b"b", size=40 * 2**20),
    "a body without end": partial(
        flood, beginning=POST + b"Content-Length: 1000000000\r\n\r\n", piece=b" ", size=100 * 2**20
    ),
    "chunks of a byte": partial(
        flood, beginning=POST + b"Transfer-Encoding: chunked\r\n\r\n", piece=b"1\r\n \r\n", size=40 * 2**20
    ),
    "chunks with long extensions": partial(
        flood, beginning=POST + b"Transfer-Encoding: chunked\r\n\r\n1;", piece=b"x", size=40 * 2**20
    ),
    "trailers without end": partial(
        flood, beginning=POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", piece=b"a: b\r\n", size=40 * 2**20
    ),
    "empty lines": partial(flood, beginning=b"", piece=b"\r\n", size=40 * 2**20),
}


@pytest.mark.parametrize("name", FLOODS)
def test_what_comes_without_end(target: Target, name: str) -> None:
    with target.attacked():
        at_once(2, partial(FLOODS[name], target))


@pytest.fixture
def silent(target: Target) -> Iterator[list[socket.socket]]:
    """Connections of many addresses that say nothing."""
    with ExitStack() as open_:
        connections: list[socket.socket] = []
        for number in range(SILENT):
            with contextlib.suppress(OSError):
                connection = target.connect(address=f"127.0.1.{number % ADDRESSES + 1}")
                connections.append(open_.enter_context(connection))
        yield connections


def test_silent_connections(target: Target, silent: list[socket.socket]) -> None:
    with target.attacked():
        time.sleep(SECONDS)


def test_a_large_answer_for_many_who_do_not_take_it(target: Target) -> None:
    with target.attacked(), ExitStack() as open_:
        for number in range(UNREAD):
            with contextlib.suppress(OSError):
                connection = open_.enter_context(target.connect(address=f"127.0.1.{number % ADDRESSES + 1}"))
                connection.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: here\r\n\r\n")
        time.sleep(SECONDS)
