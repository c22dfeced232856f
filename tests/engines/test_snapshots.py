"""Snapshots that Elasticsearch makes of a server's indices, restored: the server has everything, and goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines import elasticsearch
from tests.engines.fixtures import own_engines, running
from tests.engines.nodes import ProcessNode
from tests.harness import run, served, wait_until
from tests.robustness.writers import Writer, assert_stored, new_task, writing

_HEAP = "768m"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[ProcessNode]:
    """One that may write snapshots into a folder."""
    settings = {"path.repo": str(tmp_path / "snapshots")}
    yield from running(
        "Elasticsearch", None, lambda: elasticsearch.process(tmp_path / "es", _HEAP, quick=True, settings=settings)
    )


def test_a_snapshot_that_is_restored_has_everything(tmp_path: Path, node: ProcessNode, mongodb_url: str) -> None:
    def call(method: str, path: str, body: object = None) -> None:
        elasticsearch.call(node.url, method, path, body)

    call("PUT", "/_snapshot/backups", {"type": "fs", "settings": {"location": str(tmp_path / "snapshots")}})
    with own_engines(node.url, mongodb_url) as engines, served(tmp_path / "data", **engines) as server:
        writers = [Writer(server, task, name) for task in (new_task(server), new_task(server)) for name in "ab"]
        with writing(writers):
            wait_until(lambda: all(writer.acknowledged >= 60 for writer in writers))
        deleted = new_task(server)
        server.call("tasks.delete", {"task": deleted, "force": True})
        server.stop()
        prefix = engines["events"].rpartition("/")[2]
        call("PUT", "/_snapshot/backups/monday?wait_for_completion=true", {"indices": f"{prefix}-*"})
        elasticsearch.remove(node.url, prefix)  # the templates, too: as on another cluster
        call("POST", "/_snapshot/backups/monday/_restore?wait_for_completion=true", {"indices": f"{prefix}-*"})
        server.start()
        assert_stored(server, writers)
        with writing(writers):
            wait_until(lambda: all(writer.acknowledged >= 120 for writer in writers))
        assert_stored(server, writers)
        stores = [part for name in ("events", "documents") for part in (f"--{name}", engines[name])]
        assert "all well" in run("doctor", *stores)
        assert "Traceback" not in server.log.read_text()
