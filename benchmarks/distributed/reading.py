"""Measures reading over HTTP. The events were sent over HTTP, and share their indices with those of other tasks."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import quote

from apiserver.events.model import EventType, Owner
from apiserver.stores.events.elasticsearch import names
from benchmarks.bodies import START_MS
from benchmarks.changes import Asking, cpu_share
from benchmarks.distributed.figures import REPEATED, SEARCH
from benchmarks.distributed.run import Run
from benchmarks.figures import PING
from benchmarks.processes import median_ms, timed_ms

_OTHERS = 4
_SERIES = 10


def measure(run: Run) -> None:
    """The figures histogram.*, first.histogram.*, raw, log.* and changes.idle."""
    sizes, server = run.sizes, run.server
    wide, log = server.task("wide"), server.task("log")
    others = [server.task(f"other {number}") for number in range(_OTHERS)]
    server.send(others, "noise", sizes.batch, sizes.other_bodies)
    server.send([wide], "noise", sizes.batch, sizes.wide_bodies)
    server.send([log], "logs", sizes.batch, sizes.log_bodies)
    run.engines.settle()
    ping = median_ms(server.ping, sizes.pings)
    reads = {
        key: (request, partial(server.connection.post, endpoint, json.dumps(request).encode()))
        for key, (endpoint, request) in _requests(run, wide, log).items()
    }
    for _, read in reads.values():  # the JVM compiles what runs often, and summaries of tasks are still written
        median_ms(read, sizes.runs)
    for key, (request, read) in reads.items():
        repeated, beside = median_ms(read, sizes.runs), {PING: ping}
        if key.startswith("histogram."):
            search = _search(run, wide, request["samples"])
            beside[SEARCH] = median_ms(search, sizes.runs)
            first = {SEARCH: _first_ms(run, search), REPEATED: repeated}
            run.table.put(f"first.{key}", _first_ms(run, read), first)
        run.table.put(key, repeated, beside)
    watched = Asking(server, [server.task(f"watched {number}") for number in range(sizes.watched_tasks)])
    run.table.put("changes.idle", cpu_share(server, watched.ask, sizes.pings))


def _first_ms(run: Run, read: Callable[[], object]) -> float:
    """The median time of a read right after Elasticsearch's cache was cleared."""
    taken = []
    for _ in range(run.sizes.runs):
        run.engines.forget_answers()
        taken.append(timed_ms(read))
    return statistics.median(taken)


def _search(run: Run, wide: Owner, samples: int) -> Callable[[], object]:
    """The simplest search for a histogram, sent to the node directly: nested aggregations, with a given interval."""
    direct, owner = run.engines.direct(), names.owner_key(wide)
    points = run.sizes.batch * run.sizes.wide_bodies // _SERIES
    aggs: dict[str, Any] = {"value": {"avg": {"field": "value"}}}
    histogram = {"field": "iter", "interval": -(-points // samples), "min_doc_count": 1}
    aggs = {"buckets": {"histogram": histogram, "aggs": aggs}}
    for field in ("variant", "metric"):
        aggs = {field: {"terms": {"field": field, "size": 1000}, "aggs": aggs}}
    body = {"size": 0, "track_total_hits": False, "query": {"term": {"owner": owner}}, "aggs": aggs}
    index = names.index(run.engines.name, EventType.SCALAR, wide.company)
    return partial(direct.post, f"/{index}/_search?routing={quote(owner)}", json.dumps(body).encode())


def _requests(run: Run, wide: Owner, log: Owner) -> dict[str, tuple[str, dict[str, Any]]]:
    """The endpoint and the request of each read, by the key of its figure."""
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
