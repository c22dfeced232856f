"""MLflow's stores, written by hand: odd numbers, broken lines, and what attackers write into them."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.cli import main
from apiserver.common.protobuf_wire import Malformed
from apiserver.transfer.importing.report import ImportFailed
from apiserver.transfer.importing.runs.mlflow.experiments import Mlflow, MlflowRun
from apiserver.transfer.importing.runs.mlflow.files import FileStore
from apiserver.transfer.importing.runs.mlflow.opening import store_at
from apiserver.transfer.importing.runs.mlflow.rest import RestStore
from apiserver.transfer.importing.runs.mlflow.stores import Recorded
from apiserver.transfer.importing.runs.mlflow.yaml import flat_yaml
from apiserver.transfer.importing.runs.model import Again, Artifact, Part, Points, Position, Problem, Unmapped
from tests.harness import Served
from tests.transfer.importing.runs.test_taking import environment, series_of, tasks_of

__all__ = ["environment"]
yaml: Any = import_module("yaml")
RUN, OTHER = "0123456789abcdef" * 2, "f" * 32
START = 1_700_000_000_000
#: In MLflow's database and on its server, infinity.
LARGEST = 1.7976931348623157e308


def lines(*points: tuple[float, int], start: int = START) -> str:
    """The lines of a metric's file: values and steps, a millisecond apart."""
    return "".join(f"{start + n} {value} {step}\n" for n, (value, step) in enumerate(points))


def make_run(store: Path, run: str = RUN, *, metrics: dict[str, str] | None = None, **more: Any) -> Path:
    """A run of a file store."""
    experiment = store / "7"
    folder = experiment / run
    (folder / "artifacts").mkdir(parents=True)
    (folder / "metrics").mkdir()
    (experiment / "meta.yaml").write_text(yaml.safe_dump({"experiment_id": "7", "name": "Ex: 'ä' #1"}))
    about = {"run_id": run, "run_name": "one", "status": 3, "start_time": START, "end_time": None, **more}
    (folder / "meta.yaml").write_text(yaml.safe_dump(about))
    files = {f"metrics/{key}": text for key, text in (metrics or {}).items()}
    for key, text in {**files, "params/l.r": "0.1"}.items():
        (folder / key).parent.mkdir(parents=True, exist_ok=True)
        (folder / key).write_text(text)
    return folder


def run_of(place: Path | str, *, with_files: bool = True) -> MlflowRun:
    found = Mlflow(store_at(str(place)), None, with_files=with_files).runs()
    (run,) = [one for one in found if isinstance(one, MlflowRun)]
    return run


def parts_of(place: Path | str, position: str | None = None, *, with_files: bool = True) -> list[Part]:
    return list(run_of(place, with_files=with_files).parts(position))


def last_position(parts: list[Part]) -> str:
    return [part.text for part in parts if isinstance(part, Position)][-1]


def problems_of(parts: list[Part]) -> list[tuple[str, str, int]]:
    return [(part.of, part.reason, part.count) for part in parts if isinstance(part, Problem)]


def files_of(parts: list[Part]) -> list[str]:
    return [part.name for part in parts if isinstance(part, Artifact)]


def points_of(parts: list[Part]) -> dict[tuple[str, str], list[tuple[int, int, str]]]:
    found: dict[tuple[str, str], list[tuple[int, int, str]]] = {}
    for part in parts:
        if isinstance(part, Points):
            rows = zip(part.iters.tolist(), part.timestamps.tolist(), map(repr, part.values.tolist()), strict=True)
            found.setdefault((part.metric, part.variant), []).extend(rows)
    return found


def since_start(parts: list[Part]) -> dict[tuple[str, str], list[tuple[int, int, str]]]:
    """The same with milliseconds since START."""
    of = points_of(parts).items()
    return {series: [(step, time - START, value) for step, time, value in points] for series, points in of}


def test_a_file_store(tmp_path: Path) -> None:
    metrics = {
        "loss": f"{START + 5} 0.1 1\n{START + 6} nan 2\n{START + 7} -inf 9223372036854775807\n",
        "val/acc": f"{START + 1} 1.5\n{START + 2} 2.5 7 data digest\n",
        "same": lines(*((n, 0) for n in range(5))),
        "bad": f"{START + 1} 1 1\nx y z\n\n{START + 2} 2 2 \n3 3 99999999999999999999\n{START + 4} 4 4\n",
    }
    make_run(tmp_path, metrics=metrics)
    parts = parts_of(tmp_path)
    assert since_start(parts) == {
        ("loss", "loss"): [(1, 5, "0.1"), (2, 6, "nan"), (2**63 - 1, 7, "-inf")],
        ("val", "acc"): [(0, 1, "1.5"), (7, 2, "2.5")],
        ("same", "same"): [(n, n, f"{n}.0") for n in range(5)],
        ("bad", "bad"): [(1, 1, "1.0"), (2, 2, "2.0"), (4, 4, "4.0")],
    }
    broken = [f"7/{RUN}/metrics/bad, line {line}" for line in (2, 5)]
    assert problems_of(parts) == [(place, "broken", 1) for place in broken]
    positions = [part.text for part in parts if isinstance(part, Position)]
    assert since_start(parts_of(tmp_path, positions[1])).keys() == {("same", "same"), ("val", "acc")}
    assert since_start(parts_of(tmp_path, positions[-1])) == {}


def test_a_metric_is_read_in_pieces(tmp_path: Path) -> None:
    make_run(tmp_path, metrics={"m": lines(*((n / 7, n) for n in range(1000)))})
    expected = [(n, n, repr(n / 7)) for n in range(1000)]
    (run,) = Mlflow(FileStore(tmp_path, block=100), None).runs()
    assert isinstance(run, MlflowRun)
    assert since_start(list(run.parts(None))) == {("m", "m"): expected}


def test_nothing_outside_the_store_is_read(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_text("secret")
    store = tmp_path / "mlruns"
    folder = make_run(store, metrics={}, artifact_uri=f"file://{tmp_path}/secret")
    (folder / "artifacts" / "own.txt").write_text("own")
    (folder / "artifacts" / "link").symlink_to(tmp_path / "secret" / "key")
    (folder / "artifacts" / "folder").symlink_to(tmp_path / "secret")
    parts = parts_of(store)
    assert files_of(parts) == ["own.txt"]
    assert problems_of(parts) == [("artifact folder", "absent", 1), ("artifact link", "absent", 1)]
    (store / "7" / "linked").symlink_to(folder.rename(tmp_path / "elsewhere"))
    (problem,) = Mlflow(store_at(str(store)), None).runs()
    assert isinstance(problem, Problem)
    assert "leads out" in problem.cause


@pytest.mark.parametrize("points", [2, 60])
def test_points_of_one_step_are_numbered(tmp_path: Path, points: int) -> None:
    metrics = {"same": lines(*((n, 0) for n in range(points))), "late": lines(*((n, 0) for n in range(points)), (9, 1))}
    make_run(tmp_path, metrics=metrics)
    (run,) = Mlflow(FileStore(tmp_path, block=100), None).runs()
    assert isinstance(run, MlflowRun)
    parts = list(run.parts(None))
    found = since_start(parts)
    assert [step for step, *_ in found["same", "same"]] == list(range(points))
    assert [step for step, *_ in found["late", "late"]] == [0] * points + [1]


@pytest.mark.parametrize(
    ("before", "after", "cleared"), [((0, 0), (0,), False), ((0, 0), (1,), True), ((5,), (5,), True)]
)
def test_points_that_were_numbered_otherwise_are_cleared(
    tmp_path: Path, before: tuple[int, ...], after: tuple[int, ...], cleared: bool
) -> None:
    path = make_run(tmp_path, metrics={"m": lines(*((1, step) for step in before))}) / "metrics" / "m"
    position = last_position(parts_of(tmp_path))
    with path.open("a") as file:
        file.write(lines(*((2, step) for step in after), start=START + 1000))
    first, *parts = parts_of(tmp_path, position)
    assert first == Again(cleared=cleared)
    assert len(since_start(parts)["m", "m"]) == len(before) + len(after)


def test_a_time_that_cannot_be_believed_is_that_of_the_run(tmp_path: Path) -> None:
    seconds = START // 1000
    times = [START + 1, seconds, (START + 2) * 1000, (START + 3) * 10**6, 7, -1, 2**63 - 1]
    make_run(tmp_path, metrics={"m": "".join(f"{time} 1 {step}\n" for step, time in enumerate(times))}, end_time=5)
    parts = parts_of(tmp_path)
    assert [time for _, time, _ in since_start(parts)["m", "m"]] == [1, 0, 2, 3, 0, 0, 0]
    assert problems_of(parts) == [("metric m", "broken", 3), ("end", "broken", 1)]
    run = run_of(tmp_path).run
    assert (run.started, run.completed) == (seconds, None)


def test_an_end_is_never_before_the_start(tmp_path: Path) -> None:
    make_run(tmp_path, end_time=START - 1000)
    run = run_of(tmp_path)
    assert run.run.completed == run.run.started == START / 1000
    assert problems_of(list(run.parts(None))) == [("end", "broken", 1)]


def test_a_line_that_is_cut_is_no_point(tmp_path: Path) -> None:
    good = lines((2, 0), (1.5, 1))
    metrics = {
        "number": f"{good}{START} 88.0 1",
        "value": f"{good}{START} 0.",
        "zeros": good + "\0" * 5000,
        "middle": f"{good}\0\0{START} 7 7\n1700\n{START} 7.5 9\n",
    }
    make_run(tmp_path, metrics=metrics)
    parts = parts_of(tmp_path)
    points = [(0, 0, "2.0"), (1, 1, "1.5")]
    expected = {(key, key): points for key in metrics} | {("middle", "middle"): [*points, (9, 0, "7.5")]}
    assert since_start(parts) == expected
    of = [("middle", 3), ("middle", 4), ("number", 3), ("value", 3), ("zeros", 3)]
    assert [place for place, *_ in problems_of(parts)] == [f"7/{RUN}/metrics/{key}, line {line}" for key, line in of]


def test_many_broken_lines_are_counted(tmp_path: Path) -> None:
    make_run(tmp_path, metrics={"m": "x\n" * 50})
    problems = problems_of(parts_of(tmp_path))
    assert len(problems) == 21
    assert problems[-1] == ("metric m", "broken", 30)


def test_a_file_that_is_mended_is_read_again(tmp_path: Path) -> None:
    path = make_run(tmp_path, metrics={"m": lines((1, 1)) + f"{START} 2 2"}) / "metrics" / "m"
    position = last_position(parts_of(tmp_path))
    with path.open("a") as file:
        file.write("2\n")
    first, *parts = parts_of(tmp_path, position)
    assert first == Again()
    assert since_start(parts) == {("m", "m"): [(1, 0, "1.0"), (22, 0, "2.0")]}
    assert not problems_of(parts)


@pytest.mark.parametrize(
    ("cut", "wrong", "name"),
    [
        (lambda text: "", "is empty", RUN),
        (lambda text: "\0" * len(text), "is empty", RUN),
        (lambda text: text[: text.index("one") + 1], "is cut", RUN),
        (lambda text: text[: text.index("start_time")], "is cut", "one"),
        (lambda text: text.replace("status: 3", "status: \0"), "is cut", "one"),
        (lambda text: 'run_name: "o\nstatus: 3\n', "cannot be read", RUN),
    ],
)
def test_what_is_left_of_a_runs_description_is_taken(
    tmp_path: Path, cut: Callable[[str], str], wrong: str, name: str
) -> None:
    folder = make_run(tmp_path, metrics={"m": lines((1, 1))})
    text = (folder / "meta.yaml").read_text()
    (folder / "meta.yaml").write_text(cut(text))
    run = run_of(tmp_path)
    parts = list(run.parts(None))
    assert run.run.name == name
    assert run.run.parameters["params"] == {"l.r": "0.1"}
    assert since_start(parts).keys() == {("m", "m")}
    ((of, cause),) = [(part.of, part.cause) for part in parts if isinstance(part, Problem)]
    assert of == f"7/{RUN}/meta.yaml"
    assert wrong in cause
    assert problems_of(list(run.parts(last_position(parts)))), "it is said in each import"


def test_a_folder_without_a_description_is_named(tmp_path: Path) -> None:
    (make_run(tmp_path) / "meta.yaml").unlink()
    (tmp_path / "models" / "m" / "artifacts").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    (problem,) = Mlflow(FileStore(tmp_path), None).runs()
    assert isinstance(problem, Problem)
    assert (problem.of, problem.reason) == (f"7/{RUN}", "absent")


@pytest.mark.parametrize("left", [None, "", "experiment_id: '7'\nname: Ex"])
def test_runs_of_an_experiment_without_a_name_are_taken(tmp_path: Path, left: str | None) -> None:
    make_run(tmp_path)
    meta = tmp_path / "7" / "meta.yaml"
    meta.unlink()
    if left is not None:
        meta.write_text(left)
    problem, run = Mlflow(FileStore(tmp_path), None).runs()
    assert isinstance(problem, Problem)
    assert isinstance(run, MlflowRun)
    assert (problem.of, run.run.project) == ("7", "7")


def test_a_parameter_of_nuls_costs_only_itself(tmp_path: Path) -> None:
    (make_run(tmp_path) / "params" / "lost").write_text("\0\0")
    run = run_of(tmp_path)
    assert run.run.parameters["params"] == {"l.r": "0.1"}
    assert problems_of(list(run.parts(None))) == [(f"7/{RUN}/params/lost", "broken", 1)]


def test_what_was_deleted_there_is_named(tmp_path: Path) -> None:
    make_run(tmp_path, lifecycle_stage="deleted")
    make_run(tmp_path / ".trash")
    deleted = [Unmapped("deleted experiment", "Ex: 'ä' #1", True), Unmapped("deleted run", "one", True)]
    assert list(Mlflow(FileStore(tmp_path), None).runs()) == deleted


@pytest.mark.parametrize("lifecycle", ["active", "deleted"])
def test_a_nested_run_has_its_parent(tmp_path: Path, lifecycle: str) -> None:
    """Also if the parent comes later."""
    child = make_run(tmp_path)
    make_run(tmp_path, OTHER, lifecycle_stage=lifecycle)
    (child / "tags").mkdir()
    (child / "tags" / "mlflow.parentRunId").write_text(OTHER)
    run = next(run for run in Mlflow(FileStore(tmp_path), None).runs() if isinstance(run, MlflowRun))
    unmapped = [(part.kind, part.name) for part in run.parts(None) if isinstance(part, Unmapped)]
    if lifecycle == "active":
        assert (run.run.task, unmapped) == ({"parent_source": f"mlflow {OTHER}"}, [])
    else:
        assert (run.run.task, unmapped) == ({}, [("parent that is not in the store", OTHER)])


@pytest.mark.parametrize(("parent", "has"), [(RUN, True), ("x", False), ("y", False), ("*", False)])
def test_a_parent_in_a_database(tmp_path: Path, parent: str, has: bool) -> None:
    """That of a deleted run, or of none, is not there."""
    database(tmp_path / "mlflow.db", [])
    make_run(tmp_path / "mlruns")
    assert store_at(str(tmp_path / "mlflow.db")).has(parent) == has
    assert store_at(str(tmp_path / "mlruns")).has(parent) == has


def database(path: Path, rows: list[tuple[Any, ...]], artifacts: str = "", experiment: str = "ex") -> None:
    with closing(sqlite3.connect(path)) as made, made:
        made.executescript(
            "CREATE TABLE experiments (experiment_id INTEGER, name TEXT);"
            "CREATE TABLE runs (run_uuid TEXT, name TEXT, status TEXT, start_time BIGINT, end_time BIGINT, "
            "artifact_uri TEXT, lifecycle_stage TEXT, experiment_id INTEGER);"
            "CREATE TABLE metrics (key TEXT, value FLOAT, timestamp BIGINT, run_uuid TEXT, step BIGINT, is_nan INT);"
            "CREATE TABLE params (key TEXT, value TEXT, run_uuid TEXT);"
            "CREATE TABLE tags (key TEXT, value TEXT, run_uuid TEXT);"
        )
        made.execute("INSERT INTO experiments VALUES (1, ?)", (experiment,))
        run = (RUN, "one", "KILLED", START, START + 60_000, artifacts, "active", 1)
        made.execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?)", run)
        made.execute("INSERT INTO runs VALUES ('x', 'gone', 'FAILED', 1, 2, '', 'deleted', 1)")
        made.execute("INSERT INTO params VALUES ('lr', '0.1', ?)", (RUN,))
        made.executemany("INSERT INTO tags VALUES (?, ?, ?)", [("a", "b", RUN), ("mlflow.note.content", "hi", RUN)])
        made.executemany(f"INSERT INTO metrics VALUES (?, ?, ?, '{RUN}', ?, ?)", rows)


@pytest.mark.parametrize(
    ("said", "lies"),
    [
        ("mlflow-artifacts:/1/{run}/artifacts", "mlartifacts/1/{run}/artifacts"),
        ("mlflow-artifacts://server:5000/1/{run}/artifacts", "mlartifacts/1/{run}/artifacts"),
        ("/old/place/mlruns/1/{run}/artifacts", "mlruns/1/{run}/artifacts"),
        ("file:///old%20place/mlruns/1/{run}/artifacts", "mlruns/1/{run}/artifacts"),
        ("file:///C:/old/mlruns/1/{run}/artifacts", "mlruns/1/{run}/artifacts"),
        ("C:\\old\\mlruns\\1\\{run}\\artifacts", "mlruns/1/{run}/artifacts"),
        ("./mlruns/1/{run}/artifacts", "mlruns/1/{run}/artifacts"),
        ("/old/shared/{run}/artifacts", "shared/{run}/artifacts"),
        ("s3://bucket/copied/1/{run}/artifacts", "copied/1/{run}/artifacts"),
        ("{here}/own/files", "own/files"),
    ],
)
def test_artifacts_are_found_beside_the_database(tmp_path: Path, said: str, lies: str) -> None:
    database(tmp_path / "mlflow.db", [], artifacts=said.format(run=RUN, here=tmp_path))
    absent = [("artifacts", "absent", 1)]
    before = parts_of(tmp_path / "mlflow.db")
    assert (problems_of(before), files_of(before)) == (absent, [])
    assert not problems_of(parts_of(tmp_path / "mlflow.db", with_files=False))
    folder = tmp_path / lies.format(run=RUN)
    (folder / "notes").mkdir(parents=True)
    (folder / "notes" / "a.txt").write_text("a")
    (folder / "link").symlink_to("notes/a.txt")
    later = parts_of(tmp_path / "mlflow.db", last_position(before))
    assert (problems_of(later), files_of(later)) == ([], ["link", "notes/a.txt"])


@pytest.mark.parametrize("said", ["{out}/{run}/artifacts", "file://{out}/{run}/artifacts", "../out/{run}/artifacts"])
def test_artifacts_outside_of_the_databases_folder_are_not_read(tmp_path: Path, said: str) -> None:
    (tmp_path / "store").mkdir()
    database(tmp_path / "store" / "mlflow.db", [], artifacts=said.format(out=tmp_path / "out", run=RUN))
    (tmp_path / "out" / RUN / "artifacts").mkdir(parents=True)
    (tmp_path / "out" / RUN / "artifacts" / "secret").write_text("secret")
    (tmp_path / "store" / RUN).symlink_to(tmp_path / "out" / RUN)
    parts = parts_of(tmp_path / "store" / "mlflow.db")
    assert (problems_of(parts), files_of(parts)) == ([("artifacts", "absent", 1)], [])


@pytest.mark.parametrize(
    "said", ["s3://bucket/7/{run}/artifacts", "mlflow-artifacts:/7/{run}/artifacts", "/ex/{run}/artifacts"]
)
def test_artifacts_of_a_folder_that_are_elsewhere_are_named(tmp_path: Path, said: str) -> None:
    make_run(tmp_path, artifact_uri=said.format(run=RUN))
    assert problems_of(parts_of(tmp_path)) == [("artifacts", "absent", 1)]


@pytest.mark.parametrize("said", ["http://[x", "mlflow-artifacts:/{run}/" + "x" * 300, "\0/{run}"])
def test_artifacts_at_an_odd_address_are_named(tmp_path: Path, said: str) -> None:
    database(tmp_path / "mlflow.db", [("m", 1.0, START, 1, 0)], artifacts=said.format(run=RUN))
    parts = parts_of(tmp_path / "mlflow.db")
    assert [(part.of, part.count) for part in parts if isinstance(part, Problem)] == [("artifacts", 1)]
    assert since_start(parts) == {("m", "m"): [(1, 0, "1.0")]}


def test_a_run_without_artifacts_misses_none(tmp_path: Path) -> None:
    make_run(tmp_path, artifact_uri=f"file:///old/7/{RUN}/artifacts")
    assert not problems_of(parts_of(tmp_path))


def test_artifacts_that_come_later(
    server: Served, environment: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def imported() -> tuple[int, list[str]]:
        code = main(["import", "mlflow", str(tmp_path / "mlflow.db"), "--files"])
        counts = ("runs: ", "artifacts: ", "missing: ")
        return code, [line for line in capsys.readouterr().err.splitlines() if line.startswith(counts)]

    database(
        tmp_path / "mlflow.db", [("m", 1.0, START, 1, 0)], f"mlflow-artifacts:/1/{RUN}/artifacts", "/Users/a@b/ex/"
    )
    assert imported() == (1, ["runs: 1 found, 1 imported, 0 imported before", "missing: 1 absent"])
    assert imported() == (1, ["runs: 1 found, 0 imported, 1 imported before", "missing: 1 absent"])
    folder = tmp_path / "mlartifacts" / "1" / RUN / "artifacts"
    folder.mkdir(parents=True)
    (folder / "a.txt").write_text("a")
    updated = "runs: 1 found, 1 imported (1 updated), 0 imported before"
    assert imported() == (0, [updated, "artifacts: 1 found, 1 imported, 0 imported before"])
    known = "runs: 1 found, 0 imported, 1 imported before"
    assert imported() == (0, [known, "artifacts: 1 found, 0 imported, 1 imported before"])
    (folder / "a.txt").write_text("b")
    assert imported() == (0, [updated, "artifacts: 1 found, 1 imported, 0 imported before"])
    (task,) = tasks_of(server).values()
    with server.client() as client:
        assert [client.get(one["uri"]).text for one in task["execution"]["artifacts"]] == ["b"]
    assert server.call("projects.get_by_id", {"project": task["project"]})["project"]["name"] == "Users/a@b/ex"


def test_a_database(server: Served, environment: dict[str, str], tmp_path: Path) -> None:
    rows = [("x/y", 0.1 * n, START + n, n, 0) for n in range(100)]
    rows += [("odd", 0.0, START, 1, 1), ("odd", LARGEST, START, 2, 0), ("odd", -LARGEST, START, 3, 0)]
    database(tmp_path / "mlflow.db", rows)
    odd = since_start(parts_of(tmp_path / "mlflow.db"))["odd", "odd"]
    assert odd == [(1, 0, "nan"), (2, 0, "inf"), (3, 0, "-inf")]
    assert main(["import", "mlflow", f"sqlite:///{tmp_path}/mlflow.db", "--project", "old"]) == 0
    (task,) = tasks_of(server).values()
    assert (task["name"], task["status"], task["tags"], task["comment"]) == ("one", "stopped", ["a: b"], "hi")
    assert (task["active_duration"], task["hyperparams"]["params"]["lr"]["value"]) == (60, "0.1")
    series = series_of(server, task["id"])
    assert series["x"]["y"]["y"] == [0.1 * n for n in range(100)]
    assert series["odd"]["odd"]["x"] == [1, 2, 3]


def test_the_summary_tells_new_runs_from_updated_and_moved_ones(
    server: Served, environment: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def summary(*more: str) -> str:
        assert main(["import", "mlflow", str(tmp_path / "mlruns"), *more]) == 0
        [line] = [line for line in capsys.readouterr().err.splitlines() if line.startswith("runs: ")]
        return line.removeprefix("runs: ")

    one, other, third = (f"{n}" * 32 for n in range(3))
    for run in (one, other):
        make_run(tmp_path / "mlruns", run, metrics={"m": lines((1, 1))}, run_name=run)
    assert summary() == "2 found, 2 imported, 0 imported before"
    with (tmp_path / "mlruns" / "7" / one / "metrics" / "m").open("a") as file:
        file.write(lines((2, 2)))
    assert summary() == "2 found, 1 imported (1 updated), 1 imported before"
    make_run(tmp_path / "mlruns", third, metrics={"m": lines((1, 1))}, run_name=third)
    assert summary("--project", "old") == "3 found, 3 imported (1 new, 2 moved to another project), 0 imported before"
    assert summary("--project", "old") == "3 found, 0 imported, 3 imported before"
    assert tasks_of(server).keys() == {one, other, third}


def test_a_hostile_database(tmp_path: Path, capsys: pytest.CaptureFixture[str], environment: dict[str, str]) -> None:
    (tmp_path / "store").mkdir()
    rows: list[tuple[Any, ...]] = [("m", "text", START, 1, 0), ("m", 1.0, None, 2, 0), ("m", 1.0, START, 3, 0)]
    database(tmp_path / "store" / "mlflow.db", rows, artifacts=f"file://{tmp_path}")
    (tmp_path / "secret").write_text("secret")
    parts = parts_of(tmp_path / "store" / "mlflow.db")
    assert since_start(parts) == {("m", "m"): [(3, 0, "1.0")]}
    broken = [("metric m, step 1", "broken", 1), ("metric m, step 2", "broken", 1)]
    assert problems_of(parts) == [*broken, ("artifacts", "absent", 1)]
    assert not files_of(parts)
    (tmp_path / "no.db").write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    assert main(["import", "mlflow", str(tmp_path / "no.db")]) == 2
    assert "MLflow's database" in capsys.readouterr().err


#: Names have no line breaks.
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=200)


@pytest.mark.test
@given(st.dictionaries(st.sampled_from(["name", "run_name", "x_1"]), TEXTS | st.just(" ".join(["long words"] * 30))))
def test_yaml_is_read_as_it_is_written(entries: dict[str, str]) -> None:
    text = yaml.dump(entries, default_flow_style=False, allow_unicode=True, Dumper=yaml.SafeDumper)
    assert flat_yaml(text) == entries, text


def test_yaml_of_other_types() -> None:
    assert flat_yaml("a: null\nb: 3\nc: ''\nd: []\ne: 'null'\n") == {"a": "", "b": "3", "c": "", "e": "null"}


def test_hostile_yaml() -> None:
    doubled = "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))
    assert flat_yaml(f"name: x\na0: &a0 y\n{doubled}run_id: z\n") == {"name": "x", "a0": "y", "run_id": "z"}
    assert flat_yaml("name: !!python/object/apply:os.system [exit]\nb: !!int x\n") == {"b": "x"}
    for text in ("a: " + "[" * 100_000, "a: 'x", "\x01", "a: b: c", "- *x\n- ]"):
        with pytest.raises(ValueError, match=r"line|too deep|character"):
            flat_yaml(text)
    assert flat_yaml("") == flat_yaml("3") == flat_yaml("- 3") == {}


def test_the_folder_in_which_mlflow_was_started_has_the_store(tmp_path: Path) -> None:
    database(tmp_path / "mlflow.db", [("m", 1.0, START, 3, 0)])
    (tmp_path / "mlruns" / "1" / RUN / "artifacts").mkdir(parents=True)
    assert since_start(parts_of(tmp_path)) == {("m", "m"): [(3, 0, "1.0")]}
    with pytest.raises(ImportFailed, match=r"no runs: import '.*mlflow\.db'"):
        store_at(str(tmp_path / "mlruns"))
    make_run(tmp_path / "mlruns", OTHER, metrics={"m": lines((2.0, 4))})
    with pytest.raises(ImportFailed, match=r"has two stores, 'mlflow\.db' and 'mlruns'"):
        store_at(str(tmp_path))
    (tmp_path / "mlflow.db").unlink()
    assert (
        since_start(parts_of(tmp_path)) == since_start(parts_of(tmp_path / "mlruns")) == {("m", "m"): [(4, 0, "2.0")]}
    )


class FakeServer(BaseHTTPRequestHandler):
    """Answers as MLflow's server does: pages, NaN as text, and files."""

    def answer(self, found: Any) -> None:
        data = found if isinstance(found, bytes) else json.dumps(found).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert self.headers["Authorization"] == "Bearer tok"
        if self.path.endswith("/experiments/search"):
            self.answer({"experiments": [{"experiment_id": "1", "name": "ex"}]})
            return
        data = {"params": [{"key": "lr", "value": "0.1"}], "tags": [{"key": "a", "value": "b"}]}
        times = {"start_time": START, "end_time": START + 1000}
        info = {"run_id": RUN, "run_name": "one", "status": "FINISHED", **times}
        pages = {
            None: {"runs": [{"info": {**info, "lifecycle_stage": "deleted"}}, {"data": data}], "next_page_token": "t"},
            "t": {"runs": [{"info": info, "data": data}]},
        }
        self.answer(pages[asked.get("page_token")])

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(url.query).items()}
        if url.path.endswith("/runs/get"):
            metrics = [{"key": key, "value": 1, "timestamp": START, "step": 1} for key in ("x/y", "odd")]
            self.answer({"run": {"data": {"metrics": metrics}}})
        elif url.path.endswith("/metrics/get-history"):
            start = int(asked.get("page_token", 0))
            odd = [{"value": value, "timestamp": START, "step": step} for value, step in (("NaN", 0), (LARGEST, 2**40))]
            rows = [{"value": n / 3, "timestamp": START + n, "step": n} for n in range(start, start + 10)]
            more = {"next_page_token": str(start + 10)} if start < 20 else {}
            self.answer({"metrics": odd} if asked["metric_key"] == "odd" else {"metrics": rows, **more})
        elif url.path.endswith("/artifacts/list"):
            file = {"path": "d/a.txt", "file_size": 4}
            self.answer({"files": [file] if asked.get("path") == "d" else [{"path": "d", "is_dir": True}]})
        else:
            self.answer(asked["path"].encode()[:4])

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def test_a_server(
    server: Served, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "tok")
    with ThreadingHTTPServer(("127.0.0.1", 0), FakeServer) as fake:
        thread = threading.Thread(target=fake.serve_forever)
        thread.start()
        place = f"http://127.0.0.1:{fake.server_address[1]}"
        try:
            codes = [main(["import", "mlflow", place, "--files"]) for _ in range(2)]
        finally:
            fake.shutdown()
            thread.join()
    said = capsys.readouterr().err
    assert codes == [1, 1]
    assert said.count("a run of the server: it is malformed") == 2
    assert "not mapped: 1 × deleted run (one)" in said
    assert "runs: 1 found, 0 imported, 1 imported before" in said
    (task,) = tasks_of(server).values()
    assert (task["name"], task["active_duration"], task["tags"]) == ("one", 1, ["a: b"])
    series = series_of(server, task["id"])
    assert series["x"]["y"] == {"x": list(range(30)), "y": [n / 3 for n in range(30)]}
    assert series["odd"]["odd"]["x"] == [0, 2**40]
    (artifact,) = task["execution"]["artifacts"]
    with server.client() as client:
        assert client.get(artifact["uri"]).text == "d/a."


class RefusingServer(FakeServer):
    """Has a run whose parent it does not know, and whose artifacts it cannot list."""

    def do_POST(self) -> None:
        if self.path.endswith("/experiments/search"):
            self.answer({"experiments": [{"experiment_id": "1", "name": "ex"}]})
        else:
            tags = [{"key": "mlflow.parentRunId", "value": OTHER}]
            self.answer({"runs": [{"info": {"run_id": RUN, "status": "FINISHED"}, "data": {"tags": tags}}]})

    def do_GET(self) -> None:
        if "/artifacts/list" in self.path or OTHER in self.path:
            self.send_error(500)
        elif "/get-history" in self.path:
            values = [{"value": 1, "timestamp": START, "step": 3}, {"value": "x", "timestamp": START, "step": 4}]
            self.answer({"metrics": [*values, {"value": 1}]})
        else:
            self.answer({"run": {"data": {"metrics": [{"key": "m"}]}}})


@pytest.mark.parametrize("with_files", [False, True])
def test_what_a_server_refuses_costs_only_itself(with_files: bool) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), RefusingServer) as fake:
        thread = threading.Thread(target=fake.serve_forever)
        thread.start()
        try:
            parts = parts_of(f"http://127.0.0.1:{fake.server_address[1]}", with_files=with_files)
        finally:
            fake.shutdown()
            thread.join()
    assert since_start(parts) == {("m", "m"): [(3, 0, "1.0")]}
    artifacts = [("artifacts", "broken", 1)] if with_files else []
    assert problems_of(parts) == [("metric m, step 4", "broken", 1), ("metric m, step 0", "broken", 1), *artifacts]
    assert [part.name for part in parts if isinstance(part, Unmapped)] == [OTHER]


def test_an_odd_answer_costs_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without data, without what it is of, and too large."""
    store = RestStore("http://127.0.0.1:9")
    info = {"run_id": RUN, "status": "FINISHED"}
    answers: list[Any] = [{"experiments": [{"experiment_id": n, "name": f"ex{n}"} for n in (1, 2)]}]
    answers += [Malformed("too large"), {"runs": [{"info": info, "data": None}, {"info": []}]}]
    answers += [Malformed("too large"), {"run": None}, {"run": {"info": info}}]

    def ask(*_: Any) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Malformed):
            raise answer
        return answer

    monkeypatch.setattr(store, "_ask", ask)
    found = list(store.runs())
    assert [one.of for one in found if isinstance(one, Problem)] == ["experiment ex1", "a run of the server"]
    assert [(one.id, one.params) for one in found if isinstance(one, Recorded)] == [(RUN, {})]
    assert [store.has(RUN) for _ in range(3)] == [False, False, True]


def test_no_such_server(capsys: pytest.CaptureFixture[str], environment: dict[str, str]) -> None:
    assert main(["import", "mlflow", "http://127.0.0.1:9"]) == 2
    assert "MLflow's server does not answer" in capsys.readouterr().err
