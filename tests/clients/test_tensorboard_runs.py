"""Runs of TensorBoard's own packages: what arrives is what its own reader has, and what a model of the runs says.

Each run is imported twice: as a crash left it, in the middle of a record, and whole.
"""

from __future__ import annotations

import math
import re
import shutil
import struct
from collections import Counter
from collections.abc import Iterable
from functools import partial
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
from tests.transfer.importing.runs.test_taking import environment, lines_of, tasks_of

__all__ = ["environment", "python"]
pytestmark = pytest.mark.hypothesis

#: The end of the name of a method of SummaryWriter, and its arguments.
Call: TypeAlias = tuple[Any, ...]
#: As the script takes them.
File: TypeAlias = dict[str, Any]
Run: TypeAlias = dict[str, Any]
#: What a reader has: run, kind, tag, step, time and value.
Row: TypeAlias = list[Any]

T = 1_700_000_000.25
_CLEANED = re.compile(r"[^-/\w.]")


def curve(tag: str, steps: Iterable[int], time: float = T) -> list[Call]:
    return [("scalar", tag, float(number), step, time + number) for number, step in enumerate(steps)]


def file(*calls: Call, purge: int | None = None) -> File:
    return {"purge": purge, "calls": calls}


def run(name: str, *files: File, cut: float | None = None) -> Run:
    return {"name": name, "files": files, "cut": cut}


HPARAMS: Call = ("hparams", {"lr": 0.5, "opt": "sgd"}, {"m": 0.25}, "h0")
BOTH = [("scalars", "acc", {"A": float(step), "B": -float(step)}, step, T) for step in range(5)]
NAMES = ["a b", "ü/ß", "/first", "last/", "a//b", "日本/損失", "100%", "n" * 300, "x/y/z", "x/x", "-0"]
CASES = [
    run("a restart", file(*curve("loss", range(101))), file(*curve("loss", range(50, 81)), purge=50)),
    run("a restart from 0", file(*curve("loss", range(9))), file(*curve("loss", range(3)), purge=0)),
    run("a restart of other tags", file(*curve("a", range(9)), *curve("b", range(9))), file(purge=4)),
    run("two restarts", *(file(*curve("loss", range(at, 30)), purge=at) for at in (0, 20, 10))),
    run("hparams and scalars", file(*curve("loss", range(5)), *BOTH, HPARAMS)),
    run("hparams of a tag that is there", file(*curve("m", range(5)), HPARAMS)),
    run("two hparams", file(*curve("loss", range(5)), HPARAMS, (*HPARAMS[:3], "h1"))),
    run("scalars of nested tags", file(("scalars", "x/y", {"A": 1.0}, 1, T), ("scalars", "x/z", {"A": 2.0}, 1, T))),
    run("not finite", file(*(("scalar", "x", one, n, T) for n, one in enumerate([math.nan, math.inf, -math.inf])))),
    run("odd values", file(*(("scalar", "x", one, n, T) for n, one in enumerate([-0.0, 2.0**-149, 2.0**127])))),
    run("far steps", file(*curve("x", [-(2**63), -1, 0, 1, 2**31, 2**53 + 1, 2**63 - 1]))),
    run("one step again and again", file(*curve("x", [0] * 20))),
    run("one point again and again", file(*[("scalar", "x", 0.5, 2, T)] * 3, ("scalar", "x", 0.25, 2, T))),
    run("one point", file(*curve("x", [0]))),
    run("steps twice", file(*curve("x", [1, 2, 2, 3, 3, 3, 1]))),
    run("steps that go back", file(*curve("x", [5, 4, 3, 9, 8, 7]))),
    run("names", file(*(("scalar", name, float(n), n, T) for n, name in enumerate(NAMES)))),
    run("nothing", file()),
    run(
        "text",
        file(*(("text", "note", text, n, T + n) for n, text in enumerate(["one", "two\nlines", "ü 日本", "-1"]))),
    ),
    run(
        "images and histograms",
        file(
            *(("image", "i", [[[n / 9] * 3] * 3] * 3, n, T) for n in range(3)),
            *(("histogram", "h", [1.0, 2.0, 3.0], n) for n in range(4)),
        ),
    ),
    run("several files", *(file(*curve("loss", range(at, at + 10))) for at in (0, 10, 5))),
    run("times", file(*(("scalar", "x", 1.0, n, time) for n, time in enumerate([T, 0.0, 61.5, -1.0, T * 1000, T])))),
    run("many tags", file(*(("scalar", f"layer/{n}", float(n), n, T) for n in range(150)))),
    run("many points", file(*curve("x", range(2000)), *curve("y", range(2000)))),
    run("keras/train", file(*curve("epoch_loss", range(5)))),
    run("keras/validation", file(*curve("epoch_loss", range(5)))),
    run("a/b/c", file(*curve("x", range(5)))),
    run("cut", file(*curve("x", range(100))), cut=0.6),
    run("cut behind a restart", file(*curve("x", range(50))), file(*curve("x", range(20, 50)), purge=20), cut=0.5),
    run("cut in a restart", file(*curve("x", range(50))), file(purge=20), cut=0.6),
    run("cut to nothing", file(*curve("x", range(5))), cut=0.0),
]

_tags = st.sampled_from(["loss", "train/loss", "a/b/c", "m", "ü"])
_steps = st.integers(0, 12) | st.integers(-(2**63), 2**63 - 1)
_times = st.integers(1_600_000_000_000, 1_800_000_000_000).map(lambda time: time / 1000) | st.sampled_from(
    [T, 0.0, 9.5]
)
_values = st.floats(width=32)
_calls = st.one_of(
    st.tuples(st.just("scalar"), _tags, _values, _steps, _times),
    st.tuples(st.just("scalar"), _tags, _values, st.integers(0, 12), st.just(T)),
    st.tuples(
        *(st.just("scalars"), st.sampled_from(["acc", "x/y"])),
        *(st.dictionaries(st.sampled_from("AB"), _values, min_size=1), _steps, _times),
    ),
    st.tuples(st.just("text"), st.just("note"), st.text("ab \nü", min_size=1), _steps, st.just(T)),
)
RUNS: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {
        "files": st.lists(
            st.fixed_dictionaries({"purge": st.none() | st.integers(-1, 12), "calls": st.lists(_calls, max_size=25)}),
            min_size=1,
            max_size=3,
        ),
        "hparams": st.booleans(),
        "cut": st.none() | st.floats(0, 1),
    }
)


def models(count: int) -> list[Run]:
    """Any runs, a part of them with hyperparameters."""
    found = []
    for number, drawn_run in enumerate(drawn(RUNS, count)):
        files = [file(*one["calls"], purge=one["purge"]) for one in drawn_run["files"]]
        if drawn_run["hparams"]:
            files[0]["calls"] = (*files[0]["calls"], HPARAMS)
        found.append(run(f"any {number}", *files, cut=drawn_run["cut"]))
    return found


# --- what is to arrive -----------------------------------------------------------------------------


def modelled(one: Run, left: int) -> tuple[list[Row], list[Row]]:
    """The scalars and texts that are to arrive, and all that were written.

    `left` records are in the last file.
    """
    name, kept, written = one["name"], list[Row](), list[Row]()
    for number, of in enumerate(one["files"]):
        purges = of["purge"] is not None
        records = [call for call in of["calls"] if call[0] not in ("hparams", "scalars")]
        if number == len(one["files"]) - 1:
            records, purges = records[: max(0, left - 1 - 2 * purges)], purges and left > 2
        if purges:
            kept = [row for row in kept if row[0] != name or row[3] < of["purge"]]
        rows = [row for call in records for row in _rows(name, call)]
        rows += [row for call in of["calls"] if call[0] in ("hparams", "scalars") for row in _rows(name, call)]
        kept, written = kept + rows, written + rows
    return kept, written


def _rows(name: str, call: Call) -> list[Row]:
    match call:
        case ("scalar", tag, value, step, time):
            return [[name, "scalar", _CLEANED.sub("_", tag).lstrip("/"), step, time, value]]
        case ("scalars", tag, values, step, time):
            return [[f"{name}/{tag}/{key}", "scalar", tag, step, time, value] for key, value in values.items()]
        case ("hparams", _, values, session):
            return [[f"{name}/{session}", "scalar", tag, 0, None, value] for tag, value in values.items()]
        case ("text", tag, text, step, time):
            return [[name, "text", f"{tag}/text_summary", step, time, text]]
    return []


def place_of(one: Run, own: set[str], folder: str, tag: str) -> tuple[str, str, str]:
    """The task, the metric and the variant of a tag in a folder of a run, which has `own` tags itself."""
    name, calls = one["name"], [call for of in one["files"] for call in of["calls"]]
    home, _, last = name.rpartition("/")
    if last in ("train", "validation"):
        return home, *names_of(f"{last}/{tag}")
    for call in calls:
        if call[0] == "scalars" and folder in (f"{name}/{call[1]}/{key}" for key in call[2]):
            return name, tag, folder.rpartition("/")[2]
    sessions = [f"{name}/{call[3]}" for call in calls if call[0] == "hparams"]
    if folder not in sessions:
        return name, *names_of(tag)
    if folder != min(sessions):
        return folder, *names_of(tag)
    return name, *names_of(f"hparams/{tag}" if tag in own else tag)


def whole_records(path: Path) -> tuple[int, bool]:
    """How many whole records a file has, and whether it ends with one."""
    data, at, count = path.read_bytes(), 0, 0
    while at + 12 <= len(data):
        end = at + 16 + struct.unpack_from("<Q", data, at)[0]
        if end > len(data):
            break
        at, count = end, count + 1
    return count, at == len(data)


class Expected:
    """What is to be on the server of some runs in a folder."""

    def __init__(self, runs: list[Run], folder: Path, rows: list[Row]) -> None:
        """`rows` are those of TensorBoard's own reader."""
        self.curves: dict[str, Curves] = {}
        self.texts: dict[str, list[str]] = {}
        self.others = Counter[tuple[str, str]]()
        """By task and kind, the images and histograms."""
        self.lost = Counter[str]()
        """By task, the points that a later one or a restart takes back."""
        self.odd = Counter[str]()
        """By task, the points with a time that cannot be believed."""
        self.cut: set[str] = set()
        """The tasks with a file that ends early."""
        for one in runs:
            self._add(one, folder / one["name"], [row for row in rows if f"{row[0]}/".startswith(f"{one['name']}/")])

    def _add(self, one: Run, folder: Path, rows: list[Row]) -> None:
        left, is_whole = whole_records(max(path for path in folder.iterdir() if path.is_file()))
        kept, written = modelled(one, left)
        # TensorBoard's reader has texts that a restart takes back. They are left out here.
        own = [row for row in rows if row[1] in ("scalar", "text")]
        assert sorted(map(_told, own)) == sorted(map(_told, [*_scalars(kept), *_texts(written)])), one["name"]
        place = partial(place_of, one, {row[2] for row in written if row[0] == one["name"]})
        home = place(one["name"], "")[0]
        self.curves.setdefault(home, {})
        for where, _, tag, *_ in written:
            self.lost[place(where, tag)[0]] += 1
        for row in _texts(kept):
            self.texts.setdefault(home, []).append(row[5])
            self.odd[home] += time_of(row[4]) is None
            self.lost[home] -= 1
        for where, kind, tag, step, time, value in rows:
            task, metric, variant = place(where, tag)
            if kind == "scalar":
                curve = self.curves.setdefault(task, {}).setdefault((metric, variant), {})
                self.lost[task] -= step not in curve
                curve[step] = (time_of(time), repr(value))
                self.odd[task] += time_of(time) is None
            elif kind != "text":
                self.others[task, kind] += 1
        if not is_whole:
            self.cut.add(home)


def _scalars(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row[1] == "scalar"]


def _texts(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row[1] == "text"]


def _told(row: Row) -> str:
    """A row as text, without the time of hyperparameters, which nobody chose."""
    return str([*row[:4], None if row[0].endswith(("/h0", "/h1")) else row[4], *row[5:]])


# --- what arrives ----------------------------------------------------------------------------------


def check(server: Served, expected: Expected, report: dict[str, Any], *, at_once: bool) -> None:
    """Compare; `at_once`: all was imported by the import of the report."""
    tasks = tasks_of(server)
    assert tasks.keys() == expected.curves.keys()
    for name, curves in expected.curves.items():
        id = tasks[name]["id"]
        assert (name, curves_of(server, id, curves)) == (name, curves)
        missing = missing_of(report, name)
        assert (name, overwritten(report, name)) == (name, expected.lost[name]) or not at_once
        assert (name, odd_times(missing)) == (name, expected.odd[name]) or not at_once
        assert any("ends in the middle" in one["cause"] for one in missing) == (name in expected.cut), name
        if texts := expected.texts.get(name):
            assert (name, sorted(lines_of(server, id))) == (name, sorted(texts))
    for (name, kind), count in expected.others.items():
        with server.client() as client:
            resource = "images" if kind == "image" else "plots"
            found = client.get(f"/data/tasks/{tasks[name]['id']}/{resource}.ndjson").raise_for_status().text
        assert (name, kind, len(found.splitlines())) == (name, kind, count)


def test_what_arrives_is_what_tensorboard_has(
    server: Served, environment: dict[str, str], python: Path, tmp_path: Path
) -> None:
    runs = [*CASES, *models(8)]
    rows = recorded(python, "tensorboard_runs.py", tmp_path, given=runs)
    given = shutil.copytree(tmp_path / "cut", tmp_path / "given")
    check(server, Expected(runs, given, rows["cut"]), imported("tensorboard", given), at_once=True)
    shutil.copytree(tmp_path / "whole", given, dirs_exist_ok=True)
    report = imported("tensorboard", given)
    check(server, Expected(runs, given, rows["whole"]), report, at_once=False)
    check_again("tensorboard", given, report)
    params = tasks_of(server)["hparams and scalars"]["hyperparams"]["hparams"]
    assert {name: one["value"] for name, one in params.items()} == {"lr": "0.5", "opt": "sgd"}
