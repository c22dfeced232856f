"""A server over its API: all that one user may read, from a server that answers as ClearML's does, namely ours."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest

from apiserver.cli import main
from apiserver.events.model import EventType
from apiserver.settings.settings import Settings
from apiserver.transfer.importing.clearml import api as importing
from apiserver.transfer.importing.clearml.api import ApiEvents
from apiserver.transfer.importing.clearml.command import import_clearml
from apiserver.transfer.importing.clearml.sources import OverApi
from apiserver.transfer.importing.clearml.urls import replacements
from tests.harness import ADMIN_KEY, ADMIN_SECRET, Served, served


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEARML_API_ACCESS_KEY", ADMIN_KEY)
    monkeypatch.setenv("CLEARML_API_SECRET_KEY", ADMIN_SECRET)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("source") / "data") as server:
        yield server


def fill(server: Served) -> tuple[str, str]:
    """A task and a model of it."""
    project = server.call("projects.create", {"name": "top/below"})["id"]
    hyperparams = {"Gen.eral": {"a.b": {"section": "Gen.eral", "name": "a.b", "value": "1"}}}
    fields = {"name": "one", "type": "training", "project": project, "hyperparams": hyperparams, "runtime": {"a.b": 1}}
    task = server.call("tasks.create", {**fields, "tags": ["t"]})["id"]
    metadata = {"k.k": {"key": "k.k", "type": "str", "value": "v"}}
    fields = {"name": "m", "uri": "s3://b/m", "task": task, "metadata": metadata, "ready": False}
    model = server.call("models.create", fields)["id"]
    artifact = {"key": "a", "type": "dict", "uri": "http://old:8081/a"}
    server.call("tasks.add_or_update_artifacts", {"task": task, "artifacts": [artifact], "force": True})
    for queue in ("q1", "q2"):
        server.call("queues.create", {"name": queue})
    server.call("users.set_preferences", {"preferences": {"theme": "dark"}})
    events: list[dict[str, Any]] = [{"type": "log", "msg": f"line {n}", "timestamp": n // 3} for n in range(20)]
    for iter in (-(2**31), *range(10)):
        events.append({"type": "training_stats_scalar", "metric": "m", "variant": "v", "iter": iter, "value": iter / 7})
    events.append({"type": "plot", "metric": "p", "variant": "v", "iter": 1, "plot_str": "{}"})
    with server.client() as client:
        body = b"\n".join(orjson.dumps({**event, "task": task}) for event in events)
        assert client.post("/events.add_batch", content=body).status_code == 200
    server.call("events.add", {**events[-2], "model": model})
    return task, model


@pytest.mark.test
def test_what_a_user_may_read_is_taken(source: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task, model = fill(source)
    arguments = ["import-clearml", "--api", source.api_url, "--data", str(tmp_path / "new")]
    little = importing.PageSizes(documents=1, ids=1, events=7)
    said: list[str] = []
    over_api = OverApi(source.api_url, ADMIN_KEY, ADMIN_SECRET, little)
    urls = replacements(["http://old:8081=https://new"])
    assert asyncio.run(import_clearml(over_api, None, Settings(data=tmp_path / "new"), urls, said.append))
    assert "training_stats_scalar: 12 found, 12 imported, 0 imported before" in said
    assert "projects: 2 found, 2 imported, 0 imported before" in said
    with served(tmp_path / "new") as server:
        requests: dict[str, dict[str, Any]] = {
            "tasks.get_by_id": {"task": task},
            "models.get_by_id": {"model": model},
            "projects.get_all": {"order_by": ["name"]},
            "queues.get_all": {"order_by": ["name"]},
            "users.get_preferences": {},
            "events.get_task_log": {"task": task, "navigate_earlier": False},
            "events.scalar_metrics_iter_histogram": {"task": task},
            "events.get_task_single_value_metrics": {"tasks": [task]},
            "events.get_task_plots": {"task": task},
        }
        for endpoint, request in requests.items():
            there, here = source.call(endpoint, request), server.call(endpoint, request)
            for answer in (there, here):
                answer.pop("scroll_id", None)
            assert b"https://new/a" in orjson.dumps(here) or endpoint != "tasks.get_by_id"
            assert _same(orjson.dumps(here).replace(b"https://new", b"http://old:8081")) == _same(orjson.dumps(there))
        of_model = {"task": model, "model_events": True}
        assert server.call("events.scalar_metrics_iter_histogram", of_model)["m"]["v"]["y"] == [9 / 7]
    assert main([*arguments, "--replace-url", "http://old:8081=https://new"]) == 0
    assert "training_stats_scalar: 12 found, 0 imported, 12 imported before" in capsys.readouterr().err.splitlines()


def _same(answer: bytes) -> Any:
    """An answer without when its events were received."""
    found = orjson.loads(answer)
    for event in (*found.get("events", ()), *found.get("plots", ())):
        event.pop("@timestamp", None) if isinstance(event, dict) else None
    return found


class Scripted:
    """An API that answers two plots of iteration 0 at a time, and begins again after them, as ClearML's does."""

    sizes = importing.PageSizes(samples={EventType.PLOT: 2})

    def __init__(self, most: int) -> None:
        self.most = most

    async def events(self, endpoint: str, request: dict[str, Any]) -> importing.EventPage:
        plots = [{"iter": 0, "variant": n} for n in range(3)] + [{"iter": 1, "variant": 3}]
        page = plots[: min(request["batch_size"], self.most)]
        return importing.EventPage([msgspec.Raw(orjson.dumps(plot)) for plot in page], total=4, scroll_id="s")


@pytest.mark.anyio
@pytest.mark.parametrize(("most", "found"), [(4, {0, 1, 2, 3}), (3, {0, 1, 2})])
async def test_a_walk_that_begins_again_is_no_endless_one(most: int, found: set[int]) -> None:
    api: Any = Scripted(most)
    pages = [page async for page in ApiEvents(api).pages("plot", EventType.PLOT, ["t"], 4)]
    assert {orjson.loads(event.line)["variant"] for page in pages for event in page} == found


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "give --mongodb and --elasticsearch, or --api"),
        (["--api", "http://x", "--mongodb", "mongodb://x"], 2, "give --mongodb and --elasticsearch, or --api"),
        (["--api", "no address"], 2, "--api needs"),
        (["--api", "http://127.0.0.1:1"], 1, "the ClearML server: "),
    ],
)
def test_what_cannot_be_done_is_said(
    arguments: list[str], code: int, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import-clearml", *arguments, "--data", str(tmp_path / "data")]) == code
    assert message in capsys.readouterr().err


@pytest.mark.test
def test_a_wrong_key_is_said(
    source: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLEARML_API_SECRET_KEY", "wrong")
    assert main(["import-clearml", "--api", source.api_url, "--data", str(tmp_path / "data")]) == 1
    assert "the ClearML server answers 401 to /auth.login" in capsys.readouterr().err
