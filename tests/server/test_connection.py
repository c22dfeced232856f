"""Connections of a served process: silent ones, hasty ones, too many, and those that a proxy passes on."""

from __future__ import annotations

import contextlib
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from apiserver.http import descriptors
from tests.harness import CHEAP_PASSWORDS, Served, served, wait_until

GET = b"GET /health HTTP/1.1\r\nHost: here\r\n\r\n"


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=120)


def status(url: str) -> int:
    """The status of an answer on a new connection; 0 when it is reset."""
    try:
        return httpx.get(url, verify=False).status_code
    except httpx.TransportError:
        return 0


@pytest.fixture
def narrow(tmp_path: Path) -> Iterator[Served]:
    """A server of 64 connections."""
    with served(tmp_path / "data", max_connections=64) as running:
        yield running


@pytest.mark.test
def test_silent_connections_keep_nobody_out(narrow: Served) -> None:
    with ExitStack() as opened:
        for _ in range(150):
            for port in (narrow.port, narrow.files_port):
                opened.enter_context(connect(port)).send(b"GET")
        for url in (f"{narrow.api_url}/health", f"{narrow.files_url}/nothing"):
            wait_until(lambda url=url: status(url) in (200, 401))  # type: ignore[misc]
    assert narrow.log.read_text().count("all connections are taken") <= 1
    assert "Traceback" not in narrow.log.read_text()


def test_requests_sent_at_once_take_no_memory_and_nobodys_time(server: Served) -> None:
    def resident() -> int:
        assert server.process is not None
        return int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1]) * resource.getpagesize()

    with connect(server.port) as hasty:
        before = resident()
        hasty.settimeout(1)
        with contextlib.suppress(TimeoutError):
            for _ in range(40):
                hasty.sendall(GET * 30_000)
        assert status(f"{server.api_url}/health") == 200
        assert resident() - before < 40 * 2**20


def test_stopping_does_not_wait_for_idle_connections(server: Served) -> None:
    with ExitStack() as opened:
        for sent in (b"", b"GET /hea", GET, b"\x00\r\n\r\n") * 200:
            opened.enter_context(connect(server.port)).send(sent)
        assert status(f"{server.api_url}/health") == 200
        assert server.stop() == 0
    assert "Traceback" not in server.log.read_text()


@pytest.mark.test
def test_clients_of_a_trusted_proxy_are_told_apart(tmp_path: Path) -> None:
    def guess(server: Served, client: str) -> int:
        headers = {"X-Forwarded-For": f"192.0.2.9, {client}"}
        url, auth = f"{server.api_url}/auth.login", ("alice", "wrong-password")
        return httpx.get(url, auth=auth, headers=headers, verify=False).status_code

    with served(tmp_path / "one", trusted_proxies="127.0.0.0/8", bounds=CHEAP_PASSWORDS) as server:
        assert {guess(server, "198.51.100.1") for _ in range(12)} == {401, 429}
        assert guess(server, "198.51.100.2") == 401
    with served(tmp_path / "two", bounds=CHEAP_PASSWORDS) as server:
        assert [guess(server, f"198.51.100.{number}") for number in range(12)][-1] == 429


def test_the_process_may_open_as_many_files_as_the_system_lets_it(server: Served) -> None:
    assert server.process is not None
    soft, hard = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
    assert soft == hard


@pytest.mark.parametrize(
    ("files", "wanted", "taken"),
    [(1024, 0, 421), (1024, 100, 100), (1024, 5000, 421), (100_000, 0, 10_000), (100_000, 30_000, 30_000), (64, 0, 16)],
)
def test_less_than_half_of_the_files_may_be_connections(
    files: int, wanted: int, taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (files, files))
    assert descriptors.connection_limit(wanted) == taken
