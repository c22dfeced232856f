"""Servers on engines are replaced one after the other by those of this release, under load: nothing is lost or doubled.

The releases before are commits of this repository. Where they are not there, as in a shallow clone, this is skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.harness import served, wait_until
from tests.releases import unpacked
from tests.robustness.writers import Writer, assert_stored, is_stored, new_task, writing

#: What releases before did otherwise.
BEFORE = {
    "6ca588a": "keeps the same, but knows no file with formats",
    "b392fa2": "keeps a document for each point and line",
}
#: Batches that each writer is waited for.
BATCHES = 6


@pytest.fixture(params=BEFORE)
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The sources of a release before."""
    return unpacked(request.param, tmp_path / "tree")


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
        with writing(writers, again=True):
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
