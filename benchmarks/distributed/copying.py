"""Measures `apiserver copy` between a data folder and Elasticsearch, of points and of log lines, both ways.

Beside it, plain documents of as many events are sent to Elasticsearch directly.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

from apiserver.events.model import Owner
from benchmarks.columns import Load, fill, fill_logs
from benchmarks.distributed.figures import BULK
from benchmarks.distributed.plain import BULKS, LINES, POINTS
from benchmarks.distributed.run import Run

_OWNER, _SERIES, _BATCH = Owner("company", "copied"), 10, 10_000


def measure(run: Run, folder: Path) -> None:
    """The figures copy.*"""
    asyncio.run(fill(folder / "points" / "events", [Load(_OWNER, run.sizes.copied_points, _SERIES, _BATCH)]))
    asyncio.run(fill_logs(folder / "lines" / "events", _OWNER, run.sizes.copied_lines))
    _there_and_back(run, folder / "points", POINTS, run.sizes.copied_points)
    _there_and_back(run, folder / "lines", LINES, run.sizes.copied_lines)


def _there_and_back(run: Run, source: Path, kind: str, events: int) -> None:
    bulk = {BULK: _bulk_rate(run, kind)}
    target = run.engines.address(f"{run.engines.name}-copied-{kind}")
    run.table.put(f"copy.{kind}.there", _copy_rate(str(source), target, events), bulk)
    run.table.put(f"copy.{kind}.back", _copy_rate(target, f"{source} back", events), bulk)


def _copy_rate(source: str, target: str, events: int) -> float:
    """Events a second, with the start and the end of the command."""
    started = time.monotonic()
    command = [sys.executable, "-m", "apiserver", "copy", "--from", source, "--to", target]
    subprocess.run(command, env=os.environ, check=True, stdout=subprocess.DEVNULL)
    return events / (time.monotonic() - started)


def _bulk_rate(run: Run, kind: str) -> float:
    """Documents a second that Elasticsearch takes from one client."""
    bodies = [BULKS[kind]("copied", number * run.sizes.batch, run.sizes.batch) for number in range(run.sizes.bodies)]
    started = time.monotonic()
    run.plain.send(kind, [bodies])
    return len(bodies) * run.sizes.batch / (time.monotonic() - started)
