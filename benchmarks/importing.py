"""Measures `apiserver import`: ten runs with 20 series each, from event files of TensorBoard into a server."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.run import Run
from benchmarks.server import running
from tests.transfer.importing.runs import tfevents

_RUNS, _SERIES = 10, 20
_NAME = "events.out.tfevents.1700000000.host.1.0"


def measure(run: Run) -> None:
    """The figures import.*"""
    runs = run.folder / "runs"
    points = _write(runs, run.sizes.import_points // _RUNS)
    with running(run.folder) as server:
        said = {"CLEARML_API_HOST": server.server.api_url, "CLEARML_FILES_HOST": server.server.files_url}
        keys = {"CLEARML_API_ACCESS_KEY": server.server.key, "CLEARML_API_SECRET_KEY": server.server.secret}
        command = [sys.executable, "-m", "apiserver", "import", "tensorboard", str(runs)]
        begun, used = time.perf_counter(), os.times()
        subprocess.run(command, env={**os.environ, **said, **keys}, check=True, capture_output=True)
        taken, after = time.perf_counter() - begun, os.times()
    cpu = after.children_user + after.children_system - used.children_user - used.children_system
    run.table.put("import.tensorboard", points / taken)
    run.table.put("import.cpu", cpu / points * 1e9)


def _write(folder: Path, points: int) -> int:
    """Runs of so many points each; returns how many there are in all."""
    steps = points // _SERIES
    events = (
        tfevents.scalar(f"group{n % 4}/metric{n}", step, 1 / (step + n + 1), 1_700_000_000.5 + step)
        for step in range(steps)
        for n in range(_SERIES)
    )
    content = tfevents.records(events)
    for number in range(_RUNS):
        (folder / str(number)).mkdir(parents=True)
        (folder / str(number) / _NAME).write_bytes(content)
    return _RUNS * steps * _SERIES
