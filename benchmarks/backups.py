"""Backups: how fast clients write meanwhile, and how much of the data folder a second backup copies.

A second backup is made after 1 % more points came: as a new task; and then as 1 % more of each series, which touches
pages all over the file. Its manifest counts.
"""

from __future__ import annotations

import asyncio
import io
import statistics
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from apiserver.operating.backup.folder import Folder
from apiserver.operating.backup.making import make
from apiserver.operating.backup.progress import Progress
from apiserver.settings.settings import Settings
from benchmarks.columns import Load, fill
from benchmarks.figures import NO_BACKUP
from benchmarks.processes import settled
from benchmarks.run import Run
from benchmarks.server import Running, running
from benchmarks.table import median_range

_TASKS, _SERIES, _BATCH, _CLIENTS = 20, 50, 10_000, 2


def measure(run: Run) -> None:
    """The figures backup.writing, backup.again and backup.again.all."""
    points = run.sizes.backup_points
    with running(run.folder) as server:
        tasks = [server.task(f"task {number}") for number in range(_TASKS)]
        new = server.task("a new task")
        server.stop()
        loads = [Load(task, points // _TASKS, _SERIES, _BATCH, seed=n) for n, task in enumerate(tasks)]
        asyncio.run(fill(server.events, loads))
        data, destination = server.events.parent, run.folder / "backups"
        server.start()
        settled(server.disk, 3 if run.sizes.waits else 0.1)  # it gives back what is free after so many points
        server.stop()
        _copied(data, destination)
        asyncio.run(fill(server.events, [Load(new, points // 100, _SERIES, _BATCH)]))
        run.table.put("backup.again", _copied(data, destination))
        more = [Load(task, points // _TASKS // 100, _SERIES, _BATCH, first=points) for task in tasks]
        asyncio.run(fill(server.events, more))
        run.table.put("backup.again.all", _copied(data, destination))
        server.start()
        _measure_writing(run, server, data)


def _copied(data: Path, destination: Path) -> float:
    """Make a backup: the share of the data folder that it added to the destination, in percent."""
    folder = Folder(destination)
    made = make(Settings(data=data), folder, Progress(io.StringIO()))
    return (made.manifest.copied + folder.sizes("manifests")[made.name]) / made.manifest.size * 100


def _measure_writing(run: Run, server: Running, data: Path) -> None:
    """Clients write during backups and without, in turns: the other one first each time."""
    with_backup, without = [], []
    for number in range(run.sizes.backup_rounds):
        for is_with in (True, False) if number % 2 else (False, True):
            if is_with:
                with _backing_up(data, run.folder / f"meanwhile{number}"):
                    with_backup.append(_rate(run, server))
            else:
                without.append(_rate(run, server))
    ratios = [one / other for one, other in zip(with_backup, without, strict=True)]
    base = statistics.median(without)
    of_ratios = {NO_BACKUP: median_range(ratios)}
    run.table.put("backup.writing", base * statistics.median(ratios), {NO_BACKUP: base}, of_ratios)


def _rate(run: Run, server: Running) -> float:
    """Points a second that clients write, once what was written before is merged."""
    count = run.sizes.backup_bodies
    owners = [server.task(f"written by {number}") for number in range(_CLIENTS)]
    if run.sizes.waits:
        server.wait_until_merged()
    return _CLIENTS * count * _BATCH / server.send(owners, "scalars", _BATCH, count).seconds


@contextmanager
def _backing_up(data: Path, destination: Path) -> Iterator[None]:
    """While the block is open, one backup is made after another, each to a new folder, so that all is copied."""
    ends = threading.Event()

    def back_up() -> None:
        number = 0
        while not ends.is_set():
            command = [sys.executable, "-m", "apiserver", "backup", f"{destination}-{number}", "--data", str(data)]
            subprocess.run(command, check=True, capture_output=True)
            number += 1

    thread = threading.Thread(target=back_up)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()
