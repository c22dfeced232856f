"""One Elasticsearch and one MongoDB for all processes of a test run: the first that asks starts it.

The process that hands out the tests holds the writing end of a named pipe, and writes nothing. Engines read the other
end, and end when it does: with that process, however it ends, and not with the one that started them.

    hands out tests ── holds ──▶ lifeline ──▶ standard input of engines, which processes that run tests have started
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.engines.nodes import Node
from tests.harness import wait_until
from tests.memory import in_memory

_LIFELINE = "lifeline"
_STARTED: list[Node] = []
"""By this process: they are never collected as garbage, as Python warns of a process that is, and has not ended."""


@contextmanager
def held() -> Iterator[Path]:
    """The folder of a run: its engines live until the block ends, or this process does."""
    with in_memory() as memory, tempfile.TemporaryDirectory(dir=memory, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        os.mkfifo(folder / _LIFELINE)
        lifeline = os.open(folder / _LIFELINE, os.O_RDWR)  # to open it for writing alone would wait for a reader
        try:
            yield folder
        finally:
            os.close(lifeline)
            for path in folder.glob("*.json"):
                wait_until(lambda: not _runs(json.loads(path.read_text())["pid"]))  # noqa: B023 - it is called at once


def url(folder: Path, name: str, make: Callable[[Path, Path], Node]) -> str:
    """The URL of a run's engine, which is started if it was not yet.

    folder: of the run, as `held` gives it. make: makes an engine with its data below a folder, and with a lifeline.
    """
    with alone(folder, name):
        told = folder / f"{name}.json"
        if not told.exists():
            node = make(Path(tempfile.mkdtemp(dir=folder, prefix=name)), folder / _LIFELINE)
            _STARTED.append(node)
            node.start()
            told.with_suffix(".partly").write_text(json.dumps({"url": node.url, "pid": node.pid}))
            told.with_suffix(".partly").rename(told)
        found: str = json.loads(told.read_text())["url"]
        return found


@contextmanager
def alone(folder: Path, name: str) -> Iterator[None]:
    """Inside, no other process of the run is inside with the same name."""
    with open(folder / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _runs(pid: int | None) -> bool:
    """Whether a process runs; one that has ended, and that nobody has waited for yet, has no command line."""
    try:
        return pid is not None and bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False
