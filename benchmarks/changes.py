"""What changed of many tasks: how much it costs to ask while nothing happens, and to be watched while events come."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import aclosing, nullcontext
from pathlib import Path

from apiserver.events.changes import ChangesQuery
from apiserver.events.model import Owner
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from benchmarks.columns import Load, batches, unhurried
from benchmarks.figures import PING_EACH, UNWATCHED
from benchmarks.processes import median_ms
from benchmarks.run import Run
from benchmarks.server import Running, running

_ENDPOINT = "events.get_changes"
_SERIES = 10
_SMALL = 100
_ROUNDS = 20


def measure(run: Run) -> None:
    """The figures changes.*"""
    sizes, table = run.sizes, run.table
    with running(run.folder) as server:
        tasks = [server.task(f"task {number}") for number in range(sizes.watched_tasks)]
        asking = Asking(server, tasks)
        pings = cpu_share(server, server.ping, sizes.pings) * len(tasks)
        table.put("changes.idle", cpu_share(server, asking.ask, sizes.pings), {PING_EACH: pings})
        _report_to_each(server, tasks)
        table.put("changes.busy", median_ms(lambda: asking.ask(again=True), sizes.runs))
    watched, unwatched = asyncio.run(_adding(run.folder / "watched", sizes.watched_tasks, sizes.small_bodies))
    table.put("changes.add", watched, {UNWATCHED: unwatched})


class Asking:
    """A client that asks again and again, as a page does that shows many tasks. It begins with a cursor of now."""

    def __init__(self, server: Running, tasks: list[Owner]) -> None:
        self._server = server
        self._request: dict[str, object] = {"tasks": [task.id for task in tasks]}
        self.ask()

    def ask(self, *, again: bool = False) -> None:
        """Ask what has changed since the answer before; `again`: since the same cursor as then."""
        answer = self._server.call(_ENDPOINT, self._request)
        if not again:
            self._request["cursor"] = answer["cursor"]


def cpu_share(server: Running, action: Callable[[], object], count: int) -> float:
    """The percentage of a core that the server needs if the action is done once a second."""
    before = server.cpu()
    for _ in range(count):
        action()
    return (server.cpu() - before) / count * 100


def _report_to_each(server: Running, tasks: list[Owner]) -> None:
    """Send a point of each of ten series of each task."""
    point = {"type": "training_stats_scalar", "metric": "m", "value": 1}
    lines = [json.dumps({**point, "task": task.id, "variant": f"v{n}"}) for task in tasks for n in range(_SERIES)]
    server.connection.post("events.add_batch", "\n".join(lines).encode())


async def _adding(folder: Path, tasks: int, count: int) -> tuple[float, float]:
    """CPU microseconds of adding a batch of 100 points, while its task is watched, and while nobody watches.

    Each is the least of several rounds, in turns: what else the machine does only makes them longer.
    """
    owners = [Owner("company", f"task {number}") for number in range(tasks)]
    store = unhurried(folder)
    await store.open()
    taken: dict[bool, list[float]] = {True: [], False: []}
    for number in range(2 * _ROUNDS):
        watched = number % 2 == 0
        async with aclosing(store.watch(ChangesQuery(owners))) if watched else nullcontext() as watch:
            waiting = None
            if watch is not None:
                await anext(watch)
                waiting = asyncio.ensure_future(anext(watch))
                await asyncio.sleep(0)
            taken[watched].append(await _add_some(store, owners, count))
            if waiting is not None:
                await waiting
    await store.close()
    return min(taken[True]), min(taken[False])


async def _add_some(store: EmbeddedEventStore, owners: list[Owner], count: int) -> float:
    made = [next(batches(Load(owners[n % len(owners)], _SMALL, 20, _SMALL))) for n in range(count)]
    started = time.process_time()
    for batch in made:
        await store.add(batch)
    return (time.process_time() - started) / count * 1e6
