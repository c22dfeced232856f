"""A server that speaks TLS: handshakes that hardly come on, and very many at once, keep nobody waiting."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.certificates import new_pair
from tests.hostile.conftest import TOGETHER, place
from tests.hostile.target import Target, at_once
from tests.hostile.test_slowness import CONNECTIONS, drip
from tests.http.test_tls import hello

HELLO = hello()


@pytest.fixture(scope="module", params=["embedded"])
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A server with a key that takes long to sign with."""
    pair = new_pair(tmp_path_factory.mktemp("certificate"), kind="rsa")
    with place(request, tmp_path_factory, **pair.settings) as target:
        yield target


def test_handshakes_that_hardly_come_on(target: Target) -> None:
    ways = [(b"", b""), (HELLO[:50], HELLO[50:51]), (HELLO[:-1], b""), (HELLO, b""), (HELLO, b"\x16"), (b"GET /", b"?")]
    with target.attacked():
        drip(target, ways)


def test_a_thousand_handshakes_at_once(target: Target) -> None:
    with target.attacked(), ExitStack() as opened:
        begun: list[socket.socket] = []
        for _ in range(CONNECTIONS):
            with contextlib.suppress(OSError):
                begun.append(opened.enter_context(target.connect()))
        for connection in begun:
            with contextlib.suppress(OSError):
                connection.sendall(HELLO)
        for connection in begun:
            with contextlib.suppress(OSError):
                connection.recv(1)  # the server has computed


def test_connections_that_shake_hands_and_leave(target: Target) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    def come_and_go() -> None:
        for _ in range(50):
            with contextlib.suppress(OSError), context.wrap_socket(target.connect()):
                pass

    with target.attacked():
        at_once(TOGETHER, come_and_go)
