"""Measures a server to which thousands of SDKs report at once, while it keeps 100,000 other tasks.

Every five seconds, each SDK sends a batch of 100 scalars of ten series, a batch of five console lines, and a ping.
Meanwhile 20 histograms a second are read. `player.py` sends all of that.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from importlib.util import find_spec

from apiserver.settings.settings import Settings
from benchmarks.client import logged_in
from benchmarks.figures import PING, WITHOUT
from benchmarks.listed import Company
from benchmarks.lists import fill
from benchmarks.player import REPORTS, Played, Playing, play
from benchmarks.processes import peak_memory_mb
from benchmarks.run import Run
from benchmarks.server import SCANNER, Running, running

_SDKS = "the SDKs themselves"
#: Histograms that are read each second.
_READS = 20


def measure(run: Run) -> None:
    """The figures sdks.*, also with the scanner if it is installed."""
    few, many = run.sizes.sdks
    with running(run.folder) as server:
        _keep_tasks(run, server)
        sdks = _sdks(server, many)
        without = _measure(run, server, "sdks.few", sdks[:few])
        _measure(run, server, "sdks.many", sdks)
    if find_spec(SCANNER):
        with running(run.folder, scanner=True) as server:
            _measure(run, server, "scanner.sdks", _sdks(server, few), without)


def _keep_tasks(run: Run, server: Running) -> None:
    server.stop()
    company = Company.of(Settings().company, run.sizes.listed_projects)
    asyncio.run(fill(server.server.data / "documents.db", company, run.sizes.listed_tasks))
    server.start()


def _sdks(server: Running, count: int) -> list[tuple[str, str]]:
    """New tasks that have started, and a token for each."""
    return [(_started(server, number), _token(server)) for number in range(count)]


def _started(server: Running, number: int) -> str:
    task = server.task(f"sdk {number}").id
    server.call("tasks.started", {"task": task})
    return task


def _token(server: Running) -> str:
    connection = logged_in(server.server.port, server.server.key, server.server.secret)
    connection.close()
    return connection.headers["Authorization"].removeprefix("Bearer ")


def _measure(run: Run, server: Running, key: str, sdks: list[tuple[str, str]], without: float | None = None) -> float:
    """Measure a group of figures. Returns the cores that the server uses; `without`: those without the scanner."""
    rounds, seconds = run.sizes.sdk_rounds, run.sizes.sdk_seconds
    reports = Playing(server.server.port, sdks, 1, reads=int(_READS * seconds), seconds=seconds)
    _played(run, server, reports)  # the first points of a series cost more
    played, cpu = _played(run, server, replace(reports, rounds=rounds, first=1))
    pings = replace(reports, reports=("nothing",) * len(REPORTS), reads=0)
    nothing, least = _played(run, server, pings)
    taken = [one for kind in REPORTS for one in played.taken[kind]]
    answered = len(taken)
    taken += [math.inf] * played.refused
    cores, table = cpu / (rounds * seconds), run.table
    table.put(f"{key}.cores", cores, {_SDKS: played.cpu / (rounds * seconds)})
    if without is not None:
        table.compare(f"{key}.cores", {WITHOUT: without})
    table.put(f"{key}.cpu", cpu / answered * 1e6, {PING: least / len(nothing.taken["nothing"]) * 1e6})
    table.put(f"{key}.p99", _p99_ms(taken), {PING: _p99_ms(nothing.taken["nothing"])})
    table.put(f"{key}.histogram", _p99_ms(played.taken["histogram"]))
    table.put(f"{key}.memory", peak_memory_mb(server.pid))
    return cores


def _played(run: Run, server: Running, playing: Playing) -> tuple[Played, float]:
    """What happened, and the CPU seconds that the server used until everything was merged."""
    if run.sizes.waits:
        server.wait_until_merged()
    before = server.cpu()
    played = play(playing)
    if run.sizes.waits:
        server.wait_until_merged()
    return played, server.cpu() - before


def _p99_ms(seconds: list[float]) -> float:
    return sorted(seconds)[len(seconds) * 99 // 100] * 1e3
