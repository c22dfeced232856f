"""Runs of tests that fail, and what their last lines say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

#: Two servers run, of which one ended before the second test; a third test fails in its fixture.
TESTS = """
import subprocess, sys
import pytest
from tests import logs

def serve(path):
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    path.write_text("what a server says")
    logs.started(path, process)
    return process

@pytest.fixture(scope="module")
def lasting(tmp_path_factory):
    with serve(tmp_path_factory.mktemp("lasting") / "lasting.log") as process:
        yield process
        process.kill()

def test_passes(tmp_path, lasting):
    with serve(tmp_path / "ended.log") as process:
        process.kill()

def test_fails(tmp_path, lasting):
    with serve(tmp_path / "own.log") as process:
        process.kill()
    assert "this" == "that"

@pytest.fixture
def broken():
    raise ValueError

def test_is_not_begun(broken):
    pass
"""


def last_lines(folder: Path, tests: str, *options: str, order: str = "") -> list[str]:
    """The end of a run of these tests, with the logs of servers below `folder`."""
    (folder / "test_x.py").write_text(tests)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.failing", "-p", "no:cacheprovider", "test_x.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "EVENTS_ORDER": order}
    if not order:
        del environment["EVENTS_ORDER"]
    ran = subprocess.run(
        [*command, f"--basetemp={folder}/kept", *options], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert ran.returncode == 1, ran.stdout + ran.stderr
    return ran.stdout.splitlines()[-20:]


@pytest.mark.parametrize("processes", ["0", "1"])
def test_each_failure_is_named_with_the_logs_of_its_servers(tmp_path: Path, processes: str) -> None:
    *_, empty, fails, not_begun, seeds, _counts = last_lines(tmp_path, TESTS, "-n", processes)
    assert empty == ""
    test, lasting, own = fails.split(", log of a server: ")
    assert test == "FAILED test_x.py::test_fails"
    assert (Path(lasting).name, Path(own).name) == ("lasting.log", "own.log")
    assert Path(own).read_text() == "what a server says"
    assert not_begun.startswith("FAILED test_x.py::test_is_not_begun")
    assert seeds == "seeds: --hypothesis-seed not given, tests in the order of their files"


def test_the_seeds_of_the_run_are_told(tmp_path: Path) -> None:
    *_, seeds, _ = last_lines(tmp_path, "def test():\n    assert False", "--hypothesis-seed=7", order="11")
    assert seeds == "seeds: --hypothesis-seed=7, EVENTS_ORDER=11"


def test_many_failures_leave_the_seeds_on_the_screen(tmp_path: Path) -> None:
    lines = last_lines(tmp_path, "\n".join(f"def test_{n}():\n    assert False" for n in range(40)))
    assert "FAILED test_x.py::test_14" in lines
    assert lines[-3] == "and 25 more, which are named above"


def test_a_file_that_is_broken_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "test_y.py").write_text("import nothing_of_this_name")
    lines = last_lines(tmp_path, "def test():\n    assert False", "test_y.py", "--continue-on-collection-errors")
    assert {"FAILED test_x.py::test", "FAILED test_y.py"} <= set(lines)
