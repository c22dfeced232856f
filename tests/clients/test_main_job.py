"""The main job: the unmodified SDK logs a run and reads it back."""

from __future__ import annotations

import csv

import pytest

from tests.clients.sdk import Sdk
from tests.harness import Served, wait_until
from tests.longer import beyond


def files_of(server: Served) -> list[str]:
    """The files that the server keeps."""
    return [str(file) for file in (server.data / "files").rglob("*") if file.is_file() and file.name != "lock"]


@pytest.mark.parametrize("server", beyond(["embedded"], ["embedded", "engines"]), indirect=True)
@pytest.mark.parametrize("sdk", ["as installed"], indirect=True)
def test_a_run_is_logged_and_read_back(sdk: Sdk, server: Served) -> None:
    run = sdk.run("train.py")
    seen = sdk.run("read_back.py", run["task"], run["model"])

    assert seen["status"] == "completed"
    assert (seen["name"], seen["project"]) == ("a run", "examples/first steps")
    assert "nightly" in seen["tags"]
    assert seen["comment"] == "a comment"
    assert seen["parameters"] == {"Args/lr": "0.1", "Args/layer.size": "64", "Args/$cost": "x"}
    assert seen["scalars"]["loss"] == {"train": 500, "val": 500}
    assert seen["all_scalars"]["loss"] == {"train": 500, "val": 500}
    assert seen["loss"]["x"] == list(range(500))
    assert seen["loss"]["y"] == pytest.approx([1.0 / (n + 1) for n in range(500)])
    assert seen["more_than_there_are"] == 500
    assert seen["last_iteration"] >= 499
    assert seen["last"]["train"] == {
        "last": pytest.approx(1 / 500),
        "min": pytest.approx(1 / 500),
        "max": pytest.approx(1.0),
    }
    assert seen["single"] == {"best": 0.95}
    assert {(metric, variant) for metric, variant, _ in seen["plots"]} >= {
        ("weights", "layer 1"),
        ("table", "t"),
        ("confusion", "c"),
    }
    console = "\n".join(seen["console"])
    for number in range(20):
        assert console.count(f"console line {number}\n") + console.endswith(f"console line {number}") == 1
    assert console.count("reported text") == 1
    assert seen["artifact"] == {"answer": 42}
    assert [model[0] for model in seen["models"]] == [run["model"]]
    assert seen["weights"] == 7000
    assert seen["model_metadata"] == "0.9"
    assert seen["query"] == [run["task"]]
    assert seen["by_name"] == run["task"]
    assert ":monitor:machine" in seen["scalars"]

    managed = sdk.run("manage.py", run["task"])
    assert managed["clone_status"] == "created"
    assert managed["clone_parameters"] == seen["parameters"]
    assert managed["clone_scalars"] == {}
    assert managed["parent"] == run["task"]
    assert managed["queued"] == "queued"
    assert managed["dequeued"] == "created"
    assert managed["lr"] == "0.5"
    assert managed["completed"] == "completed"
    assert managed["reset"] == "created"
    assert managed["clone_deleted"] is True
    assert managed["source_deleted"] is True
    assert managed["after"] == []
    wait_until(lambda: files_of(server) == [])


def test_nan_and_infinities_arrive(sdk: Sdk, server: Served) -> None:
    run = sdk.run("not_finite.py")
    assert run["scalars"] == {"train": [[0, 1, 2], [0.5, None, 0.25]], "up": [[0], [None]], "down": [[0], [None]]}
    with server.client() as client:
        table = client.get(f"/data/tasks/{run['task']}/scalars.csv", params={"metric": "loss"}).text
    kept = {(row["variant"], row["iter"]): row["value"] for row in csv.DictReader(table.splitlines())}
    assert (kept["train", "1"], kept["up", "0"], kept["down", "0"]) == ("NaN", "inf", "-inf")


def test_an_offline_run_is_imported(sdk: Sdk) -> None:
    seen = sdk.run("offline.py")
    assert seen["status"] == "completed"
    assert seen["scalars"] == 50
    assert seen["artifact"] == {"offline": True}
    assert "offline line" in "\n".join(seen["console"])
