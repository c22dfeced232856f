"""Sends bodies from processes of their own. Each makes all its bodies, and then waits until all are told to begin.

The command is `python -m benchmarks.sender JSON`, where JSON has the fields of Sending. The process prints "ready" when
its bodies are made, reads a line from standard input, and sends the bodies one after the other. Then it prints a JSON
object: started, ended (monotonic seconds, the same clock for all processes), latencies (seconds), refused.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from benchmarks.bodies import MAKERS
from benchmarks.client import Connection


@dataclass(frozen=True, slots=True)
class Sending:
    """The work of one sender: `count` bodies of `batch` events, of a kind in `bodies.MAKERS`."""

    port: int
    headers: dict[str, str]
    path: str
    kind: str
    task: str
    batch: int
    count: int


@dataclass(frozen=True, slots=True)
class Sent:
    """What all senders did together."""

    seconds: float
    """From the begin of the first sender to the end of the last."""
    latencies: list[float]
    refused: int


def send(sendings: Sequence[Sending]) -> Sent:
    """Start a process for each, and let all send at the same time."""
    senders: list[subprocess.Popen[str]] = []
    try:
        for sending in sendings:
            command = [sys.executable, "-m", "benchmarks.sender", json.dumps(asdict(sending))]
            pipe = subprocess.PIPE
            senders.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True))
        for sender in senders:
            assert sender.stdout is not None
            if sender.stdout.readline() != "ready\n":
                raise RuntimeError("a sender ended before it began")
        answers = [json.loads(output) for output in _released(senders)]
    finally:
        for sender in senders:
            sender.kill()
            sender.wait()
    return Sent(
        max(answer["ended"] for answer in answers) - min(answer["started"] for answer in answers),
        [latency for answer in answers for latency in answer["latencies"]],
        sum(answer["refused"] for answer in answers),
    )


def _released(senders: Sequence[subprocess.Popen[str]]) -> list[str]:
    for sender in senders:
        assert sender.stdin is not None
        sender.stdin.write("go\n")
        sender.stdin.flush()
    return [sender.communicate()[0] for sender in senders]


def main() -> None:
    """Do the work of one sender."""
    sending = Sending(**json.loads(sys.argv[1]))
    connection = Connection(sending.port, sending.headers)
    make = MAKERS[sending.kind]
    requests = [
        connection.prepared(sending.path, make(sending.task, first, sending.batch))
        for first in range(0, sending.batch * sending.count, sending.batch)
    ]
    print("ready", flush=True)
    if not sys.stdin.readline():
        return  # who started it has ended
    latencies = []
    started = before = time.monotonic()
    for request in requests:
        connection.exchange(request)
        now = time.monotonic()
        latencies.append(now - before)
        before = now
    print(json.dumps({"started": started, "ended": before, "latencies": latencies, "refused": connection.refused}))


if __name__ == "__main__":
    try:
        main()
    except ConnectionError as error:  # as when a benchmark was interrupted just as it started this
        sys.exit(f"a sender does not reach the server: {error}")
