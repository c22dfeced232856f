"""Measures one curve of many runs over HTTP, beside numpy on the same points in memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from apiserver.events.model import EventBatch, Owner, Scalars
from apiserver.events.queries import CommonBuckets
from benchmarks.bodies import START_MS
from benchmarks.columns import MERGE_POINTS, parts, unhurried
from benchmarks.figures import NUMPY, PING
from benchmarks.processes import median_ms
from benchmarks.run import Run
from benchmarks.server import Running, running

ENDPOINT = "events.scalar_metrics_of_groups"
QUANTILES = [0.05, 0.25, 0.5, 0.75, 0.95]
_GROUPS = 10
_EVERY_MS, _JITTER_MS = 137, 40
#: Fields of the request of each figure.
_ASKED: dict[str, dict[str, Any]] = {
    "groups.200": {"samples": 200},
    "groups.1000": {"samples": 1000},
    "groups.duration": {"samples": 200, "key": "duration"},
}


def measure(run: Run) -> None:
    """The figures groups.*"""
    points, runs, table = run.sizes.group_points, run.sizes.runs, run.table
    with running(run.folder) as server:
        owners = [server.task(f"run {number}") for number in range(run.sizes.group_runs)]
        server.stop()
        asyncio.run(_fill(server.events, owners, points))
        server.start()
        ping = median_ms(server.ping, run.sizes.pings)
        ids = [owner.id for owner in owners]
        for key, asked in _ASKED.items():
            limit = _numpy_ms(len(owners), points, asked["samples"], runs)
            value = median_ms(_call(server, [ids], asked), runs)
            table.put(key, value, {PING: ping, NUMPY: limit})
        tenths = [ids[number::_GROUPS] for number in range(_GROUPS)]
        table.put("groups.ten", median_ms(_call(server, tenths, {"samples": 200}), runs), {PING: ping})
        table.put("groups.cpu", _cpu_ms(server, _call(server, [ids], {"samples": 200}), runs))


def _call(server: Running, groups: list[list[str]], asked: dict[str, Any]) -> partial[bytes]:
    request = {
        "groups": [{"name": f"group {number}", "tasks": tasks} for number, tasks in enumerate(groups)],
        "metrics": [{"metric": "loss", "variants": ["train"]}],
        "quantiles": QUANTILES,
        **asked,
    }
    return partial(server.connection.post, ENDPOINT, json.dumps(request).encode())


def _cpu_ms(server: Running, call: partial[bytes], runs: int) -> float:
    """CPU milliseconds that the server takes for a call."""
    before = server.cpu()
    for _ in range(runs):
        call()
    return (server.cpu() - before) / runs * 1000


async def _fill(folder: Path, owners: list[Owner], points: int) -> None:
    """A series for each owner, sealed, as that of a run which ended some time ago."""
    store = unhurried(folder)
    await store.open()
    for some in parts(_batches(owners, points), MERGE_POINTS // points):
        for batch in some:
            await store.add(batch)
        await store.merge()
    await store.seal()
    await store.close()


def _batches(owners: list[Owner], points: int) -> Iterator[EventBatch]:
    for number, owner in enumerate(owners):
        random, iters = np.random.default_rng(number), np.arange(points)
        times = START_MS + iters * _EVERY_MS + random.integers(0, _JITTER_MS, points)
        scalars = Scalars(
            owners=[owner],
            owner=[0],
            metrics=["loss"],
            variants=["train"],
            workers=["worker"],
            labels=[None],
            lengths=[points],
            iters=iters,
            timestamps=times,
            values=_losses(random, points),
        )
        yield EventBatch(START_MS, scalars)


def _losses(random: np.random.Generator, points: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """A noisy curve that falls, in float32."""
    curve = np.exp(-np.arange(points) / points * 3) + random.normal(0.1, 0.05, points)
    return curve.astype(np.float32).astype(np.float64)


def width(points: int, samples: int) -> int:
    """The width of a bucket, when `points` iterations get up to `samples` buckets."""
    return CommonBuckets.over(0, points - 1, samples).width


def _numpy_ms(runs: int, points: int, samples: int, times: int) -> float:
    """Milliseconds for the same numbers of points in memory: means of buckets, then what they are together."""
    random = np.random.default_rng(0)
    values = [_losses(random, points) for _ in range(runs)]
    starts = np.arange(0, points, width(points, samples))

    def work() -> None:
        lengths = np.diff(starts, append=points)
        means = np.array([np.add.reduceat(one, starts) for one in values]) / lengths
        means.mean(axis=0), means.std(axis=0), means.min(axis=0), means.max(axis=0)
        np.quantile(means, QUANTILES, axis=0)

    return median_ms(work, times)
