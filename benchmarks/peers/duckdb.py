"""DuckDB: one curve of many runs from a Parquet file, by one query of SQL.

A script in the peers' environment does the work.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from benchmarks.figures import DUCKDB
from benchmarks.groups import QUANTILES, width
from benchmarks.run import Run

_SCRIPT = Path(__file__).parent / "scripts" / "parquet.py"


def measure(run: Run, programs: Path) -> None:
    """Measure curves in as many buckets as the figures have."""
    widths = {f"groups.{samples}": width(run.sizes.group_points, samples) for samples in (200, 1000)}
    wanted = {
        "file": str(run.folder / "points.parquet"),
        "tasks": run.sizes.group_runs,
        "points": run.sizes.group_points,
        "widths": widths,
        "quantiles": QUANTILES,
        "runs": run.sizes.runs,
    }
    output = subprocess.run(
        [programs / "python", _SCRIPT, json.dumps(wanted)], stdout=subprocess.PIPE, check=True, timeout=900
    ).stdout
    for key, milliseconds in json.loads(output).items():
        run.table.compare(key, {DUCKDB: milliseconds})
