"""What the log of a server and `apiserver doctor` tell of how Elasticsearch is set.

`tests/engines/test_split.py` asks a cluster of three nodes; here a single node counts itself as three.
"""

from __future__ import annotations

import asyncio
import json
import logging
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from elasticsearch import AsyncElasticsearch

from apiserver.cli import main
from apiserver.server import opening
from apiserver.settings.settings import Settings
from apiserver.stores import engines
from apiserver.stores.events.elasticsearch.address import ElasticsearchAddress
from apiserver.stores.events.elasticsearch.advice import advice
from tests.engines import elasticsearch
from tests.harness import running_api

pytestmark = pytest.mark.anyio

_BLOCK = "cluster.no_master_block"

SetBlock = Callable[[str | None], None]


@pytest.fixture
def set_block(elasticsearch_url: str, alone_on_engines: None) -> Iterator[SetBlock]:
    """Sets what a node without a master refuses."""

    def put(block: str | None) -> None:
        elasticsearch.call(elasticsearch_url, "PUT", "/_cluster/settings", {"persistent": {_BLOCK: block}})

    yield put
    put(None)


@pytest.fixture
def three_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The node counts itself as three; all else is as it says."""
    of_cluster = type(AsyncElasticsearch("http://127.0.0.1:1").cluster)
    health = of_cluster.health

    async def counted(self: Any, **asked: Any) -> Any:
        answer = await health(self, **asked)
        answer.body["number_of_nodes"] += 2
        return answer

    monkeypatch.setattr(of_cluster, "health", counted)


async def test_a_single_node_needs_nothing(elasticsearch_url: str, set_block: SetBlock) -> None:
    for block in (None, "write", "all"):
        set_block(block)
        assert await advice(ElasticsearchAddress((elasticsearch_url,))) == []


@pytest.mark.usefixtures("three_nodes")
async def test_several_nodes_should_refuse_reads_while_they_have_no_master(
    elasticsearch_url: str, set_block: SetBlock
) -> None:
    address = ElasticsearchAddress((elasticsearch_url,))
    for block, said in ((None, "write"), ("metadata_write", "metadata_write")):
        set_block(block)
        [sentence] = await advice(address)
        assert f"Elasticsearch has 3 nodes, and its setting {_BLOCK} is '{said}'" in sentence
        _do_as_told(sentence)
        assert await advice(address) == []


def _do_as_told(sentence: str) -> None:
    """Send the request of the sentence's command, as not every machine has curl."""
    curl, _, method, url, _, _, _, body = shlex.split(sentence[sentence.index("curl") :])
    assert curl == "curl"
    address, _, path = url.rpartition("/_cluster")
    elasticsearch.call(address, method, f"/_cluster{path}", json.loads(body))


async def test_a_cluster_that_does_not_answer_gets_no_advice() -> None:
    assert await advice(ElasticsearchAddress(("http://127.0.0.1:1",))) == []


@pytest.mark.usefixtures("three_nodes")
async def test_the_log_and_the_doctor_say_it_and_nothing_fails(
    shared_engines: dict[str, Any],
    set_block: SetBlock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The server asks when it serves already."""
    goes_on, was_asked = asyncio.Event(), asyncio.Event()

    async def asked_late(settings: Settings) -> list[str]:
        await goes_on.wait()
        try:
            return await engines.advice(settings)
        finally:
            was_asked.set()

    monkeypatch.setattr(opening, "advice", asked_late)
    stores = ["--events", shared_engines["events"], "--documents", shared_engines["documents"]]
    command = ["doctor", *stores, "--data", str(tmp_path / "data")]
    for block, is_said in ((None, True), ("all", False)):
        set_block(block)
        caplog.clear()
        goes_on.clear()
        was_asked.clear()
        async with running_api(tmp_path / "data", **shared_engines) as api:
            assert (await api.raw("GET", "/health")).status_code == 200
            goes_on.set()
            await was_asked.wait()
        warned = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
        assert any(_BLOCK in message for message in warned) is is_said
        assert await asyncio.to_thread(main, command) == 0
        said = capsys.readouterr().out
        assert ("note: Elasticsearch has 3 nodes" in said) is is_said
        assert "all well" in said
