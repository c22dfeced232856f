"""`apiserver import clearml`: what it takes from real engines, read back by the API; interrupted, again, and bad."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from signal import SIGKILL
from typing import Any

import pytest

from apiserver.cli import main
from tests.engines.mongodb import drop
from tests.harness import Api, running_api, served
from tests.transfer.importing.clearml.clearml_server import (
    ANNS_KEY,
    ANNS_SECRET,
    COMPANY,
    MODEL,
    T0,
    TASK,
    TIME_TEXT,
    ClearmlServer,
    clearml_server,
    event,
    events,
    fill,
    logs,
    plot,
    scalar,
    task,
)

pytestmark = pytest.mark.anyio

ANN = (ANNS_KEY, ANNS_SECRET)

#: The command, killed when the second batch of log lines is kept.
KILLED = """
import os, signal, sys
from apiserver.cli import main
from apiserver.transfer.importing.clearml.events import EventImport
added = []
really = EventImport._add
async def add(self, type, *more):
    await really(self, type, *more)
    added.append(type)
    if added.count("log") == 2:
        os.kill(os.getpid(), signal.SIGKILL)
EventImport._add = add
main(sys.argv[1:])
"""


@pytest.fixture
def source(alone_on_engines: None, mongodb_url: str, elasticsearch_url: str) -> Iterator[ClearmlServer]:
    with clearml_server(mongodb_url, elasticsearch_url) as server:
        yield server


@pytest.fixture
def filled(source: ClearmlServer) -> ClearmlServer:
    fill(source)
    return source


async def take(source: ClearmlServer, data: Path, *more: str) -> int:
    """The exit code of an import; in a thread, as the command has an event loop of its own."""
    return await asyncio.to_thread(main, ["import", "clearml", *source.arguments, "--data", str(data), *more])


async def lines_of(api: Api, task: str = TASK) -> list[str]:
    found = await api.call(
        "events.get_task_log", {"task": task, "batch_size": 500, "navigate_earlier": False}, auth=ANN
    )
    return [line["msg"] for line in found["events"]]


async def test_everything_is_there_for_who_logs_in_with_the_old_key(
    filled: ClearmlServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = tmp_path / "old files" / "Team A"
    files.mkdir(parents=True)
    (files / "ärt%2e.json").write_text("{}")
    moved = ("--replace-url", "http://old:8081=https://new")
    assert await take(filled, tmp_path / "data", "--files", str(files.parent), *moved) == 0
    said = capsys.readouterr().err.splitlines()
    assert "training_stats_scalar: 43 found, 43 imported, 0 imported before" in said
    assert "log: 30 found, 30 imported, 0 imported before" in said
    assert any("EGRTCO8JMSIGI6S39GTP43NFWXDQOW" in line for line in said)
    async with running_api(tmp_path / "data", company=COMPANY) as api:
        await _check_people(api)
        await _check_documents(api)
        await _check_events(api)
        found = await api.raw("GET", "/files/Team%20A/%C3%A4rt%252e.json", auth=ANN)
        assert (found.status_code, found.text) == (200, "{}")


async def _check_people(api: Api) -> None:
    user = (await api.call("users.get_current_user", auth=ANN))["user"]
    assert (user["name"], user["role"], user["company"]["id"]) == ("Ann", "user", COMPANY)
    assert (await api.call("users.get_preferences", auth=ANN))["preferences"] == {"theme": "dark"}
    (key,) = (await api.call("auth.get_credentials", auth=ANN))["credentials"]
    assert (key["access_key"], key["label"]) == (ANNS_KEY, "laptop")
    users = {user["id"]: user["name"] for user in (await api.call("users.get_all", auth=ANN))["users"]}
    assert users["ann-two"] == "Ann (ann-two)"
    assert "__apiserver__" not in users
    await api.call("auth.login", auth=("SYSTEMKEY", "s"), expect=401)


async def _check_documents(api: Api) -> None:
    found = (await api.call("tasks.get_by_id", {"task": TASK}, auth=ANN))["task"]
    assert (found["name"], found["created"], found["last_update"]) == ("one", TIME_TEXT, TIME_TEXT)
    assert found["hyperparams"]["Gen.eral"]["a.b"]["value"] == "1"
    assert found["last_metrics"]["m1"]["v1"]["value"] == 0.25
    assert found["execution"]["artifacts"][1]["uri"] == "https://new/a/z.json"
    model = (await api.call("models.get_by_id", {"model": MODEL}, auth=ANN))["model"]
    assert model["metadata"]["acc.key"]["value"] == "0.9"
    projects = (await api.call("projects.get_all", {"parent": ["p1"], "search_hidden": True}, auth=ANN))["projects"]
    assert [project["name"] for project in projects] == ["top/below"]
    queue = (await api.call("queues.get_default", auth=ANN))["id"]
    entries = (await api.call("queues.get_by_id", {"queue": queue}, auth=ANN))["queue"]["entries"]
    assert (queue, [entry["task"] for entry in entries]) == ("q1", ["task-three", "task-two", TASK])
    assert (await api.call("queues.get_next_task", {"queue": "q1"}, auth=ANN))["entry"]["task"] == "task-three"


async def _check_events(api: Api) -> None:
    found = await api.call("events.scalar_metrics_iter_histogram", {"task": TASK}, auth=ANN)
    assert found["loss"]["train"]["y"] == [1 / (n + 1) for n in range(20)]
    assert found["a-b"]["c"]["y"] == [-n for n in range(20)]
    values = (await api.call("events.get_task_single_value_metrics", {"tasks": [TASK]}, auth=ANN))["tasks"][0]["values"]
    assert {value["variant"]: value["value"] for value in values} == {"accuracy": 0.93, "f1": 0.5}
    assert await lines_of(api) == [f"line {n}" for n in range(30)]
    plots = (await api.call("events.get_task_plots", {"task": TASK, "iters": 5}, auth=ANN))["plots"]
    assert {plot["iter"]: plot["plot_str"] for plot in plots} == {
        1: '{"data": [], "layout": {"images": [{"source": "https://new/i.png"}]}}',
        2: '{"data": [1]}',
    }
    images = (await api.call("events.debug_images", {"metrics": [{"task": TASK}], "iters": 5}, auth=ANN))["metrics"]
    assert [one["iter"] for one in images[0]["iterations"]] == [2, 1]
    image = images[0]["iterations"][0]["events"][0]
    assert (image["url"], image["key"], image["timestamp"]) == ("https://new/k2", "k", T0 + 2)
    vectors = {"task": TASK, "event_type": "training_stats_vector"}
    (vector,) = (await api.call("events.get_task_events", vectors, auth=ANN))["events"]
    assert vector["value"] == [1.5, 2.5]
    of_model = await api.call("events.scalar_metrics_iter_histogram", {"task": MODEL, "model_events": True}, auth=ANN)
    assert of_model["mm"]["mv"]["y"] == [7.5]


async def test_another_run_takes_what_is_new_and_changes_nothing_else(
    filled: ClearmlServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    assert await take(filled, data) == 0
    async with running_api(data, company=COMPANY) as api:
        await api.call("tasks.update", {"task": "task-two", "name": "renamed here"}, auth=ANN)
        await api.call("events.add", {"type": "log", "task": TASK, "msg": "from here", "timestamp": T0 + 99}, auth=ANN)
    filled.write("task", task("task-four", name="four"), task(name="renamed there"))
    filled.index(
        *logs([28, 30, 31], written="2024-05-06T08:00:00"), scalar(5, 55.0) | {"@timestamp": "2024-05-06T08:00:00"}
    )
    capsys.readouterr()
    assert await take(filled, data) == 0
    said = capsys.readouterr().err.splitlines()
    assert "tasks: 4 found, 2 imported (1 new, 1 updated), 2 imported before" in said
    assert "plot: 2 found, 0 imported, 2 imported before" in said
    async with running_api(data, company=COMPANY) as api:
        tasks = (await api.call("tasks.get_all", {"order_by": ["name"]}, auth=ANN))["tasks"]
        assert [one["name"] for one in tasks] == ["four", "renamed here", "renamed there", "three"]
        expected = sorted([*range(30), 28, 30, 31], key=lambda n: n // 3)
        assert sorted(await lines_of(api)) == sorted([*(f"line {n}" for n in expected), "from here"])
        found = await api.call("events.scalar_metrics_iter_histogram", {"task": TASK}, auth=ANN)
        assert found["loss"]["train"]["y"][5] == 55.0
    assert await take(filled, data) == 0
    assert "log: 33 found, 0 imported, 33 imported before" in capsys.readouterr().err.splitlines()


def test_a_run_that_was_killed_is_gone_on_with(filled: ClearmlServer, tmp_path: Path) -> None:
    numbers = range(3)
    filled.write("task", *(task(f"t{n}") for n in numbers))
    for n in numbers:
        filled.index(*events(f"t{n}"), *logs(range(30, 6000), task=f"t{n}"))
    data = tmp_path / "data"
    arguments = ["import-clearml", *filled.arguments, "--data", str(data)]
    assert subprocess.run([sys.executable, "-c", KILLED, *arguments], stderr=subprocess.DEVNULL).returncode == -SIGKILL
    assert main(["import-clearml", *filled.arguments, "--data", str(data)]) == 0
    with served(data, company=COMPANY) as server:
        for n in numbers:
            found = server.call("events.get_task_log", {"task": f"t{n}", "batch_size": 3, "navigate_earlier": False})
            assert found["total"] == 6000
            assert [line["msg"] for line in found["events"]] == ["line 0", "line 1", "line 2"]


async def test_what_is_bad_costs_itself_only(
    filled: ClearmlServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    filled.write("task", task("bad-1", hyperparams=5), task("bad-2", created=None), task("bad-3", name=["n"]))
    filled.write("project", {"_id": "nameless", "company": COMPANY})
    filled.index(
        scalar(100, "no number") | {"value": None, "iter": 100, "metric": "x" * 2000},
        plot(9, "", packed=True) | {"plot_data": "bm90IHppcHBlZA=="},
        event("log", 0, task="of nobody", msg="lost"),
        {name: value for name, value in scalar(0, 5.0).items() if name != "iter"},
    )
    data = tmp_path / "data"
    assert await take(filled, data) == 1
    said = capsys.readouterr().err
    for name in (
        "tasks bad-1: ",
        "tasks bad-2: ",
        "tasks bad-3: ",
        "projects nameless: it is malformed",
    ):
        assert f"problem: {name}" in said
    assert "field 'metric' is longer than 1024 bytes" in said
    assert "its plot_data cannot be unpacked" in said
    assert "has events of 1 unknown task or model:" in said
    assert "training_stats_scalar: 45 found, 43 imported, 0 imported before, 1 not imported" in said
    assert f"of {TASK}: 43 should be there, 42 are; only one of each series and iteration is kept" in said
    assert "apiserver: not everything could be imported" in said
    async with running_api(data, company=COMPANY) as api:
        await _check_events_are_whole(api)


async def _check_events_are_whole(api: Api) -> None:
    found = await api.call("events.scalar_metrics_iter_histogram", {"task": TASK}, auth=ANN)
    assert len(found["loss"]["train"]["y"]) == 20
    assert (await api.call("tasks.get_all", {}, auth=ANN))["tasks"]


async def test_an_empty_server(source: ClearmlServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert await take(source, tmp_path / "data") == 0
    assert f"start the server with APISERVER_COMPANY={COMPANY}" in capsys.readouterr().err


async def test_to_engines(filled: ClearmlServer, engines: dict[str, Any], tmp_path: Path) -> None:
    for _ in range(2):
        assert await take(filled, tmp_path, "--events", engines["events"], "--documents", engines["documents"]) == 0
    async with running_api(tmp_path / "data", company=COMPANY, **engines) as api:
        taken = (await api.call("tasks.get_by_id", {"task": TASK}, auth=ANN))["task"]
        last = {
            (one["metric"], one["variant"]): one["value"]
            for of in taken["last_metrics"].values()
            for one in of.values()
        }
        assert (last["a-b", "c"], taken["last_update"]) == (-19, TIME_TEXT)
        assert await lines_of(api) == [f"line {n}" for n in range(30)]
        found = await api.call("events.scalar_metrics_iter_histogram", {"task": TASK}, auth=ANN)
        assert found["a-b"]["c"]["y"] == [-n for n in range(20)]


@pytest.mark.parametrize(
    ("versions", "message"),
    [(["0.17.0", "1.2.9"], "are those of ClearML server 1.2.9: start version 1.3.0 or later"), ([], "")],
)
async def test_databases_of_too_old_a_server_are_refused(
    source: ClearmlServer, versions: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source.write("versions", {"_id": "v", "num": "0.1"}, *({"_id": number, "num": number} for number in versions))
    assert await take(source, tmp_path / "data") == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--elasticsearch", "ftp://x"], "--elasticsearch needs http"),
        (["--elasticsearch", "http://x", "--replace-url", "a"], "is not OLD=NEW"),
    ],
)
def test_wrong_usage(arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import-clearml", "--mongodb", "mongodb://x", *arguments, "--data", str(tmp_path / "data")]) == 2
    assert message in capsys.readouterr().err


async def test_what_is_no_clearml_server_is_said(
    source: ClearmlServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    away = ClearmlServer(source.mongodb, "http://127.0.0.1:1")
    assert await take(away, tmp_path / "data") == 1
    assert "apiserver: Elasticsearch: " in capsys.readouterr().err
    drop(source.mongodb, "backend")
    assert await take(source, tmp_path / "data") == 1
    assert "has no database 'backend'" in capsys.readouterr().err
