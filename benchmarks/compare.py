"""Compares this server with another version of itself: `python -m benchmarks.compare TREE [--rounds 10] [--quick]`.

TREE is a folder with the sources of the other version, such as a worktree of an older commit. Both versions run at the
same time and get the same requests one by one, in random order. So whatever else the machine does slows down both.

Each round starts both servers anew, because a process has its luck with memory: two processes of the same version
differ by up to a tenth. The median of the rounds counts. With ten rounds, its error is some percent.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.bodies import log_lines, scalar_lines
from benchmarks.processes import settled, timed_ms
from benchmarks.server import Running
from tests import ending
from tests.harness import ADMIN_KEY, ADMIN_SECRET, Served, free_ports

_HISTOGRAM = "events.scalar_metrics_iter_histogram"


@dataclass(frozen=True, slots=True)
class Work:
    """Requests of one kind: `body` makes the body of a request from the task's id and the number of the request."""

    name: str
    endpoint: str
    body: Callable[[str, int], bytes]
    times: int


WORK = (
    Work("ping", "debug.ping", lambda task, number: b"{}", 3000),
    Work("10 events", "events.add_batch", lambda task, number: scalar_lines(task, number * 10, 10), 1500),
    Work("10,000 events", "events.add_batch", lambda task, number: scalar_lines(task, number * 10_000, 10_000), 40),
    Work("100 log lines", "events.add_batch", lambda task, number: log_lines(task, number * 100, 100), 600),
    Work("10,000 log lines", "events.add_batch", lambda task, number: log_lines(task, number * 10_000, 10_000), 15),
    Work("histogram, 100 samples", _HISTOGRAM, lambda task, number: _json(task=task, samples=100), 200),
    Work("histogram, 6,000 samples", _HISTOGRAM, lambda task, number: _json(task=task, samples=6000), 200),
    Work(
        "10,000 raw points",
        "events.scalar_metrics_iter_raw",
        lambda task, number: _json(task=task, metric={"metric": "metric 1", "variants": ["train"]}, batch_size=10_000),
        200,
    ),
    Work("newest 100 log lines", "events.get_task_log", lambda task, number: _json(task=task, batch_size=100), 500),
    Work(
        "a task", "tasks.get_all_ex", lambda task, number: _json(id=[task], only_fields=["name", "last_metrics"]), 1000
    ),
)
"""In this order: what is read later was written before."""


@dataclass(slots=True)
class Ratios:
    """This version's time divided by the other one's, for each round."""

    waiting: list[float]
    """The mean time until an answer, without the fastest and the slowest quarter."""
    cpu: list[float]
    """The CPU time of the server, with its work in the background afterwards."""


def main() -> int:
    """Compare, and print a line for each kind of request."""
    options = _options()
    work = [Work(one.name, one.endpoint, one.body, max(2, one.times // 100)) for one in WORK] if options.quick else WORK
    ratios = {one.name: Ratios([], []) for one in work}
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as folder, _both(Path(folder), options.tree) as servers:
            tasks = [server.task("compared").id for server in servers]
            for one in work:
                waiting, cpu = _measured(one, servers, tasks, 0.1 if options.quick else 1)
                ratios[one.name].waiting.append(waiting)
                ratios[one.name].cpu.append(cpu)
    print(f"this version by {options.tree}, median (least to greatest) of {options.rounds} rounds")
    for name, found in ratios.items():
        print(f"{name:26} time {_shown(found.waiting)}  CPU {_shown(found.cpu)}")
    return 0


def _measured(work: Work, servers: list[Running], tasks: list[str], still: float) -> tuple[float, float]:
    """This version's time and CPU time, each divided by the other one's; servers are at rest when still so long."""
    before = [_cpu_at_rest(server, still) for server in servers]
    taken: list[list[float]] = [[] for _ in servers]
    for number in range(work.times):
        for place in random.sample(range(len(servers)), len(servers)):
            connection, body = servers[place].connection, work.body(tasks[place], number)
            request = connection.prepared(work.endpoint, body)
            taken[place].append(timed_ms(partial(connection.exchange, request)))
    after = [_cpu_at_rest(server, still) for server in servers]
    this, other = (statistics.mean(_middle(times)) for times in taken)
    this_cpu, other_cpu = (end - start for start, end in zip(before, after, strict=True))
    return this / other, (this_cpu + 0.01) / (other_cpu + 0.01)  # the system counts in hundredths of a second


def _cpu_at_rest(server: Running, still: float) -> float:
    """CPU seconds used so far, once the server has finished what it does in the background."""
    return settled(server.cpu, seconds=still)


def _middle(times: list[float]) -> list[float]:
    quarter = len(times) // 4
    return sorted(times)[quarter : len(times) - quarter]


def _shown(ratios: list[float]) -> str:
    return f"{statistics.median(ratios):.3f} ({min(ratios):.2f} to {max(ratios):.2f})"


def _json(**request: object) -> bytes:
    return json.dumps(request).encode()


@contextlib.contextmanager
def _both(folder: Path, tree: Path) -> Iterator[list[Running]]:
    """This version and the other one, running; which of them starts first is a matter of chance."""
    ports = free_ports(4)
    servers = []
    for place, sources in enumerate((None, tree)):
        own = {"ADMIN_KEY": ADMIN_KEY, "ADMIN_SECRET": ADMIN_SECRET, "RESERVE_BYTES": "0"}
        own |= {"PORT": str(ports[2 * place]), "FILES_PORT": str(ports[2 * place + 1])}
        environment = {f"APISERVER_{name}": value for name, value in own.items()}
        server = Served(
            folder / str(place), ports[2 * place], ports[2 * place + 1], environment, tree=sources, cold=True
        )
        servers.append(server)
    try:
        for server in random.sample(servers, len(servers)):
            server.start()
        yield [Running(server) for server in servers]
    finally:
        for server in servers:
            if server.process is not None:
                server.stop()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tree", type=_tree, help="the folder with the sources of the other version")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="a hundredth of the requests: only shows that it runs")
    return parser.parse_args()


def _tree(text: str) -> Path:
    tree = Path(text).resolve()
    if not (tree / "apiserver" / "__main__.py").exists():
        raise argparse.ArgumentTypeError(f"{tree} has no apiserver")
    return tree


if __name__ == "__main__":
    sys.exit(ending.run(main))
