"""Reading data by URLs: 10 M points as files, and what charts of 200 runs need."""

from __future__ import annotations

import asyncio
import http.client
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from benchmarks.columns import Load, fill
from benchmarks.figures import PING
from benchmarks.processes import anonymous_mb, median_ms
from benchmarks.run import Run
from benchmarks.server import Running, running

#: The points of each charted run.
_CHARTED = 10_000
_BUCKETS = 2000
_PIECE = 2**20


def measure(run: Run) -> None:
    """The figures data.*"""
    sizes, table = run.sizes, run.table
    with running(run.folder) as server:
        project = server.call("projects.create", {"name": "charts"})["id"]
        exported = server.task("exported")
        charted = [server.task(f"run {number}", project) for number in range(sizes.charted_runs)]
        server.stop()
        loads = [Load(exported, sizes.exported_points, 2, 10_000)]
        asyncio.run(fill(server.events, [*loads, *(Load(owner, _CHARTED, 1, _CHARTED) for owner in charted)]))
        server.start()
        ping = median_ms(server.ping, sizes.runs)
        idle, most = anonymous_mb(server.pid), 0.0
        for ending in ("parquet", "arrow", "csv"):
            with _peak(server.pid) as peak:
                started = time.perf_counter()
                _read(server, f"/data/tasks/{exported.id}/scalars.{ending}")
                table.put(f"data.{ending}", time.perf_counter() - started)
            most = max(most, peak[0])
        table.put("data.memory", most - idle)
        address = f"/data/projects/{project}/scalars.bin?points={_BUCKETS}&columns=mean,min,max"
        table.put("data.charts", median_ms(partial(_read, server, address), sizes.runs), {PING: ping})
        table.put("data.charts.size", _read(server, address) / 1e6)


def _read(server: Running, address: str) -> int:
    """Read an answer to its end; returns its bytes."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server.port, timeout=600)
    try:
        connection.request("GET", address, headers=server.connection.headers)
        answer = connection.getresponse()
        if answer.status != 200:
            raise RuntimeError(f"{address}: {answer.status} {answer.read(500)!r}")
        size = 0
        while piece := answer.read(_PIECE):
            size += len(piece)
        return size
    finally:
        connection.close()


@contextmanager
def _peak(pid: int) -> Iterator[list[float]]:
    """Look at a process's memory all the time; the peak in MB is in the list at the end."""
    peak, ended = [0.0], threading.Event()

    def look() -> None:
        while not ended.wait(0.02):
            peak[0] = max(peak[0], anonymous_mb(pid))

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield peak
    finally:
        ended.set()
        looking.join()
