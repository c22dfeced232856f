"""Neptune's runs, in tables like those of neptune-exporter."""

from __future__ import annotations

import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.cli import main
from apiserver.transfer.importing.missing import Reason
from apiserver.transfer.importing.runs.model import (
    Again,
    Artifact,
    Figure,
    Line,
    Part,
    Points,
    Position,
    Problem,
    Unmapped,
)
from apiserver.transfer.importing.runs.neptune import NeptuneFolder, NeptuneRun
from tests.chance import examples
from tests.harness import Served
from tests.transfer.importing.runs.test_taking import environment, lines_of, series_of, tasks_of

__all__ = ["environment"]
core, io = pytest.importorskip("arro3.core"), pytest.importorskip("arro3.io")
T = core.DataType
T0 = 1_700_000_000_000
COLUMNS = {
    **{name: T.utf8() for name in ("project_id", "run_id", "attribute_path", "attribute_type", "string_value")},
    **{"step": T.float64(), "timestamp": T.int64(), "int_value": T.int64(), "float_value": T.float64()},
    **{"bool_value": T.bool(), "datetime_value": T.int64()},
}
NESTED = ("string_set_value", "file_value", "histogram_value")


def row(path: str, kind: str, **values: Any) -> dict[str, Any]:
    own = {"project_id": "team/proj", "run_id": "P-1", "attribute_path": path, "attribute_type": kind}
    return {**dict.fromkeys((*COLUMNS, *NESTED)), **own, **values}


def lists(values: list[list[Any] | None], type: Any) -> Any:
    offsets = np.cumsum([0, *(len(one or ()) for one in values)]).astype(np.int32)
    flat = [item for one in values for item in one or ()]
    return core.list_array(core.Array.from_numpy(offsets), core.Array(flat, type=type))


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    made = {name: core.Array([one[name] for one in rows], type=type) for name, type in COLUMNS.items()}
    files, histograms = ([one[name] or {} for one in rows] for name in NESTED[1:])
    paths = core.Array([one.get("path") for one in files], type=T.utf8())
    bins = [lists([one.get(name) for one in histograms], T.float64()) for name in ("edges", "values")]
    made["string_set_value"] = lists([one["string_set_value"] for one in rows], T.utf8())
    made["file_value"] = core.struct_array([paths], fields=[core.Field("path", paths.type)])
    fields = [core.Field(name, one.type) for name, one in zip(("edges", "values"), bins, strict=True)]
    made["histogram_value"] = core.struct_array(bins, fields=fields)
    made["step"] = made["step"].cast(T.decimal128(18, 6))
    made["timestamp"] = made["timestamp"].cast(T.timestamp("ms", tz="UTC"))
    io.write_parquet(core.Table.from_pydict(made), path)


def points(path: str, steps: list[float]) -> list[dict[str, Any]]:
    return [row(path, "float_series", step=step, timestamp=T0 + int(step), float_value=step / 3) for step in steps]


def test_a_run_is_taken(
    server: Served, environment: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "exports" / "data" / "team_proj_0a1b"
    write(
        data / "P-1_part_0.parquet",
        [
            row("sys/name", "string", string_value="one"),
            row("sys/tags", "string_set", string_set_value=["t2", "t1"]),
            row("sys/failed", "bool", bool_value=True),
            row("parameters/lr", "float", float_value=0.1),
            row("parameters/n", "int", int_value=2**53 + 1),
            *points("metrics/loss", [float(n) for n in range(100)]),
            row("logs/out", "string_series", step=1.5, timestamp=T0, string_value="hi ü"),
            row(
                "h",
                "histogram_series",
                step=2.0,
                timestamp=1_700_000_000_001,
                histogram_value={"edges": [0, 1], "values": [3]},
            ),
            row("data/x", "file", file_value={"path": "team_proj_0a1b/x.txt"}),
            row("data/etc", "file", file_value={"path": "../../../secret"}),
        ],
    )
    write(data / "P-1_part_1.parquet", points("metrics/loss", [100.0]))
    (tmp_path / "secret").write_text("secret")
    files = tmp_path / "exports" / "files" / "team_proj_0a1b"
    files.mkdir(parents=True)
    (files / "x.txt").write_text("file")
    assert main(["import", "neptune", str(tmp_path / "exports" / "data"), "--files"]) == 1
    said = capsys.readouterr().err
    assert "there is no file '../../../secret'" in said
    (task,) = tasks_of(server).values()
    assert (task["name"], task["status"], task["tags"]) == ("one", "failed", ["t1", "t2"])
    params = {name: one["value"] for name, one in task["hyperparams"]["parameters"].items()}
    assert params == {"lr": "0.1", "n": str(2**53 + 1)}
    expected = {"x": list(range(101)), "y": [n / 3 for n in range(101)]}
    assert series_of(server, task["id"]) == {"metrics": {"loss": expected}}
    assert lines_of(server, task["id"]) == ["hi ü"]
    (line,) = server.call("events.get_task_log", {"task": task["id"]})["events"]
    assert (line.get("iter"), line["step"]) == (None, 1.5)
    (artifact,) = task["execution"]["artifacts"]
    with server.client() as client:
        assert client.get(artifact["uri"]).text == "file"
    assert main(["import", "neptune", str(tmp_path / "exports" / "data")]) == 1
    assert "0 imported, 1 imported before" in capsys.readouterr().err


def test_lines_of_a_file_that_is_read_anew_are_not_doubled(
    server: Served, environment: dict[str, str], tmp_path: Path
) -> None:
    lines = [row("out", "string_series", step=float(n), timestamp=T0 + n, string_value=f"line {n}") for n in range(5)]
    for count in (2, 3, 5):
        write(tmp_path / "data" / "P-1_part_0.parquet", lines[:count])
        assert main(["import", "neptune", str(tmp_path / "data")]) == 0
        (task,) = tasks_of(server).values()
        assert lines_of(server, task["id"]) == [f"line {n}" for n in range(count)]


def parts_of(folder: Path, position: str | None = None) -> list[Part]:
    """The parts of the only run."""
    (run,) = NeptuneFolder(folder, None).runs()
    assert isinstance(run, NeptuneRun)
    return list(run.parts(position))


def series_in(parts: list[Part]) -> dict[tuple[str, str], list[tuple[int, float]]]:
    found: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for part in parts:
        if isinstance(part, Points):
            series = found.setdefault((part.metric, part.variant), [])
            series.extend(zip(part.iters.tolist(), part.values.tolist(), strict=True))
    return found


def last(parts: list[Part]) -> str:
    return [part.text for part in parts if isinstance(part, Position)][-1]


def test_points_at_decimal_steps_are_numbered_by_series(tmp_path: Path) -> None:
    histogram = {"edges": [0, 1], "values": [3]}
    kinds: list[tuple[str, str, dict[str, Any]]] = [
        ("log", "string_series", {"string_value": "x"}),
        ("h", "histogram_series", {"histogram_value": histogram}),
    ]
    write(
        tmp_path / "a_part_0.parquet",
        [
            *points("train/loss", [n / 10 for n in range(1, 11)]),
            *points("val/loss", [0.0, 10.0]),
            *(row(name, kind, step=n, timestamp=T0, **more) for name, kind, more in kinds for n in (0.5, 1.0, 1.5)),
        ],
    )
    parts = parts_of(tmp_path)
    assert series_in(parts) == {
        ("train", "loss"): [(n - 1, n / 10 / 3) for n in range(1, 11)],
        ("x: step", "train/loss"): [(n - 1, n / 10) for n in range(1, 11)],
        ("val", "loss"): [(0, 0.0), (10, 10 / 3)],
        ("x: step", "h"): [(0, 0.5), (1, 1.0), (2, 1.5)],
    }
    assert [(part.iter, part.more) for part in parts if isinstance(part, Line)] == [
        (None, {"step": 0.5}),
        (1, {}),
        (None, {"step": 1.5}),
    ]
    assert [part.iter for part in parts if isinstance(part, Figure)] == [0, 1, 2]


def test_numbers_go_on_behind_a_position(tmp_path: Path) -> None:
    write(tmp_path / "a_part_0.parquet", points("loss", [0.5, 1.0]))
    before = last(parts_of(tmp_path))
    write(tmp_path / "a_part_1.parquet", [*points("acc", [1.0]), *points("loss", [1.5])])
    assert series_in(parts_of(tmp_path, before)) == {
        ("acc", "acc"): [(1, 1 / 3)],
        ("loss", "loss"): [(2, 0.5)],
        ("x: step", "loss"): [(2, 1.5)],
    }


def test_a_series_that_gets_its_first_decimal_step_is_given_anew(tmp_path: Path) -> None:
    write(tmp_path / "a_part_0.parquet", points("loss", [10.0, 20.0]))
    first = parts_of(tmp_path)
    write(tmp_path / "a_part_1.parquet", points("loss", [20.5]))
    parts = parts_of(tmp_path, last(first))
    assert parts[0] == Again(cleared=True)
    assert [step for step, _ in series_in(parts)["loss", "loss"]] == [0, 1, 2]
    write(tmp_path / "a_part_1.parquet", points("loss", [21.0, 22.0]))
    write(tmp_path / "a_part_0.parquet", [*points("loss", [10.0, 20.0, 20.0]), row("x/" * 100, "int", int_value=1)])
    parts = parts_of(tmp_path, last(first))
    assert parts[0] == Again()
    assert [step for step, _ in series_in(parts)["loss", "loss"]] == [10, 20, 20, 21, 22]


def test_odd_times_and_steps_cost_only_themselves(tmp_path: Path) -> None:
    rows = points("loss", [0.0, 1.0, 2.0, 3.0])
    rows[0]["timestamp"], rows[1]["timestamp"], rows[3]["step"] = 5, None, None
    write(tmp_path / "a_part_0.parquet", [*rows, row("log", "string_series", step=1.0, timestamp=7, string_value="x")])
    parts = parts_of(tmp_path)
    (some,) = (part for part in parts if isinstance(part, Points))
    assert some.iters.tolist() == [0, 1, 2]
    assert some.timestamps.tolist() == [T0 + 2] * 3
    assert [part.timestamp for part in parts if isinstance(part, Line)] == [T0 + 2]
    assert [part for part in parts if isinstance(part, Problem)] == [
        Problem("loss", "a point without a step"),
        Problem("loss", "a time that cannot be believed"),
        Problem("log", "a time that cannot be believed"),
    ]


def test_what_a_run_is_like_is_known_behind_a_position(tmp_path: Path) -> None:
    """Else the next import would name it by its id, and take its status and parameters away."""
    rows = [row("sys/name", "string", string_value="one"), row("sys/failed", "bool", bool_value=True)]
    write(tmp_path / "a_part_0.parquet", [*rows, row("sys/tags", "string_set", string_set_value=["t"])])
    (run,) = NeptuneFolder(tmp_path, None).runs()
    assert isinstance(run, NeptuneRun)
    assert list(run.parts(last(parts_of(tmp_path)))) == []
    assert (run.run.name, run.run.status, run.run.tags) == ("one", "failed", ["t"])
    assert run.run.parameters == {"sys": {"name": "one", "failed": "True"}}


def test_a_table_that_was_damaged_is_read_again(tmp_path: Path) -> None:
    write(tmp_path / "a_part_0.parquet", points("loss", [1.0]))
    write(tmp_path / "a_part_1.parquet", points("loss", [2.0]))
    whole = (tmp_path / "a_part_1.parquet").read_bytes()
    (tmp_path / "a_part_1.parquet").write_bytes(b"PAR1" + bytes(len(whole) - 4))
    first = parts_of(tmp_path)
    assert [part.of for part in first if isinstance(part, Problem)] == ["a_part_1.parquet"]
    (tmp_path / "a_part_1.parquet").write_bytes(whole)
    assert [step for step, _ in series_in(parts_of(tmp_path, last(first)))["loss", "loss"]] == [2]


def test_files_come_behind_the_last_position_each_time(tmp_path: Path) -> None:
    rows = [
        row("model", "file", file_value={"path": "m.bin"}),
        *(row("img", "file_series", step=step, timestamp=T0, file_value={"path": "m.bin"}) for step in (1.0, 1.5)),
    ]
    write(tmp_path / "a_part_0.parquet", [*rows, row("x", "odd_type")])
    first = parts_of(tmp_path)
    assert [part.reason for part in first if isinstance(part, Problem)] == [Reason.ABSENT] * 3
    (tmp_path / "m.bin").write_bytes(b"m")
    parts = parts_of(tmp_path, last(first))
    assert [part.name for part in parts if isinstance(part, Artifact)] == ["model", "img/1", "img/1.5"]
    assert not [part for part in parts if isinstance(part, Position | Unmapped)]


@pytest.mark.test
@examples(20)
@given(st.lists(st.lists(st.decimals(0, 3, places=1), max_size=4), min_size=1, max_size=3), st.integers(0, 3))
def test_each_point_arrives_once(parts: list[list[Decimal]], imported: int) -> None:
    """However the points of a run are split into files, and whichever of them were imported before."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        steps = [[float(step) for step in part] for part in parts]
        for number, some in enumerate(steps[: max(1, imported)]):
            write(folder / f"a_part_{number}.parquet", [row("sys/id", "int", int_value=1), *points("a/b", some)])
        there = series_in(before := parts_of(folder))
        for number, some in enumerate(steps):
            write(folder / f"a_part_{number}.parquet", [row("sys/id", "int", int_value=1), *points("a/b", some)])
        after = parts_of(folder, last(before))
        if after and after[0] == Again(cleared=True):
            there = {}
        for series, found in series_in(after).items():
            there[series] = there.get(series, []) + found
    flat = [step for some in steps for step in some]
    if all(step.is_integer() for step in flat):
        assert there == ({("a", "b"): [(int(step), step / 3) for step in flat]} if flat else {})
    else:
        assert there["a", "b"] == [(number, step / 3) for number, step in enumerate(flat)]
        assert there["x: step", "a/b"] == list(enumerate(flat))


@pytest.mark.parametrize("path", ["a\0b", "x" * 300])
def test_a_file_of_an_odd_name_costs_only_itself(tmp_path: Path, path: str) -> None:
    write(tmp_path / "a_part_0.parquet", [row(name, "file", file_value={"path": name}) for name in (path, "m")])
    (tmp_path / "m").write_bytes(b"m")
    parts = parts_of(tmp_path)
    assert [part.of for part in parts if isinstance(part, Problem)] == [path]
    assert [part.name for part in parts if isinstance(part, Artifact)] == ["m"]


def test_what_is_no_such_table(tmp_path: Path) -> None:
    (tmp_path / "a_part_0.parquet").write_bytes(b"no")
    io.write_parquet(core.Table.from_pydict({"x": core.Array([1], type=T.int64())}), tmp_path / "b_part_0.parquet")
    assert [type(one) for one in NeptuneFolder(tmp_path, None).runs()] == [Problem, Problem]


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "link").symlink_to(tmp_path / "secret")
    write(tmp_path / "d" / "a_part_0.parquet", [row("f", "file", file_value={"path": "link"})])
    (run,) = NeptuneFolder(tmp_path / "d", None).runs()
    assert isinstance(run, NeptuneRun)
    assert not [part for part in run.parts(None) if isinstance(part, Artifact)]
