"""Runs scripts with the packages of other trackers, and reads what `apiserver import` made of what they recorded."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from apiserver.cli import main
from apiserver.transfer.importing.missing import Reason
from apiserver.transfer.importing.runs.times import NO_TIME, of_number
from tests.clients.sdk import ROOT, SCRIPTS
from tests.harness import PATIENCE, Served
from tests.transfer.importing.runs.test_taking import tasks_of

#: By metric and variant, by iteration, the time of a point and its value as text. A time of None is any.
Curves: TypeAlias = dict[tuple[str, str], dict[int, tuple[int | None, str]]]


@pytest.fixture(scope="module")
def python() -> Path:
    """The Python that has the trackers' packages."""
    found = Path(os.environ.get("TRACKERS_PYTHON", ROOT / ".venv-trackers" / "bin" / "python"))
    if not found.exists():
        pytest.skip("no packages of other trackers: `make check` installs them, or set TRACKERS_PYTHON")
    return found


def recorded(python: Path, script: str, home: Path, *arguments: str, given: Any = None) -> Any:
    """Run a script, with something as JSON in its input; what it prints last, as JSON."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "MLFLOW_ALLOW_FILE_STORE": "true",
        "WANDB_ERROR_REPORTING": "false",
    }
    done = subprocess.run(
        [str(python), str(SCRIPTS / script), *arguments],
        env=environment,
        cwd=home,
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=5 * PATIENCE,
    )
    assert not done.returncode, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def imported(source: str, place: Path, *options: str) -> dict[str, Any]:
    """Import a place; the report. The exit code says whether it names anything that is missing."""
    path = place.with_name(f"{place.name}.json")
    code = main(["import", source, str(place), *options, "--report", str(path)])
    report: dict[str, Any] = json.loads(path.read_bytes())
    assert code == bool(report["missing"])
    return report


def check_again(source: str, place: Path, before: dict[str, Any], *options: str) -> None:
    """Another import finds nothing new, and names again what is missing."""
    report = imported(source, place, *options)
    runs = report["counts"]["runs"]
    assert (runs["found"], runs["taken"]) == (runs["known"], 0)
    assert sorted(map(json.dumps, report["missing"])) == sorted(map(json.dumps, before["missing"]))


def missing_of(report: dict[str, Any], run: str) -> list[dict[str, Any]]:
    """What a report says of a run."""
    return [one for one in report["missing"] if one["of"].startswith((f"run {run}: ", f"{run}: "))]


def overwritten(report: dict[str, Any], run: str) -> int:
    """How many points of a run a later one or a restart took back, also those that the later one repeats."""
    repeated = re.compile(rf"run {re.escape(run)}: series .*: ([\d,]+) points? came twice.*", re.DOTALL)
    notes = [int(note[1].replace(",", "")) for note in map(repeated.fullmatch, report["notes"]) if note]
    lost: list[int] = [one["count"] for one in missing_of(report, run) if one["reason"] == Reason.OVERWRITTEN]
    return sum(notes) + sum(lost)


def odd_times(missing: list[dict[str, Any]]) -> int:
    """How many points have a time that cannot be believed."""
    return sum(one["count"] for one in missing if one["cause"] == NO_TIME)


def rows_of(server: Served, task: str) -> Iterator[dict[str, str]]:
    """The points of a task, as `/data` answers them."""
    with server.client() as client:
        text = client.get(f"/data/tasks/{task}/scalars.csv", params={"csv": "plain"}).raise_for_status().text
    return csv.DictReader(io.StringIO(text, newline=""))


def value_of(row: Mapping[str, str]) -> str:
    """The value of a row as Python writes it."""
    return repr(float(row["value"])) if row["value"] else "nan"


def points_of(server: Served) -> list[list[Any]]:
    """The points of all tasks, as [task, metric, variant, iteration, value]."""
    return [
        [name, row["metric"], row["variant"], int(row["iter"]), value_of(row)]
        for name, task in tasks_of(server).items()
        for row in rows_of(server, task["id"])
    ]


def curves_of(server: Served, task: str, expected: Curves) -> Curves:
    """The curves of a task, with a time of None where `expected` has one."""
    found: Curves = {}
    for row in rows_of(server, task):
        series, step = (row["metric"], row["variant"]), int(row["iter"])
        time, _ = expected.get(series, {}).get(step, (0, ""))
        curve = found.setdefault(series, {})
        assert step not in curve
        curve[step] = (None if time is None else int(row["timestamp"]), value_of(row))
    return found


def time_of(number: float) -> int | None:
    """The time of a point that has this one where it comes from: None if that cannot be believed."""
    return of_number(number)
