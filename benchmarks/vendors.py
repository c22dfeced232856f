"""Measures the vendors' APIs on a week of monitoring: eight GPUs, every 30 seconds, as the SDK reports them."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import numpy as np

from apiserver.events.model import EventBatch, Owner, ScalarColumns, Scalars
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from benchmarks import limits
from benchmarks.bodies import BATCH, START_MS
from benchmarks.figures import FIRST, PING, REDUCE
from benchmarks.processes import median_ms, timed_ms
from benchmarks.run import Run
from benchmarks.server import Running, running

_EVERY_MS = 30_000
_GPUS = 8
_MACHINE = (
    *("cpu_usage", "memory_used_gb", "memory_free_gb", "disk_free_percent", "network_tx_mbs", "network_rx_mbs"),
    *("io_read_mbs", "io_write_mbs", "cpu_temperature"),
)
_GPU = ("utilization", "mem_usage", "mem_used_gb", "mem_free_gb", "temperature", "power_draw")
_SERIES = (
    *((":monitor:machine", name) for name in _MACHINE),
    *((":monitor:gpu", f"gpu_{number}_{name}") for number in range(_GPUS) for name in _GPU),
)
#: The number of series that each answer reads.
_READ = {"vendor.modelarts": 3 + 2 * _GPUS, "vendor.baseten": 2 + 2 * _GPUS, "vendor.pai": _GPUS}
_BODY = b'{"start_epoch_millis": null, "end_epoch_millis": null}'
_A_BATCH = 500


def measure(run: Run) -> None:
    """The figures vendor.*"""
    points, runs, table = run.sizes.monitored_points, run.sizes.runs, run.table
    with running(run.folder) as server:
        task, project = _job(server)
        server.stop()
        asyncio.run(_fill(server.events, task, points))
        server.start()
        answers = {
            "vendor.modelarts": partial(
                server.connection.get, f"v2/{project}/training-jobs/{task.id}/metrics/worker-0"
            ),
            "vendor.baseten": partial(
                server.connection.post, f"v1/training_projects/{project}/jobs/{task.id}/metrics", _BODY
            ),
            "vendor.pai": partial(
                server.connection.get,
                f"api/v1/jobs/{task.id}/metrics?MetricType=GpuCoreUsage&TimeStep=5m"
                f"&StartTime={_iso(START_MS)}&EndTime={_iso(START_MS + points * _EVERY_MS)}",
            ),
        }
        ping = median_ms(server.ping, run.sizes.pings)
        for key, answer in answers.items():
            reduced = limits.reduce_ms(points, points // 2, _READ[key], runs)
            table.put(key, median_ms(answer, runs), {PING: ping, REDUCE: reduced})
        server.send([task], "logs", BATCH, run.sizes.preview_bodies)
        preview = partial(server.connection.get, f"v2/{project}/training-jobs/{task.id}/tasks/worker-0/logs/preview")
        first = timed_ms(preview)
        table.put("vendor.log", median_ms(preview, runs), {FIRST: first, PING: ping})


def _job(server: Running) -> tuple[Owner, str]:
    task, project = server.task("monitored"), server.call("projects.create", {"name": "monitored"})["id"]
    server.call("tasks.edit", {"task": task.id, "project": project, "runtime": {"cpu_cores": 64, "memory_gb": 512}})
    return task, project


async def _fill(folder: Path, task: Owner, points: int) -> None:
    store, random = EmbeddedEventStore(folder), np.random.default_rng(0)
    await store.open()
    for first in range(0, points, _A_BATCH):
        numbers = np.arange(first, min(first + _A_BATCH, points))
        times = START_MS + numbers * _EVERY_MS
        groups = (
            ScalarColumns(
                *(task, metric, variant, "node"),
                numbers * _EVERY_MS // 1000,
                times + random.integers(0, 200, len(numbers)),
                np.round(random.random(len(numbers)) * 100, 3),
            )
            for metric, variant in _SERIES
        )
        await store.add(EventBatch(START_MS, Scalars.of(groups)))
    await store.merge()
    await store.close()


def _iso(millis: int) -> str:
    return f"{np.datetime64(millis, 'ms')}Z"
