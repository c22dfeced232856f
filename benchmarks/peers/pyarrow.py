"""pyarrow: the points of an export, which are in memory already, written into files.

A script in the peers' environment does the work.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from benchmarks.figures import PYARROW
from benchmarks.run import Run

_SCRIPT = Path(__file__).parent / "scripts" / "arrow_files.py"


def measure(run: Run, programs: Path) -> None:
    """Measure the formats of the figures."""
    wanted = {"file": str(run.folder / "written"), "points": run.sizes.exported_points}
    output = subprocess.run(
        [programs / "python", _SCRIPT, json.dumps(wanted)], stdout=subprocess.PIPE, check=True, timeout=900
    ).stdout
    for key, seconds in json.loads(output).items():
        run.table.compare(key, {PYARROW: seconds})
