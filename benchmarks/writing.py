"""Measures writing over HTTP (by one client and by eight, long and short batches, log lines), memory, and the start."""

from __future__ import annotations

import statistics
import time
from importlib.util import find_spec

from apiserver.events.model import Owner
from benchmarks import limits
from benchmarks.bodies import BATCH, log_lines, scalar_lines
from benchmarks.figures import DECODE, DICTS, PING, WITHOUT
from benchmarks.processes import median_ms, resident_mb
from benchmarks.run import Run
from benchmarks.sender import Sent
from benchmarks.server import SCANNER, Running, running

_CLIENTS = 8
_SMALL = 10
_SHORT = 100


def measure(run: Run) -> None:
    """The figures write.*, clients.*, log.*, memory.idle and start, and scanner.* if the scanner is installed."""
    _measure_python(run)
    if find_spec(SCANNER):
        _measure_scanner(run)


def _measure_python(run: Run) -> None:
    folder = run.folder / "python"
    folder.mkdir()
    started = time.perf_counter()
    with running(folder) as server:
        run.table.put("start", (time.perf_counter() - started) * 1e3)
        run.table.put("memory.idle", resident_mb(server.pid))
        server.send([server.task("warm up")], "scalars", BATCH, 1)
        _long_batches(run, server)
        _small_batches(run, server)
        _many_clients(run, server)
        _log_lines(run, server)


def _measure_scanner(run: Run) -> None:
    folder = run.folder / "scanner"
    folder.mkdir()
    with running(folder, scanner=True) as server:
        server.send([server.task("warm up")], "scalars", BATCH, 1)
        cpu, rate = one_client(run, server, server.task("one client"))
    run.table.put("scanner.cpu", cpu, {WITHOUT: run.table.values["write.cpu"]})
    run.table.put("scanner.rate", rate, {WITHOUT: run.table.values["write.rate"]})


def one_client(run: Run, server: Running, task: Owner) -> tuple[float, float]:
    """CPU nanoseconds an event until all are merged, and events a second. One client sends bodies of 10k events."""
    sent, cpu = _sent(run, server, [task], "scalars", BATCH, run.sizes.bodies)
    events = run.sizes.bodies * BATCH
    return cpu / events * 1e9, events / sent.seconds


def _long_batches(run: Run, server: Running) -> None:
    body = scalar_lines("0" * 32, 0, BATCH)
    grouped, dicts = limits.decode_and_group_ns(body, run.sizes.runs), limits.dicts_ns(body, run.sizes.runs)
    cpu, rate = one_client(run, server, server.task("one client"))
    run.table.put("write.cpu", cpu, {DECODE: grouped, DICTS: dicts})
    run.table.put("write.rate", rate, {DECODE: 1e9 / grouped})


def _small_batches(run: Run, server: Running) -> None:
    task = server.task("small")
    connection, count = server.connection, run.sizes.small_bodies
    requests = iter(
        [
            connection.prepared("events.add_batch", scalar_lines(task.id, number * _SMALL, _SMALL))
            for number in range(count + 1)
        ]
    )
    took = median_ms(lambda: connection.exchange(next(requests)), count)
    run.table.put("write.small", took, {PING: median_ms(server.ping, run.sizes.pings)})


def _many_clients(run: Run, server: Running) -> None:
    tasks = [server.task(f"client {number}") for number in range(_CLIENTS)]
    sent, cpu = _sent(run, server, tasks, "scalars", _SHORT, run.sizes.client_bodies)
    events = len(sent.latencies) * _SHORT
    limit = limits.decode_and_group_ns(scalar_lines("0" * 32, 0, _SHORT), run.sizes.pings)
    run.table.put("clients.rate", events / sent.seconds, {DECODE: 1e9 / limit})
    run.table.put("clients.p99", statistics.quantiles(sent.latencies, n=100)[98] * 1e3)
    run.table.put("clients.cpu", cpu / events * 1e9, {DECODE: limit})


def _log_lines(run: Run, server: Running) -> None:
    sent, cpu = _sent(run, server, [server.task("log")], "logs", BATCH, run.sizes.log_bodies)
    lines = len(sent.latencies) * BATCH
    limit = limits.decode_ns(log_lines("0" * 32, 0, BATCH), run.sizes.runs)
    run.table.put("log.rate", lines / sent.seconds, {"typed decode": 1e9 / limit})
    run.table.put("log.cpu", cpu / lines * 1e9, {"typed decode": limit})


def _sent(run: Run, server: Running, tasks: list[Owner], kind: str, batch: int, count: int) -> tuple[Sent, float]:
    """What senders did, and the CPU seconds that the server used until everything was merged."""
    if run.sizes.waits:
        server.wait_until_merged()
    before = server.cpu()
    sent = server.send(tasks, kind, batch, count)
    if run.sizes.waits:
        server.wait_until_merged()
    return sent, server.cpu() - before
