"""Measures reading over HTTP while other tasks have little data and while they have much, and writing then."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlencode

import orjson

from benchmarks import library, limits, rows, writing
from benchmarks.bodies import log_text
from benchmarks.columns import Load
from benchmarks.figures import BEFORE, PING, READS, REDUCE, RESTARTED, ROWS
from benchmarks.library import TASKS, WIDE, Library
from benchmarks.processes import median_ms, timed_ms
from benchmarks.run import Run
from benchmarks.server import Running, running

_SAMPLES = {"histogram.100": 100, "histogram.2000": 2000, "histogram.6000": 6000}


@dataclass(slots=True)
class Measured:
    """The figures of one state of the data folder."""

    reads: dict[str, float]
    """Milliseconds of each read, by the key of its figure."""
    write_cpu: float
    write_rate: float


def measure(run: Run) -> None:
    """The figures of reading and, if the folder shall grow, grown.*"""
    sizes, table = run.sizes, run.table
    with running(run.folder) as server:
        tasks = library.filled(server, sizes)
        ping = median_ms(server.ping, sizes.pings)
        before = _measured(run, server, tasks)
        for key, value in before.reads.items():
            table.put(key, value, {PING: ping})
        _log(run, server, tasks)
        _limits(run, server, tasks)
        _smoothed(run, server, tasks)
        if not sizes.growth_points:
            return
        library.grow(server, sizes)
        after = _measured(run, server, tasks)
    for key, value in after.reads.items():
        table.put(f"grown.{key}", value, {BEFORE: before.reads[key]})
    table.put("grown.write.cpu", after.write_cpu, {BEFORE: before.write_cpu})
    table.put("grown.write.rate", after.write_rate, {BEFORE: before.write_rate})


def _measured(run: Run, server: Running, tasks: Library) -> Measured:
    requests = library.requests(tasks, run.sizes)
    reads = {}
    for figure in READS:
        endpoint, body = requests[figure.key]
        reads[figure.key] = median_ms(partial(server.connection.post, endpoint, body), run.sizes.runs)
    reads[RESTARTED.key] = _restarted_ms(run, server, *requests["histogram.long"])
    return Measured(reads, *writing.one_client(run, server, server.task("writing")))


def _restarted_ms(run: Run, server: Running, endpoint: str, body: bytes) -> float:
    """The time of the first answer after a start. Only the operating system may have the data in its cache."""
    taken = []
    for _ in range(run.sizes.restarts):
        server.stop()
        server.start()
        server.ping()
        taken.append(timed_ms(partial(server.connection.post, endpoint, body)))
    return statistics.median(taken)


def _log(run: Run, server: Running, tasks: Library) -> None:
    """The figures of what the page of a log asks for: windows of lines by their numbers, and searches."""
    lines, log = run.sizes.log_lines, f"data/tasks/{tasks.log.id}/log"
    window = partial(server.connection.get, f"{log}?offset={lines // 2}&limit=200")
    run.table.put("log.window", median_ms(window, run.sizes.runs))
    wanted = {"search": log_text(lines - 1)}
    before = server.cpu()
    run.table.put("log.search", timed_ms(partial(_search, server, f"{log}/hits", wanted, [lines - 1])) / 1000)
    run.table.put("log.search.cpu", (server.cpu() - before) / lines * 1e6)


def _search(server: Running, path: str, wanted: dict[str, str], expected: list[int]) -> None:
    """Search in all of a log, answer by answer."""
    found: list[int] = []
    answer: dict[str, Any] = {"ended": False}
    while not answer["ended"]:
        answer = json.loads(server.connection.get(f"{path}?{urlencode(wanted)}"))
        found += answer["lines"]
        wanted = {**wanted, "after": answer["last"]}
    if found != expected:
        raise ValueError(f"the search found the lines {found[:10]} instead of {expected}")


def _limits(run: Run, server: Running, tasks: Library) -> None:
    """The limits: summing the numbers in memory, encoding the answer, and histograms of rows in SQLite."""
    sizes, table = run.sizes, run.table
    load = Load(tasks.wide, WIDE * sizes.wide_points, WIDE, 10_000)
    rows.write(run.folder / "wide.db", load)
    for key, samples in _SAMPLES.items():
        interval = -(-sizes.wide_points // samples)
        by_rows = median_ms(partial(rows.histogram, run.folder / "wide.db", interval), 2)
        reduced = limits.reduce_ms(sizes.wide_points, samples, WIDE, sizes.runs)
        table.compare(key, {REDUCE: reduced, ROWS: by_rows})
    table.compare("histogram.long", {REDUCE: limits.reduce_ms(sizes.long_points, 6000, 1, sizes.runs)})
    shared = limits.reduce_ms(sizes.shared_points, 100, WIDE * TASKS, sizes.runs)
    table.compare("histogram.tasks", {REDUCE: shared})
    endpoint, body = library.requests(tasks, sizes)["raw"]
    page = orjson.loads(server.connection.post(endpoint, body))
    table.compare("raw", {"orjson.dumps of the answer": median_ms(lambda: orjson.dumps(page), sizes.runs)})


def _smoothed(run: Run, server: Running, tasks: Library) -> None:
    """The figures of smoothed curves. After each start, the data folder is read once before they are measured."""
    bodies = library.smoothed(tasks, run.sizes)
    reading = json.dumps({"task": tasks.long.id, "smooth": {"by": "ema", "weight": 0.5}}).encode()
    taken = defaultdict(list)
    if run.sizes.waits:
        server.wait_until_sealed()
    for _ in range(run.sizes.restarts):
        server.stop()
        server.start()
        server.connection.post(library.HISTOGRAM, reading)
        for by, (whole, part) in bodies.items():
            for key, body in (
                (f"smoothed.{by}", whole),
                (f"smoothed.{by}.again", whole),
                (f"smoothed.{by}.zoom", part),
            ):
                taken[key].append(timed_ms(partial(server.connection.post, library.HISTOGRAM, body)))
    reduced = limits.reduce_ms(run.sizes.long_points, 6000, 1, run.sizes.runs)
    for key, times in taken.items():
        run.table.put(key, statistics.median(times), {REDUCE: reduced})
