"""Measures the embedded event store beside rows in SQLite, in one run: `python -m benchmarks.embedded_store [--quick]`.

Prints CPU nanoseconds a point until everything is merged (20 series and 10,000 series), bytes a point, and the
milliseconds of histograms, pages and deletions, each with its ratio to the same done with a row a point.
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from apiserver.events.model import (
    BucketAxis,
    BucketPlan,
    EventBatch,
    LogColumns,
    Owner,
    ScalarColumns,
    ScalarPosition,
    Scalars,
)
from apiserver.stores.events.embedded import EmbeddedEventStore

SAMPLES = 6000
MERGE_POINTS = 262_144
REPEATS = 5
LINES = 1000


@dataclass(frozen=True)
class Load:
    """Points to write: `points` of them over `series`, in batches of `batch`."""

    points: int
    series: int
    batch: int


def batches(load: Load, owner: Owner) -> Iterator[EventBatch]:
    """The load as batches: each has a run of iterations of several series, noisy values, times a few ms apart."""
    random = np.random.default_rng(0)
    a_series = max(1, load.batch // load.series)  # points of one series in a batch
    in_batch = load.batch // a_series
    at = 0
    for first in range(0, load.points // load.series, a_series):
        iters = np.arange(first, first + a_series)
        for start in range(0, load.series, in_batch):
            groups = []
            for n in range(start, start + in_batch):
                times = 1_700_000_000_000 + iters * 50 + random.integers(0, 5, a_series)
                values = random.normal(size=a_series)
                groups.append(ScalarColumns(owner, "m", f"v{n:06}", "worker", iters, times, values))
            at += 1
            yield EventBatch(1_700_000_000_000 + at, Scalars.of(groups))


def between_merges(load: Load, owner: Owner) -> Iterator[list[EventBatch]]:
    """The load in parts of about as many points as the store merges at once."""
    every = batches(load, owner)
    while part := list(islice(every, max(1, MERGE_POINTS // load.batch))):
        yield part


async def embedded_write(folder: Path, load: Load, owner: Owner) -> tuple[float, float]:
    """CPU ns a point to the merged state, and bytes a point."""
    store = EmbeddedEventStore(folder, max_unmerged_bytes=2**40, merge_points=2**40, merge_seconds=2**20)
    await store.open()
    before = size(folder)
    used = 0.0
    for made in between_merges(load, owner):
        start = time.process_time()
        for batch in made:
            await store.add(batch)
        await store.merge()
        used += time.process_time() - start
    await store.close()
    return used / load.points * 1e9, (size(folder) - before) / load.points


def rows_write(path: Path, load: Load, owner: Owner) -> tuple[float, float]:
    """The same with a row a point."""
    conn = sqlite3.connect(path, isolation_level=None)
    conn.execute("PRAGMA page_size = 8192")
    conn.execute("PRAGMA journal_mode = WAL")
    conn.execute("PRAGMA synchronous = NORMAL")
    conn.execute(
        "CREATE TABLE points (series INTEGER, iter INTEGER, timestamp INTEGER, value REAL, PRIMARY KEY (series, iter))"
        " WITHOUT ROWID"
    )
    used = 0.0
    for made in between_merges(load, owner):
        start = time.process_time()
        for batch in made:
            conn.execute("BEGIN")
            for group in batch.scalars:
                series = int(group.variant[1:])
                rows = zip(group.iters.tolist(), group.timestamps.tolist(), group.values.tolist(), strict=True)
                conn.executemany("REPLACE INTO points VALUES (?, ?, ?, ?)", ((series, *row) for row in rows))
            conn.execute("COMMIT")
        used += time.process_time() - start
    conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    conn.close()
    return used / load.points * 1e9, path.stat().st_size / load.points


def rows_histogram(path: Path, interval: int) -> None:
    """Buckets of series 0, with SQL."""
    conn = sqlite3.connect(path)
    query = "SELECT iter / ?, count(*), avg(value), min(value), max(value) FROM points WHERE series = 0 GROUP BY 1"
    conn.execute(query, (interval,)).fetchall()
    conn.close()


def size(folder: Path) -> int:
    """Bytes of the files in `folder`."""
    return sum(path.stat().st_size for path in folder.glob("*")) if folder.exists() else 0


async def median_ms(work: Callable[[], Awaitable[object]]) -> float:
    """The middle one of several times."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        await work()
        times.append(time.perf_counter() - start)
    return sorted(times)[REPEATS // 2] * 1e3


def report(what: str, value: float, unit: str, limit: float | None = None) -> None:
    """One line of the table."""
    ratio = "" if limit is None else f"   rows in SQLite {limit:12.2f}   ratio {limit / value:8.1f}"
    sys.stdout.write(f"{what:52} {value:10.2f} {unit:8}{ratio}\n")


async def write_figures(folder: Path, scale: float) -> None:
    owner = Owner("company", "task")
    loads = ((2_000_000, 20, 10_000), (1_000_000, 20, 100), (2_000_000, 10_000, 10_000))
    for n, (points, series, batch) in enumerate(loads):
        load = Load(int(points * scale), series, batch)
        ns, disk = await embedded_write(folder / f"store{n}", load, owner)
        rows_ns, rows_disk = rows_write(folder / f"rows{n}.db", load, owner)
        what = f"write {load.points} points, {load.series} series, batch {load.batch}"
        report(what, ns, "ns/point", rows_ns)
        report(f"{what}: disk", disk, "B/point", rows_disk)


async def read_figures(folder: Path, points: int) -> None:
    owner = Owner("company", "long")
    load = Load(points, 1, 10_000)
    path = folder / f"rows-{points}.db"
    store = EmbeddedEventStore(folder / f"long-{points}", max_unmerged_bytes=2**40)
    await embedded_write(folder / f"long-{points}", load, owner)
    rows_write(path, load, owner)
    start = time.perf_counter()
    await store.open()
    report(f"open with {points} points", (time.perf_counter() - start) * 1e3, "ms")
    interval = max(1, -(-points // SAMPLES))
    plan = [BucketPlan("m", "v000000", interval)]

    async def histogram() -> object:
        return await store.scalar_buckets(owner, BucketAxis.ITER, plan)

    async def rows() -> None:
        rows_histogram(path, interval)

    report(f"histogram {SAMPLES} of {points}", await median_ms(histogram), "ms", await median_ms(rows))
    middle = ScalarPosition(points // 2, "m", "v000000")

    async def page() -> object:
        return await store.scalar_points(owner, after=middle, limit=10_000)

    report(f"page of 10,000 points of {points}", await median_ms(page), "ms")
    start = time.perf_counter()
    await store.delete([owner])
    report(f"delete {points} points", (time.perf_counter() - start) * 1e3, "ms")
    await store.close()


def log_columns(owner: Owner, first: int) -> LogColumns:
    """The lines of one body, numbered from `first` on."""
    numbers = range(first, first + LINES)
    texts = [
        f"epoch {n:9} loss {n * 0.37 % 1:.6f} accuracy {n * 0.61 % 1:.6f} time {n * 7919 % 9973:5} ms" for n in numbers
    ]
    return LogColumns(
        owner=owner,
        timestamps=np.array(numbers) * 20,
        levels=["info"] * LINES,
        workers=["worker"] * LINES,
        messages=texts,
        iters=[None] * LINES,
        metrics=["console"] * LINES,
        variants=[""] * LINES,
        digest=b"%016d" % first,
    )


async def log_figures(folder: Path, count: int) -> None:
    owner = Owner("company", "logs")
    store = EmbeddedEventStore(folder / "logs", max_unmerged_bytes=2**40)
    await store.open()
    made = [log_columns(owner, first) for first in range(0, count, LINES)]
    start = time.process_time()
    for n, columns in enumerate(made):
        await store.add(EventBatch(1, logs=[columns]))
        if n % 16 == 0:
            await asyncio.sleep(0)
    await store.merge()
    report(f"write {count} log lines", (time.process_time() - start) / count * 1e9, "ns/line")

    async def newest() -> object:
        return await store.log_lines(owner, descending=True, limit=100)

    report("newest 100 lines", await median_ms(newest), "ms")
    await store.close()
    report("log lines: disk", size(folder / "logs") / count, "B/line")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="little data: only shows that it runs")
    scale = 0.01 if parser.parse_args().quick else 1.0
    with tempfile.TemporaryDirectory() as folder:
        await write_figures(Path(folder), scale)
        for points in (100_000, 1_000_000, 10_000_000):
            await read_figures(Path(folder), int(points * scale))
        await log_figures(Path(folder), int(1_000_000 * scale))


if __name__ == "__main__":
    asyncio.run(main())
