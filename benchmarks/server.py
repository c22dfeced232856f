"""The server to be measured, in a process of its own, and a connection to it."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from apiserver.events.model import Owner
from apiserver.settings.settings import Settings
from benchmarks.client import Connection, logged_in
from benchmarks.processes import cpu_seconds, folder_bytes
from benchmarks.sender import Sending, Sent, send
from tests.harness import ADMIN_KEY, ADMIN_SECRET, Served, free_ports, wait_until

#: Bytes. A shorter journal has no events.
_EMPTY_JOURNAL = 1024
#: The package that the compiled scanner is in.
SCANNER = "apiserver_accelerator"
#: With this in the environment, servers are forked from a process that has imported everything, and all have the
#: scanner. They start faster, and their figures are not those of users' servers.
WARM = "BENCHMARKS_WARM"


class Running:
    """A running server. `connection` is the admin's; `start` makes a new one."""

    def __init__(self, server: Served) -> None:
        self.server = server
        self.connection = self._connected()

    @property
    def pid(self) -> int:
        """The id of the server's process."""
        assert self.server.process is not None
        return self.server.process.pid

    @property
    def events(self) -> Path:
        """The folder of the event store."""
        return self.server.data / "events"

    def call(self, endpoint: str, request: dict[str, Any]) -> Any:
        """Call an endpoint. Returns the `data` of its answer."""
        return self.connection.call(endpoint, request)["data"]

    def task(self, name: str, project: str | None = None) -> Owner:
        """A new task, as the owner of events."""
        made = self.call("tasks.create", {"name": name, "type": "training", "project": project})["id"]
        return Owner(Settings().company, made)

    def ping(self) -> None:
        """Send a request that does nothing."""
        self.connection.post("debug.ping", b"{}")

    def stop(self) -> None:
        """Stop the server with SIGTERM."""
        self.connection.close()
        self.server.stop()

    def start(self) -> None:
        """Start it again."""
        self.server.start()
        self.connection = self._connected()

    def send(self, tasks: list[Owner], kind: str, batch: int, count: int) -> Sent:
        """Send `count` bodies for each task, by a client of its own."""
        return send(
            [
                Sending(self.server.port, self.connection.headers, "events.add_batch", kind, task.id, batch, count)
                for task in tasks
            ]
        )

    def wait_until_merged(self) -> None:
        """Wait until the journal is empty."""
        wait_until(lambda: self._journal_bytes() < _EMPTY_JOURNAL, 60)

    def wait_until_compacted(self) -> None:
        """Wait until the server has nothing to compact, if its store compacts at all."""
        wait_until(lambda: not self._metric(b"apiserver_events_owners_to_compact"), 300)

    def _metric(self, name: bytes) -> float | None:
        """A number that the server tells of itself; None: it does not."""
        told = self.connection.get("metrics").splitlines()
        return next((float(line.split()[1]) for line in told if line.split()[0] == name), None)

    def wait_until_sealed(self) -> None:
        """Wait until all chunks are sealed."""
        with contextlib.closing(sqlite3.connect(f"file:{self.events / 'events.db'}?mode=ro", uri=True)) as database:
            left = "SELECT EXISTS (SELECT 1 FROM chunk_index WHERE sealed = 0)"
            wait_until(lambda: not database.execute(left).fetchone()[0], 120)

    def cpu(self) -> float:
        """CPU seconds used so far."""
        return cpu_seconds(self.pid)

    def disk(self) -> int:
        """Bytes of the event store's files."""
        return folder_bytes(self.events)

    def _journal_bytes(self) -> int:
        return sum(path.stat().st_size for path in self.events.glob("journal-*") if path.exists())

    def _connected(self) -> Connection:
        return logged_in(self.server.port, self.server.key, self.server.secret)


@contextlib.contextmanager
def running(folder: Path, settings: Mapping[str, str] | None = None, *, scanner: bool = False) -> Iterator[Running]:
    """A server with its data in a folder. It is stopped at the end of the block.

    settings: more settings, by their names in capitals. scanner: whether the server may use the compiled scanner.
    """
    folder.mkdir(exist_ok=True)
    port, files_port = free_ports(2)
    own = {"ADMIN_KEY": ADMIN_KEY, "ADMIN_SECRET": ADMIN_SECRET, "PORT": port, "FILES_PORT": files_port}
    environment = {f"APISERVER_{name}": str(value) for name, value in {**own, **(settings or {})}.items()}
    if not scanner:
        environment["PYTHONPATH"] = str(_without_scanner(folder))
    server = Served(folder / "data", port, files_port, environment, cold=WARM not in os.environ)
    try:
        server.start()
        found = Running(server)
        yield found
        found.connection.close()
    finally:
        if server.process is not None:
            server.stop()


def _without_scanner(folder: Path) -> Path:
    """A folder that hides the compiled scanner from a process that has it first in PYTHONPATH."""
    hiding = folder / "hiding"
    hiding.mkdir()
    (hiding / f"{SCANNER}.py").write_text("raise ImportError('not to be used here')\n")
    return hiding
