"""Writing over HTTP: one client and eight, long batches and short ones, log lines; memory and time to start."""

from __future__ import annotations

import statistics
import time

from apiserver.events.model import Owner
from benchmarks import limits
from benchmarks.bodies import BATCH, log_lines, scalar_lines
from benchmarks.figures import DECODE, DICTS, PING
from benchmarks.processes import median_ms, resident_mb
from benchmarks.run import Run
from benchmarks.server import Running, running

_CLIENTS = 8
SMALL = 10
_SHORT = 100


def measure(run: Run) -> None:
    """The figures write.*, log.rate, memory.idle and start."""
    started = time.perf_counter()
    with running(run.folder) as server:
        run.table.put("start", (time.perf_counter() - started) * 1e3)
        run.table.put("memory.idle", resident_mb(server.pid))
        server.send([server.task("warm up")], "scalars", BATCH, 1)
        _long_batches(run, server)
        _small_batches(run, server)
        _many_clients(run, server)
        _log_lines(run, server)


def one_client(run: Run, server: Running, task: Owner, first: int = 0) -> tuple[float, float]:
    """CPU nanoseconds an event until all is merged, and events a second, of one client with bodies of 10k events."""
    events = run.sizes.bodies * BATCH
    if run.sizes.waits:
        server.wait_until_merged()
    before = server.cpu()
    sent = server.send([task], "scalars", BATCH, run.sizes.bodies, first)
    if run.sizes.waits:
        server.wait_until_merged()
    return (server.cpu() - before) / events * 1e9, events / sent.seconds


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
            connection.prepared("events.add_batch", scalar_lines(task.id, number * SMALL, SMALL))
            for number in range(count + 1)
        ]
    )
    took = median_ms(lambda: connection.exchange(next(requests)), count)
    run.table.put("write.small", took, {PING: median_ms(server.ping, run.sizes.pings)})


def _many_clients(run: Run, server: Running) -> None:
    tasks = [server.task(f"client {number}") for number in range(_CLIENTS)]
    sent = server.send(tasks, "scalars", _SHORT, run.sizes.client_bodies)
    limit = limits.decode_and_group_ns(scalar_lines("0" * 32, 0, _SHORT), run.sizes.pings)
    run.table.put("write.clients", len(sent.latencies) * _SHORT / sent.seconds, {DECODE: 1e9 / limit})
    run.table.put("write.p99", statistics.quantiles(sent.latencies, n=100)[98] * 1e3)


def _log_lines(run: Run, server: Running) -> None:
    task = server.task("log")
    sent = server.send([task], "logs", BATCH, run.sizes.log_bodies)
    limit = limits.decode_ns(log_lines("0" * 32, 0, BATCH), run.sizes.runs)
    run.table.put("log.rate", len(sent.latencies) * BATCH / sent.seconds, {"typed decode": 1e9 / limit})
