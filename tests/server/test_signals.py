"""Served processes whose event loop is really held, and signals that they hear all the same."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from apiserver.server.signals import HARD
from tests.harness import ADMIN_KEY, ADMIN_SECRET, PATIENCE, free_ports, wait_until

#: The server, but `GET /hold/5` holds its event loop for five seconds.
HOLDING = """
import sys, time
from pathlib import Path
from apiserver.server import logs, serve
from apiserver.settings.settings import Settings

inside = serve._config

def config(settings, places, app):
    async def holding(scope, receive, send):
        if scope["path"].startswith("/hold/"):
            print("holding", file=sys.stderr, flush=True)
            until = time.monotonic() + float(scope["path"][6:])
            while time.monotonic() < until:
                pass
        await app(scope, receive, send)
    return inside(settings, places, holding)

serve._config = config
serve._CLOSING = int(sys.argv[5])
logs.setup("info", "text")
serve.run(Settings(data=Path(sys.argv[1]), port=int(sys.argv[2]), files_port=0, reserve_bytes=0, shutdown_seconds=1,
                   admin_key=sys.argv[3], admin_secret=sys.argv[4]))
"""


@dataclass
class Holding:
    """A server that can be held."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    def hold(self, seconds: float) -> None:
        """Hold its event loop, from when this returns on."""
        with socket.create_connection(("127.0.0.1", self.port)) as wire:
            wire.sendall(f"GET /hold/{seconds} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            self.wait_for("holding")

    def wait_for(self, words: str) -> None:
        """Return when the log says so."""
        wait_until(lambda: words in self.log.read_text())


Start = Callable[[], Holding]


@contextmanager
def holding(folder: Path, closing: int = 1) -> Iterator[Holding]:
    """Such a server; `closing`: seconds that it has to end, besides one for requests."""
    (port,) = free_ports(1)
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDING, str(folder / "data"), str(port), ADMIN_KEY, ADMIN_SECRET, str(closing)],
            stdout=output,
            stderr=output,
            env=os.environ,
        )
    server = Holding(process, port, log)
    try:
        server.wait_for("listening")
        wait_until(lambda: _connects(port))
        yield server
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _connects(port: int) -> bool:
    with socket.socket() as wire:
        return wire.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_held_server_stops_when_it_is_held_no_longer(tmp_path: Path, number: signal.Signals) -> None:
    with holding(tmp_path, closing=PATIENCE) as server:
        server.hold(1)
        server.process.send_signal(number)
        assert server.process.wait(PATIENCE) == 0
        assert "ended hard" not in server.log.read_text()


def test_a_server_that_is_held_for_ever_is_ended_hard_and_says_so(tmp_path: Path) -> None:
    with holding(tmp_path) as server:
        server.hold(600)
        server.wait_for("the event loop is held")
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == HARD
        text = server.log.read_text()
        assert "the server is ended hard: it did not stop within 2 seconds" in text
        assert " holding < " in text


def test_the_third_signal_ends_at_once(tmp_path: Path) -> None:
    with holding(tmp_path) as server:
        server.hold(600)
        for _ in range(600):
            server.process.send_signal(signal.SIGTERM)
            try:
                server.process.wait(0.1)
                break
            except subprocess.TimeoutExpired:
                pass
        assert server.process.returncode == HARD
        assert "it got three signals" in server.log.read_text() or "did not stop" in server.log.read_text()
