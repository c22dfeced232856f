"""`make bench FLAGS=--quick` runs every section, but for the peers, whose environment is not installed for tests."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from benchmarks.figures import FIGURES
from benchmarks.server import SCANNER

ROOT = Path(__file__).parents[2]


def test_the_table_has_every_figure_with_what_its_bar_compares_with(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--quick", "--markdown", "--folder", tmp_path],
        cwd=ROOT,
        env={**os.environ, "PEERS_ENVIRONMENT": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in ran.stdout.splitlines() if line[:1] == "|"]
    verdicts = {row[0]: row[-1] for row in rows}
    for figure in FIGURES:
        if figure.key.startswith("scanner.") and not find_spec(SCANNER):
            continue
        assert verdicts[figure.name] in (("ok", "misses") if figure.bars else ("",)), figure
    assert list(tmp_path.iterdir()) == []
