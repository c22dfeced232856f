"""`make bench-engines FLAGS=--quick` measures every figure on the engines of the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.distributed.figures import FIGURES
from tests.engines import elasticsearch, mongodb

ROOT = Path(__file__).parents[2]


def test_the_table_has_every_figure_and_nothing_stays(elasticsearch_url: str, mongodb_url: str, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks.distributed", "--quick", "--markdown", "--folder", tmp_path],
        cwd=ROOT,
        env={**os.environ, elasticsearch.VARIABLE: elasticsearch_url, mongodb.VARIABLE: mongodb_url},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in ran.stdout.splitlines() if line[:1] == "|"]
    verdicts = {row[0]: row[-1] for row in rows}
    for figure in FIGURES:
        assert verdicts[figure.name] in (("ok", "misses") if figure.bars else ("",)), figure
    assert list(tmp_path.iterdir()) == []
    assert not [name for name in elasticsearch.call(elasticsearch_url, "GET", "/_all") if name.startswith("bench-")]
