"""What was deleted or thinned on the server stays gone when it is imported again, and is named, unless `--restore`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apiserver.cli import main
from apiserver.common.times import now_ms
from apiserver.operating.retention import deleting
from apiserver.transfer.importing.report import Report, SourceRefused
from apiserver.transfer.importing.runs.model import Again, Part, Points, Position, Run
from apiserver.transfer.importing.runs.progress import Progress
from apiserver.transfer.importing.runs.server import Server, address
from apiserver.transfer.importing.runs.taking import Taking
from tests.harness import Served
from tests.transfer.importing.runs import tfevents
from tests.transfer.importing.runs.test_taking import environment, lines_of, series_of, tasks_of, text, write_run
from tests.transfer.importing.runs.tfevents import scalar
from tests.transfer.importing.runs.wandb_logs import RUN, history, log_of, write

__all__ = ["environment"]

FEWER = "fewer events here than were imported"
YEAR = 365 * 86_400_000


@pytest.fixture
def again(environment: dict[str, str], capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Import, which takes everything; what was said."""

    def run(*command: str, code: int = 0) -> str:
        assert main(["import", *command]) == code
        return capsys.readouterr().err

    return run


def points(server: Served) -> dict[str, list[float]]:
    """By task, the steps of the metric x."""
    found = {name: series_of(server, task["id"]) for name, task in tasks_of(server).items()}
    return {name: of["x"]["x"]["x"] if of else [] for name, of in found.items()}


def delete(server: Served, name: str) -> None:
    server.call("events.delete_for_task", {"task": tasks_of(server)[name]["id"]})


def test_deleted_events_stay_gone_and_new_ones_come(server: Served, again: Callable[..., str], tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for name in "abc":
        write_run(runs / name, tfevents.records([scalar("x", 1, 1), scalar("x", 2, 2)]))
    assert FEWER not in again("tensorboard", str(runs))
    delete(server, "a")
    delete(server, "b")
    for _ in range(2):
        said = again("tensorboard", str(runs))
        assert f"note: 2 runs have {FEWER} (a, b): deleted or thinned here; --restore brings them again\n" in said
        assert "runs: 3 found, 0 imported, 3 imported before\n" in said
        assert points(server) == {"a": [], "b": [], "c": [1, 2]}
    for name in "abc":
        write_run(runs / name, tfevents.records([scalar("x", n, n) for n in (1, 2, 3)]))
    assert f"2 runs have {FEWER}" in again("tensorboard", str(runs), "--files")
    assert points(server) == {"a": [3], "b": [3], "c": [1, 2, 3]}
    said = again("tensorboard", str(runs), "--restore")
    assert FEWER not in said
    assert "3 found, 2 imported (2 updated), 1 imported before" in said
    assert FEWER not in again("tensorboard", str(runs))
    assert points(server) == {name: [1, 2, 3] for name in "abc"}
    delete(server, "a")
    assert f"1 run has {FEWER} (a)" in again("tensorboard", str(runs))


def test_lines_that_are_left_are_not_doubled(server: Served, again: Callable[..., str], tmp_path: Path) -> None:
    """The same line may come several times; one is refused each time."""
    lines = [text(tag, n, f"line {n % 3}") for n in range(9) for tag in ("s", "t")]
    write_run(tmp_path / "a", tfevents.records([*lines, text("n" * 2000, 1, "refused"), text("s", 9, "ü")]))
    again("tensorboard", str(tmp_path), code=1)
    task = tasks_of(server)["a"]["id"]
    everything = sorted(lines_of(server, task))
    assert len(everything) == 19
    for gone in ("s", "t"):
        server.call("events.clear_task_log", {"task": task, "include_metrics": [gone]})
        assert FEWER in again("tensorboard", str(tmp_path), code=1)
        assert len(lines_of(server, task)) < len(everything)
        again("tensorboard", str(tmp_path), "--restore", code=1)
        assert sorted(lines_of(server, task)) == everything


@pytest.mark.parametrize("then", [None, "12 points"], ids=["deleted", "thinned"])
def test_what_retention_took_stays_gone(
    server: Served, again: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: str | None
) -> None:
    rows = [f"{n},2024-03-01T08:00:00Z,{n % 7}" for n in range(100)]
    write_run(tmp_path, "\n".join(["iter,timestamp,x", *rows]).encode(), "t.csv")
    again("table", str(tmp_path / "t.csv"))
    server.stop()
    rule = {"types": ["scalars"], "keep": "90 d", **({"then": then} if then else {})}
    now = now_ms()
    monkeypatch.setattr(deleting, "now_ms", lambda: now + YEAR)
    assert main(["retention", "--data", str(server.data), "--retention", json.dumps([rule])]) == 0
    server.start()
    left = points(server)["t"]
    assert len(left) < 13
    assert f"1 run has {FEWER} (t)" in again("table", str(tmp_path / "t.csv"))
    assert points(server)["t"] == left
    again("table", str(tmp_path / "t.csv"), "--restore")
    assert points(server)["t"] == list(range(100))


def test_a_source_that_is_read_only_as_a_whole_waits_for_restore(
    server: Served, again: Callable[..., str], tmp_path: Path
) -> None:
    table = tmp_path / "t.csv"
    write_run(tmp_path, b"iter,x\n1,1\n2,2\n", "t.csv")
    again("table", str(table))
    delete(server, "t")
    write_run(tmp_path, b"iter,x\n1,1\n2,2\n3,3\n", "t.csv")
    for _ in range(2):
        said = again("table", str(table), code=1)
        assert "problem: run t: it has changed, and is read only as a whole; --restore does so" in said
        assert "1 found, 0 imported, 0 imported before, 1 not imported" in said
        assert points(server) == {"t": []}
    again("table", str(table), "--restore")
    assert points(server) == {"t": [1, 2, 3]}
    write_run(tmp_path, b"iter,x\n1,1\n2,2\n3,3\n4,4\n", "t.csv")
    again("table", str(table))
    assert points(server) == {"t": [1, 2, 3, 4]}


def test_a_run_that_was_reset_or_deleted_comes_anew(server: Served, again: Callable[..., str], tmp_path: Path) -> None:
    write_run(tmp_path / "a", tfevents.records([scalar("x", 1, 1)]))
    again("tensorboard", str(tmp_path))
    for endpoint in ("tasks.reset", "tasks.delete"):
        delete(server, "a")
        server.call(endpoint, {"task": tasks_of(server)["a"]["id"], "force": True})
        assert FEWER not in again("tensorboard", str(tmp_path))
        assert FEWER not in again("tensorboard", str(tmp_path))
        assert points(server) == {"a": [1]}


def test_files_come_though_events_stay_gone(server: Served, again: Callable[..., str], tmp_path: Path) -> None:
    run = write(tmp_path / "w", log_of([RUN, history(0, {"x": 0})]))
    (run / "files" / "a.txt").write_bytes(b"a")
    again("wandb", str(tmp_path / "w"))
    delete(server, "one")
    write(tmp_path / "w", log_of([RUN, history(0, {"x": 0}), history(1, {"x": 1})]))
    assert FEWER in again("wandb", str(tmp_path / "w"), "--files")
    task = tasks_of(server)["one"]
    assert [one["key"] for one in task["execution"]["artifacts"]] == ["a.txt"]
    assert points(server) == {"one": [1]}


def test_all_folders_of_a_resumed_run_are_restored(server: Served, again: Callable[..., str], tmp_path: Path) -> None:
    def said(n: int, metric: str) -> bytes:
        return history(n, {metric: f"line {n}", "x": n})

    for name, steps in (("1", range(4)), ("2", range(4, 8))):
        (tmp_path / "w" / name).mkdir(parents=True)
        records = [RUN, *(said(n, "st"[n % 2]) for n in steps)]
        (tmp_path / "w" / name / "run-id7.wandb").write_bytes(log_of(records))
    again("wandb", str(tmp_path / "w"))
    task = tasks_of(server)["one"]["id"]
    everything = [f"line {n}" for n in range(8)]
    assert lines_of(server, task) == everything
    server.call("events.clear_task_log", {"task": task, "include_metrics": ["s"]})
    assert FEWER in again("wandb", str(tmp_path / "w"))
    again("wandb", str(tmp_path / "w"), "--restore")
    assert lines_of(server, task) == everything
    assert FEWER not in again("wandb", str(tmp_path / "w"), "--files")
    assert lines_of(server, task) == everything


def test_restoring_is_not_following(again: Callable[..., str], tmp_path: Path) -> None:
    assert "--restore needs an import that ends" in again("tensorboard", str(tmp_path), "--restore", "--follow", code=2)


class Changing:
    """A source of one run. Its points are wrong once they were given: it says `Again(cleared=True)` to a position."""

    unit = "bytes"

    def __init__(self, steps: list[int], *, breaks: bool = False) -> None:
        self.run = Run("changing", "p", "one")
        self._steps = steps
        self._breaks = breaks

    def total(self) -> int:
        return 0

    def runs(self) -> Iterator[Changing]:
        yield self

    def parts(self, position: str | None) -> Iterator[Part]:
        if position == str(self._steps):
            return
        if position is not None:
            yield Again(cleared=True)
        steps = np.array(self._steps, np.int64)
        if self._breaks:
            raise ValueError("the source broke")
        yield Points("x", "x", steps, steps + 1_700_000_000_000, steps.astype(np.float64))
        yield Position(str(self._steps))


def take(source: Changing, environment: dict[str, str], *, with_files: bool = False) -> Report:
    server = Server(address(None, None, environment))
    report = Report(lambda line: None)
    taking = Taking(server, report, Progress("bytes", 0), with_files=with_files)
    try:
        taking.take(source)
        taking.close()
    finally:
        server.close()
    return report


def test_a_run_that_was_cleared_comes_back_whatever_ended_the_import(
    server: Served, environment: dict[str, str]
) -> None:
    assert take(Changing([1, 2, 3]), environment).problems == 0
    assert take(Changing([1, 2], breaks=True), environment).problems == 1
    assert points(server) == {"one": []}
    for _ in range(2):
        report = take(Changing([5, 6]), environment)
        assert (report.problems, report.notes) == (0, [])
        assert points(server) == {"one": [5, 6]}


def test_a_run_that_could_not_be_cleared_is_cleared_by_the_next_import(
    server: Served, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by one that reads it from its start for its files."""
    assert take(Changing([1, 2, 3]), environment).problems == 0

    def call(self: Server, endpoint: str, request: dict[str, Any]) -> dict[str, Any]:
        if endpoint == "events.delete_for_task":
            raise SourceRefused("not now")
        return really(self, endpoint, request)

    really = Server.call
    with monkeypatch.context() as patch:
        patch.setattr(Server, "call", call)
        assert take(Changing([5, 6]), environment).problems == 1
    assert points(server) == {"one": [1, 2, 3]}
    assert take(Changing([5, 6]), environment, with_files=True).problems == 0
    assert points(server) == {"one": [5, 6]}
