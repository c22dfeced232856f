"""Live streams: what 2,000 readers of 200 tasks that report each second cost, and how soon they are told."""

from __future__ import annotations

from benchmarks.figures import PING, POLLING, UNWATCHED
from benchmarks.processes import median_ms
from benchmarks.run import Run
from benchmarks.server import running
from benchmarks.watchers import LIVE, NOBODY, POLLS, Watched, Watching, watch


def measure(run: Run) -> None:
    """The figures live.*"""
    sizes, table = run.sizes, run.table
    with running(run.folder, {"MAX_CONNECTIONS_PER_ADDRESS": "10000"}) as server:
        tasks = [server.task(f"task {number}").id for number in range(sizes.live_tasks)]
        token = server.connection.headers["Authorization"].removeprefix("Bearer ")

        def watched(how: str) -> Watched:
            readers, seconds, pause = sizes.live_readers, sizes.live_seconds, sizes.live_pause
            return watch(Watching(server.server.port, server.pid, token, tasks, readers, seconds, pause, how))

        nobody, live, polls = watched(NOBODY), watched(LIVE), watched(POLLS)
        ping = median_ms(server.ping, sizes.runs)
    table.put("live.lag", _p99(live.lags) * 1e3, {POLLING: _p99(polls.lags) * 1e3})
    table.put("live.cores", live.cores - nobody.cores, {POLLING: polls.cores - nobody.cores})
    table.put("live.memory", live.memory)
    table.put("live.write", _median(live.writes) * 1e3, {UNWATCHED: _median(nobody.writes) * 1e3, PING: ping})


def _p99(values: list[float]) -> float:
    return sorted(values)[len(values) * 99 // 100]


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]
