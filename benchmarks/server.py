"""Measures a served server over HTTP on 127.0.0.1: writing, reading, starting, memory.

    python -m benchmarks.server [--quick]

Every figure stands beside a limit measured in the same run, as machines differ and are noisy: decoding the same bytes
with msgspec, and answering a request that does nothing (debug.ping).
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import tempfile
import time
from base64 import b64encode
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from tests.harness import Served, served

SERIES = 20


def event_lines(task: str, first: int, count: int) -> bytes:
    """`count` scalar events as the SDK sends them, from iteration `first`, over SERIES series."""
    head = f'"type": "training_stats_scalar", "task": "{task}", "variant": "train"'
    tail = '"allow_locked": false, "model_event": false, "method": "get"'
    return "\n".join(
        f'{{"timestamp": {1_700_000_000_000 + number}, {head}, "iter": {number // SERIES},'
        f' "metric": "metric {number % SERIES}", "value": {1 / (number + 1)!r}, {tail}}}'
        for number in range(first, first + count)
    ).encode()


class Client:
    """One kept-alive connection with a token."""

    def __init__(self, server: Served) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
        basic = b64encode(f"{server.key}:{server.secret}".encode()).decode()
        self.headers = {"Authorization": f"Basic {basic}"}
        self.headers = {"Authorization": f"Bearer {self.call('auth.login', {})['token']}"}

    def send(self, endpoint: str, body: bytes) -> bytes:
        """POST a body; return the answer's."""
        self.connection.request("POST", f"/{endpoint}", body, self.headers)
        response = self.connection.getresponse()
        content = response.read()
        if response.status != 200:
            raise RuntimeError(content.decode())
        return content

    def call(self, endpoint: str, request: dict[str, Any]) -> Any:
        """Call an endpoint; return `data` of its answer."""
        return json.loads(self.send(endpoint, json.dumps(request).encode()))["data"]


def median_ms(action: Callable[[], object], runs: int) -> float:
    """The median time of an action in milliseconds, after one run that does not count."""
    action()
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        action()
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times)


def cpu_seconds(pid: int) -> float:
    """CPU time that a process has used, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def resident_mb(pid: int) -> float:
    """Resident memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("no VmRSS")


def row(name: str, value: float, unit: str, limit: float | None = None, limit_name: str = "") -> None:
    """Print one figure, and its ratio to a limit measured in the same run."""
    beside = f"{limit:10.2f} {limit_name:32} ratio {value / limit:6.2f}" if limit else ""
    print(f"{name:44} {value:10.2f} {unit:12} {beside}")


def measure(server: Served, events: int, runs: int) -> None:
    """Print the figures of a running server."""
    assert server.process is not None
    client = Client(server)
    ping = median_ms(lambda: client.send("debug.ping", b"{}"), runs * 10)
    row("memory, idle", resident_mb(server.process.pid), "MB")
    row("debug.ping, median", ping, "ms")
    task = client.call("tasks.create", {"name": "bench", "type": "training"})["id"]
    sample = event_lines(task, 0, 10_000)
    decode = median_ms(lambda: msgspec.json.Decoder(dict[str, Any]).decode_lines(sample), 3) * 100
    before, wall = cpu_seconds(server.process.pid), 0.0
    for first in range(0, events, 10_000):
        body = event_lines(task, first, 10_000)
        started = time.perf_counter()
        client.send("events.add_batch", body)
        wall += time.perf_counter() - started
    cpu = cpu_seconds(server.process.pid) - before
    row("add_batch of 10k events, server CPU an event", cpu / events * 1e9, "ns", decode, "ns, decode to dicts")
    row("add_batch of 10k events, one client", events / wall / 1000, "k events/s")
    small = iter([event_lines(task, events + number * 10, 10) for number in range(runs * 10 + 1)])
    row("add_batch of 10 events, median", median_ms(lambda: client.send("events.add_batch", next(small)), runs * 10),
        "ms", ping, "ms, debug.ping")  # fmt: skip
    for samples in (100, 2000, 6000):
        request = json.dumps({"task": task, "samples": samples}).encode()
        took = median_ms(partial(client.send, "events.scalar_metrics_iter_histogram", request), runs)
        name = f"histogram of {SERIES} series x {events // SERIES}, {samples} samples"
        row(name, took, "ms", ping, "ms, debug.ping")
    row("memory, after that", resident_mb(server.process.pid), "MB")


def start_ms(server: Served) -> float:
    """Milliseconds from starting the process to its first answer."""
    started = time.perf_counter()
    server.start()
    return (time.perf_counter() - started) * 1000


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only show that it runs")
    quick = parser.parse_args().quick
    events = 40_000 if quick else 10_000_000
    with tempfile.TemporaryDirectory() as folder, served(Path(folder) / "data") as server:
        measure(server, events, runs=3 if quick else 15)
        started = time.perf_counter()
        server.stop()
        row("stopping", (time.perf_counter() - started) * 1000, "ms")
        row(f"starting on {events} points, to the first answer", start_ms(server), "ms")
        assert server.process is not None
        row("memory, just started", resident_mb(server.process.pid), "MB")


if __name__ == "__main__":
    main()
