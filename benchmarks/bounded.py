"""Measures what quotas, the audit log and metrics cost a batch of events: servers with and without them, in turns.

All servers are in this process and share one event loop, so that whatever else the machine does, and where things lie
in memory, is the same for all. A client in another thread sends each a batch, in random order; what counts is the
server's CPU time. A round compares the medians of some batches. The figure is the median of the rounds' ratios, with
the range in which it is at 95 %.
"""

from __future__ import annotations

import asyncio
import gc
import random
import statistics
import threading
import time
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from functools import partial
from typing import Any, TypeVar
from unittest import mock
from uuid import uuid4

import uvicorn
import uvloop
from uvicorn.server import ServerState

from apiserver.common.counters import Counters
from apiserver.http.protocol import Protocol
from apiserver.http.slots import Slots
from apiserver.server.app import App, create_app
from apiserver.settings.settings import Settings
from apiserver.settings.values import QUOTAS_OF, Quota
from benchmarks.bodies import scalar_lines
from benchmarks.client import Connection, logged_in
from benchmarks.figures import UNBOUNDED, UNLIMITED
from benchmarks.run import Run
from benchmarks.table import median_range
from tests.harness import ADMIN_KEY, ADMIN_SECRET

#: By the key of the figure: points and series of a batch, and how many batches are a round.
_SHAPES = {
    "bounded.10": (10, 10, 40),
    "bounded.one": (100, 1, 40),
    "bounded.100": (100, 100, 20),
    "bounded.1000": (5000, 1000, 5),
    "bounded.long": (10_000, 20, 3),
}
_WARM_UP = 3
_QUOTAS = tuple(Quota(of, bytes=10**13, series=10**9, events_per_second=10**9) for of in QUOTAS_OF)
_ALL = "all"

Result = TypeVar("Result")


class _Uncounted(Counters):
    """Counts nothing."""

    def request(self, endpoint: str, status: int, seconds: float) -> None:
        pass

    def batch(self, bytes: int, points: int, lines: int, samples: int) -> None:
        pass

    def count(self, name: str, by: float = 1) -> None:
        pass


def measure(run: Run) -> None:
    """The figures bounded.*."""
    settings: dict[str, tuple[type[Counters], dict[str, Any]]] = {
        UNBOUNDED: (_Uncounted, {"audit": "off"}),
        UNLIMITED: (Counters, {"audit": "file"}),
        _ALL: (Counters, {"audit": "file", "quotas": _QUOTAS}),
    }
    with _event_loop() as loop, ExitStack() as opened:
        clients = {}
        for number, (name, (counters, more)) in enumerate(settings.items()):
            own = Settings(data=run.folder / str(number), admin_key=ADMIN_KEY, admin_secret=ADMIN_SECRET, **more)
            with mock.patch("apiserver.server.app.Counters", counters):
                app = create_app(own)
            clients[name] = opened.enter_context(_client(loop, app))
        for key, (points, series, batches) in _SHAPES.items():
            rounds = _rounds(clients, points, series, min(batches, run.sizes.bounded_batches), run.sizes.bounded_rounds)
            base = statistics.median(rounds[UNBOUNDED])
            ratios = {name: [a / b for a, b in zip(rounds[_ALL], rounds[name], strict=True)] for name in rounds}
            all = base * statistics.median(ratios[UNBOUNDED])
            beside = {name: all / statistics.median(ratios[name]) for name in (UNBOUNDED, UNLIMITED)}
            run.table.put(key, all, beside, {name: median_range(ratios[name]) for name in beside})


def _rounds(
    clients: Mapping[str, Connection], points: int, series: int, batches: int, rounds: int
) -> dict[str, list[float]]:
    """By server, for each round the median milliseconds of CPU for a batch."""
    tasks = {name: _new_task(client) for name, client in clients.items()}
    found: dict[str, list[float]] = {name: [] for name in clients}
    order = random.Random(0)
    for number in range(_WARM_UP + rounds):
        took: dict[str, list[float]] = {name: [] for name in clients}
        for batch in range(number * batches, (number + 1) * batches):
            for name in order.sample(list(clients), len(clients)):
                body = scalar_lines(tasks[name], batch * points, points, series)
                request = clients[name].prepared("events.add_batch", body)
                before = _others_seconds()
                clients[name].exchange(request)
                took[name].append(_others_seconds() - before)
        if number >= _WARM_UP:
            for name, each in took.items():
                found[name].append(statistics.median(each) * 1e3)
        gc.collect()
    return found


def _new_task(client: Connection) -> str:
    """The id of a task in a project of its own."""
    project = client.call("projects.create", {"name": uuid4().hex})["data"]["id"]
    task = client.call("tasks.create", {"name": "a task", "type": "training", "project": project})
    return str(task["data"]["id"])


def _others_seconds() -> float:
    """The CPU time of all threads of this process but this one."""
    return time.process_time() - time.thread_time()


@contextmanager
def _event_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop in a thread. Nobody looks for garbage meanwhile, as the pauses would fall on any server."""
    loop = uvloop.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield loop
    finally:
        gc.enable()
        gc.unfreeze()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def _client(loop: asyncio.AbstractEventLoop, app: App) -> Iterator[Connection]:
    """A client of the app, which is served in the event loop while the block is open."""

    def run(work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    stack = AsyncExitStack()
    port = run(stack.enter_async_context(_served(app)))
    client = logged_in(port, ADMIN_KEY, ADMIN_SECRET)
    try:
        yield client
    finally:
        client.close()
        run(stack.aclose())


@asynccontextmanager
async def _served(app: App) -> AsyncIterator[int]:
    """Serves the app as `apiserver serve` does; the port."""
    async with app.lifespan():
        config = uvicorn.Config(
            app, lifespan="off", log_config=None, server_header=False, proxy_headers=False, reset_contextvars=True
        )
        made = partial(Protocol, Slots(), config, ServerState(), {})
        server = await asyncio.get_running_loop().create_server(made, "127.0.0.1", 0)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
