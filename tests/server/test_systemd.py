"""What the server and systemd tell each other, and that a restart refuses nobody if the sockets stay open."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import pytest

from tests.harness import ADMIN_KEY, ADMIN_SECRET, PATIENCE, Served, basic, wait_until

#: Gives the sockets the numbers that systemd gives them, and says whose they are.
_AS_SYSTEMD = 'exec 3<&"$1" 4<&"$2"; shift 2; LISTEN_PID=$$ LISTEN_FDS=2 exec "$@"'


@dataclass
class Supervisor:
    """Holds the sockets of a server, and hears what it says."""

    data: Path
    settings: dict[str, str] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    process: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        self.sockets = [socket.create_server(("127.0.0.1", 0), backlog=1024) for _ in range(2)]
        self.hears = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.hears.bind(str(self.data.with_name("notify")))
        self.hears.settimeout(PATIENCE)
        port, files_port = (one.getsockname()[1] for one in self.sockets)
        self.server = Served(self.data, port, files_port, environment={})

    def start(self) -> None:
        """Start the server, which takes the sockets; wait for nothing."""
        numbers = [one.fileno() for one in self.sockets]
        serve = [sys.executable, "-m", "apiserver", "serve", "--data", str(self.data)]
        ports = {"APISERVER_PORT": str(self.server.port), "APISERVER_FILES_PORT": str(self.server.files_port)}
        admin = {"APISERVER_ADMIN_KEY": ADMIN_KEY, "APISERVER_ADMIN_SECRET": ADMIN_SECRET}
        hears = {"NOTIFY_SOCKET": str(self.data.with_name("notify"))}
        with open(self.server.log, "ab") as output:
            self.process = self.server.process = subprocess.Popen(
                ["bash", "-c", _AS_SYSTEMD, "bash", *map(str, numbers), *serve],
                env={**os.environ, **ports, **admin, "APISERVER_RESERVE_BYTES": "0", **hears, **self.settings},
                pass_fds=numbers,
                stdout=output,
                stderr=output,
            )

    def hear(self, word: str) -> None:
        """Return when the server says the word."""
        while True:
            self.said.append(self.hears.recv(100).decode())
            if self.said[-1] == word:
                return

    def restart(self, number: signal.Signals) -> None:
        """End the server by a signal, and start another."""
        assert self.process is not None
        self.process.send_signal(number)
        self.process.wait(PATIENCE)
        self.start()
        self.hear("READY=1")

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(PATIENCE)
        for one in (*self.sockets, self.hears):
            one.close()


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    held = Supervisor(tmp_path / "data")
    yield held
    held.close()


def test_clients_wait_while_the_server_starts(supervisor: Supervisor) -> None:
    with ExitStack() as opened:
        early = opened.enter_context(socket.create_connection(("127.0.0.1", supervisor.server.port), PATIENCE))
        early.sendall(b"GET /debug.ping HTTP/1.1\r\nHost: here\r\n\r\n")
        supervisor.start()
        assert early.recv(12) == b"HTTP/1.1 200"
    supervisor.hear("READY=1")
    with supervisor.server.client() as client:
        assert client.put(f"{supervisor.server.files_url}/x", content=b"1").status_code == 200


def test_the_supervisor_is_told_that_the_server_lives_and_stops(supervisor: Supervisor) -> None:
    supervisor.settings["WATCHDOG_USEC"] = "100000"
    supervisor.start()
    supervisor.hear("READY=1")
    supervisor.hear("WATCHDOG=1")
    supervisor.hear("WATCHDOG=1")
    assert supervisor.process is not None
    supervisor.process.terminate()
    supervisor.hear("STOPPING=1")
    assert supervisor.process.wait(PATIENCE) == 0
    assert supervisor.said[0] == "READY=1"


def test_sockets_of_other_ports_are_named(supervisor: Supervisor) -> None:
    supervisor.settings["APISERVER_FILES_PORT"] = "0"
    supervisor.start()
    assert supervisor.process is not None
    assert supervisor.process.wait(PATIENCE) == 1
    assert f"ports that the settings do not name: {supervisor.server.files_port}" in supervisor.server.log.read_text()
    assert not supervisor.data.exists()


def test_sockets_that_are_another_process_s_are_left_alone(supervisor: Supervisor) -> None:
    supervisor.close()
    supervisor.server.environment |= {"LISTEN_PID": "1", "LISTEN_FDS": "2"}
    ports = {"APISERVER_PORT": str(supervisor.server.port), "APISERVER_FILES_PORT": str(supervisor.server.files_port)}
    supervisor.server.environment |= ports
    supervisor.server.start()
    assert supervisor.server.stop() == 0


class Writers:
    """Clients that report points, on new connections and on kept ones, and remember what was acknowledged."""

    def __init__(self, port: int, task: str) -> None:
        self._port, self._task = port, task
        self.acknowledged: list[int] = []
        self.refused = 0
        self._enough = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(number, number % 2 == 0)) for number in range(4)]

    def __enter__(self) -> Writers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        for thread in self._threads:
            thread.join(PATIENCE)

    def _write(self, number: int, kept: bool) -> None:
        iteration, connection = number, None
        while not self._enough.is_set():
            connection = connection or HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
            try:
                self._send(connection, iteration, {} if kept else {"Connection": "close"})
            except ConnectionRefusedError:
                self.refused += 1
            except (OSError, HTTPException):
                pass  # a connection that was open ended with the server: the point is sent again
            else:
                self.acknowledged.append(iteration)
                iteration += len(self._threads)
                if kept:
                    continue
            connection.close()
            connection = None
        if connection is not None:
            connection.close()

    def _send(self, connection: HTTPConnection, iteration: int, headers: dict[str, str]) -> None:
        event = {"task": self._task, "type": "training_stats_scalar", "metric": "m", "variant": "v"}
        body = json.dumps({**event, "iter": iteration, "value": iteration})
        connection.request("POST", "/events.add", body, {"Authorization": basic(), **headers})
        answer = connection.getresponse()
        if answer.status != 200 or json.loads(answer.read())["meta"]["result_code"] != 200:
            raise HTTPException(answer.status)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_restart_refuses_nobody_and_loses_nothing(supervisor: Supervisor, number: signal.Signals) -> None:
    supervisor.start()
    supervisor.hear("READY=1")
    task = supervisor.server.call("tasks.create", {"name": "written", "type": "training"})["id"]
    with Writers(supervisor.server.port, task) as writers:
        wait_until(lambda: len(writers.acknowledged) >= 50)
        supervisor.restart(number)
        enough = len(writers.acknowledged) + 50
        wait_until(lambda: len(writers.acknowledged) >= enough)
    assert writers.refused == 0
    found = supervisor.server.call("events.scalar_metrics_iter_histogram", {"task": task, "samples": 0})
    kept = found["m"]["v"]["x"]
    assert len(kept) == len(set(kept))
    assert set(writers.acknowledged) <= set(kept)
