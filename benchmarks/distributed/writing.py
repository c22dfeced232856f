"""Measures writing over HTTP and, beside it, sending plain documents of as many events to Elasticsearch directly."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from itertools import cycle

from apiserver.events.model import Owner
from benchmarks.bodies import noise_lines
from benchmarks.distributed.figures import BULK, BULKS, COMPILING, DELETION, ONE_SERVER
from benchmarks.distributed.plain import BULKS as BODIES
from benchmarks.distributed.plain import LINES, POINTS
from benchmarks.distributed.run import Run
from benchmarks.figures import PING
from benchmarks.processes import median_ms, timed_ms
from benchmarks.sender import Sending, send
from benchmarks.server import Running

_CLIENTS = 4
_SHORT = 100
_SMALL = 10


def measure(run: Run) -> None:
    """The figures write.*, delete and log.rate."""
    for section in (_one_client, _four_clients, _short_batches, _small_batches, _log_lines):
        section(run)
        _settle(run, run.server, run.second)


def _settle(run: Run, *servers: Running) -> None:
    """Wait until these servers have compacted, and Elasticsearch has refreshed and merged, what came so far.

    The turns of server and engine end so: else each would pay for what the other one left to do.
    """
    if run.sizes.waits:
        for server in servers:
            server.wait_until_compacted()
        run.engines.settle()


def _one_client(run: Run) -> None:
    """Server and engine take turns, because the machine's speed changes from minute to minute.

    Both have taken as much before as they take in all turns: until then, Elasticsearch compiles most of what it runs.
    """
    server, sizes, events = run.server, run.sizes, run.sizes.rounds * run.sizes.bodies * run.sizes.batch
    task = server.task("one client")
    _direct_rate(run, POINTS, ["warm up"], sizes.rounds * sizes.bodies)
    _rate(run, [(server, server.task("warm up"))], "noise", sizes.rounds * sizes.bodies)
    _settle(run, server)
    rates, direct = [], []
    cpu, node, alone = _Cpu(server.cpu), _Cpu(run.engines.cpu), _Cpu(run.engines.cpu)
    compiling = _Cpu(run.engines.compiling)
    for number in range(sizes.rounds):
        with cpu, node, compiling:
            rates.append(_rate(run, [(server, task)], "noise", sizes.bodies))
            _settle(run)
        with alone:
            direct.append(_direct_rate(run, POINTS, [f"one client {number}"]))
            _settle(run)
    with cpu, node, compiling:
        _settle(run, server)
    run.table.put("write.rate", statistics.median(rates), {BULK: statistics.median(direct)})
    run.table.put("write.cpu", cpu.seconds / events * 1e9)
    beside = {BULK: alone, COMPILING: compiling} if compiling.seconds else {BULK: alone}
    run.table.put(
        "write.node", node.seconds / events * 1e9, {name: one.seconds / events * 1e9 for name, one in beside.items()}
    )
    took = timed_ms(lambda: server.call("events.delete_for_task", {"task": task.id}))
    owners = [f"one client {number}" for number in range(sizes.rounds)]
    run.table.put("delete", took, {DELETION: timed_ms(lambda: run.plain.delete(owners))})


class _Cpu:
    """The CPU seconds that are used inside of its blocks."""

    def __init__(self, used: Callable[[], float]) -> None:
        self.seconds = 0.0
        self._used = used

    def __enter__(self) -> None:
        self.seconds -= self._used()

    def __exit__(self, *_: object) -> None:
        self.seconds += self._used()


def _four_clients(run: Run) -> None:
    """Measure four clients of one server, and four of two servers. Each client has a task of its own."""
    one, two, direct = [], [], []
    for number in range(run.sizes.rounds):
        one.append(_rate_of_four(run, [run.server]))
        _settle(run)
        two.append(_rate_of_four(run, [run.server, run.second]))
        _settle(run)
        direct.append(_direct_rate(run, POINTS, [f"four clients {number}.{client}" for client in range(_CLIENTS)]))
        _settle(run)
    bulks = statistics.median(direct)
    run.table.put("write.four", statistics.median(one), {BULKS: bulks})
    run.table.put("write.servers", statistics.median(two), {ONE_SERVER: statistics.median(one), BULKS: bulks})


def _rate_of_four(run: Run, servers: Sequence[Running]) -> float:
    of_clients = zip(range(_CLIENTS), cycle(servers), strict=False)
    clients = [(server, server.task(f"client {number}")) for number, server in of_clients]
    return _rate(run, clients, "noise", max(1, run.sizes.bodies // _CLIENTS))


def _rate(
    run: Run, clients: Sequence[tuple[Running, Owner]], kind: str, bodies: int, batch: int | None = None
) -> float:
    """Events a second of all clients. Each sends so many `bodies` to its server, for its task."""
    batch = batch or run.sizes.batch
    sent = send(
        [
            Sending(server.server.port, server.connection.headers, "events.add_batch", kind, task.id, batch, bodies)
            for server, task in clients
        ]
    )
    return len(sent.latencies) * batch / sent.seconds


def _short_batches(run: Run) -> None:
    """Batches of 100 events, ten of a series each."""
    rates, direct = [], []
    for number in range(run.sizes.rounds):
        task = run.server.task(f"short {number}")
        rates.append(_rate(run, [(run.server, task)], "noise", run.sizes.small_bodies, _SHORT))
        _settle(run)
        direct.append(_direct_rate(run, POINTS, [f"short {number}"], run.sizes.small_bodies, _SHORT))
        _settle(run)
    run.table.put("write.short", statistics.median(rates), {BULK: statistics.median(direct)})


def _small_batches(run: Run) -> None:
    task, connection, count = run.server.task("small"), run.server.connection, run.sizes.small_bodies
    firsts = range(0, (count + 1) * _SMALL, _SMALL)
    requests = iter([connection.prepared("events.add_batch", noise_lines(task.id, n, _SMALL)) for n in firsts])
    took = median_ms(lambda: connection.exchange(next(requests)), count)
    direct, bodies = run.engines.direct(), iter([BODIES[POINTS]("small", n, _SMALL) for n in firsts])
    bulk = median_ms(lambda: direct.bulk(run.plain.index(POINTS), next(bodies)), count)
    run.table.put("write.small", took, {BULK: bulk, PING: median_ms(run.server.ping, run.sizes.pings)})


def _log_lines(run: Run) -> None:
    rates, direct = [], []
    for number in range(run.sizes.rounds):
        task = run.server.task(f"lines {number}")
        rates.append(_rate(run, [(run.server, task)], "logs", run.sizes.bodies))
        _settle(run)
        direct.append(_direct_rate(run, LINES, [f"lines {number}"]))
        _settle(run)
    run.table.put("log.rate", statistics.median(rates), {BULK: statistics.median(direct)})


def _direct_rate(run: Run, kind: str, owners: Sequence[str], bodies: int = 0, batch: int = 0) -> float:
    """Documents a second that Elasticsearch takes from a client for each owner. No earlier call may have named one."""
    bodies, batch = bodies or max(1, run.sizes.bodies // len(owners)), batch or run.sizes.batch
    firsts = range(0, bodies * batch, batch)
    of_clients = [[BODIES[kind](owner, first, batch) for first in firsts] for owner in owners]
    started = time.monotonic()
    run.plain.send(kind, of_clients)
    return len(owners) * bodies * batch / (time.monotonic() - started)
