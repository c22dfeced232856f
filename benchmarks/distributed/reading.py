"""Reading over HTTP from tasks that were sent over HTTP, next to others in the same indices."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

from apiserver.events.model import Owner
from benchmarks.bodies import START_MS
from benchmarks.distributed.figures import REPEATED
from benchmarks.distributed.run import Run
from benchmarks.figures import PING
from benchmarks.processes import median_ms, timed_ms

_OTHERS = 4


def measure(run: Run) -> None:
    """The figures histogram.*, first.histogram.*, raw and log.* of reading."""
    sizes, server = run.sizes, run.server
    wide, log = server.task("wide"), server.task("log")
    others = [server.task(f"other {number}") for number in range(_OTHERS)]
    server.send(others, "noise", sizes.batch, sizes.other_bodies)
    server.send([wide], "noise", sizes.batch, sizes.wide_bodies)
    server.send([log], "logs", sizes.batch, sizes.log_bodies)
    ping = median_ms(server.ping, sizes.pings)
    for key, (endpoint, request) in _requests(run, wide, log).items():
        read = partial(server.connection.post, endpoint, json.dumps(request).encode())
        repeated = median_ms(read, sizes.runs)
        run.table.put(key, repeated, {PING: ping})
        if key.startswith("histogram."):
            first = statistics.median(_first_ms(run, read) for _ in range(sizes.runs))
            run.table.put(f"first.{key}", first, {REPEATED: repeated})


def _first_ms(run: Run, read: Callable[[], object]) -> float:
    run.engines.forget_answers()
    return timed_ms(read)


def _requests(run: Run, wide: Owner, log: Owner) -> dict[str, tuple[str, dict[str, Any]]]:
    """Endpoint and request of each read, by the figure's key."""
    histogram, raw, lines = "scalar_metrics_iter_histogram", "scalar_metrics_iter_raw", "get_task_log"
    first = {"metric": "metric 0", "variants": ["train"]}
    middle = START_MS + run.sizes.batch * run.sizes.log_bodies // 2
    wanted: dict[str, tuple[str, dict[str, Any]]] = {
        **{f"histogram.{samples}": (histogram, {"task": wide.id, "samples": samples}) for samples in (100, 2000, 6000)},
        "raw": (raw, {"task": wide.id, "metric": first, "batch_size": 10_000}),
        "log.newest": (lines, {"task": log.id, "batch_size": 100}),
        "log.middle": (lines, {"task": log.id, "batch_size": 500, "from_timestamp": middle}),
    }
    return {key: (f"events.{endpoint}", request) for key, (endpoint, request) in wanted.items()}
