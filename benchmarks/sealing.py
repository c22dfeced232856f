"""Measures what points take on the disk once they are sealed, what sealing costs, and statistics; all in this process.

Each kind of values fills five series. Timestamps are 137 ms apart with 40 ms of jitter. All files of the store count.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from apiserver.events.aggregates import Aggregate
from apiserver.events.model import BucketAxis, EventBatch, EventType, Owner, Scalars
from apiserver.events.queries import EVERYWHERE, BucketQuery, PageQuery, SeriesQuery
from apiserver.stores.events.columns import pco
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from benchmarks.bodies import START_MS
from benchmarks.columns import MERGE_POINTS, Load, fill, parts, unhurried
from benchmarks.figures import PCODEC, PING, UNSEALED
from benchmarks.processes import folder_bytes, median_ms
from benchmarks.run import Run
from benchmarks.server import running

STATISTICS = "events.scalar_metrics_statistics"
_OWNER = Owner("company", "task")
_SCALARS = SeriesQuery(_OWNER, EventType.SCALAR)
_SERIES, _BATCH = 5, 2000
_EVERY_MS, _JITTER_MS = 137, 40

Values = npt.NDArray[np.float64]
Kind = Callable[[np.random.Generator, int], Values]


def _losses(random: np.random.Generator, count: int) -> Values:
    curve = 2 * np.exp(-np.arange(count) * 7 / count) + 0.3 + 0.05 * random.standard_normal(count)
    return curve.astype(np.float32).astype(np.float64)


def _decimals(random: np.random.Generator, count: int) -> Values:
    return np.round(np.exp(-np.arange(count) * 4 / count) + 0.05 * random.standard_normal(count), 4)


def _cosine(random: np.random.Generator, count: int) -> Values:
    return 0.5e-3 * (1 + np.cos(np.pi * np.arange(count) / count))


def _accuracies(random: np.random.Generator, count: int) -> Values:
    curve = (1 - np.exp(-np.arange(count) * 4 / count)) * 200 + 30 * random.standard_normal(count)
    return np.clip(np.round(curve), 0, 256) / 256


def _uniform(random: np.random.Generator, count: int) -> Values:
    return random.random(count)


KINDS: dict[str, Kind] = {
    "losses": _losses,
    "decimals": _decimals,
    "cosine": _cosine,
    "accuracies": _accuracies,
    "uniform": _uniform,
}


def measure(run: Run) -> None:
    """The figures sealed.*, sealing.* and statistics."""
    for name, kind in KINDS.items():
        size, limit, ns, merged_ns = asyncio.run(_sealed(run.folder / name, kind, run.sizes.sealed_points))
        run.table.put(f"sealed.{name}", size, {PCODEC: limit})
        if name == "losses":
            run.table.put("sealing.cpu", ns, {"merging": merged_ns})
    asyncio.run(_measure_reads(run))
    _measure_statistics(run)


async def _sealed(folder: Path, kind: Kind, points: int) -> tuple[float, float, float, float]:
    """Bytes a point in the store's files and by pcodec alone, and CPU nanoseconds a point of sealing, of all else."""
    store = unhurried(folder)
    await store.open()
    columns = _columns(kind, points // _SERIES)
    start = time.process_time()
    for some in parts(_batches(columns), MERGE_POINTS // _BATCH):
        for batch in some:
            await store.add(batch)
        await store.merge()
    merged = time.process_time()
    await store.seal()
    sealed = time.process_time()
    await store.close()
    await _be_quiet(folder)
    limit = sum(len(pco.encode(column)) for pair in columns for column in (_narrow(pair[0]), pair[1]))
    ns = ((sealed - merged) / points * 1e9, (merged - start) / points * 1e9)
    return folder_bytes(folder) / points, limit / points, *ns


async def _be_quiet(folder: Path) -> None:
    """Open the store until it has given back what sealing freed, as it does by itself after a minute or two."""
    store = EmbeddedEventStore(folder, seal_seconds=0.1)
    await store.open()
    with closing(sqlite3.connect(folder / "events.db")) as connection:
        while connection.execute("PRAGMA freelist_count").fetchone()[0]:  # noqa: ASYNC110  # a file does not tell
            await asyncio.sleep(0.1)
    await store.close()


def _columns(kind: Kind, count: int) -> list[tuple[Values, npt.NDArray[np.int64]]]:
    """Values and timestamps of each series."""
    found = []
    for number in range(_SERIES):
        random = np.random.default_rng(number)
        jitter = np.round(random.uniform(-_JITTER_MS, _JITTER_MS, count)).astype(np.int64)
        found.append((kind(random, count), START_MS + np.cumsum(_EVERY_MS + jitter)))
    return found


def _narrow(values: Values) -> npt.NDArray[Any]:
    narrow = values.astype(np.float32)
    return narrow if np.array_equal(narrow.astype(np.float64), values) else values


def _batches(columns: list[tuple[Values, npt.NDArray[np.int64]]]) -> Iterator[EventBatch]:
    for first in range(0, len(columns[0][0]), _BATCH):
        for number, (values, times) in enumerate(columns):
            some = slice(first, min(first + _BATCH, len(values)))
            scalars = Scalars(
                owners=[_OWNER],
                owner=[0],
                metrics=["m"],
                variants=[str(number)],
                workers=["worker"],
                labels=[None],
                lengths=[some.stop - first],
                iters=np.arange(first, some.stop),
                timestamps=times[some],
                values=values[some],
            )
            yield EventBatch(int(times[some][-1]), scalars)


# --- reading ---------------------------------------------------------------------------------------


async def _measure_reads(run: Run) -> None:
    """Reads of ten series of losses, sealed beside unsealed."""
    store = unhurried(run.folder / "reads")
    await store.open()
    for pair in range(2):
        columns = _columns(_losses, run.sizes.wide_points)
        for batch in _batches(columns):
            batch.scalars.variants[:] = [f"{pair} {name}" for name in batch.scalars.variants]
            await store.add(batch)
        await store.merge()
    reads = {f"sealed.histogram.{samples}": _histogram(samples) for samples in (100, 2000, 6000)}
    reads["sealed.raw"] = lambda store: store.scalar_points(_SCALARS, PageQuery(10_000, whole=True))
    before = {key: await _median_ms(store, read, run.sizes.runs) for key, read in reads.items()}
    await store.seal()
    for key, read in reads.items():
        run.table.put(key, await _median_ms(store, read, run.sizes.runs), {UNSEALED: before[key]})
    await store.close()


Read = Callable[[EmbeddedEventStore], Any]


def _histogram(samples: int) -> Read:
    def width(count: int, first: int, last: int) -> int:
        return 1 if count < samples else -(-(last - first + 1) // samples)

    wanted = BucketQuery(BucketAxis.ITER, width, EVERYWHERE, frozenset({Aggregate.MEAN}))
    return lambda store: store.scalar_buckets(_SCALARS, wanted)


async def _median_ms(store: EmbeddedEventStore, read: Read, runs: int) -> float:
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        await read(store)
        times.append(time.perf_counter() - start)
    return float(np.median(times)) * 1000


def _measure_statistics(run: Run) -> None:
    """Statistics of many series over HTTP."""
    series = run.sizes.statistics_series
    with running(run.folder / "statistics") as server:
        owner = server.task("many series")
        server.stop()
        asyncio.run(fill(server.events, [Load(owner, series * 1000, series, 10_000)]))
        server.start()
        ping = median_ms(server.ping, run.sizes.pings)
        call = partial(server.connection.post, STATISTICS, json.dumps({"task": owner.id}).encode())
        run.table.put("statistics", median_ms(call, run.sizes.runs), {PING: ping})
