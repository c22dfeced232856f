"""Tables: a row a point or a column a metric, in each format; and what is no number."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

from apiserver.cli import main
from apiserver.importing.runs.model import Problem
from apiserver.importing.runs.table import TableFile, TableRun
from tests.harness import Served
from tests.importing.runs.test_mlflow import points_of
from tests.importing.runs.test_taking import environment, series_of, tasks_of

__all__ = ["environment"]

LONG: list[dict[str, Any]] = [
    {"task": "a", "metric": "loss", "variant": "ü", "iter": 1, "timestamp": 1_700_000_000_000, "value": 0.1},
    {"task": "b", "metric": "x", "variant": "y", "iter": 2**63 - 1, "timestamp": 1_700_000_000_001, "value": -0.0},
    {"task": "a", "metric": "loss", "variant": "ü", "iter": -5, "timestamp": 1_700_000_000_002, "value": 1e-320},
]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    if path.suffix == ".csv":
        lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
        path.write_text("\n".join(lines) + "\n")
    elif path.suffix == ".ndjson":
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    else:
        core, io = pytest.importorskip("arro3.core"), pytest.importorskip("arro3.io")
        types = {int: core.DataType.int64(), float: core.DataType.float64(), str: core.DataType.utf8()}
        columns = {name: core.Array([row[name] for row in rows], type=types[type(rows[0][name])]) for name in rows[0]}
        io.write_parquet(core.Table.from_pydict(columns), path)
    return path


def taken(
    path: Path, metric: str | None = None
) -> tuple[dict[str, dict[tuple[str, str], list[tuple[int, int, str]]]], list[Problem]]:
    found, problems = {}, []
    source = TableFile(path, None, metric)
    for one in source.runs():
        if isinstance(one, TableRun):
            found[one.run.name] = points_of(list(one.parts(None)))
        elif isinstance(one, Problem):
            problems.append(one)
    return found, problems


@pytest.mark.parametrize("ending", ["csv", "ndjson", "parquet"])
def test_a_row_a_point(tmp_path: Path, ending: str) -> None:
    found, problems = taken(write(tmp_path / f"t.{ending}", LONG))
    assert not problems
    assert found == {
        "a": {("loss", "ü"): [(1, 1_700_000_000_000, "0.1"), (-5, 1_700_000_000_002, "1e-320")]},
        "b": {("x", "y"): [(2**63 - 1, 1_700_000_000_001, "-0.0")]},
    }


@pytest.mark.parametrize("ending", ["csv", "ndjson", "parquet"])
def test_a_column_a_metric(tmp_path: Path, ending: str) -> None:
    rows = [{"step": n, "wall_time": 1_700_000_000.25 + n, "loss/train": n / 3, "note": "text"} for n in range(5)]
    found, problems = taken(write(tmp_path / f"t.{ending}", rows))
    assert not problems
    assert found == {"t": {("loss", "train"): [(n, 1_700_000_000_250 + 1000 * n, repr(n / 3)) for n in range(5)]}}


def test_odd_cells(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        "step,timestamp,a,b\n1,2023-11-14T22:13:20Z,nan,\n2,,inf,-inf\n3.0,1700000000,text,1\n"
        "x,1,1,1\n4.5,1,1,1\n5,soon,1,1\n\n6,1\n7,1,1e400,1,5\n8,1,1e400,\n"
    )
    os.utime(path, (1_600_000_000, 1_600_000_000))
    found, problems = taken(path)
    assert found["t"]["a", "a"] == [(1, 1_700_000_000_000, "nan"), (2, 1_600_000_000_000, "inf")]
    assert found["t"]["b", "b"] == [(2, 1_600_000_000_000, "-inf"), (3, 1_700_000_000_000, "1.0")]
    assert [one.cause for one in problems] == [
        "1 × more cells than the header has: line 10",
        "1 × a time that is none: line 7",
        "2 × no step that is a whole number: line 5, line 6",
        "2 × no value that is a number: line 4 ('a'), line 11 ('a')",
    ]


def test_rows_that_are_no_points(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("task,metric,value\nx,loss,oops\nx,loss,1\nx,,2\nx,loss\ny,loss,oops\n")
    found, problems = taken(path)
    assert found.keys() == {"x"}
    assert [row[2] for row in found["x"]["loss", "loss"]] == ["1.0"]
    assert [one.cause for one in problems] == [
        "1 × no metric: line 4",
        "3 × no value that is a number: line 2 ('value'), line 5 ('value'), line 6 ('value')",
    ]


def test_a_broken_line_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "t.ndjson"
    path.write_text('{"step": 1, "a": NaN}\nno\n[1]\n\n{"step": 2, "a": -Infinity}\n{"step": 3, "a": 1e400}\n')
    found, problems = taken(path)
    assert [(step, value) for step, _, value in found["t"]["a", "a"]] == [(1, "nan"), (2, "-inf")]
    assert [one.cause for one in problems] == [
        "2 × a line that is no JSON object: line 2, line 3",
        "1 × no value that is a number: line 6 ('a')",
    ]


def test_what_tensorboard_writes(tmp_path: Path) -> None:
    table = "Wall time,Step,Value\n1700000000.5,10,0.25\n1700000001.5,20,0.125\n"
    points = [(10, 1_700_000_000_500, "0.25"), (20, 1_700_000_001_500, "0.125")]
    for name, task, metric in (("run-a-b-tag-loss", "a-b", "loss"), ("acc", "acc", "acc")):
        (tmp_path / f"{name}.csv").write_text(table)
        assert taken(tmp_path / f"{name}.csv") == ({task: {(metric, metric): points}}, [])
    assert taken(tmp_path / "acc.csv", "x/y") == ({"acc": {("x", "y"): points}}, [])


def test_one_column_has_the_steps(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("Epoch,step,a\n1,10,0.5\n")
    found, _ = taken(tmp_path / "t.csv")
    assert [(name, rows[0][0], rows[0][2]) for name, rows in found["t"].items()] == [
        (("Epoch", "Epoch"), 10, "1.0"),
        (("a", "a"), 10, "0.5"),
    ]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_what_wandb_writes(tmp_path: Path, separator: str) -> None:
    path = tmp_path / "t.csv"
    lines = [["Step", "a - loss", "a - loss__MIN"], ["0", "0.5", "0.25"], ["2", "0.75", ""]]
    path.write_text("".join(separator.join(f'"{cell}"' for cell in line) + "\n" for line in lines))
    found, problems = taken(path)
    assert not problems
    assert {name: [(step, value) for step, _, value in rows] for name, rows in found["t"].items()} == {
        ("a - loss", "a - loss"): [(0, "0.5"), (2, "0.75")],
        ("a - loss__MIN", "a - loss__MIN"): [(0, "0.25")],
    }


def test_what_is_no_table(tmp_path: Path) -> None:
    for name, content in (("t.ndjson", "no\n"), ("t.ndjson", "[1]\n"), ("t.parquet", "PAR1 no"), ("t.csv", 'a\n"')):
        (tmp_path / name).write_text(content)
        found, problems = taken(tmp_path / name)
        assert not found
        assert bool(problems) == (name != "t.csv")
    (tmp_path / "empty.csv").write_text("")
    assert taken(tmp_path / "empty.csv") == ({}, [])


def test_tables_are_taken_once(
    server: Served, environment: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "old.csv", [*LONG, {**LONG[0], "iter": 7, "value": math.nan}])
    assert main(["import", "table", str(path), "--project", "p"]) == 0
    tasks = tasks_of(server)
    assert tasks.keys() == {"a", "b"}
    assert series_of(server, tasks["a"]["id"]) == {"loss": {"ü": {"x": [-5, 1, 7], "y": [1e-320, 0.1, None]}}}
    capsys.readouterr()
    assert main(["import", "table", str(path), "--project", "p"]) == 0
    assert "runs: 2 found, 0 imported, 2 imported before" in capsys.readouterr().err
    assert tasks_of(server) == tasks


def test_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from apiserver.importing.report import ImportFailed

    (tmp_path / "t.parquet").write_text("")
    monkeypatch.setitem(sys.modules, "arro3.io", None)
    with pytest.raises(ImportFailed, match="run 'make parquet'"):
        taken(tmp_path / "t.parquet")
