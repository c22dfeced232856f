"""Measures the event store alone, in this process: CPU until everything is merged, and disk. Beside rows in SQLite."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from apiserver.events.model import Owner
from benchmarks import rows
from benchmarks.bodies import START_MS, log_text
from benchmarks.columns import MERGE_POINTS, Load, batches, fill_logs, parts, unhurried
from benchmarks.figures import ROWS
from benchmarks.processes import folder_bytes
from benchmarks.run import Run

_OWNER = Owner("company", "task")


def measure(run: Run) -> None:
    """The figures engine.* and disk.*"""
    sizes = run.sizes
    loads = {
        "engine.20": Load(_OWNER, sizes.engine_points, 20, 10_000),
        "engine.100": Load(_OWNER, sizes.engine_small_points, 20, 100),
        "engine.10k": Load(_OWNER, sizes.engine_points, 10_000, 10_000),
    }
    for key, load in loads.items():
        ns, disk = asyncio.run(write(run.folder / key, load))
        rows_ns, rows_disk = rows.write(run.folder / f"{key}.db", load)
        run.table.put(key, ns, {ROWS: rows_ns})
        if key == "engine.20":
            run.table.put("disk.points", disk, {ROWS: rows_disk})
    _measure_lines(run)


async def write(folder: Path, load: Load) -> tuple[float, float]:
    """CPU nanoseconds a point until all points are merged, and bytes a point on the disk."""
    store = unhurried(folder)
    await store.open()
    before = folder_bytes(folder)
    used = 0.0
    for part in parts(batches(load), MERGE_POINTS // load.batch):
        start = time.process_time()
        for batch in part:
            await store.add(batch)
        await store.merge()
        used += time.process_time() - start
    await store.close()
    return used / load.points * 1e9, (folder_bytes(folder) - before) / load.points


def _measure_lines(run: Run) -> None:
    lines = run.sizes.log_lines // 10
    folder = run.folder / "lines"
    asyncio.run(fill_logs(folder, _OWNER, lines))
    as_rows = rows.write_lines(
        run.folder / "lines.db", ((START_MS + number * 20, log_text(number)) for number in range(lines))
    )
    run.table.put("disk.lines", folder_bytes(folder) / lines, {ROWS: as_rows})
