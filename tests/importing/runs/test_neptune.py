"""Neptune's runs, in tables like those of neptune-exporter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apiserver.cli import main
from apiserver.importing.runs.model import Artifact, Problem
from apiserver.importing.runs.neptune import NeptuneFolder, NeptuneRun
from tests.harness import Served
from tests.importing.runs.test_taking import environment, lines_of, series_of, tasks_of

__all__ = ["environment"]
core, io = pytest.importorskip("arro3.core"), pytest.importorskip("arro3.io")
T = core.DataType
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
    return [
        row(path, "float_series", step=step, timestamp=1_700_000_000_000 + int(step), float_value=step / 3)
        for step in steps
    ]


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
            row("logs/out", "string_series", step=1.0, timestamp=5, string_value="hi ü"),
            row("h", "histogram_series", step=2.0, timestamp=6, histogram_value={"edges": [0, 1], "values": [3]}),
            row("data/x", "file", file_value={"path": "team_proj_0a1b/x.txt"}),
            row("data/etc", "file", file_value={"path": "../../../secret"}),
        ],
    )
    write(data / "P-1_part_1.parquet", points("metrics/loss", [100.0, 100.5]))
    (tmp_path / "secret").write_text("secret")
    files = tmp_path / "exports" / "files" / "team_proj_0a1b"
    files.mkdir(parents=True)
    (files / "x.txt").write_text("file")
    assert main(["import", "neptune", str(tmp_path / "exports" / "data"), "--files"]) == 1
    said = capsys.readouterr().err
    assert "1 point left out: steps have to be whole numbers" in said
    assert "there is no file '../../../secret'" in said
    (task,) = tasks_of(server).values()
    assert (task["name"], task["status"], task["tags"]) == ("one", "failed", ["t1", "t2"])
    params = {name: one["value"] for name, one in task["hyperparams"]["parameters"].items()}
    assert params == {"lr": "0.1", "n": str(2**53 + 1)}
    expected = {"x": list(range(101)), "y": [n / 3 for n in range(101)]}
    assert series_of(server, task["id"]) == {"metrics": {"loss": expected}}
    assert lines_of(server, task["id"]) == ["hi ü"]
    (artifact,) = task["execution"]["artifacts"]
    with server.client() as client:
        assert client.get(artifact["uri"]).text == "file"
    assert main(["import", "neptune", str(tmp_path / "exports" / "data"), "--files"]) == 1
    assert "0 imported, 1 imported before" in capsys.readouterr().err


def test_lines_of_a_file_that_is_read_anew_are_not_doubled(
    server: Served, environment: dict[str, str], tmp_path: Path
) -> None:
    lines = [row("out", "string_series", step=float(n), timestamp=n, string_value=f"line {n}") for n in range(5)]
    for count in (2, 3, 5):
        write(tmp_path / "data" / "P-1_part_0.parquet", lines[:count])
        assert main(["import", "neptune", str(tmp_path / "data")]) == 0
        (task,) = tasks_of(server).values()
        assert lines_of(server, task["id"]) == [f"line {n}" for n in range(count)]


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
