"""A run with a test that never ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

HOOKS = """
from tests.hanging import Hanging

def pytest_configure(config):
    config.addinivalue_line("markers", "longer: as in all tests")
    config.pluginmanager.register(Hanging(0.1, 3600))
"""
TESTS = """
import threading
import pytest

@pytest.mark.longer
def test_that_may_take_longer():
    pass

def test_that_never_ends():
    threading.Event().wait()

def test_behind_it():
    pass
"""


@pytest.mark.parametrize("processes", [0, 1])
def test_a_test_that_hangs_shows_where_and_ends_its_process_only(tmp_path: Path, processes: int) -> None:
    (tmp_path / "conftest.py").write_text(HOOKS)
    (tmp_path / "test_x.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", str(processes)]
    ran = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert ran.returncode == 1
    assert "in test_that_never_ends" in ran.stderr
    if processes:
        assert "1 failed, 2 passed" in ran.stdout
