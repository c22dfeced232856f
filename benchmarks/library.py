"""Fills the data folder from which reads are measured, and makes the requests that read it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from apiserver.events.model import Owner
from benchmarks.bodies import START_MS
from benchmarks.columns import Load, fill, fill_logs, variant
from benchmarks.run import Sizes
from benchmarks.server import Running

WIDE = 10
TASKS = 10
HISTOGRAM = "events.scalar_metrics_iter_histogram"
_SMOOTHINGS: dict[str, dict[str, Any]] = {
    "ema": {"weight": 0.99},
    "x_ema": {"weight": 0.9},
    "mean": {"points": 101},
    "median": {"points": 31},
    "derivative": {},
}
_OTHER_SERIES = 20
_OTHER_TASK_POINTS = 1_000_000
_BATCH = 10_000


@dataclass(frozen=True, slots=True)
class Library:
    """The tasks whose events are read: of many series, of one long series, several at once, and with a log."""

    wide: Owner
    long: Owner
    shared: tuple[Owner, ...]
    log: Owner


def filled(server: Running, sizes: Sizes) -> Library:
    """Make the tasks, stop the server, write events into its store directly, and start it again."""
    library = Library(
        server.task("wide"),
        server.task("long"),
        tuple(server.task(f"shared {number}") for number in range(TASKS)),
        server.task("log"),
    )
    others = _others(server, sizes.other_points)
    server.stop()
    loads = [
        Load(library.wide, WIDE * sizes.wide_points, WIDE, _BATCH),
        Load(library.long, sizes.long_points, 1, _BATCH),
        *(Load(owner, WIDE * sizes.shared_points, WIDE, _BATCH) for owner in library.shared),
        *others,
    ]
    asyncio.run(fill(server.events, loads))
    asyncio.run(fill_logs(server.events, library.log, sizes.log_lines))
    server.start()
    return library


def grow(server: Running, sizes: Sizes) -> None:
    """Fill more tasks in the same way, until tasks that are not read have `growth_points` points."""
    others = _others(server, sizes.growth_points - sizes.other_points)
    server.stop()
    asyncio.run(fill(server.events, others))
    server.start()


def _others(server: Running, points: int) -> list[Load]:
    """Loads of a million points for each task, or one of fewer points."""
    each = min(points, _OTHER_TASK_POINTS)
    return [
        Load(server.task(f"other {number}"), each, _OTHER_SERIES, _BATCH) for number in range(points // max(1, each))
    ]


def requests(library: Library, sizes: Sizes) -> dict[str, tuple[str, bytes]]:
    """The endpoint and the body of each read, by the key of its figure."""
    middle = START_MS + sizes.log_lines // 2 * 20
    first = {"metric": "m", "variants": [variant(0)]}
    wanted: dict[str, tuple[str, dict[str, Any]]] = {
        "histogram.100": (HISTOGRAM, {"task": library.wide.id, "samples": 100}),
        "histogram.2000": (HISTOGRAM, {"task": library.wide.id, "samples": 2000}),
        "histogram.6000": (HISTOGRAM, {"task": library.wide.id, "samples": 6000}),
        "histogram.long": (HISTOGRAM, {"task": library.long.id, "samples": 6000}),
        "histogram.tasks": (
            "events.multi_task_scalar_metrics_iter_histogram",
            {"tasks": [owner.id for owner in library.shared], "samples": 100},
        ),
        "raw": ("events.scalar_metrics_iter_raw", {"task": library.wide.id, "metric": first, "batch_size": 10_000}),
        "log.newest": ("events.get_task_log", {"task": library.log.id, "batch_size": 100}),
        "log.middle": (
            "events.get_task_log",
            {"task": library.log.id, "batch_size": 500, "from_timestamp": middle},
        ),
    }
    return {key: (endpoint, json.dumps(request).encode()) for key, (endpoint, request) in wanted.items()}


def smoothed(library: Library, sizes: Sizes) -> dict[str, tuple[bytes, bytes]]:
    """The bodies of two histograms of the long series for each smoothing: of the whole one, and of a hundredth."""
    start = sizes.long_points // 2
    part = {"from": start, "to": start + sizes.long_points // 100}
    found = {}
    for by, numbers in _SMOOTHINGS.items():
        whole = {"task": library.long.id, "samples": 6000, "smooth": {"by": by, **numbers}}
        found[by] = json.dumps(whole).encode(), json.dumps({**whole, "range": part}).encode()
    return found
