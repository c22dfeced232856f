"""A server that may open 512 files, and more connections than that."""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.harness import basic, served, wait_until
from tests.hostile.conftest import SECONDS
from tests.hostile.target import OF_USERS, PATIENCE, Target, at_once

MANY, ADDRESSES = 700, 10
#: Connections that it takes: it leaves more than half of the files to stores, uploads and downloads.
PLACES = 180
BEGUN = (
    f"PUT /half HTTP/1.1\r\nHost: here\r\nAuthorization: {basic()}\r\nContent-Length: 1000000\r\n\r\n half of it"
).encode()


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with served(tmp_path_factory.mktemp("few") / "data", open_files=512) as server:
        target = Target(server, server.port, server.files_port)
        target.settle()
        yield target
        assert server.stop() == 0


@contextlib.contextmanager
def connections(target: Target, addresses: int) -> Iterator[list[socket.socket]]:
    """More than the server may have open; none is refused by the system."""
    with ExitStack() as open_:
        yield [
            open_.enter_context(target.connect(files=True, address=f"127.0.3.{number % addresses + 1}"))
            for number in range(MANY)
        ]


def test_those_who_say_nothing_keep_nobody_out(target: Target) -> None:
    with connections(target, ADDRESSES) as many:
        wait_until(lambda: len(told(many)) >= MANY - PLACES)  # until then slots are free, and a ping proves nothing
        wait_until(lambda: pings(target, 8) == {200})  # once the others have been silent for a second
        with target.attacked():
            time.sleep(SECONDS)


def test_one_address_keeps_no_other_out(target: Target) -> None:
    with connections(target, 1) as many, target.attacked(OF_USERS):
        for connection in many:
            with contextlib.suppress(OSError):
                connection.sendall(BEGUN)
        time.sleep(SECONDS)


def test_those_for_whom_there_is_no_room_are_told_so(target: Target) -> None:
    """Of all who send half a file, some are waited for, and the others get 503. Later all is as before."""
    with connections(target, ADDRESSES) as many:
        for connection in many:
            connection.sendall(BEGUN)
        wait_until(lambda: len(told(many)) >= MANY - PLACES)
        assert {connection.recv(2**16)[:12] for connection in told(many)} == {b"HTTP/1.1 503"}
        assert len(told(many)) < MANY - PLACES + 50
        with target.connect() as connection:
            connection.sendall(b"GET /debug.ping HTTP/1.1\r\nHost: here\r\n\r\n")
            connection.settimeout(PATIENCE)
            assert connection.recv(2**16).startswith(b"HTTP/1.1 503")
    wait_until(lambda: target.send("/debug.ping", method="GET") == 200)
    with target.attacked():
        pass
    assert "Too many open files" not in target.server.log.read_text()


def pings(target: Target, count: int) -> set[int]:
    """The statuses that so many get who ask at once."""
    return set(at_once(count, lambda: target.send("/debug.ping", method="GET")))


def told(connections: list[socket.socket]) -> list[socket.socket]:
    """Those that something was sent to."""
    looking = select.poll()
    for connection in connections:
        looking.register(connection, select.POLLIN)
    ready = {number for number, _ in looking.poll(0)}
    return [connection for connection in connections if connection.fileno() in ready]
