"""Runs of W&B, offline: what arrives is what its own messages say, at the x that a model of the runs says.

The last log of some runs is cut first, as by a crash, and whole in a second import.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import strategies as st

from apiserver.cli import main
from apiserver.importing.runs.model import names_of, names_of_x
from tests.chance import drawn
from tests.clients.trackers import Curves, curves_of, python, recorded, time_of
from tests.harness import Served
from tests.importing.runs.test_taking import environment, tasks_of

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
    return {"name": name, "sessions": sessions, "cut": cut}


ODD = [math.nan, math.inf, -math.inf, 1e308, 5e-324, -0.5, 2**53 + 1, True]
NAMES = ["a b", "ü/ß", "val/loss", "x/y/z", "/x", "x/", "a//b", "x.y", "日本", "n" * 300, "x/x", "-1"]
NESTED = {"m": {"a": {"b": 1}, "c": 2.5}, "list": [1, 2], "none": None, "text": "hi ü"}
CASES = [
    run("values", session(*({"x": one} for one in ODD))),
    run("names", session({name: number for number, name in enumerate(NAMES)}, NESTED)),
    run("steps", session(rows=[(step, {"x": step}) for step in (0, 1, 10, 10**6, 2**40)])),
    run("one step twice", session(rows=[(1, {"a": 1}), (1, {"b": 2}), (1, {"a": 3}), (2, {"a": 4})])),
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
        "the longest glob, and names",
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
_defines = st.tuples(
    st.sampled_from(["loss", "val/*", "val/acc", "*", "n*"]),
    st.sampled_from(["epoch", None]),
    st.sampled_from([None, True, False]),
)
SESSIONS = st.builds(
    lambda rows, defines: session(*rows, defines=defines),
    st.lists(st.dictionaries(_names, _numbers, min_size=1), max_size=30),
    st.lists(_defines, max_size=3, unique_by=lambda one: one[0]),
)
RUNS = st.tuples(st.lists(SESSIONS, min_size=1, max_size=2), st.none() | st.floats(0.3, 1))


def models(count: int) -> list[Run]:
    """Any runs."""
    return [run(f"any-{number}", *sessions, cut=cut) for number, (sessions, cut) in enumerate(drawn(RUNS, count))]


# --- what is to arrive -----------------------------------------------------------------------------


def definition(name: str, defines: list[Define]) -> Define | None:
    """What counts for a series: its name, or the longest glob."""
    fitting = [one for one in defines if one[0] == name or (one[0].endswith("*") and name.startswith(one[0][:-1]))]
    return max(fitting, key=lambda one: (one[0] == name, len(one[0])), default=None)


def curves(one: Run, own: list[Session]) -> tuple[Curves, int]:
    """The curves of a run at the x that W&B shows, and how many points there are."""
    defines: list[Define] = [define for session in one["sessions"] for define in session["defines"]]
    placed: dict[str, list[tuple[float | None, str, int, int | None, float]]] = {}
    latest: dict[str, float] = {}
    offset = 0
    for session in own:
        last = -1
        for step, time, numbers in session["rows"]:
            last = max(last, step)
            latest.update((name, value) for name, value in numbers.items() if math.isfinite(value))
            for name, value in numbers.items():
                _, of, sync = definition(name, defines) or ("", None, None)
                x = numbers.get(of) if of and of != name else None
                if x is not None and not math.isfinite(x):
                    x = None
                if x is None and of and of != name and sync is not False:
                    x = latest.get(of)
                placed.setdefault(name, []).append((x, of or "", step + offset, time_of(time), value))
        offset += last + 1
    found: Curves = {}
    for name, points in placed.items():
        is_whole = all(x is None or (x.is_integer() and abs(x) < 2**63) for x, *_ in points)
        curve = found.setdefault(names_of(name), {})
        for number, (x, of, step, time, value) in enumerate(points):
            curve[number if not is_whole else step if x is None else int(x)] = time, repr(value)
            if not is_whole and x is not None:
                found.setdefault(names_of_x(of, name), {})[number] = time, repr(x)
    return found, sum(map(len, placed.values()))


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


def check(server: Served, runs: list[Run], own: dict[str, list[Session]], report: dict[str, Any]) -> None:
    tasks = tasks_of(server)
    assert tasks.keys() == {one["name"] for one in runs}
    for one in runs:
        name, task = one["name"], tasks[one["name"]]
        expected, count = curves(one, own[name])
        assert (name, curves_of(server, task["id"], expected)) == (name, expected)
        missing = [told for told in report["missing"] if told["of"].startswith(f"run {name}: ")]
        lost = sum(told["count"] for told in missing if told["reason"] == "overwritten")
        kept = sum(len(curve) for (metric, _), curve in expected.items() if not metric.startswith("x: "))
        assert (name, lost) == (name, count - kept)
        code = own[name][-1]["code"]
        assert (name, task["status"]) == (name, "stopped" if code is None else "failed" if code else "completed")
        for section in ("config", "summary"):
            said = {name: value for session in own[name] for name, value in session[section].items()}
            params = {key: one["value"] for key, one in task["hyperparams"].get(section, {}).items()}
            if section == "config":
                assert (name, params) == (name, flat(said))


def imported(place: Path) -> dict[str, Any]:
    """Import a folder; the report."""
    report = place.with_suffix(".json")
    code = main(["import", "wandb", str(place), "--report", str(report)])
    told: dict[str, Any] = json.loads(report.read_bytes())
    assert code == bool(told["missing"])
    return told


def test_what_arrives_is_what_wandb_has(
    server: Served, environment: dict[str, str], python: Path, tmp_path: Path
) -> None:
    runs = [*CASES, *models(4)]
    for one in runs:
        one["id"] = one["name"].replace(" ", "-").replace(",", "")
    own = recorded(python, "wandb_runs.py", tmp_path, given=runs)
    given = shutil.copytree(tmp_path / "cut", tmp_path / "given")
    check(server, runs, own["cut"], imported(given))
    shutil.copytree(tmp_path / "whole", given, dirs_exist_ok=True)
    check(server, runs, own["whole"], imported(given))
