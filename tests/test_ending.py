"""A long program that is interrupted says one line, and leaves nothing running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from tests.ending import INTERRUPTED
from tests.harness import PATIENCE, wait_until

#: Starts a program that tells of Ctrl-C by a traceback, and ends it. Then it fails, as what needs that program may.
PROGRAM = """
import subprocess, sys, time
from tests import ending

def main():
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        print("ready", flush=True)
        time.sleep(600)
    finally:
        child.terminate()
        child.wait()
        raise ConnectionError("nobody answers")

sys.exit(ending.run(main))
"""


#: The first interruption comes where Python drops it.
DROPS = """
import sys, time
from tests import ending

class Slow:
    def __del__(self):
        print("ready", flush=True)
        time.sleep(600)

def main():
    Slow()
    time.sleep(600)

sys.exit(ending.run(main))
"""


@contextmanager
def group(*command: str) -> Iterator[subprocess.Popen[str]]:
    """A program with a group of processes of its own, as a terminal starts it; afterwards, none of them is left."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as process:
        try:
            yield process
        finally:
            if is_there(process.pid):
                os.killpg(process.pid, signal.SIGKILL)


def is_there(group: int) -> bool:
    """Whether a process of the group runs."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def ctrl_c(process: subprocess.Popen[str]) -> None:
    """What a terminal does: all programs of the group get it."""
    os.killpg(process.pid, signal.SIGINT)


def killed(process: subprocess.Popen[str]) -> None:
    process.terminate()


def text(stream: IO[str] | None) -> str:
    assert stream is not None
    return stream.read()


@pytest.mark.parametrize("interrupt", [ctrl_c, killed])
def test_what_was_started_is_ended_and_one_line_is_said(interrupt: Callable[[subprocess.Popen[str]], None]) -> None:
    with group(sys.executable, "-c", PROGRAM) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        interrupt(process)
        assert process.wait(PATIENCE) == INTERRUPTED
        assert text(process.stderr) == "interrupted\n"
        assert not is_there(process.pid)


def test_an_interruption_that_is_dropped_comes_again() -> None:
    with group(sys.executable, "-c", DROPS) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        killed(process)
        assert process.wait(PATIENCE) == INTERRUPTED
        assert text(process.stderr).endswith("interrupted\n")


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="a system without /proc")
def test_what_was_started_ends_with_a_program_that_is_killed() -> None:
    with group(sys.executable, "-c", PROGRAM) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.kill()
        assert text(process.stderr) == ""  # all who could write to it have ended


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="a system without /proc")
def test_what_nobody_has_ended_ends_with_its_program() -> None:
    """As a server does that was being started when the interruption came. Here it has a group of its own, too."""
    sleeping = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True) and 0"
    program = f"import subprocess, sys; from tests import ending; sys.exit(ending.run(lambda: {sleeping}))"
    with group(sys.executable, "-c", program) as process:
        assert process.wait(PATIENCE) == 0
        assert text(process.stderr) == ""


def test_signals_that_are_blocked_stay_so_when_servers_are_forked() -> None:
    program = """
import signal
from tests import warm
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
with warm.same_signals():
    print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()))
"""
    assert subprocess.run([sys.executable, "-c", program], check=True, capture_output=True).stdout == b"True\n"


def test_an_error_is_told_as_ever() -> None:
    with group(sys.executable, "-c", "from tests import ending; ending.run(lambda: 1 // 0)") as process:
        assert process.wait(PATIENCE) == 1
        assert text(process.stderr).endswith("ZeroDivisionError: integer division or modulo by zero\n")


@pytest.mark.parametrize("interrupt", [ctrl_c, killed])
def test_a_benchmark_leaves_no_server(interrupt: Callable[[subprocess.Popen[str]], None], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks", "--only", "writing", "--folder", str(tmp_path)]  # it takes minutes
    with group(*command) as process:
        wait_until(lambda: any(tmp_path.glob("*/**/events")))  # a server runs
        interrupt(process)
        assert process.wait(PATIENCE) == INTERRUPTED
        *said, last = text(process.stderr).splitlines()
        assert last == "interrupted"
        assert "Traceback" not in "\n".join(said)
        assert not is_there(process.pid)
        assert not any(tmp_path.iterdir())
