"""A served process under attack: how it is attacked, and what must hold meanwhile and afterwards.

While an attack goes on, `debug.ping` answers others in time, memory stays within a bound over what the idle server
took, and no answer is a 500. Afterwards a normal batch is taken at once.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.harness import Served, basic, wait_until
from tests.hostile.watching import Wait, Watched, bound, watching

#: Memory in bytes that an attack may cost at most, over what the server took before it: of anybody, and of known users.
OF_STRANGERS, OF_USERS = 150 * 2**20, 300 * 2**20
#: What all attacks on one server together may leave in its memory. The system's allocator keeps some of what was freed.
LEFT = 600 * 2**20
#: An answer has to come within so many seconds, whatever was sent.
PATIENCE = 60.0
#: How long a normal batch may take right after an attack: a multiple of what it took before, or these seconds, which
#: are ten times what was measured.
_TIMES_IDLE, _LEAST_SECONDS = 50, 10.0
_FIRST_TIME = 1_700_000_000_000

Headers = Mapping[str, str]


@dataclass(slots=True)
class Target:
    """A server to attack at `port`, which may be that of a proxy before it; `files_port` likewise."""

    server: Served
    port: int
    files_port: int
    through_proxy: bool = False
    task: str = ""
    idle: Watched = field(default_factory=Watched)
    idle_memory: int = 0
    batch_seconds: float = 0.0
    statuses: Counter[int] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def settle(self) -> None:
        """See what it takes when nothing is wrong."""
        self.task = self.server.call("tasks.create", {"name": "reported", "type": "training"})["id"]
        for _ in range(5):
            self.batch_seconds = max(self.batch_seconds, self._send_batch().seconds)
        with watching(self.port, self._processes(), by_tls=self.server.by_tls) as idle:
            wait_until(self.is_still)
        assert not idle.refused
        self.idle, self.idle_memory = idle, self.memory()

    def is_still(self) -> bool:
        """Whether it takes no more memory than half a second ago, as it does while a second worker starts."""
        before = self.memory()
        time.sleep(0.5)
        return self.memory() - before < 2**20

    @contextlib.contextmanager
    def attacked(self, memory: int = OF_STRANGERS) -> Iterator[None]:
        """What is sent inside is an attack: everything that must hold, holds; else the server begins anew."""
        self.statuses.clear()
        self._forget_peaks()
        before = self.memory()
        assert before - self.idle_memory <= LEFT, "attacks before this one left too much in memory"
        try:
            with watching(self.port, self._processes(), by_tls=self.server.by_tls) as watched:
                yield
                batch = self._send_batch()
            self._judge(watched, batch, memory, before)
        except BaseException:
            self.server.kill()
            self.server.start()
            wait_until(self.is_still)
            raise

    def _judge(self, watched: Watched, sent: Wait, memory: int, before: int) -> None:
        batch = watched.of_the_server(sent)
        grown = self.memory(peak=True) - before
        assert not watched.refused
        assert watched.longest <= bound(self.idle), f"{watched.longest:.1f} s without an answer"
        assert grown <= memory, f"memory grew by {grown / 2**20:.0f} MB"
        assert batch <= max(_LEAST_SECONDS, _TIMES_IDLE * self.batch_seconds), f"a batch took {batch:.1f} s"
        assert not self.statuses[500], self.statuses
        assert "Traceback" not in self.server.log.read_text()

    # --- who sends ---------------------------------------------------------------------------------

    def send(
        self,
        path: str,
        body: bytes = b"",
        headers: Headers | None = None,
        *,
        method: str = "POST",
        known: bool = False,
        files: bool = False,
    ) -> int:
        """The status of the answer; 0 when the connection was closed without one. AssertionError when it hangs."""
        connection = http.client.HTTPConnection("127.0.0.1", self.files_port if files else self.port, timeout=PATIENCE)
        who = {"Authorization": basic()} if known else {}
        try:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.request(method, path, body, {**who, **(headers or {})})
            response = connection.getresponse()
            response.read()
            status = response.status
        except TimeoutError:
            raise AssertionError(f"{path} was not answered within {PATIENCE} s") from None
        except (OSError, http.client.HTTPException):
            status = 0
        finally:
            connection.close()
        with self._lock:
            self.statuses[status] += 1
        return status

    def send_raw(self, *pieces: bytes, files: bool = False) -> bytes:
        """Send bytes as they are, then what is answered until the connection is closed or still."""
        with self.connect(files=files) as connection:
            with contextlib.suppress(OSError):
                for piece in pieces:
                    connection.sendall(piece)
            return self.answered(connection)

    def connect(self, *, files: bool = False, address: str = "127.0.0.1") -> socket.socket:
        """A connection to send anything by."""
        port = self.files_port if files else self.port
        return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE, source_address=(address, 0))

    def answered(self, connection: socket.socket) -> bytes:
        """What comes until the connection is closed; AssertionError when it hangs."""
        pieces: list[bytes] = []
        try:
            while piece := connection.recv(2**16):
                pieces.append(piece)
        except TimeoutError:
            raise AssertionError(f"the connection was left open for {PATIENCE} s") from None
        except OSError:
            pass
        answer = b"".join(pieces)
        with self._lock:
            self.statuses[int(answer[9:12] or 0)] += 1
        return answer

    def _send_batch(self) -> Wait:
        """Send a normal batch, which must be taken."""
        common = {"task": self.task, "type": "training_stats_scalar", "metric": "loss", "variant": "train"}
        events = [{**common, "iter": n, "value": n / 7, "timestamp": _FIRST_TIME + n} for n in range(1000)]
        began = time.monotonic()
        with self.server.client() as client:
            answer = client.post("/events.add_batch", content="\n".join(map(json.dumps, events)))
        assert answer.status_code == 200, answer.text
        assert answer.json()["data"]["added"] == len(events)
        return Wait(began, time.monotonic() - began, answer.status_code)

    # --- what it costs -----------------------------------------------------------------------------

    def memory(self, *, peak: bool = False) -> int:
        """What all processes of the server take, in bytes; with `peak`, the most since it was forgotten."""
        return sum(_kilobytes(pid, "VmHWM" if peak else "VmRSS") * 2**10 for pid in self._processes())

    def _forget_peaks(self) -> None:
        for pid in self._processes():
            Path(f"/proc/{pid}/clear_refs").write_text("5")

    def _processes(self) -> list[int]:
        assert self.server.process is not None
        first = self.server.process.pid
        return [first, *map(int, Path(f"/proc/{first}/task/{first}/children").read_text().split())]


def _kilobytes(pid: int, name: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(f"{name}:")).split()[1])


def at_once(count: int, send: Callable[[], Any]) -> list[Any]:
    """What as many senders get that all send at once."""
    return in_turns(count, [send] * count)


def in_turns(count: int, sends: Iterable[Callable[[], Any]]) -> list[Any]:
    """What senders get of which `count` send at the same time."""
    with ThreadPoolExecutor(count) as threads:
        return [sending.result() for sending in [threads.submit(send) for send in sends]]
