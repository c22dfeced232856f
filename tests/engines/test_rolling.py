"""Servers on engines are replaced one after the other by those of this release, under load: nothing is lost or doubled.

The releases before are commits of this repository. Where they are not there, as in a shallow clone, this is skipped.
"""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.harness import served, wait_until
from tests.robustness.writers import Writer, assert_stored, is_stored, new_task

ROOT = Path(__file__).parents[2]
#: What releases before did otherwise.
BEFORE = {
    "6ca588a": "keeps the same, but knows no file with formats",
    "b392fa2": "keeps a document for each point and line",
}
#: Batches that each writer is waited for.
BATCHES = 15


@pytest.fixture(params=BEFORE)
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The sources of a release before."""
    packed = subprocess.run(["git", "archive", request.param], cwd=ROOT, capture_output=True)
    if packed.returncode:
        pytest.skip(f"the commit {request.param} is not in this clone: fetch it by `git fetch --unshallow`")
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as sources:
        sources.extractall(tmp_path / "tree", filter="data")
    return tmp_path / "tree"


@contextmanager
def writing_on(writers: Sequence[Writer]) -> Iterator[None]:
    """All writers write while inside, also when their servers come again. What fails in one is raised at the end."""
    stop = Event()

    def write(writer: Writer) -> None:
        while not stop.is_set():
            writer.run(stop)  # until its server does not answer
            stop.wait(0.1)

    with ThreadPoolExecutor(len(writers)) as threads:
        running = [threads.submit(write, writer) for writer in writers]
        try:
            yield
        finally:
            stop.set()
            for one in running:
                one.result()


def wait_for(writers: Sequence[Writer]) -> None:
    """Return when each of them was acknowledged some more batches."""
    goals = [(writer, writer.acknowledged + BATCHES) for writer in writers]
    wait_until(lambda: all(writer.acknowledged >= goal for writer, goal in goals))


def test_servers_are_replaced_under_load(tree: Path, tmp_path: Path, engines: dict[str, Any]) -> None:
    with (
        served(tmp_path / "one", tree=tree, **engines) as one,
        served(tmp_path / "other", tree=tree, **engines) as other,
    ):
        tasks = [new_task(one), new_task(other)]
        every = {
            server.port: [Writer(server, task, f"{server.port} {n}", pause=0.03) for n, task in enumerate(tasks)]
            for server in (one, other)
        }
        writers = [writer for some in every.values() for writer in some]
        with writing_on(writers):
            wait_for(writers)
            for server in (one, other):
                assert server.stop() == 0
                server.tree = None
                server.start()
                wait_for(every[server.port])
            wait_for(writers)
        for server in (one, other):
            wait_until(partial(is_stored, server, writers))
            assert_stored(server, writers)
