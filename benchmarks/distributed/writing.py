"""Measures writing over HTTP and, beside it, sending the same documents to Elasticsearch directly."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import cycle

from apiserver.events.model import Owner
from apiserver.stores.events.elasticsearch.writing import Items
from benchmarks.bodies import noise_lines
from benchmarks.columns import Load, batches
from benchmarks.distributed.figures import BULK, BULKS, NODE, ONE_SERVER
from benchmarks.distributed.run import Run
from benchmarks.figures import PING
from benchmarks.processes import median_ms, timed_ms
from benchmarks.sender import Sending, send
from benchmarks.server import Running

_CLIENTS = 4
_SMALL = 10
_SERIES = 10


def measure(run: Run) -> None:
    """The figures write.*, delete and log.rate."""
    _one_client(run)
    _four_clients(run)
    _small_batches(run)
    sent = run.server.send([run.server.task("lines")], "logs", run.sizes.batch, run.sizes.rounds * run.sizes.bodies)
    run.table.put("log.rate", len(sent.latencies) * run.sizes.batch / sent.seconds)


def _one_client(run: Run) -> None:
    """Server and engine take turns, because the machine's speed changes from minute to minute."""
    server, sizes = run.server, run.sizes
    task = server.task("one client")
    _direct_rate(run, "warm up", 1)
    rates, direct, cpu, node = [], [], 0.0, 0.0
    for number in range(sizes.rounds):
        before, node_before = server.cpu(), run.engines.cpu()
        rates.append(_rate(run, [(server, task)], sizes.bodies))
        cpu += server.cpu() - before
        node += run.engines.cpu() - node_before
        direct.append(_direct_rate(run, f"one client {number}", 1))
    run.table.put("write.rate", statistics.median(rates), {BULK: statistics.median(direct)})
    events = sizes.rounds * sizes.bodies * sizes.batch
    run.table.put("write.cpu", cpu / events * 1e9, {NODE: node / events * 1e9} if node else {})
    run.table.put("delete", timed_ms(lambda: server.call("events.delete_for_task", {"task": task.id})))


def _four_clients(run: Run) -> None:
    """Measure four clients of one server, and four of two servers. Each client has a task of its own."""
    one, two, direct = [], [], []
    for number in range(run.sizes.rounds):
        one.append(_rate_of_four(run, [run.server]))
        two.append(_rate_of_four(run, [run.server, run.second]))
        direct.append(_direct_rate(run, f"four clients {number}", _CLIENTS))
    bulks = statistics.median(direct)
    run.table.put("write.four", statistics.median(one), {BULKS: bulks})
    run.table.put("write.servers", statistics.median(two), {ONE_SERVER: statistics.median(one), BULKS: bulks})


def _rate_of_four(run: Run, servers: Sequence[Running]) -> float:
    of_clients = zip(range(_CLIENTS), cycle(servers), strict=False)
    clients = [(server, server.task(f"client {number}")) for number, server in of_clients]
    return _rate(run, clients, max(1, run.sizes.bodies // _CLIENTS))


def _rate(run: Run, clients: Sequence[tuple[Running, Owner]], bodies: int) -> float:
    """Events a second of all clients. Each sends so many `bodies` to its server, for its task."""
    batch = run.sizes.batch
    sent = send(
        [
            Sending(server.server.port, server.connection.headers, "events.add_batch", "noise", task.id, batch, bodies)
            for server, task in clients
        ]
    )
    return len(sent.latencies) * batch / sent.seconds


def _small_batches(run: Run) -> None:
    task, connection, count = run.server.task("small"), run.server.connection, run.sizes.small_bodies
    requests = iter(
        [
            connection.prepared("events.add_batch", noise_lines(task.id, number * _SMALL, _SMALL))
            for number in range(count + 1)
        ]
    )
    took = median_ms(lambda: connection.exchange(next(requests)), count)
    direct, bodies = run.engines.direct(), iter(_bodies(run, "small", count + 1, _SMALL))
    bulk = median_ms(lambda: direct.bulk(next(bodies)), count)
    run.table.put("write.small", took, {BULK: bulk, PING: median_ms(run.server.ping, run.sizes.pings)})


# --- the engine by itself ---------------------------------------------------------------------------


def _direct_rate(run: Run, name: str, clients: int) -> float:
    """Documents a second that Elasticsearch takes from so many clients. No earlier call may have used `name`."""
    bodies = max(1, run.sizes.bodies // clients)
    of_clients = [_bodies(run, f"{name} {number}", bodies, run.sizes.batch) for number in range(clients)]
    started = time.monotonic()
    with ThreadPoolExecutor(clients) as threads:
        list(threads.map(partial(_send_all, run), of_clients))
    return clients * bodies * run.sizes.batch / (time.monotonic() - started)


def _send_all(run: Run, bodies: Iterable[bytes]) -> None:
    direct = run.engines.direct()
    for body in bodies:
        direct.bulk(body)


def _bodies(run: Run, name: str, count: int, size: int) -> list[bytes]:
    """`count` bulks of the documents that a server makes of `size` events each."""
    items = Items(run.engines.name)
    load = Load(Owner("direct", name), count * size, min(size, _SERIES), size)
    return ["".join(items.of(batch)).encode() for batch in batches(load)]
