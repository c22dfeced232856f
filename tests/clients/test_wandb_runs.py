"""Runs of W&B, offline: what arrives is what `wandb sync` tells a server of them, at the x that a model says.

The last log of some runs is cut first, as by a crash, and whole in a second import.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pytest
from hypothesis import strategies as st

from apiserver.transfer.importing.runs.model import names_of, names_of_x
from tests.chance import drawn
from tests.clients.trackers import (
    Curves,
    check_again,
    curves_of,
    imported,
    missing_of,
    overwritten,
    python,
    recorded,
    time_of,
)
from tests.harness import Served
from tests.transfer.importing.runs.test_taking import environment, lines_of, tasks_of

__all__ = ["environment", "python"]
pytestmark = pytest.mark.hypothesis

#: As the script takes them.
Run: TypeAlias = dict[str, Any]
#: As the script takes and gives them.
Session: TypeAlias = dict[str, Any]
#: A name or a glob, its step metric, and whether that is synced.
Define: TypeAlias = tuple[str, str | None, bool | None]


def session(*values: dict[str, Any], defines: Iterable[Define] = (), **more: Any) -> Session:
    """A folder of a run with a row for each of `values`, or with `rows` that have steps."""
    rows = [(None, row) for row in values]
    return {"rows": rows, "defines": [*defines], "config": {}, "summary": {}, "code": 0, **more}


def run(name: str, *sessions: Session, cut: float | None = None) -> Run:
    return {"name": name, "id": name.replace(" ", "-"), "sessions": sessions, "cut": cut}


ODD = [math.nan, math.inf, -math.inf, 1e308, 5e-324, -0.5, 2**53 + 1, True]
NAMES = ["a b", "ü/ß", "val/loss", "x/y/z", "/x", "x/", "a//b", "x.y", "日本", "n" * 300, "x/x", "-1"]
NESTED = {"m": {"a": {"b": 1}, "c": 2.5}, "list": [1, 2], "none": None, "text": "hi ü"}
CASES = [
    run("values", session(*({"x": one} for one in ODD))),
    run("names", session({name: number for number, name in enumerate(NAMES)}, NESTED)),
    run("steps", session(rows=[(step, {"x": step}) for step in (0, 1, 10, 10**6, 2**40)])),
    run("one step twice", session(rows=[(1, {"a": 1}), (1, {"b": 2}), (1, {"a": 3}), (2, {"a": 4})])),
    run("x and value stay", session(*({"y": 1, "e": 5} for n in range(4)), defines=[("y", "e", None)])),
    run("nothing", session()),
    run("failed", session({"x": 1}, code=1)),
    run("many metrics", session({f"layer/{number}": number for number in range(300)})),
    run("long", session(*({"x": number, "t": "y" * 500} for number in range(300)))),
    run(
        "one glob for all",
        session(
            *({"loss": 1 / (n + 1), "trainer/global_step": n * 50} for n in range(10)),
            defines=[("trainer/global_step", None, None), ("*", "trainer/global_step", True)],
        ),
    ),
    run(
        "decimal x",
        session(*({"val/acc": n, "epoch": n / 4, "plain": n} for n in range(8)), defines=[("val/*", "epoch", None)]),
    ),
    run(
        "globs and names",
        session(
            *({"a/b/c": n, "a/b": n, "a/d": n, "e": n, "s": n * 2, "t": n * 3} for n in range(4)),
            defines=[("a/*", "s", None), ("a/b/*", "t", None), ("a/d", "t", None), ("e", None, None)],
        ),
    ),
    run(
        "rows without their x",
        session(
            *({"y": 0, "z": 0}, {"y": 1, "z": 1, "e": 10}, {"y": 2, "z": 2}, {"y": 3, "z": 3, "e": 7}),
            defines=[("y", "e", True), ("z", "e", False)],
        ),
    ),
    run("x stays", session(*({"y": n, "e": 5} for n in range(4)), defines=[("y", "e", None)])),
    run("resumed", *(session(*({"x": n + 10 * part} for n in range(5))) for part in range(2))),
    run(
        "config and summary",
        session({"x": 1}, config={"lr": 0.1, "n": {"a": [1, 2], "b": "ü"}, "t": None}, summary={"best": 7, "k": "v"}),
    ),
    run("cut", session(*({"x": n, "t": "y" * 300} for n in range(100))), cut=0.6),
    run(
        "cut before a decimal x",
        session(*({"y": n, "e": n / (1 + (n > 15))} for n in range(20)), defines=[("y", "e", None)]),
        cut=0.5,
    ),
]
_names = st.sampled_from(["loss", "val/acc", "val/f1", "epoch", "n.x"])
_numbers = st.floats() | st.integers(-(2**40), 2**40) | st.integers(0, 9)
_others = (
    st.text("ab ü") | st.none() | st.just([1, 2]) | st.booleans() | st.fixed_dictionaries({"a": st.integers(0, 9)})
)
_rows = st.tuples(
    st.none() | st.integers(0, 40),
    st.dictionaries(_names, _numbers, min_size=1) | st.dictionaries(_names, _numbers | _others, min_size=1),
)
_defines = st.tuples(
    st.sampled_from(["loss", "val/*", "val/acc", "*", "n*"]),
    st.sampled_from(["epoch", None]),
    st.sampled_from([None, True, False]),
)
SESSIONS = st.builds(
    lambda rows, defines: session(rows=rows, defines=defines),
    st.lists(_rows, max_size=30),
    st.lists(_defines, max_size=3, unique_by=lambda one: one[0]),
)
RUNS = st.tuples(st.lists(SESSIONS, min_size=1, max_size=2), st.none() | st.floats(0.3, 1))


def models(count: int) -> list[Run]:
    """Any runs."""
    return [run(f"any-{number}", *sessions, cut=cut) for number, (sessions, cut) in enumerate(drawn(RUNS, count))]


# --- what is to arrive -----------------------------------------------------------------------------


class Defined(NamedTuple):
    """What metric is x ("" for the step), and whether a row without it has the last one."""

    of: str
    is_synced: bool


class Point(NamedTuple):
    """A point in the history."""

    step: int
    """Counted on through all sessions."""
    time: int | None
    value: float
    x: float | None
    """None if it is the step."""
    of: str
    """The metric that is x."""


class History:
    """What the rows of a run say: those that W&B has written, at the x that the model says."""

    def __init__(self, one: Run, own: list[Session]) -> None:
        sessions = zip(one["sessions"], own, strict=True)
        defines = _merged(one for said, log in sessions for one in said["defines"] if one[0] in log["defines"])
        self.points: dict[str, list[Point]] = {}
        self.texts: list[str] = []
        self.others = 0
        """Lists and empty values."""
        latest: dict[str, float] = {}
        for step, time, values in _rows_of(own):
            numbers = {name: float(value) for name, value in values.items() if isinstance(value, int | float)}
            # A truth is a point, and no x.
            here = {name: one for name, one in numbers.items() if math.isfinite(one) and values[name] is not bool(one)}
            latest |= here
            for name, value in numbers.items():
                defined = _defined(name, defines)
                x = _x(defined, name, here, latest)
                self.points.setdefault(name, []).append(Point(step, time_of(time), value, x, defined.of))
            self.texts += [value for value in values.values() if isinstance(value, str)]
            self.others += sum(value is None or isinstance(value, list) for value in values.values())

    def curves(self) -> Curves:
        """Numbered, with a curve of the x, if these are not all whole."""
        found: Curves = {}
        for name, points in self.points.items():
            is_whole = all(one.x is None or (one.x.is_integer() and abs(one.x) < 2**63) for one in points)
            curve = found.setdefault(names_of(name), {})
            for number, one in enumerate(points):
                place = number if not is_whole else one.step if one.x is None else int(one.x)
                curve[place] = one.time, repr(one.value)
                if not is_whole and one.x is not None:
                    found.setdefault(names_of_x(one.of, name), {})[number] = one.time, repr(one.x)
        return found


def _rows_of(own: list[Session]) -> Iterator[tuple[int, float, dict[str, Any]]]:
    """The rows of all sessions. A session that begins at the step 0 again goes on behind those before it."""
    last = -1
    for session in own:
        steps = [step for step, *_ in session["rows"]]
        before = last + 1 if steps[:1] == [0] else 0
        for step, time, values in session["rows"]:
            yield before + step, time, values
        last = max([last, *(before + step for step in steps)])


def _merged(defines: Iterable[Define]) -> dict[str, Defined]:
    """Definitions by name or glob: of several, what a later one does not say is as before."""
    merged: dict[str, Defined] = {}
    for name, of, sync in defines:
        before = merged.get(name, Defined("", False))
        merged[name] = Defined(of or before.of, before.is_synced or (bool(of) if sync is None else sync))
    return merged


def _defined(name: str, defines: dict[str, Defined]) -> Defined:
    """The definition of a series: that of its name, else that of the longest glob."""
    globs = [key for key in defines if key.endswith("*") and name.startswith(key[:-1])]
    return defines.get(name) or defines.get(max(globs, key=len, default="")) or Defined("", False)


def _x(defined: Defined, name: str, here: dict[str, float], latest: dict[str, float]) -> float | None:
    """The x of a point, of those in its row and the last ones; None if it is the step."""
    if defined.of in ("", name):
        return None
    return here.get(defined.of, latest.get(defined.of) if defined.is_synced else None)


def flat(values: dict[str, Any], before: str = "") -> dict[str, str]:
    """Config as parameters."""
    found: dict[str, str] = {}
    for name, value in values.items():
        if isinstance(value, dict) and value:
            found |= flat(value, f"{before}{name}/")
        elif name != "_wandb":
            found[f"{before}{name}"] = value if isinstance(value, str) else json.dumps(value)
    return found


# --- what arrives ----------------------------------------------------------------------------------


def check(
    server: Served, runs: list[Run], own: dict[str, list[Session]], report: dict[str, Any], *, at_once: bool
) -> None:
    """Compare with what W&B has written. `at_once`: all was imported by the import of the report."""
    tasks = tasks_of(server)
    assert tasks.keys() == {one["name"] for one in runs}
    for one in runs:
        name, task, missing = one["name"], tasks[one["name"]], missing_of(report, one["name"])
        history = History(one, own[name])
        curves = history.curves()
        assert (name, curves_of(server, task["id"], curves)) == (name, curves)
        kept = sum(len(curve) for (metric, _), curve in curves.items() if not metric.startswith("x: "))
        lost = sum(map(len, history.points.values())) - kept
        assert (name, overwritten(report, name)) == (name, lost) or not at_once
        assert (name, sorted(lines_of(server, task["id"]))) == (name, sorted(history.texts))
        others = sum(told["count"] for told in missing if told["cause"] in ("list", "empty value"))
        assert (name, others) == (name, history.others)
        said, ended = one["sessions"][-1]["code"], own[name][-1]["code"]  # W&B says 1 of a log that has no end
        status = "stopped" if ended != said else "failed" if said else "completed"
        assert (name, task["status"]) == (name, status)
        config = flat({key: value for session in own[name] for key, value in session["config"].items()})
        assert (name, _parameters(task, "config")) == (name, config)
        if status != "stopped":
            summary = flat({key: value for session in one["sessions"] for key, value in session["summary"].items()})
            assert (name, _parameters(task, "summary")) == (name, summary)


def _parameters(task: dict[str, Any], section: str) -> dict[str, str]:
    return {name: one["value"] for name, one in task["hyperparams"].get(section, {}).items()}


def test_what_arrives_is_what_wandb_has(
    server: Served, environment: dict[str, str], python: Path, tmp_path: Path
) -> None:
    runs = [*CASES, *models(4)]
    own = recorded(python, "wandb_runs.py", tmp_path, given=runs)
    given = shutil.copytree(tmp_path / "cut", tmp_path / "given")
    check(server, runs, own["cut"], imported("wandb", given), at_once=True)
    shutil.copytree(tmp_path / "whole", given, dirs_exist_ok=True)
    report = imported("wandb", given)
    check(server, runs, own["whole"], report, at_once=False)
    check_again("wandb", given, report)
