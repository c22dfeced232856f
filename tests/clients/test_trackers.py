"""What the trackers' own packages record, `apiserver import` brings to the server, bit for bit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from apiserver.cli import main
from apiserver.transfer.importing.runs.model import names_of
from tests.clients.sdk import ROOT
from tests.clients.trackers import points_of, python, recorded
from tests.harness import PATIENCE, Served, free_ports, listens, wait_until
from tests.longer import beyond
from tests.transfer.importing.runs.test_taking import environment, lines_of, tasks_of

__all__ = ["environment", "python"]


@pytest.mark.parametrize("server", beyond(["embedded"], ["embedded", "engines"]), indirect=True)
def test_tensorboard(server: Served, environment: dict[str, str], python: Path, tmp_path: Path) -> None:
    points = recorded(python, "track_tensorboard.py", tmp_path, str(tmp_path / "runs"))
    for tag, step, value in recorded(python, "read_tensorboard.py", tmp_path, str(tmp_path / "runs" / "again")):
        points.append(["again", *names_of(tag), step, value])
    for _ in range(2):
        assert main(["import", "tensorboard", str(tmp_path / "runs")]) == 1  # for what the restart took back
        tasks = tasks_of(server)
        assert sorted(points_of(server)) == sorted(points)
        assert lines_of(server, tasks["one"]["id"]) == ["some *text*"]
    params = tasks["three"]["hyperparams"]["hparams"]
    assert {name: one["value"] for name, one in params.items()} == {"lr": "0.1", "opt": "adam", "flag": "True"}
    (plot,) = server.call("events.get_task_plots", {"task": tasks["one"]["id"]})["plots"]
    assert sum(json.loads(plot["plot_str"])["data"][0]["y"]) == 100
    (images,) = server.call("events.debug_images", {"metrics": [{"task": tasks["one"]["id"]}]})["metrics"]
    with server.client() as client:
        assert client.get(images["iterations"][0]["events"][0]["url"]).content.startswith(b"\x89PNG")


@pytest.mark.parametrize("store", beyond(["sqlite:///mlflow.db"], ["mlruns", "sqlite:///mlflow.db"]))
def test_mlflow(server: Served, environment: dict[str, str], python: Path, tmp_path: Path, store: str) -> None:
    points = recorded(python, "track_mlflow.py", tmp_path, store)
    take_mlflow(server, str(tmp_path / store.removeprefix("sqlite:///")), points)


@pytest.mark.longer
def test_mlflow_server(server: Served, environment: dict[str, str], tmp_path: Path) -> None:
    """Only beside benchmarks: MLflow's server needs half a gigabyte of packages."""
    python = Path(os.environ.get("PEERS_ENVIRONMENT", ROOT / ".venv-peers")) / "bin" / "python"
    if not python.exists():
        pytest.skip("no server of MLflow: `make bench` installs it, or set PEERS_ENVIRONMENT")
    with mlflow_server(python, tmp_path) as place:
        take_mlflow(server, place, recorded(python, "track_mlflow.py", tmp_path, place))


@contextmanager
def mlflow_server(python: Path, home: Path) -> Iterator[str]:
    """The address of a server of MLflow's own."""
    (port,) = free_ports(1)
    stores = ("--backend-store-uri", f"sqlite:///{home}/mlflow.db", "--artifacts-destination", str(home / "artifacts"))
    options = ("--host", "127.0.0.1", "--port", str(port), "--workers", "1")
    kept = {"PATH": f"{python.parent}:{os.environ['PATH']}", "HOME": str(home)}
    silent = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    with (home / "log").open("wb") as log:
        command = [str(python), "-m", "mlflow", "server", *stores, *options]
        process = subprocess.Popen(
            command, env={**kept, **silent}, cwd=home, stdout=log, stderr=log, start_new_session=True
        )
    try:
        wait_until(lambda: process.poll() is not None or listens(port))
        assert process.poll() is None, (home / "log").read_text()
        yield f"http://127.0.0.1:{port}"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)  # its worker, too
        process.wait(PATIENCE)


def take_mlflow(server: Served, place: str, points: list[list[Any]]) -> None:
    """Import what the script has recorded, twice, and look at it."""
    for _ in range(2):
        assert main(["import", "mlflow", place, "--files"]) == 0
        assert sorted(points_of(server)) == sorted(points)
    (task,) = tasks_of(server).values()
    assert (task["status"], task["tags"], task["comment"]) == ("completed", ["team: x"], "a note")
    project = server.call("projects.get_by_id", {"project": task["project"]})["project"]
    assert project["name"] == "an experiment: ü #1"
    params = {name: one["value"] for name, one in task["hyperparams"]["params"].items()}
    assert params == {"lr": "0.1", "layers.0": "8"}
    (artifact,) = task["execution"]["artifacts"]
    with server.client() as client:
        assert (artifact["key"], client.get(artifact["uri"]).text) == ("notes/a.txt", "content")


def test_wandb(server: Served, environment: dict[str, str], python: Path, tmp_path: Path) -> None:
    points = recorded(python, "track_wandb.py", tmp_path, str(tmp_path))
    for _ in range(2):
        assert main(["import", "wandb", str(tmp_path / "wandb")]) == 0
        assert sorted(points_of(server)) == sorted(points)
    (task,) = tasks_of(server).values()
    assert (task["name"], task["status"], task["tags"], task["comment"]) == ("one", "completed", ["t"], "a note")
    params = {name: one["value"] for name, one in task["hyperparams"]["config"].items()}
    assert params == {"lr": "0.1", "n/a": "[1, 2]"}
    assert task["hyperparams"]["summary"]["best"]["value"] == "7"
    assert {"printed by the run", "black"} <= set(lines_of(server, task["id"]))
    (plot,) = server.call("events.get_task_plots", {"task": task["id"]})["plots"]
    assert sum(json.loads(plot["plot_str"])["data"][0]["y"]) == 10
