"""One real run of each thing that people do with the SDK besides the main job: each test is a kind.

Agents are in test_agent.py, runs that were recorded offline in test_main_job.py.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.clients.sdk import SCRIPTS, Sdk
from tests.clients.test_main_job import files_of
from tests.harness import Served, wait_until

SEARCHED = "flows/searched"


def test_a_run_goes_on_where_it_ended(sdk: Sdk) -> None:
    seen = sdk.run("continued.py")
    assert seen["same"]
    assert seen["offsets"] == [3, 6, 100, 200]
    assert seen["loss"]["x"] == [*range(9), 100, 101, 102, 200, 201, 202]
    assert seen["loss"]["y"] == [10 * part + iteration for part in range(5) for iteration in range(3)]
    assert [seen["console"].count(f"console of part {part}") for part in range(5)] == [1] * 5
    assert (seen["last_iteration"], seen["status"]) == (202, "completed")


def test_objects_are_connected_and_an_edited_clone_gets_what_was_edited(sdk: Sdk) -> None:
    seen = sdk.run("connected.py")
    first, second = seen["first"], seen["second"]
    assert first["nested"] == {"lr": 0.1, "net": {"depth": 3, "sizes": [1, 2]}}
    assert seen["kept"] == {
        "parameters": {
            "General/lr": 0.1,
            "General/net/depth": 3,
            "General/net/sizes": [1, 2],
            "Optimizer/name": "sgd",
            "Optimizer/momentum": 0.9,
            "properties/owner": "me",
        },
        "configurations": [{"layers": {"first": 1}}, "depth = 3"],
        "comment": "a comment",
        "properties": {"owner": "me"},
    }
    assert seen["same"]
    assert second["nested"] == {"lr": 0.5, "net": {"depth": 5, "sizes": [3]}}
    assert second["object"] == {"name": "adam", "momentum": 0}
    assert second["configuration"] == {"layers": {"first": 2}}
    assert second["file"] == "depth = 5"
    assert first["labels"] == second["labels"] == {"cat": 1}


def test_tasks_are_edited_found_ended_moved_and_deleted(sdk: Sdk) -> None:
    seen = sdk.run("managed.py")
    assert seen["statuses"] == ["queued", "failed", "stopped", "completed"]
    assert (seen["waiting"], seen["queue"]) == (1, "default")
    assert seen["failed"] == ["failed", "it failed"]
    properties = {"owner": "me", "stage": "early"}
    edited = {"Args": {"lr": 3}, "General": {"net": {"depth": 3}}}
    assert seen["parameters"] == {**edited, "properties": properties}
    assert {name: one["value"] for name, one in seen["properties"].items()} == properties
    assert seen["properties"]["stage"]["description"] == "how far it is"
    assert seen["comment"] == "a comment"
    clones = [f"clone {number}" for number in range(4)]
    assert seen["found"] == {
        "part of the name": clones,
        "tag": clones[:3],
        "tags": ["clone 0", "clone 2"],
        "status": ["clone 1", "clone 2"],
        "type": clones,
        "parameter": ["clone 2"],
        "text": [*clones, "template"],
    }
    queried = [(one["name"], one["status"], one["status_message"]) for one in seen["queried"]]
    assert queried == [("clone 2", "stopped", "it was stopped"), ("clone 1", "failed", "it failed")]
    assert (seen["published"], seen["moved"]) == ("published", "flows/moved")
    assert seen["not_archived"] == ["clone 0", "clone 3", "template"]
    assert seen["deleted"] == [True, True]
    assert seen["left"] == ["clone 1", "clone 3"]


def test_plots_samples_and_artifacts_of_all_kinds_are_read_back(sdk: Sdk) -> None:
    seen = sdk.run("reported.py")
    assert seen["plots"] == [["line", "", 1], ["plotly", "bars", 2], ["table", "rows", 1]]
    assert seen["images"] == {str(number): [50 * number] * 3 for number in range(3)}
    assert seen["elsewhere"]
    assert seen["note"] == "a note"
    assert seen["types"] == {
        "dict": "dict",
        "text": "string",
        "array": "numpy",
        "picture": "image",
        "file": "custom",
        "folder": "archive",
        "pickled": "pickle",
    }
    assert seen["metadata"] == {"kind": "dict"}
    assert seen["dict"] == {"answer": 42, "nested": [1, {"a": None}]}
    assert seen["text"] == "some text"
    assert seen["array"] == [0, 1, 2, 3, 4]
    assert seen["picture"] == [[3, 2], [9, 8, 7]]
    assert seen["file"] == "a note"
    assert seen["folder"] == {"in/one.txt": "one", "two.txt": "two"}
    assert seen["pickled"] == [1, 2]
    assert seen["hashed"]
    assert seen["deleted"]
    assert seen["left"] == ["array", "folder", "pickled", "picture", "text"]


def test_a_model_is_made_of_another_one_found_published_and_archived(sdk: Sdk) -> None:
    seen = sdk.run("tuned_model.py")
    assert seen["chain"] == [["base"], ["tuned"]]
    assert seen["made_by"] == ["tunes it", "makes it"]
    assert seen["weights"] == "first weights, tuned"
    assert seen["design"] == {"layers": [1, 2]}
    assert seen["labels"] == {"cat": 1}
    assert seen["found"] == {
        "all": ["base", "tuned"],
        "name": ["tuned"],
        "all tags": ["tuned"],
        "not tag": ["tuned"],
        "metadata": ["tuned"],
        "published": [],
        "newest": ["tuned"],
    }
    assert seen["published"] == [["tuned"], True]
    assert seen["archived"] == [["tuned"], ["base", "tuned"]]
    assert seen["unarchived"] == ["base", "tuned"]


def test_a_dataset_has_versions_and_is_squashed_used_and_deleted(sdk: Sdk, server: Served) -> None:
    seen = sdk.run("dataset_versions.py")
    assert seen["versions"] == {"1.0.0": "completed", "1.0.1": "completed"}
    assert seen["first"] == {"kept.txt": "kept", "changed.txt": "old", "in/removed.txt": "removed"}
    merged = {"kept.txt": "kept", "changed.txt": "new", "in/added.txt": "added"}
    assert seen["second"] == seen["squashed"] == merged
    assert seen["changes"] == [["in/added.txt"], ["changed.txt"], ["in/removed.txt"]]
    assert seen["squashed_parents"] == []
    assert seen["parents"]
    assert seen["tagged"]
    assert seen["alias"]
    assert seen["logged"]
    assert seen["refused"] == seen["versions"]
    assert seen["deleted"] == []
    wait_until(lambda: files_of(server) == [])


def test_a_pipeline_runs_its_steps_and_the_next_one_takes_them(sdk: Sdk) -> None:
    first, second = sdk.run("cached_pipeline.py")["runs"]
    for run in (first, second):
        assert (run["status"], run["project"]) == ("completed", "flows/.pipelines/sums")
        assert run["total"] == 6
        assert run["plots"] == ["Pipeline", "Pipeline Details"]
    assert [run["name"] for run in (first, second)] == ["sums", "sums #2"]
    assert [run["version"] for run in (first, second)] == ["1.0.0", "1.0.1"]
    assert first["cached"] == {"numbers": False, "total": False}
    assert first["children"] == sorted(first["steps"].values())
    assert first["monitored"] == [6]
    assert second["cached"] == {"numbers": True, "total": True}
    assert second["steps"] == first["steps"]
    assert second["children"] == []


@pytest.mark.longer
def test_a_pipeline_is_made_of_a_function(sdk: Sdk) -> None:
    assert sdk.run("decorated_pipeline.py") == {
        "result": 41,
        "status": "completed",
        "kept": 41,
        "parameter": "20",
        "step": ["double", "completed", 40],
    }


def test_a_search_finds_the_best_parameter(sdk: Sdk) -> None:
    seen = sdk.run("parameter_search.py")
    assert seen["top"] == [
        ["2", SEARCHED, "completed", False],
        ["1", SEARCHED, "completed", True],
        ["4", SEARCHED, "completed", True],
    ]
    assert seen["details"] == [[{"General/x": "2"}, 0.5]]
    assert seen["children_of_the_search"]
    assert {"Optimization Objective", "summary"} <= set(seen["plots"])


def test_what_is_due_or_triggered_is_run(sdk: Sdk) -> None:
    assert sdk.run("scheduled.py") == {
        "function_due": True,
        "task_due": [["due", []]],
        "model": True,
        "dataset": True,
        "task": True,
        "task_of_model": [[True, ["task of models"]]],
    }


def test_clearml_task_makes_a_task_of_a_script_and_enqueues_it(sdk: Sdk, server: Served) -> None:
    code = (SCRIPTS / "for_agent.py").read_text()
    (sdk.folder / "train.py").write_text(code)
    what = ("--project", "flows", "--name", "by command", "--script", "train.py", "--args", "wait=3")
    printed = sdk.command("clearml-task", *what, "--packages", "numpy", "--tags", "a tag", "--queue", "default")
    task = server.call("tasks.get_by_id", {"task": made(printed)})["task"]
    assert (task["name"], task["status"], task["tags"]) == ("by command", "queued", ["a tag"])
    assert task["hyperparams"]["Args"]["wait"]["value"] == "3"
    assert task["script"]["entry_point"] == "train.py"
    assert code.splitlines()[-1] in task["script"]["diff"]
    assert "numpy" in task["script"]["requirements"]["pip"]


def test_clearml_data_makes_lists_and_gets_a_dataset(sdk: Sdk, server: Served) -> None:
    (sdk.folder / "data").mkdir()
    (sdk.folder / "data" / "cat.txt").write_text("meow")
    dataset = made(sdk.command("clearml-data", "create", "--project", "flows", "--name", "by command"))
    assert "1 file added" in sdk.command("clearml-data", "add", "--files", "data")
    assert "closed and finalized" in sdk.command("clearml-data", "close")
    found: dict[str, Any] = server.call("tasks.get_by_id", {"task": dataset})["task"]
    assert (found["status"], found["type"], found["runtime"]["version"]) == ("completed", "data_processing", "1.0.0")
    named = ("--project", "flows", "--name", "by command")
    assert "Total 1 files, 4 bytes" in sdk.command("clearml-data", "list", *named)
    sdk.command("clearml-data", "get", "--id", dataset, "--copy", "got")
    assert (sdk.folder / "got" / "cat.txt").read_text() == "meow"


def made(printed: str) -> str:
    """The id that a command prints of what it made."""
    identity = re.search(r"created id=(\w+)", printed)
    assert identity is not None, printed
    return identity[1]
