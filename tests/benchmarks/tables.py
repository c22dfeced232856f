"""The table of a quick run of the benchmarks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks.server import WARM

_ROOT = Path(__file__).parents[2]


def verdicts(module: str, folder: Path, environment: Mapping[str, str], *flags: str) -> dict[str, str]:
    """The last cell of each row by its first, after a run that leaves nothing in the folder."""
    ran = subprocess.run(
        [sys.executable, "-m", module, "--quick", "--markdown", "--folder", folder, *flags],
        cwd=_ROOT,
        env={**os.environ, WARM: "1", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert list(folder.iterdir()) == []
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in ran.stdout.splitlines() if line[:1] == "|"]
    return {row[0]: row[-1] for row in rows}
