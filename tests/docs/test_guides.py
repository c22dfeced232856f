"""The commands of the guides do what the pages say."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apiserver.cli import main
from docs.site.pages import DOCS
from tests.docs.test_tutorial import blocks
from tests.harness import Served, served
from tests.longer import beyond


@pytest.fixture(params=beyond(["embedded"], ["embedded", "engines"]))
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    """What the pages say holds on the embedded stores, and on Elasticsearch and MongoDB."""
    settings = request.getfixturevalue("shared_engines") if request.param == "engines" else {}
    with served(tmp_path / "data", **settings) as running:
        yield running


def test_the_vendors_calls_answer(server: Served, tmp_path: Path) -> None:
    project = server.call("projects.create", {"name": "examples"})["id"]
    task = server.call("tasks.create", {"name": "train", "type": "training", "project": project})["id"]
    server.call("tasks.started", {"task": task})
    point = {"type": "training_stats_scalar", "task": task, "iter": 1, "value": 50}
    server.call("events.add", {**point, "metric": ":monitor:gpu", "variant": "gpu_0_utilization"})
    server.call("events.add", {"type": "log", "task": task, "msg": "epoch 1"})
    command = _only(_shell("vendor-apis.md"), "S=http")
    modelarts, preview, baseten, pai = _answers(server, tmp_path, command, TASK=task, PROJECT=project)
    assert 50 in next(one["value"] for one in modelarts["metrics"] if one["metric"] == "gpuUtil")
    assert preview["content"] == "epoch 1\n"
    assert baseten["training_job"]["id"] == task
    assert pai["PodMetrics"][0]["Metrics"][0]["Value"] == 50


def test_files_are_sent_and_fetched(server: Served, tmp_path: Path) -> None:
    (tmp_path / "loss.png").write_bytes(b"picture")
    send, fetch = _only(_shell("files.md"), "loss.png").splitlines()
    (sent,) = _answers(server, tmp_path, send)
    assert sent["files"] == [{"path": "/reports/loss.png", "size": 7}]
    (tmp_path / "loss.png").unlink()
    assert _answers(server, tmp_path, fetch) == []
    assert (tmp_path / "loss.png").read_bytes() == b"picture"


def test_data_is_read_with_curl(server: Served, tmp_path: Path) -> None:
    project = server.call("projects.create", {"name": "examples"})["id"]
    lr = {"section": "Args", "name": "lr", "value": "0.1", "type": "float"}
    task = {"name": "train", "type": "training", "project": project, "hyperparams": {"Args": {"lr": lr}}}
    made = server.call("tasks.create", task)["id"]
    point = {"type": "training_stats_scalar", "task": made, "metric": "loss", "variant": "train"}
    for n in range(4):
        server.call("events.add", {**point, "iter": n, "value": n, "timestamp": 1000 + n})
        server.call("events.add", {"type": "log", "task": made, "msg": f"epoch {n}", "timestamp": 1000 + n})
    first, curves, logs, windows, table, view, link = _shell("data.md")
    printed = _printed(server, tmp_path, first, TASK=made)
    assert "loss,train,0,1000,0.0" in printed
    assert "loss,train,3,1,3.0,3.0,3.0,3.0,3.0" in printed
    assert printed.endswith("epoch 1\nepoch 2\nepoch 3\n")
    printed = _printed(server, tmp_path, curves)
    assert f"{made},loss,train,0,1,0.0" in printed
    assert "0.1,loss,train,0,1,0.0,0.0" in printed
    assert _printed(server, tmp_path, logs, TASK=made).startswith(
        "epoch 0\nepoch 1\nepoch 2\nepoch 3\ntimestamp,worker,"
    )
    beyond, of_time, hits = _answers(server, tmp_path, windows, TASK=made)
    assert (beyond, of_time["line"], hits["lines"]) == ([], 4, [])
    (kept,) = _answers(server, tmp_path, view)
    with server.client() as client:
        assert client.get(f"/data/views/{kept['id']}").json()["address"] == "/projects/*?sort=-last_update"
    assert _printed(server, tmp_path, table).splitlines()[1] == "train,created,0.1,0.0,0"
    (linked,) = _answers(server, tmp_path, link, TASK=made)
    with server.client() as client:
        assert client.get(linked["url"], auth=None).text.startswith("metric,")


def test_tasks_are_followed_live(server: Served, tmp_path: Path) -> None:
    task = server.call("tasks.create", {"name": "train", "type": "training"})["id"]
    stream, poll, console = _shell("live.md")
    printed = _printed(server, tmp_path, stream, TASK=task, SECONDS_TO_WAIT="2")
    assert printed.startswith("retry: 1000\n\nevent: status\n")
    (nothing,) = _answers(server, tmp_path, poll, TASK=task, SECONDS_TO_WAIT="0")
    assert nothing["events"] == []
    (python,) = [block.text for block in blocks(DOCS / "guides" / "live.md") if block.language == "python"]
    names = {"SERVER": server.api_url, "TASK": task, "KEY": server.key, "SECRET": server.secret}
    given = "".join(f"{name} = {value!r}\n" for name, value in names.items())
    with subprocess.Popen([sys.executable, "-u", "-c", given + python], stdout=subprocess.PIPE, text=True) as reading:
        assert reading.stdout is not None
        assert reading.stdout.readline().startswith("status {")
        server.call("events.add", {"type": "log", "task": task, "msg": "epoch 1"})
        assert reading.stdout.readline() == f"log {{'task': '{task}', 'count': 1}}\n"
        reading.kill()
    known = {"CLEARML_API_HOST": server.api_url, "TASK": task}
    known |= {"CLEARML_API_ACCESS_KEY": server.key, "CLEARML_API_SECRET_KEY": server.secret}
    command = console.replace("apiserver", f"{sys.executable} -m apiserver", 1).replace(" -f", "")
    assert _printed(server, tmp_path, command, **known, PYTHONPATH=os.environ.get("PYTHONPATH", "")) == "epoch 1\n"


def _shell(page: str) -> list[str]:
    return [block.text for block in blocks(DOCS / "guides" / page) if block.language == "sh"]


def _only(texts: list[str], wanted: str) -> str:
    (found,) = [text for text in texts if wanted in text]
    return found


def _answers(server: Served, folder: Path, command: str, **variables: str) -> list[Any]:
    """The JSON that commands print, one after another."""
    printed = _printed(server, folder, command, **variables)
    found, decoder = [], json.JSONDecoder()
    while printed := printed.strip():
        answer, end = decoder.raw_decode(printed)
        found.append(answer)
        printed = printed[end:]
    return found


def _printed(server: Served, folder: Path, command: str, **variables: str) -> str:
    """What commands print."""
    for shown, real in (("http://127.0.0.1:8008", server.api_url), ("http://127.0.0.1:8081", server.files_url)):
        command = command.replace(shown, real)
    environment = {"PATH": os.environ["PATH"], "KEY": server.key, "SECRET": server.secret, **variables}
    shell = ["bash", "-euo", "pipefail", "-c", command]
    return subprocess.run(shell, cwd=folder, env=environment, check=True, capture_output=True, text=True).stdout


def test_runs_of_other_trackers_come_in(
    server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (DOCS / "guides" / "other-trackers.md").read_text()
    commands = {line.split()[2]: line.split()[2:] for line in re.findall(r"`(apiserver import .*?)`", page)}
    assert commands.keys() == {"tensorboard", "mlflow", "wandb", "neptune", "table", "export"}
    (variables,) = [text for text in _shell("other-trackers.md") if "CLEARML_API_HOST" in text]
    real = {"CLEARML_API_HOST": server.api_url, "CLEARML_FILES_HOST": server.files_url}
    real |= {"CLEARML_API_ACCESS_KEY": server.key, "CLEARML_API_SECRET_KEY": server.secret}
    assert set(re.findall(r"([A-Z_]+)=", variables)) == real.keys()
    for name, value in real.items():
        monkeypatch.setenv(name, value)
    (table,) = [block.text for block in blocks(DOCS / "guides" / "other-trackers.md") if block.language == "csv"]
    (tmp_path / "points.csv").write_text(table)
    for name in ("runs", "mlruns", "wandb", "exports/data"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    for arguments in re.findall(r"^\| .* \| `apiserver (import .*?)` \|$", page, re.MULTILINE):
        if "--follow" not in arguments and "mlflow.db" not in arguments and "http" not in arguments:
            is_there = "points.csv" in arguments
            assert main(arguments.split()) == (0 if is_there else 2), arguments
            assert is_there or "found in" in capsys.readouterr().err
    tasks = server.call("tasks.get_all", {})["tasks"]
    assert sorted(task["name"] for task in tasks) == ["first", "second"]
    export = _only(_shell("other-trackers.md"), "apiserver export").split()
    assert main([*export[1:2], "old", *export[3:]]) == 0
    assert main(["import", *commands["export"]]) == 0
    assert len(server.call("tasks.get_all", {})["tasks"]) == 4
