"""Measures reading over HTTP and, beside it, a search of plain documents that tell of the same events.

The events were sent over HTTP, and share their indices with those of other tasks.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from apiserver.events.model import Owner
from benchmarks.bodies import START_MS
from benchmarks.changes import Asking, cpu_share
from benchmarks.distributed.figures import HISTOGRAMS, REPEATED, SEARCH
from benchmarks.distributed.plain import LINES, POINTS, SERIES
from benchmarks.distributed.run import Run
from benchmarks.figures import PING
from benchmarks.processes import median_ms, timed_ms

_OTHERS = 4


class _Read(NamedTuple):
    """A call of an endpoint, and the search of plain documents beside it."""

    endpoint: str
    request: dict[str, Any]
    search: Callable[[], object]


def measure(run: Run) -> tuple[int, int]:
    """The figures of reads and of changes.idle; returns the numbers of points and lines."""
    sizes, server = run.sizes, run.server
    wide, log, *others = (server.task(name) for name in ("wide", "log", *(f"other {n}" for n in range(_OTHERS))))
    for owner in others:
        _fill(run, owner, POINTS, sizes.other_bodies)
    _fill(run, wide, POINTS, sizes.wide_bodies)
    _fill(run, log, LINES, sizes.log_bodies)
    if sizes.waits:
        server.wait_until_compacted()
    run.engines.settle()
    ping = median_ms(server.ping, sizes.pings)
    reads = _reads(run, wide, log)
    for read in reads.values():  # the JVM compiles what runs often, and summaries of tasks are still written
        median_ms(partial(_answer, run, read), sizes.runs)
    for key, read in reads.items():
        repeated = median_ms(partial(_answer, run, read), sizes.runs)
        run.table.put(key, repeated, {PING: ping, SEARCH: median_ms(read.search, sizes.runs)})
    _search(run, reads[HISTOGRAMS[0].key], others)
    for figure in HISTOGRAMS:
        again = {REPEATED: run.table.values[figure.key]}
        run.table.put(f"first.{figure.key}", _first_ms(run, reads[figure.key]), again)
        restarted, search = _restarted_ms(run, reads[figure.key], others[0])
        run.table.put(f"restarted.{figure.key}", restarted, {SEARCH: search, **again})
    watched = Asking(server, [server.task(f"watched {number}") for number in range(sizes.watched_tasks)])
    run.table.put("changes.idle", cpu_share(server, watched.ask, sizes.pings))
    return sizes.batch * (sizes.wide_bodies + _OTHERS * sizes.other_bodies), sizes.batch * sizes.log_bodies


def _fill(run: Run, owner: Owner, kind: str, bodies: int) -> None:
    """Send the same events to the server and, as plain documents, to Elasticsearch."""
    run.server.send([owner], "noise" if kind == POINTS else "logs", run.sizes.batch, bodies)
    run.plain.fill(kind, owner.id, run.sizes.batch, bodies)


def _answer(run: Run, read: _Read, **changed: Any) -> object:
    return run.server.connection.post(read.endpoint, json.dumps({**read.request, **changed}).encode())


def _search(run: Run, read: _Read, tasks: Sequence[Owner]) -> None:
    """Let the JVM compile what a first read asks of it. Repeated reads ask nothing, so each of these is another one."""
    for number in range(run.sizes.searches):
        names = (f"metric {number % SERIES}", f"no metric {number}")
        _answer(run, read, task=tasks[number % len(tasks)].id, metrics=[{"metric": name} for name in names])


def _first_ms(run: Run, read: _Read) -> float:
    """The median time of the first read of a task, by the server that has written and compacted its events.

    There are several tasks of as many points each, and all of them fit into the server's cache. They are deleted, so
    that their points are not among those by whose number the figures disk.* divide.
    """
    tasks = [run.server.task(f"first {number}") for number in range(run.sizes.firsts)]
    for task in tasks:
        run.server.send([task], "noise", run.sizes.batch, run.sizes.wide_bodies)
    if run.sizes.waits:
        run.server.wait_until_compacted()
    run.engines.settle()
    first = [timed_ms(partial(_answer, run, read, task=task.id)) for task in tasks]
    for task in tasks:
        run.server.call("events.delete_for_task", {"task": task.id})
    return statistics.median(first)


def _restarted_ms(run: Run, read: _Read, other: Owner) -> tuple[float, float]:
    """The median times of a read, and of the search beside it, when neither server nor node has any of it in memory.

    The server was just started, and has answered the same request for another task.
    """
    first, search = [], []
    for _ in range(run.sizes.restarts):
        run.server.stop()
        run.server.start()
        _answer(run, read, task=other.id)
        run.engines.forget_answers()
        first.append(timed_ms(lambda: _answer(run, read)))
        search.append(timed_ms(read.search))
    return statistics.median(first), statistics.median(search)


def _reads(run: Run, wide: Owner, log: Owner) -> dict[str, _Read]:
    """The reads by the keys of their figures."""
    sizes, plain = run.sizes, run.plain
    histogram, raw, lines = (
        f"events.{name}" for name in ("scalar_metrics_iter_histogram", "scalar_metrics_iter_raw", "get_task_log")
    )
    first = {"metric": "metric 0", "variants": ["train"]}
    middle = START_MS + sizes.batch * sizes.log_bodies // 2
    points = sizes.batch * sizes.wide_bodies // SERIES
    return {
        **{
            f"histogram.{samples}": _Read(
                histogram, {"task": wide.id, "samples": samples}, plain.histogram(wide.id, points, samples)
            )
            for samples in (100, 2000, 6000)
        },
        "raw": _Read(raw, {"task": wide.id, "metric": first, "batch_size": 10_000}, plain.page(wide.id, 10_000)),
        "log.newest": _Read(lines, {"task": log.id, "batch_size": 100}, plain.lines(log.id, 100)),
        "log.middle": _Read(
            lines,
            {"task": log.id, "batch_size": 500, "from_timestamp": middle},
            plain.lines(log.id, 500, middle),
        ),
    }
