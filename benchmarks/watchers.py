"""Plays tasks that report each second, and readers who follow them, in one process that takes little CPU.

The command is `python -m benchmarks.watchers`. It reads the fields of Watching as JSON from standard input, and prints
those of Watched. The iteration of a point is the time at which it is sent, so a reader who is told the iteration knows
how late it is.
"""

from __future__ import annotations

import json
import re
import resource
import select
import socket
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from itertools import count

from benchmarks.processes import cpu_seconds, resident_mb

LIVE, POLLS, NOBODY = "live", "polls", "nobody"
#: Seconds between two questions of a reader who polls.
POLL = 10.0

_REQUEST = "{method} /{path} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {token}\r\nContent-Length: {length}\r\n\r\n"
_TO = re.compile(rb'\[\["m","v",\d+,(\d+)\]\]|"to":(\d+)')
_CURSOR = re.compile(rb'"cursor":"([^"]+)"')
_BLOCK = 2**16
#: Iterations in a second.
_SECOND = 10_000


@dataclass(frozen=True, slots=True)
class Watching:
    """What to play for so many seconds: each task reports each second, and each reader follows one of them."""

    port: int
    pid: int
    """The server's."""
    token: str
    tasks: list[str]
    readers: int
    seconds: float
    pause: float
    """Seconds until all connections that were opened are taken to wait."""
    how: str = LIVE


@dataclass(slots=True)
class Watched:
    """What happened."""

    lags: list[float] = field(default_factory=list)
    """Seconds between the sending of a point and its being told, for each reader of it."""
    cores: float = 0
    """Of the server."""
    memory: float = 0
    """KB of the server, for each reader."""
    writes: list[float] = field(default_factory=list)
    """Seconds until a point was acknowledged."""


def watch(watching: Watching) -> Watched:
    """Play in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.watchers"]
    given = json.dumps(asdict(watching))
    ran = subprocess.run(command, input=given, stdout=subprocess.PIPE, text=True, check=True)
    return Watched(**json.loads(ran.stdout))


class _Player:
    """Connections of readers and of tasks, by their numbers."""

    def __init__(self, watching: Watching) -> None:
        self._asked = watching
        self._poll = select.epoll()
        self._readers: dict[int, tuple[socket.socket, str]] = {}
        self._writers: dict[int, tuple[socket.socket, str]] = {}
        self._sent: dict[int, float] = {}
        self._cursors: dict[int, str] = {}
        self._newest: dict[int, int] = {}
        self._is_begun = False
        self._began = time.monotonic()
        self.watched = Watched()

    def play(self) -> None:
        """Open all connections, then play."""
        asked = self._asked
        for number, task in zip(range(len(asked.tasks)), asked.tasks, strict=True):
            self._connect(self._writers, task)
            self._write(list(self._writers)[number])
        self._look_until(time.monotonic() + self._asked.pause)
        if asked.how != NOBODY:
            self._open(asked.readers // 10)  # the first ones also take what is taken once
            before = resident_mb(asked.pid)
            self._open(asked.readers - len(self._readers))
            more = asked.readers - asked.readers // 10
            self.watched.memory = (resident_mb(asked.pid) - before) * 1024 / more
        self._is_begun, began, used = True, time.monotonic(), cpu_seconds(asked.pid)
        writers, readers = list(self._writers), list(self._readers)
        pace = min(POLL, asked.seconds / 3) / max(len(readers), 1)
        polled = 0
        for number in count():
            due = began + number / len(writers)
            if due > began + asked.seconds:
                break
            while asked.how == POLLS and began + polled * pace < due:
                self._ask(readers[polled % len(readers)])
                polled += 1
            self._look_until(due)
            self._write(writers[number % len(writers)])
        self.watched.cores = (cpu_seconds(asked.pid) - used) / (time.monotonic() - began)

    def _open(self, count: int) -> None:
        """Let more readers begin."""
        for _ in range(count):
            reader = self._connect(self._readers, self._asked.tasks[len(self._readers) % len(self._asked.tasks)])
            self._ask(reader)
            self._look(0)
        self._look_until(time.monotonic() + self._asked.pause)

    def _connect(self, into: dict[int, tuple[socket.socket, str]], task: str) -> int:
        connection = socket.create_connection(("127.0.0.1", self._asked.port))
        connection.setblocking(False)
        into[connection.fileno()] = connection, task
        self._poll.register(connection, select.EPOLLIN)
        return connection.fileno()

    def _send(self, connection: socket.socket, path: str, body: bytes, method: str = "POST") -> None:
        head = _REQUEST.format(method=method, path=path, token=self._asked.token, length=len(body))
        connection.sendall(head.encode() + body)

    def _ask(self, number: int) -> None:
        """Let a reader open its stream, or ask."""
        connection, task = self._readers[number]
        if self._asked.how == LIVE:
            return self._send(connection, f"data/tasks/{task}/live", b"", "GET")
        asked = {"tasks": [task], **({"cursor": self._cursors[number]} if number in self._cursors else {})}
        self._send(connection, "v2.34/events.get_changes", json.dumps(asked).encode())

    def _write(self, number: int) -> None:
        connection, task = self._writers[number]
        event = {"type": "training_stats_scalar", "task": task, "metric": "m", "variant": "v", "value": 0.5}
        self._sent[number] = time.monotonic()
        self._send(connection, "events.add_batch", json.dumps({**event, "iter": self._now()}).encode())

    def _now(self) -> int:
        """Tenths of milliseconds since the begin."""
        return int((time.monotonic() - self._began) * _SECOND)

    def _look_until(self, until: float) -> None:
        while (wait := until - time.monotonic()) > 0:
            self._look(wait)

    def _look(self, seconds: float) -> None:
        for number, _ in self._poll.poll(seconds):
            if number in self._readers:
                self._heard(number, self._readers[number][0].recv(_BLOCK))
            else:
                self._writers[number][0].recv(_BLOCK)
                if self._is_begun and number in self._sent:
                    self.watched.writes.append(time.monotonic() - self._sent.pop(number))

    def _heard(self, number: int, told: bytes) -> None:
        if not told:
            raise RuntimeError("the server ended a stream")
        if cursor := _CURSOR.search(told):
            self._cursors[number] = cursor[1].decode()
        if self._is_begun:
            for to in _TO.finditer(told):
                self._is_told(number, int(to[1] or to[2]))

    def _is_told(self, number: int, newest: int) -> None:
        """A reader is told of the newest point of a task, and so of all points before it, which are a second apart."""
        before, self._newest[number] = self._newest.get(number, newest), newest
        points = [newest - _SECOND * n for n in range(round((newest - before) / _SECOND))]
        self.watched.lags += [(self._now() - point) / _SECOND for point in points]


def main() -> None:
    """Play what standard input says."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    player = _Player(Watching(**json.load(sys.stdin)))
    player.play()
    json.dump(asdict(player.watched), sys.stdout)


if __name__ == "__main__":
    main()
