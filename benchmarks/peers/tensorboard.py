"""TensorBoard's data server (rustboard): event files in, scalars out by gRPC.

A script in the peers' environment does the work, because it needs TensorBoard's own writer and messages.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from benchmarks.figures import TENSORBOARD
from benchmarks.run import Run

_SCRIPT = Path(__file__).parent / "scripts" / "event_files.py"
_WRITER = "TensorBoard, event file writer"


def measure(run: Run, programs: Path) -> None:
    """Measure writing, reading, disk, memory and start."""
    folder = run.folder / "tensorboard"
    wanted = {"folder": str(folder), "points": run.sizes.peer_points, "runs": run.sizes.runs}
    output = subprocess.run(
        [programs / "python", _SCRIPT, json.dumps(wanted)], stdout=subprocess.PIPE, check=True, timeout=900
    ).stdout
    found: dict[str, float] = json.loads(output)
    table = run.table
    table.compare("write.cpu", {f"{_WRITER}, its CPU": found["write_cpu_ns"]})
    table.compare("write.cpu", {f"{TENSORBOARD}, loading": found["load_cpu_ns"]})
    table.compare("write.rate", {_WRITER: found["write_rate"], f"{TENSORBOARD}, loading": found["load_rate"]})
    table.compare("write.small", {f"{_WRITER}, flushed": found["small_ms"]})
    table.compare("disk.points", {"TensorBoard, event file": found["bytes_a_point"]})
    table.compare("memory.idle", {f"{TENSORBOARD}, 1 M points read": found["memory_mb"]})
    table.compare("start", {TENSORBOARD: found["start_ms"]})
    for samples in (100, 2000, 6000):
        table.compare(f"histogram.{samples}", {TENSORBOARD: found[f"read_{samples}_ms"]})
