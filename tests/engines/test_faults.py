"""Engines that are stopped, killed or read-only: clients are told to come back, and nothing acknowledged is lost.

`EVENTS_OUTAGE_SECONDS=20 pytest tests/engines/test_faults.py tests/clients/test_heavy.py` keeps them away for longer.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from apiserver.events.model import EventType
from apiserver.stores.events.elasticsearch import names
from tests.engines import elasticsearch, mongodb
from tests.engines.fixtures import OUTAGE_SECONDS, own_engines, running
from tests.engines.nodes import Node
from tests.harness import Served, running_api, served, wait_until
from tests.robustness.writers import FIRST_TIME, Writer, assert_stored, new_task, writing

REFUSALS = 3


@pytest.fixture
def mongodb_to_stop(tmp_path: Path) -> Iterator[Node]:
    """One that keeps what it has over a stop."""
    for node in running(
        "MongoDB", mongodb.VARIABLE, lambda: mongodb.node(tmp_path / "mongodb", durable=True, quick=True)
    ):
        if not node.ours:
            pytest.skip(f"{node.url} is not ours to stop")
        yield node


@contextmanager
def outage(node: Node, writers: list[Writer]) -> Iterator[None]:
    """Writers write before, while, and after the node is away; inside, it is away and they were all refused."""
    with writing(writers):
        acknowledge_more(writers)
        began = time.monotonic()
        node.stop()
        wait_until(lambda: all(len(writer.refusals) >= REFUSALS for writer in writers))
        yield
        wait_until(lambda: time.monotonic() - began > OUTAGE_SECONDS, OUTAGE_SECONDS + 1)
        node.start()
        acknowledge_more(writers)


def acknowledge_more(writers: list[Writer]) -> None:
    goals = [writer.acknowledged + 8 for writer in writers]
    wait_until(
        lambda: all(writer.acknowledged >= goal for writer, goal in zip(writers, goals, strict=True)),
    )


def refusal(server: Served, endpoint: str, request: dict[str, Any]) -> str:
    """Why a call is refused for now (503)."""
    with server.client() as client:
        response = client.post(f"/{endpoint}", json=request)
    assert response.status_code == 503, response.text
    assert int(response.headers["Retry-After"]) >= 1
    return str(response.json()["meta"]["result_msg"])


def test_elasticsearch_goes_away_and_comes_back(
    tmp_path: Path, engines: dict[str, Any], elasticsearch_to_stop: Node
) -> None:
    engines["events"] = elasticsearch.address(elasticsearch_to_stop.url, "events")
    with served(tmp_path / "data", **engines) as server:
        writers = [Writer(server, new_task(server), name) for name in "ab"]
        with outage(elasticsearch_to_stop, writers):
            task = writers[0].task
            assert "Elasticsearch" in refusal(server, "events.get_task_log", {"task": task})
            assert server.call("tasks.get_by_id", {"task": task})["task"]["id"] == task
            with server.client() as client:
                health = client.get("/health")
            assert health.status_code == 503
            assert health.json()["stores"] == {"documents": "ok", "events": "down", "files": "ok"}
        assert {status for writer in writers for status in writer.refusals} <= {429, 503}
        assert_stored(server, writers)
        assert "Traceback" not in server.log.read_text()


def test_mongodb_goes_away_and_comes_back(
    tmp_path: Path, elasticsearch_url: str, mongodb_url: str, mongodb_to_stop: Node
) -> None:
    with own_engines(elasticsearch_url, mongodb_url) as engines:
        engines["documents"] = mongodb.address(mongodb_to_stop.url, "documents")
        with served(tmp_path / "data", **engines) as server:
            writers = [Writer(server, new_task(server), name) for name in "ab"]
            with outage(mongodb_to_stop, writers):
                assert "MongoDB" in refusal(server, "tasks.create", {"name": "a task", "type": "training"})
            assert_stored(server, writers)
            assert "Traceback" not in server.log.read_text()


def test_an_index_that_is_read_only_is_told(tmp_path: Path, engines: dict[str, Any], elasticsearch_url: str) -> None:
    prefix = engines["events"].rpartition("/")[2]
    with served(tmp_path / "data", **engines) as server:
        task = new_task(server)
        writer = Writer(server, task, "writer")
        with writing([writer]):
            wait_until(lambda: writer.acknowledged >= 5)
            block(elasticsearch_url, prefix, True)
            wait_until(lambda: len(writer.refusals) >= REFUSALS)
            event = {"type": "log", "task": task, "msg": "refused", "timestamp": FIRST_TIME}
            assert "block" in refusal(server, "events.add", event)
            server.call("events.get_task_log", {"task": task})
            block(elasticsearch_url, prefix, False)
            acknowledge_more([writer])
        assert set(writer.refusals) == {503}
        assert_stored(server, [writer])


def block(url: str, prefix: str, blocked: bool) -> None:
    elasticsearch.call(url, "PUT", f"/{prefix}-*/_settings", {"index.blocks.write": blocked})


@pytest.mark.anyio
async def test_a_series_that_elasticsearch_refuses_costs_itself_only(
    tmp_path: Path, engines: dict[str, Any], elasticsearch_url: str
) -> None:
    async with running_api(tmp_path / "data", **engines) as api:
        task = (await api.call("tasks.create", {"name": "a task", "type": "training"}))["id"]
        index = names.blocks(engines["events"].rpartition("/")[2], EventType.SCALAR, api.company)
        # One that takes less than ours, which takes all that gets so far.
        mapping = {"mappings": {"properties": {"last": {"type": "integer"}}}}
        elasticsearch.call(elasticsearch_url, "PUT", f"/{index}", mapping)
        common = {"type": "training_stats_scalar", "task": task, "metric": "metric", "timestamp": FIRST_TIME}
        points = [("small", 1), ("large", 2**40), ("large", 2**40 + 1), ("small", 2)]
        events = [{**common, "variant": variant, "iter": iter, "value": iter} for variant, iter in points]
        done = await api.raw("POST", "/events.add_batch", content="\n".join(map(json.dumps, events)))
        assert done.status_code == 200
        assert (done.json()["data"]["added"], done.json()["data"]["errors"]) == (2, 2)
        [reason] = done.json()["data"]["errors_info"]
        assert "Elasticsearch refused it" in reason
        curve = await api.call("events.scalar_metrics_iter_histogram", {"task": task, "samples": 0})
        assert curve["metric"]["small"]["x"] == [1, 2]
