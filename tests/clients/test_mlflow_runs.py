"""Runs of MLflow's client, in a folder and in SQLite: what arrives is what the client has, and what a model says.

In the folder, a metric's file of some runs is cut first, as by a crash, and whole in a second import.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import strategies as st

from apiserver.transfer.importing.runs.model import names_of
from tests.chance import drawn
from tests.clients.trackers import (
    Curves,
    check_again,
    curves_of,
    imported,
    missing_of,
    odd_times,
    overwritten,
    python,
    recorded,
    time_of,
)
from tests.harness import Served
from tests.transfer.importing.runs.test_taking import environment, tasks_of

__all__ = ["environment", "python"]
pytestmark = pytest.mark.hypothesis

#: As the script takes and gives them.
Run: TypeAlias = dict[str, Any]
#: A key, a value, a time and a step.
Point: TypeAlias = tuple[str, float, int, int]

T = 1_700_000_000_000
STATUSES = {"FINISHED": "completed", "FAILED": "failed", "KILLED": "stopped", "RUNNING": "in_progress"}
#: In MLflow's database, infinity.
_LARGEST = 1.7976931348623157e308


def points(steps: Iterable[int], key: str = "x", time: int = T) -> list[Point]:
    return [(key, number / 3, time + number, step) for number, step in enumerate(steps)]


def run(name: str, *given: Point, cut: float | None = None, **more: Any) -> Run:
    """A run, of which a part of the first metric's file is left at first."""
    usual = {
        "experiment": "models",
        "parent": None,
        "status": "FINISHED",
        "start": T,
        "end": T + 60_000,
        "deleted": False,
    }
    texts: Run = {"params": {}, "tags": {}, "files": {}}
    return {**usual, **texts, "name": name, "points": given, "cut": cut, **more}


VALUES = [math.nan, math.inf, -math.inf, 1e308, 5e-324, -0.5, 0.1]
NAMES = ["a b", "ü/ß", "val/loss", "x/y/z", "a.b-c_d", "a:b", "n" * 250, "日本", "x/x", "-1"]
#: Their projects.
EXPERIMENTS = {
    "models": "models",
    "/Users/a@b.com/exp": "Users/a@b.com/exp",
    "team//x": "team/x",
    "trailing/": "trailing",
    " padded / x ": "padded/x",
    "ü: #1 ä": "ü: #1 ä",
    "a/b/c/d/e/f/g/h/i/j/k/l": "a/b/c/d/e/f/g/h/i/j.k.l",
}
CASES = [
    *(run(f"experiment {number}", *points(range(3)), experiment=name) for number, name in enumerate(EXPERIMENTS)),
    run("parent", *points([1])),
    run("child", *points([1]), parent="parent"),
    run("grandchild", *points([1]), parent="child"),
    run("deleted", *points([1]), deleted=True),
    run("orphan", *points([1]), parent="deleted"),
    run("failed", *points(range(3)), status="FAILED"),
    run("killed", *points(range(3)), status="KILLED"),
    run("running", *points(range(3)), status="RUNNING", end=None),
    run("nothing"),
    run("values", *(("x", value, T + n, n) for n, value in enumerate(VALUES))),
    run("names", *(point for n, name in enumerate(NAMES) for point in points(range(n + 1), name))),
    run("far steps", *points([-(2**63), -1, 0, 2**31, 2**53 + 1, 2**63 - 1])),
    run("no steps", *points([0] * 30)),
    run("no steps at first", *points([0] * 30 + [1, 2, 3])),
    run("steps twice", *points([1, 2, 2, 3, 1, 1])),
    run("steps that go back", *points([5, 4, 3, 9, 8])),
    run("one point", *points([0])),
    run("times are steps", *points(range(50), time=0)),
    run("microseconds", *points(range(5), time=T * 1000)),
    run("many points", *points(range(2500))),
    run("many metrics", *((f"layer/{n}", n, T, n) for n in range(150))),
    run("params", params={"lr": "0.1", "layers.0": "8", "long": "x" * 6000, "ü b": "日本\n2", "a/b": "'\"\\", "e": ""}),
    run("tags", tags={f"tag {n}": f"ü {n}\nmore" for n in range(30)}),
    run("files", files={"a.txt": "1", "b/c d/ü.txt": "2", "b/e.json": "{}"}),
    run("cut", *points(range(100)), cut=0.5),
    run("cut to nothing", *points(range(5)), cut=0.0),
    run("cut to one step", *points([0, 0, 0, 1, 2]), cut=0.4),
]
_keys = st.sampled_from(["x", "val/loss", "a b", "ü"])
_steps = st.just(0) | st.integers(0, 12) | st.integers(-(2**63), 2**63 - 1)
RUNS: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {
        "points": st.lists(st.tuples(_keys, st.floats(), _steps), max_size=30),
        "status": st.sampled_from([*STATUSES]),
        "params": st.dictionaries(
            st.sampled_from(["lr", "a/b", "ü"]), st.text("ab ü\n'\"日", max_size=20).map(str.strip)
        ),
        "time": st.sampled_from([T, T, 0, T * 1000]),
        "cut": st.none() | st.floats(0, 1),
    }
)


def models(count: int) -> list[Run]:
    """Any runs; each of their points is later than the one before."""
    found = []
    for number, one in enumerate(drawn(RUNS, count)):
        some = [(key, value, one["time"] + n, step) for n, (key, value, step) in enumerate(one["points"])]
        end = None if one["status"] == "RUNNING" else T + 1000
        more = {"status": one["status"], "end": end, "params": one["params"]}
        found.append(run(f"any {number}", *some, cut=one["cut"], **more))
    return found


# --- what is to arrive -----------------------------------------------------------------------------


def curves(run: Run) -> Curves:
    """The curves of a run: of one step the last point, or all numbered, if there is no other step."""
    found: Curves = {}
    for key in dict.fromkeys(key for key, *_ in run["points"]):
        some = sorted((time, step, value) for name, value, time, step in run["points"] if name == key)
        is_numbered = len(some) > 1 and len({step for _, step, _ in some}) == 1
        found[names_of(key)] = {
            number if is_numbered else step: (time_of(time) or T, _value(value))
            for number, (time, step, value) in enumerate(some)
        }
    return found


def _value(value: float) -> str:
    return repr(math.copysign(math.inf, value) if abs(value) == _LARGEST else value)


def told(run: Run) -> Run:
    """A run in a form to compare, without what MLflow gives it. Its database has no -0.0."""
    wanted = ("experiment", "name", "parent", "status", "start", "end", "params", "tags")
    some = {(key, _value(value + 0.0), time, step) for key, value, time, step in run["points"]}
    return {**{name: run[name] for name in wanted}, "points": sorted(some), "files": sorted(run["files"])}


def cut(store: Path, own: dict[str, Run], runs: list[Run]) -> dict[str, tuple[Path, bytes]]:
    """Cut the first metric's file of some runs, and take what is cut off from `own`.

    By run, the file and what was in it.
    """
    whole = {}
    for one in runs:
        if one["cut"] is not None and one["points"] and one["name"] in own:
            run = own[one["name"]]
            key = min(key for key, *_ in run["points"])
            path = store / run["place"] / run["id"] / "metrics" / key
            content = path.read_bytes()
            path.write_bytes(left := content[: int(len(content) * one["cut"])])
            of_key = [point for point in run["points"] if point[0] == key][: left.count(b"\n")]
            run["points"] = [point for point in run["points"] if point[0] != key] + of_key
            whole[one["name"]] = path, content
    return whole


# --- what arrives ----------------------------------------------------------------------------------


def check(
    server: Served, own: dict[str, Run], report: dict[str, Any], broken: set[str], *, at_once: bool = True
) -> None:
    """Compare with what MLflow's client has; the metrics of `broken` end in the middle of a line.

    `at_once`: all was imported by the import of the report. One that repeats another point is told only once.
    """
    tasks = tasks_of(server)
    ids = {task["id"]: name for name, task in tasks.items()}
    projects = {one["id"]: one["name"] for one in server.call("projects.get_all", {})["projects"]}
    assert tasks.keys() == own.keys()
    for name, run in own.items():
        task, expected = tasks[name], curves(run)
        assert (name, curves_of(server, task["id"], expected)) == (name, expected)
        missing = missing_of(report, name)
        lost = len(run["points"]) - sum(map(len, expected.values()))
        assert (name, overwritten(report, name)) == (name, lost) or not at_once
        assert (name, odd_times(missing)) == (name, sum(time_of(point[2]) is None for point in run["points"]))
        assert (name, projects[task["project"]]) == (name, EXPERIMENTS[run["experiment"]])
        assert (name, _milliseconds(task, "started")) == (name, run["start"])
        assert (name, _milliseconds(task, "completed")) == (name, run["end"])
        assert (name, task["status"]) == (name, STATUSES[run["status"]])
        assert (name, ids.get(task.get("parent"))) == (name, run["parent"])
        params = {key: one["value"] for key, one in task.get("hyperparams", {}).get("params", {}).items()}
        assert (name, params) == (name, run["params"])
        tags = [f"{key}: {value}" if value else key for key, value in run["tags"].items()]
        assert (name, sorted(task["tags"])) == (name, sorted(tags))
        files = [one["key"] for one in task.get("execution", {}).get("artifacts", ())]
        assert (name, sorted(files)) == (name, run["files"])
        assert any("it is cut" in one["cause"] for one in missing) == (name in broken), name


def _milliseconds(task: dict[str, Any], field: str) -> int | None:
    return round(datetime.fromisoformat(task[field]).timestamp() * 1000) if task.get(field) else None


def forget(server: Served) -> None:
    """Delete all tasks."""
    for task in tasks_of(server).values():
        server.call("tasks.delete", {"task": task["id"], "force": True})


def test_what_arrives_is_what_mlflow_has(
    server: Served, environment: dict[str, str], python: Path, tmp_path: Path
) -> None:
    runs = [*CASES, *models(8)]
    found = recorded(python, "mlflow_runs.py", tmp_path, "mlruns", "sqlite:///mlflow.db", given=runs)
    there = {one["name"]: told(one) for one in runs if not one["deleted"]}
    for one in there.values():
        one["parent"] = one["parent"] if one["parent"] in there else None
    for own in found.values():
        assert {name: told(run) for name, run in own.items()} == there
    in_folder = found["mlruns"]
    check(server, found["sqlite:///mlflow.db"], imported("mlflow", tmp_path / "mlflow.db", "--files"), set())
    forget(server)
    as_read = {name: {**run} for name, run in in_folder.items()}
    whole = cut(tmp_path / "mlruns", in_folder, runs)
    broken = {name for name, (path, _) in whole.items() if path.read_bytes()[-1:] not in (b"", b"\n")}
    check(server, in_folder, imported("mlflow", tmp_path / "mlruns", "--files"), broken)
    for path, content in whole.values():
        path.write_bytes(content)
    report = imported("mlflow", tmp_path / "mlruns", "--files")
    check(server, as_read, report, set(), at_once=False)
    check_again("mlflow", tmp_path / "mlruns", report, "--files")
