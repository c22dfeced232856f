"""Plays SDKs that report at the same time, in one process that takes little CPU.

The command is `python -m benchmarks.player`. It reads the fields of Playing as JSON from standard input, and prints
those of Played. An SDK sends each of its reports once in a round, at a time of its own, also if others still wait for
their answers. Each request is a GET with a body, as the SDK sends it, and has a connection of its own, which the server
closes after its answer.
"""

from __future__ import annotations

import json
import resource
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from random import Random

from benchmarks.bodies import log_lines, noise_lines

#: What an SDK reports in each round.
REPORTS = ("scalars", "logs", "ping")

_SCALARS, _LINES = 100, 5
#: Stands for the task in prepared bodies. It is as long as an id.
_TASK = "0" * 32
_ENDPOINTS = {
    "scalars": "events.add_batch",
    "logs": "events.add_batch",
    "ping": "tasks.ping",
    "nothing": "debug.ping",
    "histogram": "events.scalar_metrics_iter_histogram",
}
_HEAD = (
    "GET /v2.23/{endpoint} HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: python-requests/2.32.3\r\n"
    "Accept-Encoding: gzip, deflate\r\nAccept: */*\r\nConnection: keep-alive\r\nX-ClearML-Worker: node-7:gpu0\r\n"
    "X-Trains-Worker: node-7\r\nX-ClearML-Client: clearml-2.1.12\r\nX-Trains-Client: clearml-2.1.12\r\n"
    "Authorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
)
_OK = b"HTTP/1.1 200 "
_BLOCK = 2**16
#: Seconds that the last answers are waited for.
_PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class Playing:
    """What to play: in each round the `reports` of all SDKs and, at even intervals, `reads` histograms of their tasks.

    `sdks` are pairs of a task and a token. `first` is the number of the first round: other rounds have other points.
    """

    port: int
    sdks: list[tuple[str, str]]
    rounds: int
    first: int = 0
    reports: tuple[str, ...] = REPORTS
    reads: int = 0
    seconds: float = 5
    """Of a round."""


@dataclass(slots=True)
class Played:
    """What happened: the seconds that each request took, by its kind, and the player's own CPU seconds."""

    seconds: float = 0
    cpu: float = 0
    refused: int = 0
    """Answers with another status than 200, and requests without an answer."""
    taken: dict[str, list[float]] = field(default_factory=dict)


def play(playing: Playing) -> Played:
    """Play in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.player"]
    given = json.dumps(asdict(playing))
    return Played(
        **json.loads(subprocess.run(command, input=given, stdout=subprocess.PIPE, text=True, check=True).stdout)
    )


@dataclass(slots=True)
class _Exchange:
    """A request that is under way."""

    kind: str
    begun: float
    socket: socket.socket
    unsent: memoryview
    answer: bytes = b""
    """The first block of the answer."""

    def goes_on(self) -> bool:
        """Send and receive what is possible now; returns False at the end of the answer."""
        try:
            while self.unsent:
                self.unsent = self.unsent[self.socket.send(self.unsent) :]
            while block := self.socket.recv(_BLOCK):
                self.answer = self.answer or block
        except BlockingIOError:
            return True
        except (ConnectionError, TimeoutError):  # the system's ETIMEDOUT is no ConnectionError
            self.answer = b""
        return False


class _Player:
    """The requests that are under way, and what became of the others."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._poll = select.epoll()
        self._under_way: dict[int, _Exchange] = {}
        self.played = Played()

    def play(self, requests: Iterator[tuple[float, str, bytes]], at_once: int) -> None:
        """Send each request at its time, in seconds from now, and wait for all answers.

        At most `at_once` requests are under way: a real SDK waits for an answer before it reports the same again.
        """
        began = time.monotonic()
        for due, kind, request in requests:
            self._look(0)
            while (wait := began + due - time.monotonic()) > 0 or len(self._under_way) >= at_once:
                self._look(max(wait, 0.001))
            self._begin(kind, request)
        latest = time.monotonic() + _PATIENCE
        while self._under_way and time.monotonic() < latest:
            self._look(1)
        self.played.seconds = time.monotonic() - began
        self.played.refused += len(self._under_way)

    def _begin(self, kind: str, request: bytes) -> None:
        connection = socket.socket()
        connection.setblocking(False)
        exchange = _Exchange(kind, time.monotonic(), connection, memoryview(request))
        connection.connect_ex(("127.0.0.1", self._port))
        if exchange.goes_on():
            self._under_way[connection.fileno()] = exchange
            self._poll.register(connection, select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)
        else:
            self._end(exchange)

    def _look(self, seconds: float) -> None:
        for number, _ in self._poll.poll(seconds):
            if not self._under_way[number].goes_on():
                self._end(self._under_way.pop(number))

    def _end(self, exchange: _Exchange) -> None:
        exchange.socket.close()
        if exchange.answer.startswith(_OK):
            self.played.taken.setdefault(exchange.kind, []).append(time.monotonic() - exchange.begun)
        else:
            self.played.refused += 1


def _requests(playing: Playing) -> Iterator[tuple[float, str, bytes]]:
    """When each request is due, in seconds from the begin, its kind and its bytes."""
    random, sdks = Random(0), range(len(playing.sdks))
    of_round = [(random.uniform(0, playing.seconds), kind, sdk) for sdk in sdks for kind in playing.reports]
    of_round += [(playing.seconds * n / playing.reads, "histogram", random.choice(sdks)) for n in range(playing.reads)]
    of_round.sort()
    for number in range(playing.rounds):
        bodies = {kind: _body(kind, playing.first + number) for kind in {kind for _, kind, _ in of_round}}
        for due, kind, sdk in of_round:
            task, token = playing.sdks[sdk]
            head = _HEAD.format(endpoint=_ENDPOINTS[kind], token=token, length=len(bodies[kind]))
            yield (
                number * playing.seconds + due,
                kind,
                head.encode() + bodies[kind].replace(_TASK.encode(), task.encode()),
            )


def _body(kind: str, number: int) -> bytes:
    """The body of a kind of request in a round."""
    match kind:
        case "scalars":
            return noise_lines(_TASK, number * _SCALARS, _SCALARS)
        case "logs":
            return log_lines(_TASK, number * _LINES, _LINES)
        case "histogram":
            return json.dumps({"task": _TASK, "key": "iter"}).encode()
    return json.dumps({"task": _TASK, "method": "get"}).encode()


def main() -> None:
    """Play what standard input says."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # a busy server answers late, and all wait meanwhile
    playing = Playing(**json.load(sys.stdin))
    player, before = _Player(playing.port), time.process_time()
    player.play(_requests(playing), at_once=len(playing.sdks) * len(playing.reports) + playing.reads)
    player.played.cpu = time.process_time() - before
    print(json.dumps(asdict(player.played)))


if __name__ == "__main__":
    main()
