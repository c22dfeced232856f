"""Measures what points take on the disk once they are sealed, what sealing costs, and statistics; all in this process.

All files of the store count.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from apiserver.events.aggregates import Aggregate
from apiserver.events.model import BucketAxis, EventType, Owner
from apiserver.events.queries import EVERYWHERE, BucketQuery, PageQuery, SeriesQuery
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from benchmarks.columns import MERGE_POINTS, Load, fill, parts, unhurried
from benchmarks.curves import BATCH, KINDS, SERIES, Kind, batches_of, columns_of, compressed_bytes
from benchmarks.figures import PCODEC, PING, UNSEALED
from benchmarks.processes import folder_bytes, median_ms
from benchmarks.run import Run
from benchmarks.server import running

STATISTICS = "events.scalar_metrics_statistics"
_OWNER = Owner("company", "task")
_SCALARS = SeriesQuery(_OWNER, EventType.SCALAR)


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
    columns = columns_of(kind, points // SERIES)
    start = time.process_time()
    for some in parts(batches_of(_OWNER, columns), MERGE_POINTS // BATCH):
        for batch in some:
            await store.add(batch)
        await store.merge()
    merged = time.process_time()
    await store.seal()
    sealed = time.process_time()
    await store.close()
    await _be_quiet(folder)
    limit = compressed_bytes(columns)
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


# --- reading ---------------------------------------------------------------------------------------


async def _measure_reads(run: Run) -> None:
    """Reads of ten series of losses, sealed beside unsealed."""
    store = unhurried(run.folder / "reads")
    await store.open()
    for pair in range(2):
        columns = columns_of(KINDS["losses"], run.sizes.wide_points)
        for batch in batches_of(_OWNER, columns):
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
