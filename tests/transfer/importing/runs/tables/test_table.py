"""Tables: a row a point or a column a metric, in each format; and what is no number."""

from __future__ import annotations

import gzip
import json
import math
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.cli import main
from apiserver.transfer.importing.runs.model import Again, Note, Part, Position, Problem, Unmapped
from apiserver.transfer.importing.runs.tables.batches import rows
from apiserver.transfer.importing.runs.tables.broken import Broken
from apiserver.transfer.importing.runs.tables.headers import Header
from apiserver.transfer.importing.runs.tables.table import TableFile, TableRun
from tests.chance import examples
from tests.harness import Served
from tests.transfer.importing.runs.test_mlflow import points_of
from tests.transfer.importing.runs.test_taking import environment, series_of, tasks_of

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


Found = dict[str, dict[tuple[str, str], list[tuple[int, int, str]]]]


def all_of(path: Path, metric: str | None = None) -> tuple[Found, list[Problem], list[str]]:
    """The points of each task, the problems and the notes."""
    found, problems, notes = {}, [], []
    source = TableFile(path, None, metric)
    for one in source.runs():
        if isinstance(one, TableRun):
            found[one.run.name] = points_of(list(one.parts(None)))
        elif isinstance(one, Problem):
            problems.append(one)
        elif isinstance(one, Note):
            notes.append(one.text)
    return found, problems, notes


def taken(path: Path, metric: str | None = None) -> tuple[Found, list[Problem]]:
    return all_of(path, metric)[:2]


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
        "step,timestamp,a,b\n1,2023-11-14T22:13:20Z,nan,\n2,,inf,-inf\n3.0,1700000001,text,1\n"
        "x,1700000002,1,1\n,1700000002,1,1\n5,soon,1,1\n\n6,1\n7,1,1e400,1,5\n8,1700000003000,1e400,\n"
    )
    found, problems = taken(path)
    t = 1_700_000_000_000
    assert found["t"]["a", "a"] == [(1, t, "nan"), (2, t, "inf"), (5, t + 2000, "1.0")]
    assert found["t"]["b", "b"] == [(2, t, "-inf"), (3, t + 1000, "1.0"), (5, t + 2000, "1.0")]
    assert [one.cause for one in problems] == [
        "1 × more cells than the header has: line 10",
        "2 × no step that is a number: line 5, line 6",
        "2 × a time that cannot be believed: line 7 ('timestamp'), line 9 ('timestamp')",
        "2 × no value that is a number: line 4 ('a'), line 11 ('a')",
    ]
    assert [one.count for one in problems] == [1, 2, 2, 2]


def test_a_column_without_times_is_a_metric(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    os.utime(write(path, LONG), (1_600_000_000, 1_600_000_000))
    for first, second, values in (
        ("599.92", "1174.33", ["599.92", "1174.33"]),
        ("00:18", "1:02:03", ["18.0", "3723.0"]),
    ):
        path.write_text(f"epoch,                time, loss\n1,{first},0.5\n2,{second},0.25\n")
        os.utime(path, (1_600_000_000, 1_600_000_000))
        found, problems = taken(path)
        assert not problems
        assert [(step, value) for step, _, value in found["t"]["time", "time"]] == list(
            zip((1, 2), values, strict=True)
        )
        assert {time for _, time, _ in found["t"]["loss", "loss"]} == {1_600_000_000_000}
    path.write_text("step,time,wall_time,loss\n1,0.5,1700000000000000,1\n")
    found, _ = taken(path)
    assert found["t"] == {
        ("time", "time"): [(1, 1_700_000_000_000, "0.5")],
        ("loss", "loss"): [(1, 1_700_000_000_000, "1.0")],
    }


def test_nothing_lands_where_a_file_is_dated_1970(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("step,a\n1,1\n")
    os.utime(tmp_path / "t.csv", (0, 0))
    found, _ = taken(tmp_path / "t.csv")
    assert found["t"]["a", "a"][0][1] > 1_700_000_000_000


def test_names_of_columns(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("  , step,  loss, loss,loss ,metrics/mAP(B),\n0,1,1,2,3,4,\n1,2,1,2,3,4,\n")
    found, problems, notes = all_of(path)
    assert not problems
    assert {name: [(step, value) for step, _, value in rows] for name, rows in found["t"].items()} == {
        ("loss", "loss"): [(1, "1.0"), (2, "1.0")],
        ("loss_2", "loss_2"): [(1, "2.0"), (2, "2.0")],
        ("loss_3", "loss_3"): [(1, "3.0"), (2, "3.0")],
        ("metrics", "mAP(B)"): [(1, "4.0"), (2, "4.0")],
    }
    assert notes == ["t.csv: 2 × another column has the same name: 'loss' is 'loss_2', 'loss' is 'loss_3'"]


def test_many_columns_of_one_name_are_named_in_one_go_and_told_once() -> None:
    class Counted(set[str]):
        asked = 0

        def __contains__(self, name: object) -> bool:
            self.asked += 1
            return super().__contains__(name)

    header = Header(broken := Broken())
    header._taken = taken = Counted()
    header.add((number, "a_3" if number == 1 else "a") for number in range(1000))
    assert taken == {"a", *(f"a_{number}" for number in range(2, 1001))}
    assert taken.asked < 3000
    (note,) = broken.said()
    assert note.startswith("998 × another column has the same name: 'a' is 'a_2', 'a' is 'a_4', ")


@pytest.mark.parametrize(
    ("cells", "is_told"), [("012", False), ("123", False), ("024", True), ("100", True), ("aab", True), ("...", True)]
)
def test_a_column_without_a_name(tmp_path: Path, cells: str, is_told: bool) -> None:
    path = tmp_path / "t.csv"
    for name in ("", "Unnamed: 0"):
        path.write_text(f"{name},step,loss\n" + "".join(f"{cell},{n},1\n" for n, cell in enumerate(cells)))
        found, problems = taken(path)
        assert found["t"].keys() == {("loss", "loss")}
        told = ["1 × column without a name, which the header has to say: column 1"] if is_told else []
        assert [one.cause for one in problems] == told


def test_two_columns_of_one_name_in_parquet(tmp_path: Path) -> None:
    core, io = pytest.importorskip("arro3.core"), pytest.importorskip("arro3.io")
    numbers = core.Array([1, 2], type=core.DataType.int64())
    names = ("step", "loss", "loss", "__index_level_0__")
    schema = core.Schema([core.Field(name, numbers.type) for name in names])
    io.write_parquet(core.Table.from_arrays([numbers] * len(names), schema=schema), tmp_path / "t.parquet")
    found, problems = taken(tmp_path / "t.parquet")
    assert not problems
    assert found["t"].keys() == {("loss", "loss"), ("loss_2", "loss_2")}


def values_of(path: Path, metric: str = "a") -> list[tuple[int, str]]:
    """The points of a metric in the only task."""
    found, _ = taken(path)
    return [(step, value) for step, _, value in found[path.name.partition(".")[0]][metric, metric]]


TWO = [(1, "0.5"), (2, "0.25")]


@pytest.mark.parametrize(
    "content",
    [
        "# made by us\n\nstep,a\n1,0.5\n# half, time, here\nstep,a\n2,0.25\n ,\n",
        "# made by us\n# step,a\n1,0.5\n2,0.25\n",
        "step;a\n1;0,5\n2;2,5e-1\n",
        'step, "a"\r\n1, "0.5"\r\n2, 0.25',
    ],
)
def test_ways_to_write_csv(tmp_path: Path, content: str) -> None:
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-32"):
        (tmp_path / "t.csv").write_text(content, encoding=encoding, newline="")
        assert not taken(tmp_path / "t.csv")[1]
        assert values_of(tmp_path / "t.csv") == TWO
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(content.encode()))
    assert values_of(tmp_path / "t.csv.gz") == TWO


@pytest.mark.parametrize(
    ("content", "values", "causes"),
    [
        ("step;a\n1;0,5\n2;0.25\n", [(2, "0.25")], ["1 × no value that is a number: line 2 ('a')"]),
        ("step;a\n1;0.5\n2;1.234,5\n", [(1, "0.5")], ["1 × no value that is a number: line 3 ('a')"]),
        ("step,a\n1,0.5\n\0\0\0\0\n2,0.25\n", TWO, ["1 × no step that is a number: line 3"]),
        (
            b"step,a,note\n1,0.5,x\n3,1,\xfc\n2,0.25,y\n",
            TWO,
            [
                "1 × a line that is not UTF-8 (convert the file, such as by: iconv -f LATIN1 -t UTF-8): line 3",
            ],
        ),
    ],
)
def test_odd_csv(tmp_path: Path, content: str | bytes, values: list[tuple[int, str]], causes: list[str]) -> None:
    (tmp_path / "t.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    assert values_of(tmp_path / "t.csv") == values
    assert [one.cause for one in taken(tmp_path / "t.csv")[1]] == causes


@pytest.mark.parametrize(
    ("name", "content", "cause"),
    [
        ("t.csv", b"1,0.5\n2,0.25\n", "line 1 has only numbers: the first line has to name the columns"),
        ("t.csv", "step,ü\n1,2\n".encode("latin-1"), "its header is not UTF-8: convert the file"),
        ("t.csv", "step,a\n1,2\n".encode("utf-16-le"), "its header has NUL characters: convert the file to UTF-8"),
        ("t.csv", b"PK\x03\x04", "it is a zip archive or an Excel sheet"),
        ("t.csv", b"PAR1", "it is a Parquet file"),
        ("t.csv.gz", gzip.compress(b"PAR1", mtime=0), "it is a Parquet file: unpack it"),
        ("t.csv.gz", b"\x1f\x8bno", "its gzip data cannot be read"),
        ("t.json", b'{\n "a": {"0": 1}\n}', "it is one JSON object: write an object a line"),
        ("t.json", b'{"step":{"0":0,"1":1},"loss":{"0":1.0}}\n', "it is one JSON object: write an object a line"),
        ("t.json", b'{"loss":[1,2],"val_loss":[3,4]}', "it is one JSON object: write an object a line"),
        ("t.json", b"[" * 100_000, "row 1 is cut or no JSON"),
    ],
)
def test_what_is_no_table_says_what_it_is(tmp_path: Path, name: str, content: bytes, cause: str) -> None:
    (tmp_path / name).write_bytes(content)
    found, problems = taken(tmp_path / name)
    assert not found
    assert any(one.cause.startswith(cause) for one in problems), problems


@pytest.mark.test
@pytest.mark.parametrize(
    ("name", "beginning", "cause"),
    [
        ("t.csv.gz", b"", "line 1 has more than 16,777,216 characters"),
        ("t.ndjson.gz", b"", "line 1 has more than 16,777,216 characters"),
        ("t.json.gz", b'[{"a": "', "row 1 is cut or no JSON: nothing was read from there on"),
    ],
)
def test_what_gzip_hides_is_bounded(tmp_path: Path, name: str, beginning: bytes, cause: str) -> None:
    (tmp_path / name).write_bytes(gzip.compress(beginning + b"0" * 2**25, 1, mtime=0))
    found, problems = taken(tmp_path / name)
    assert not found
    assert any(one.cause.startswith(cause) for one in problems), problems


@pytest.mark.test
def test_a_quote_that_does_not_end_is_bounded(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('step,a\n1,0.5\n2,"' + f"{'x' * 5_000}\n" * 3_400)
    assert values_of(tmp_path / "t.csv") == [(1, "0.5")]
    causes = [one.cause for one in taken(tmp_path / "t.csv")[1]]
    assert any(cause.startswith("line 3 has more than 16,777,216 characters") for cause in causes), causes
    (tmp_path / "t.csv").write_text('step,a\n1,0.5\n2,"0.3\n3,0.2\n')
    causes = [one.cause for one in taken(tmp_path / "t.csv")[1]]
    assert causes == ["line 3 has a quote that does not end: lines 3 to 4 were not read"]


def test_gzip_that_is_cut_keeps_what_was_read(tmp_path: Path) -> None:
    lines = "step,a\n" + "".join(f"{n},{n / 3}\n" for n in range(2_000))
    whole = gzip.compress(lines.encode())
    (tmp_path / "t.csv.gz").write_bytes(whole[: len(whole) // 2])
    values = values_of(tmp_path / "t.csv.gz")
    assert 500 < len(values) < 1_500
    assert values == [(n, repr(n / 3)) for n in range(len(values))]
    cause = f"its gzip data are cut or damaged: nothing was read behind line {len(values) + 1:,}"
    assert [one.cause for one in taken(tmp_path / "t.csv.gz")[1]] == [cause]


@pytest.mark.parametrize("indent", [None, 1])
def test_an_array_of_json_objects(tmp_path: Path, indent: int | None) -> None:
    path = tmp_path / "t.json"
    rows = [{"step": n, "a": n / 3, "text": '[{"' * (n % 5)} for n in range(2_500)]  # longer than a piece
    path.write_text(" \n" + json.dumps(rows, indent=indent))
    assert values_of(path) == [(n, repr(n / 3)) for n in range(2_500)]
    path.write_text('[{"step": 1, "a": NaN}, 3,\n {"step": 2, "a": 1e400}, {"step": 3, "a": 0.5}, {"step": 4, "a"')
    assert values_of(path) == [(1, "nan"), (3, "0.5")]
    assert [one.cause for one in taken(path)[1]] == [
        "1 × an element that is no JSON object: row 2",
        "1 × no value that is a number: row 3 ('a')",
        "row 5 is cut or no JSON: nothing was read from there on",
    ]


@pytest.mark.test
def test_batches_are_bounded_by_cells(tmp_path: Path) -> None:
    path = tmp_path / "t.ndjson"
    path.write_text("".join(f'{{"a{n}": 1}}\n' for n in range(5_000)))
    sizes = [len(one.columns) * len(one.numbers) for one in rows(path, Broken())]
    assert len(sizes) == 3
    assert max(sizes) < 2**22 + 5_000


def test_steps_that_begin_anew_with_each_epoch(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("epoch,iter,loss,val\n0,0,9,\n0,1,8,5\n1,0,7,\n1,1,6,4\n")
    found, problems, notes = all_of(path)
    assert not problems
    assert notes == ["t: 'iter' begins anew with each epoch, so the rows are numbered"]
    assert {name: [(step, value) for step, _, value in rows] for name, rows in found["t"].items()} == {
        ("epoch", "epoch"): [(0, "0.0"), (1, "0.0"), (2, "1.0"), (3, "1.0")],
        ("iter", "iter"): [(0, "0.0"), (1, "1.0"), (2, "0.0"), (3, "1.0")],
        ("loss", "loss"): [(0, "9.0"), (1, "8.0"), (2, "7.0"), (3, "6.0")],
        ("val", "val"): [(1, "5.0"), (3, "4.0")],
    }
    path.write_text("metric,value,epoch,step\nloss,9,0,0\nacc,1,0,0\nloss,8,0,1\nloss,7,1,0\n")
    found, problems, _ = all_of(path)
    assert not problems
    assert {name: [(step, value) for step, _, value in rows] for name, rows in found["t"].items()} == {
        ("loss", "loss"): [(0, "9.0"), (2, "8.0"), (3, "7.0")],
        ("acc", "acc"): [(1, "1.0")],
        ("x: step", "step"): [(0, "0.0"), (1, "0.0"), (2, "1.0"), (3, "0.0")],
        ("x: epoch", "epoch"): [(0, "0.0"), (1, "0.0"), (2, "0.0"), (3, "1.0")],
    }


@pytest.mark.parametrize(
    ("content", "steps"),
    [
        ("epoch,step,a\n0,10,1\n1,20,1\n1,20,1\n", [10, 20, 20]),  # as Hugging Face's and Lightning's logs
        ("epoch,step,a\n5,500,1\n3,300,1\n4,400,1\n", [500, 300, 400]),  # resumed from an earlier epoch
        ("epoch,step,a\n0,10,1\n1,20,1\n2,20,1\n", [10, 20, 20]),  # the last one is said twice
        ("epoch,step,a\n0,10,1\n1,10,1\n2,10,1\n", [0, 1, 2]),  # steps of an epoch, not since the start
        ("epoch,a\n0,1\n0,2\n", [0, 0]),
    ],
)
def test_steps_are_kept_unless_they_begin_anew(tmp_path: Path, content: str, steps: list[int]) -> None:
    (tmp_path / "t.csv").write_text(content)
    assert [step for step, _ in values_of(tmp_path / "t.csv")] == steps


def test_decimal_steps_are_numbered_by_series(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("epoch,loss,val/acc\n0.5,9,\n1,8,4\n1.5,7,\n2,6,3\n")
    found, problems = taken(path)
    assert not problems
    assert {name: [(step, value) for step, _, value in rows] for name, rows in found["t"].items()} == {
        ("loss", "loss"): [(0, "9.0"), (1, "8.0"), (2, "7.0"), (3, "6.0")],
        ("x: epoch", "loss"): [(0, "0.5"), (1, "1.0"), (2, "1.5"), (3, "2.0")],
        ("val", "acc"): [(1, "4.0"), (2, "3.0")],
    }


STEPS = st.one_of(st.integers(0, 3), st.sampled_from([0.5, 1.5]))


@pytest.mark.test
@examples(60)
@given(
    st.lists(st.tuples(st.sampled_from("xy"), st.integers(0, 2), STEPS, st.booleans()), min_size=1, max_size=8),
    st.sampled_from(["csv", "ndjson", "json"]),
)
def test_no_point_is_lost(points: list[tuple[str, int, float, bool]], ending: str) -> None:
    """Each point arrives, in the order of the rows, and its step can be read beside it, however steps go."""
    rows: list[dict[str, Any]] = [
        {"task": task, "epoch": epoch, "step": step, "a": number, "b": number if has_b else ""}
        for number, (task, epoch, step, has_b) in enumerate(points)
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"t.{ending}")
        if ending == "json":
            path.write_text(json.dumps([{name: one for name, one in row.items() if one != ""} for row in rows]))
        else:
            write(
                path,
                [{name: one if one != "" or ending == "csv" else None for name, one in row.items()} for row in rows],
            )
        found, problems = taken(path)
    assert not problems
    for task, series in found.items():
        own = [row for row in rows if row["task"] == task]
        for name in "ab":
            kept = [row for row in own if row[name] != ""]
            given = series.get((name, name), [])
            assert [float(value) for _, _, value in given] == [row[name] for row in kept]
            iters = [step for step, _, _ in given]
            exact = series.get(("x: step", name)) or series.get(("step", "step"))
            if exact is None:
                assert iters == [row["step"] for row in kept]
            else:
                assert sorted(set(iters)) == iters
                by_iter = {step: float(value) for step, _, value in exact}
                assert [by_iter[step] for step in iters] == [row["step"] for row in kept]


def test_a_table_that_has_got_decimal_steps_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"

    def again(content: str, position: str | None) -> tuple[list[Part], str]:
        path.write_text("step,a,b\n" + content.replace("\n", ",7\n"))
        table = TableFile(path, None)  # its files are deleted with it
        (run,) = (one for one in table.runs() if isinstance(one, TableRun))
        parts = list(run.parts(position))
        ends = [part.text for part in parts if isinstance(part, Position)]
        return [part for part in parts if isinstance(part, Again | Note)], ends[-1] if ends else ""

    first, position = again("1,1\n2,2\n", None)
    assert not first
    assert again("1,1\n2,2\n", position) == ([], "")
    assert again("1,1\n2,2\n3,3\n", position)[0] == [Again()]
    for rewritten in ("1,1\n", "1,1\n2,2.5\n3,3\n", "2,2\n1,1\n"):
        (first_part, note), _ = again(rewritten, position)
        assert first_part == Again()
        assert isinstance(note, Note)
        assert note.text.startswith("it begins otherwise than before")
    assert again("1,1\n2,2\n2.5,3\n", position)[0] == [Again(cleared=True)]
    assert again("1,1\n2,2\n", "as-an-older-version 80")[0] == [Again(cleared=True)]


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


def test_objects_inside_of_objects_are_read(tmp_path: Path) -> None:
    path = tmp_path / "t.ndjson"
    path.write_text(
        '{"step": 1, "train": {"loss": 0.5, "top": {"5": 0.9}, "none": {}}}\n{"step": 2, "train": {"loss": 0.25}}\n'
    )
    found, problems = taken(path)
    values = {series: [(step, value) for step, _, value in points] for series, points in found["t"].items()}
    assert values == {("train", "loss"): [(1, "0.5"), (2, "0.25")], ("train/top", "5"): [(1, "0.9")]}
    assert not problems


def test_names_of_nested_values_are_bounded_and_none_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "t.ndjson"
    long: Any = 0.5
    for _ in range(900):
        long = {"n" * 100: long, "other": 1}
    rows = [{"step": 1, "a/b": 1, "a": {"b": 2}}, {"step": 2, "b": {"c": 3}, "b/c": 4}, {"step": 3, "x": long}]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    found, _ = taken(path)
    assert [(step, value) for step, _, value in found["t"]["a", "b"]] == [(1, "1.0")]
    assert [(step, value) for step, _, value in found["t"]["b", "c"]] == [(2, "4.0")]
    texts = {one.name for one in TableFile(path, None).runs() if isinstance(one, Unmapped)}
    assert {"a", "b"} < texts
    assert max(map(len, texts)) <= 1024


def test_the_state_of_hugging_faces_trainer(tmp_path: Path) -> None:
    logged = [{"epoch": n / 2, "loss": 1 / (n + 1), "step": 10 * n} for n in range(2_000)]
    state = {"best_metric": None, "epoch": 1.0, "log_history": logged, "max_steps": 20, "trial": {"a": [1]}}
    path = tmp_path / "trainer_state.json"
    path.write_text(json.dumps(state, indent=2, sort_keys=True))
    found, problems, notes = all_of(path)
    points = found["trainer_state"]["loss", "loss"]
    assert [(step, value) for step, _, value in points] == [(10 * n, repr(1 / (n + 1))) for n in range(2_000)]
    assert not problems
    assert notes == [
        "trainer_state.json: it is a state of Hugging Face's Trainer: its log_history is read, and nothing else"
    ]
    path.write_text(json.dumps(state))
    assert [point[0] for point in taken(path)[0]["trainer_state"]["loss", "loss"]] == [point[0] for point in points]
    path.write_text(path.read_text()[:1000])
    assert "is cut or no JSON: nothing was read from there on" in taken(path)[1][0].cause


def test_what_stands_for_nothing_is_no_value(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("epoch,loss,val_loss\n0,0.5,NA\n1,0.25,0.75\n2,N/A,null\n3,None,-\n")
    found, problems = taken(path)
    assert not problems
    assert [step for step, *_ in found["t"]["loss", "loss"]] == [0, 1]
    assert [step for step, *_ in found["t"]["val_loss", "val_loss"]] == [1]


def test_what_tensorboard_writes(tmp_path: Path) -> None:
    table = "Wall time,Step,Value\n1700000000.5,10,0.25\n1700000001.5,20,0.125\n"
    points = [(10, 1_700_000_000_500, "0.25"), (20, 1_700_000_001_500, "0.125")]
    for name, task, metric in (("run-a-b-tag-loss", "a-b", "loss"), ("acc", "acc", "acc")):
        (tmp_path / f"{name}.csv").write_text(table)
        assert taken(tmp_path / f"{name}.csv") == ({task: {(metric, metric): points}}, [])
    assert taken(tmp_path / "acc.csv", "x/y") == ({"acc": {("x", "y"): points}}, [])
    page = tmp_path / "run-a-b-tag-loss.json"
    page.write_text("[[1700000000.5,10,0.25],[1700000001.5,20,0.125],[1,2]]")
    found, problems = taken(page)
    assert found == {"a-b": {("loss", "loss"): points}}
    assert [one.cause for one in problems] == ["1 × an element that is no JSON object: row 3"]


def test_one_column_has_the_steps(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("Epoch,step,a\n1,10,0.5\n")
    found, _ = taken(tmp_path / "t.csv")
    assert [(name, rows[0][0], rows[0][2]) for name, rows in found["t"].items()] == [
        (("Epoch", "Epoch"), 10, "1.0"),
        (("a", "a"), 10, "0.5"),
    ]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_charts_of_wandb(tmp_path: Path, separator: str) -> None:
    path = tmp_path / "chart.csv"
    trios = [
        [f"{name}{end}" for end in ("", "__MIN", "__MAX")] for name in ("a - b - train/loss", "a - b - _step", "c - x")
    ]
    lines = [
        ["Step", *trios[0], *trios[1], *trios[2]],
        ["0", "0.5", "0.25", "0.75", "0", "0", "0", "", "", ""],
        ["2", "", "", "", "", "", "", "3", "3", "3"],
    ]
    path.write_text("".join(separator.join(f'"{cell}"' for cell in line) + "\n" for line in lines))
    found, problems, notes = all_of(path)
    assert not problems
    assert {task: {name: [(s, v) for s, _, v in rows] for name, rows in of.items()} for task, of in found.items()} == {
        "a - b": {("train", "loss"): [(0, "0.5")]},
        "c": {("x", "x"): [(2, "3.0")]},
    }
    assert notes == ["chart.csv: it is a chart of W&B: its columns __MIN, __MAX and _step are left out"]


def test_a_chart_by_time_has_the_steps_of_its_runs(tmp_path: Path) -> None:
    names = [f"a - {name}{end}" for name in ("loss", "_step") for end in ("", "__MIN", "__MAX")]
    path = tmp_path / "chart.csv"
    path.write_text(",".join(["Relative Time (Process)", *names]) + "\n0.5,1,1,1,10,10,10\n1.5,2,2,2,20,20,20\n")
    found, problems = taken(path)
    assert not problems
    assert {name: [(step, value) for step, _, value in rows] for name, rows in found["a"].items()} == {
        ("Relative Time (Process)", "Relative Time (Process)"): [(10, "0.5"), (20, "1.5")],
        ("loss", "loss"): [(10, "1.0"), (20, "2.0")],
    }


def test_what_is_only_like_a_chart_keeps_its_columns(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("step,a - loss,a - loss__MIN\n1,2,3\n")
    found, _, notes = all_of(tmp_path / "t.csv")
    assert not notes
    assert found["t"].keys() == {("a - loss", "a - loss"), ("a - loss__MIN", "a - loss__MIN")}


def test_what_is_no_table(tmp_path: Path) -> None:
    for name, content in (("t.ndjson", "no\n"), ("t.ndjson", "[1]\n"), ("t.parquet", "PAR1 no"), ("t.csv", "a\n")):
        (tmp_path / name).write_text(content)
        found, problems = taken(tmp_path / name)
        assert not found
        assert bool(problems) == (name != "t.csv")
    (tmp_path / "empty.csv").write_text("")
    assert taken(tmp_path / "empty.csv") == ({}, [])


def test_a_parquet_file_whose_end_is_cut_says_so(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    whole = write(tmp_path / "t.parquet", LONG).read_bytes()
    for length in (4, 5, 11, 12, len(whole) // 2, len(whole) - 1):
        (tmp_path / "t.parquet").write_bytes(whole[:length])
        found, [problem] = taken(tmp_path / "t.parquet")
        assert not found
        assert "whose end is cut off" in str(problem)
    assert capfd.readouterr().err == "", "the library panics"


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
    (tmp_path / "twice.csv").write_text("step,a,a\n1,2,3\n")
    assert main(["import", "table", str(tmp_path / "twice.csv")]) == 0
    assert "note: twice.csv: 1 × another column has the same name: 'a' is 'a_2'" in capsys.readouterr().err


def test_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from apiserver.transfer.importing.report import ImportFailed

    (tmp_path / "t.parquet").write_text("")
    monkeypatch.setitem(sys.modules, "arro3.io", None)
    with pytest.raises(ImportFailed, match="run 'make parquet'"):
        taken(tmp_path / "t.parquet")
