"""`python -m benchmarks.compare TREE` compares two versions; here, this one with itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.compare import WORK

ROOT = Path(__file__).parents[2]


def _compared(tree: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.compare", str(tree), "--quick", "--rounds", "1"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.longer
def test_each_kind_of_request_has_a_line() -> None:
    ran = _compared(ROOT)
    assert ran.returncode == 0, ran.stderr
    _, *lines = ran.stdout.splitlines()
    assert [line[:26].strip() for line in lines] == [work.name for work in WORK]
    assert all(float(line.split(" time ")[1].split()[0]) > 0 for line in lines)


def test_a_folder_without_the_server_is_refused(tmp_path: Path) -> None:
    ran = _compared(tmp_path)
    assert ran.returncode == 2
    assert "has no apiserver" in ran.stderr
