"""Deleting a task's events, and how much of the disk comes back."""

from __future__ import annotations

import asyncio
import statistics

from apiserver.events.model import Owner
from benchmarks.columns import Load, fill
from benchmarks.figures import PING
from benchmarks.processes import median_ms, settled, timed_ms
from benchmarks.run import Run
from benchmarks.server import Running, running

_TIMES = 3
_LONG = 10


def measure(run: Run) -> None:
    """The figures delete and delete.returned."""
    points = run.sizes.deleted_points
    with running(run.folder) as server:
        kept, long, *short = [server.task(f"task {number}") for number in range(2 + _TIMES)]
        server.stop()
        loads = [Load(owner, points, 20, 10_000) for owner in (kept, *short)]
        asyncio.run(fill(server.events, [*loads, Load(long, _LONG * points, 20, 10_000)]))
        server.start()
        ping = median_ms(server.ping, run.sizes.pings)
        run.table.put("delete", statistics.median(_deleted_ms(server, task) for task in short), {PING: ping})
        before = settled(server.disk, 3 if run.sizes.waits else 0.1)
        _deleted_ms(server, long)
        took = before * _LONG / (_LONG + 1)  # the tasks that were deleted first take little space by now
        run.table.put("delete.returned", (before - settled(server.disk, 3 if run.sizes.waits else 0.1)) / took * 100)


def _deleted_ms(server: Running, task: Owner) -> float:
    return timed_ms(lambda: server.call("events.delete_for_task", {"task": task.id}))
