"""Snapshots that Elasticsearch makes of a server's indices, restored: the server has everything, and goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines import elasticsearch
from tests.engines.fixtures import own_engines, own_name
from tests.engines.nodes import ProcessNode
from tests.harness import run, served, wait_until
from tests.robustness.writers import Writer, assert_stored, new_task, writing


@pytest.fixture
def repository(elasticsearch_url: str, tmp_path: Path) -> Iterator[str]:
    """The path of a place for snapshots, as the node's API names it."""
    if not isinstance(elasticsearch.node(tmp_path), ProcessNode):
        pytest.skip(f"whether {elasticsearch_url} may write snapshots is not known")
    name = own_name()
    path = f"/_snapshot/{name}"
    elasticsearch.call(elasticsearch_url, "PUT", path, {"type": "fs", "settings": {"location": name}})
    yield path
    elasticsearch.call(elasticsearch_url, "DELETE", path)


def test_a_snapshot_that_is_restored_has_everything(
    tmp_path: Path, elasticsearch_url: str, mongodb_url: str, repository: str
) -> None:
    def call(method: str, path: str, body: object) -> None:
        elasticsearch.call(elasticsearch_url, method, f"{repository}{path}?wait_for_completion=true", body)

    with own_engines(elasticsearch_url, mongodb_url) as engines, served(tmp_path / "data", **engines) as server:
        writers = [Writer(server, new_task(server), name) for name in "ab"]
        with writing(writers):
            wait_until(lambda: all(writer.acknowledged >= 20 for writer in writers))
        deleted = new_task(server)
        server.call("tasks.delete", {"task": deleted, "force": True})
        server.stop()
        prefix = engines["events"].rpartition("/")[2]
        call("PUT", "/monday", {"indices": f"{prefix}-*"})
        elasticsearch.remove(elasticsearch_url, prefix)  # the templates, too: as on another cluster
        call("POST", "/monday/_restore", {"indices": f"{prefix}-*"})
        server.start()
        assert_stored(server, writers)
        with writing(writers):
            wait_until(lambda: all(writer.acknowledged >= 30 for writer in writers))
        assert_stored(server, writers)
        stores = [part for name in ("events", "documents") for part in (f"--{name}", engines[name])]
        assert "all well" in run("doctor", *stores)
        assert "Traceback" not in server.log.read_text()
