"""Several processes that do one work: they begin one after the other, take each other's place, and end together."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness import PATIENCE, wait_until

#: Each process makes a file named by its id in the folder, and ends on SIGTERM; the folder says how they behave.
SCRIPT = """
import os, select, signal, sys
from pathlib import Path
from apiserver.server.processes import Processes, StartFailed

folder = Path(sys.argv[1])

def work(child):
    if (folder / "cannot").exists():
        return 1
    told = []
    signal.signal(signal.SIGTERM, lambda *_: told.append(1))
    if (folder / "stubborn").exists():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    (folder / f"{'first' if child.first else 'other'}-{os.getpid()}").touch()
    if not (folder / "slow").exists():
        child.ready()
    while not told and not select.select([child.lifeline], [], [], 0.05)[0]:
        pass
    return 0

try:
    Processes(3, work, patience=0.2, let_go=(folder / "let go").touch).run()
except StartFailed:
    sys.exit(7)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "folder"
    made.mkdir()
    return made


@pytest.fixture
def parent(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(folder)])
    yield process
    process.kill()
    process.wait()
    wait_until(lambda: not any(map(lives, pids(folder))))


def pids(folder: Path, kind: str = "*") -> list[int]:
    return [int(path.name.partition("-")[2]) for path in folder.glob(f"{kind}-*")]


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_all_end_when_the_parent_is_told_to(
    parent: subprocess.Popen[bytes], folder: Path, number: signal.Signals
) -> None:
    if number == signal.SIGINT:  # which this script's processes do not take
        (folder / "stubborn").touch()
    wait_until(lambda: len(pids(folder)) == 3)
    assert not (folder / "let go").exists()
    parent.send_signal(number)
    assert parent.wait(120) == 0
    assert (folder / "let go").exists()
    assert not any(map(lives, pids(folder)))


def test_the_first_is_alone_until_it_is_ready(folder: Path) -> None:
    (folder / "slow").touch()
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(folder)])
    wait_until(lambda: len(pids(folder)) == 1)
    [first] = pids(folder, "first")
    os.kill(process.pid, signal.SIGUSR1)
    wait_until(lambda: len(pids(folder)) == 3)
    assert pids(folder, "first") == [first]
    process.terminate()
    assert process.wait(120) == 0


def test_another_takes_the_place_of_one_that_died(parent: subprocess.Popen[bytes], folder: Path) -> None:
    wait_until(lambda: len(pids(folder)) == 3)
    [first] = pids(folder, "first")
    for pid in pids(folder):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: len(pids(folder)) == 6)
    assert pids(folder, "first") == [first]
    parent.terminate()
    assert parent.wait(120) == 0


def test_one_that_does_not_stop_is_killed(folder: Path) -> None:
    (folder / "stubborn").touch()
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(folder)])
    wait_until(lambda: len(pids(folder)) == 3)
    process.terminate()
    assert process.wait(120) == 0
    assert not any(map(lives, pids(folder)))


def test_none_outlives_a_parent_that_was_killed(parent: subprocess.Popen[bytes], folder: Path) -> None:
    wait_until(lambda: len(pids(folder)) == 3)
    parent.kill()
    wait_until(lambda: not any(map(lives, pids(folder))))


def test_a_first_one_that_cannot_start_ends_it(folder: Path) -> None:
    (folder / "cannot").touch()
    assert subprocess.run([sys.executable, "-c", SCRIPT, str(folder)], timeout=PATIENCE, check=False).returncode == 7
