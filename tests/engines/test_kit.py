"""The engines themselves: they start, answer as the server needs it, keep data over a restart, and end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
from pymongo import MongoClient
from pymongo.errors import DuplicateKeyError

from apiserver.settings.sources import load
from apiserver.stores.documents.mongo.engine import MongoEngine
from apiserver.stores.engines import document_engine, event_engine
from apiserver.stores.events.elasticsearch.engine import ElasticsearchEngine
from tests.engines import elasticsearch, jvm, mongodb
from tests.engines.fixtures import own_name, running
from tests.engines.nodes import ForeignNode, Node, ProcessNode, Unavailable, container, first_available, listens
from tests.harness import wait_until


def test_elasticsearch_says_its_version(elasticsearch_url: str) -> None:
    root = elasticsearch.call(elasticsearch_url, "GET", "/")
    assert root["version"]["number"].startswith("8.17.")
    assert root["tagline"] == "You Know, for Search"


def _bulk(url: str, index: str, count: int) -> Any:
    lines = (f'{{"index":{{"_index":"{index}","_id":"{n}","routing":"{n % 3}"}}}}\n{{"n":{n}}}\n' for n in range(count))
    return elasticsearch.call(url, "POST", "/_bulk?refresh=true", "".join(lines).encode())


def test_elasticsearch_deletes_by_query(elasticsearch_url: str, elasticsearch_prefix: str) -> None:
    index = f"{elasticsearch_prefix}-events"
    assert not _bulk(elasticsearch_url, index, 100)["errors"]
    deletion = f"/{index}/_delete_by_query?refresh=true&scroll_size=7&conflicts=proceed"
    done = elasticsearch.call(elasticsearch_url, "POST", deletion, {"query": {"range": {"n": {"lt": 90}}}})
    assert (done["total"], done["deleted"], done["failures"]) == (90, 90, [])
    assert elasticsearch.call(elasticsearch_url, "GET", f"/{index}/_count")["count"] == 10


def test_elasticsearch_wants_a_query_to_delete_by(elasticsearch_url: str, elasticsearch_prefix: str) -> None:
    index = f"{elasticsearch_prefix}-events"
    _bulk(elasticsearch_url, index, 1)
    with pytest.raises(HTTPError) as refused:
        elasticsearch.call(elasticsearch_url, "POST", f"/{index}/_delete_by_query", {})
    assert refused.value.code == 400
    refused.value.close()


def test_what_a_test_made_in_elasticsearch_is_removed(elasticsearch_url: str) -> None:
    prefix = own_name()
    _bulk(elasticsearch_url, f"{prefix}-events", 1)
    part = {"template": {"mappings": {"dynamic": False}}}
    whole = {"index_patterns": [f"{prefix}-*"], "composed_of": [f"{prefix}-part"]}
    elasticsearch.call(elasticsearch_url, "PUT", f"/_component_template/{prefix}-part", part)
    elasticsearch.call(elasticsearch_url, "PUT", f"/_index_template/{prefix}-whole", whole)
    elasticsearch.remove(elasticsearch_url, prefix)
    assert elasticsearch.call(elasticsearch_url, "GET", f"/{prefix}*") == {}
    assert prefix not in str(elasticsearch.call(elasticsearch_url, "GET", "/_index_template"))
    assert prefix not in str(elasticsearch.call(elasticsearch_url, "GET", "/_component_template"))


def test_mongodb_keeps_unique_what_must_be(mongodb_url: str, mongodb_database: str) -> None:
    with MongoClient[dict[str, Any]](mongodb_url) as client:
        tasks = client[mongodb_database]["task"]
        tasks.create_index("name", unique=True)
        tasks.insert_one({"name": "first"})
        with pytest.raises(DuplicateKeyError):
            tasks.insert_one({"name": "first"})


def test_mongodb_keeps_data_when_it_is_stopped_and_started(tmp_path: Path) -> None:
    for node in running("MongoDB", mongodb.VARIABLE, lambda: mongodb.node(tmp_path, durable=True, quick=True)):
        if not node.ours:
            pytest.skip(f"{node.url} is not ours to stop")
        with MongoClient[dict[str, Any]](node.url) as client:
            client["kept"]["task"].insert_one({"name": "first"})
        node.stop()
        assert not listens(node.url)
        node.start()
        with MongoClient[dict[str, Any]](node.url) as client:
            assert client["kept"]["task"].count_documents({"name": "first"}) == 1
    assert not listens(node.url)


def test_addresses_are_what_the_settings_take(engines: dict[str, Any]) -> None:
    settings = load(engines)
    events, documents = event_engine(settings), document_engine(settings)
    assert isinstance(events, ElasticsearchEngine)
    assert isinstance(documents, MongoEngine)
    assert listens(events.address.hosts[0])
    assert events.address.prefix.startswith("test-")
    assert documents.uri.rpartition("/")[2].startswith("test-")


_LEAVES_A_NODE = """
import os, sys
from pathlib import Path
from tests.engines import mongodb
node = mongodb.node(Path(sys.argv[1]), quick=True)
node.start()
print(node.process.pid, flush=True)
os.kill(os.getpid(), 9)
"""


def test_no_engine_outlives_a_run_that_is_killed(tmp_path: Path, mongodb_url: str) -> None:
    if not isinstance(mongodb.node(tmp_path), ProcessNode):
        pytest.skip(f"{mongodb_url} is no process of ours")
    run = subprocess.run([sys.executable, "-c", _LEAVES_A_NODE, str(tmp_path)], stdout=subprocess.PIPE, check=False)
    left = Path("/proc", run.stdout.decode().strip(), "cmdline")
    # A process that has ended, but was not waited for yet, has no command line left.
    wait_until(lambda: not left.exists() or not left.read_bytes())


def _without(reason: str) -> Node:
    raise Unavailable(reason)


def test_the_first_way_that_works_is_taken() -> None:
    named = ForeignNode("http://127.0.0.1:1", elasticsearch.answers)
    assert first_available([lambda: None, lambda: _without("no JDK"), lambda: named]) is named


def test_all_reasons_are_told() -> None:
    with pytest.raises(Unavailable, match="no JDK; no docker"):
        first_available([lambda: None, lambda: _without("no JDK"), lambda: _without("no docker")])


def test_a_missing_engine_skips() -> None:
    with pytest.raises(pytest.skip.Exception, match=r"no X: no JDK\. .*X_URL"):
        next(running("X", "X_URL", lambda: _without("no JDK")))


def test_a_url_of_the_environment_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(elasticsearch.VARIABLE, "http://127.0.0.1:9/")
    node = elasticsearch.node(tmp_path)
    assert (node.url, node.ours) == ("http://127.0.0.1:9", False)


def test_a_machine_without_a_jdk_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(jvm, "jdks", lambda: iter([tmp_path]))
    with pytest.raises(Unavailable, match="no JDK 17"):
        jvm.jdk()


def test_a_container_is_started_stopped_and_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    docker = tmp_path / "docker"
    docker.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/calls\n')
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    node = container("engine:1", 80, "http", lambda url: True, {"HEAP": "1g"})
    node.start()
    node.stop()
    node.start()
    node.kill()
    node.remove()
    published = node.url.replace("http://", "") + ":80"
    assert (tmp_path / "calls").read_text().splitlines() == [
        "info",
        f"run --detach --name {node.name} --publish={published} --env=HEAP=1g engine:1",
        f"stop {node.name}",
        f"start {node.name}",
        f"kill {node.name}",
        f"rm --force --volumes {node.name}",
    ]
