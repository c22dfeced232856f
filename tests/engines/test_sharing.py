"""Processes of a run share an engine, which outlives those that run tests, and ends with the one that holds it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.engines import sharing
from tests.engines.nodes import ForeignNode, Node, ProcessNode
from tests.harness import wait_until

#: Asks for the engine of a run, says its URL, and is killed.
_ASKS = """
import os, sys
from pathlib import Path
from tests.engines import sharing
from tests.engines.test_sharing import engine
print(sharing.url(Path(sys.argv[1]), "engine", engine), flush=True)
os.kill(os.getpid(), 9)
"""
#: Holds a run, and says its folder.
_HOLDS = """
import sys
from tests.engines import sharing
with sharing.held() as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""
#: Writes that it was started, and ends when its standard input does.
_ENGINE = 'import sys; print("started", flush=True); sys.stdin.read()'


def engine(folder: Path, lifeline: Path) -> Node:
    """A process that does nothing."""
    log = folder / "log"
    command = [sys.executable, "-c", _ENGINE]
    return ProcessNode(f"http://{folder}", command, log, lambda _: log.read_text() == "started\n", lifeline)


def _ask(folder: Path) -> str:
    asked = subprocess.run([sys.executable, "-c", _ASKS, folder], stdout=subprocess.PIPE, text=True, check=False)
    assert asked.returncode == -signal.SIGKILL
    return asked.stdout.strip()


def _runs(pid: int) -> bool:
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False


@contextmanager
def _holder() -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A process that holds a run, and the folder of that."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", _HOLDS], stdin=pipe, stdout=pipe, text=True) as holder:
        assert holder.stdout is not None
        yield holder, Path(holder.stdout.readline().strip())


def test_an_engine_outlives_who_started_it_and_ends_with_its_run() -> None:
    with sharing.held() as folder:
        assert _ask(folder) == _ask(folder)
        pid: int = json.loads((folder / "engine.json").read_text())["pid"]
        assert _runs(pid)
    assert not folder.exists()
    assert not _runs(pid)


def test_an_engine_ends_with_a_run_that_is_killed() -> None:
    with _holder() as (holder, folder):
        _ask(folder)
        pid: int = json.loads((folder / "engine.json").read_text())["pid"]
        assert _runs(pid)
        holder.kill()
        wait_until(lambda: not _runs(pid))


def test_an_engine_of_somebody_else_is_shared_too() -> None:
    with sharing.held() as folder:
        given = [
            sharing.url(folder, "engine", lambda _, lifeline: ForeignNode("http://theirs", lambda url: True))
            for _ in range(2)
        ]
    assert given == ["http://theirs"] * 2
