"""The folders of W&B's runs: which are of one, in what order they are read, and how a run has ended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from apiserver.cli import main
from apiserver.common.protobuf_wire import Malformed
from apiserver.transfer.importing.report import Report
from apiserver.transfer.importing.runs.model import Again, Artifact, Problem
from apiserver.transfer.importing.runs.progress import Progress
from apiserver.transfer.importing.runs.server import Server, address
from apiserver.transfer.importing.runs.taking import Taking
from apiserver.transfer.importing.runs.wandb.run import WandbRun
from apiserver.transfer.importing.runs.wandb.runs import WandbFolder
from tests.harness import Served
from tests.transfer.importing.runs.test_taking import environment, lines_of, series_of, tasks_of
from tests.transfer.importing.runs.tfevents import Value, message
from tests.transfer.importing.runs.wandb_logs import (
    EXIT,
    FAILED,
    RUN,
    curves,
    defined,
    history,
    item,
    last_position,
    log_of,
    read,
    run,
    write,
)

__all__ = ["environment"]


@contextmanager
def following(environment: dict[str, str]) -> Iterator[Taking]:
    """An import with `--follow`, whose looks are those of the test. At its end, it tells what has not come."""
    server = Server(address(None, None, environment))
    taking = Taking(server, Report(lambda line: None), Progress("bytes", 0), goes_on=True)
    try:
        yield taking
    finally:
        taking.close()
        server.close()


def test_what_is_no_run_is_named(tmp_path: Path) -> None:
    for content in (b"", b"nothing", log_of([]), log_of([history(1, {"x": 1})])):
        write(tmp_path, content)
        (problem,) = WandbFolder(tmp_path, None).runs()
        assert isinstance(problem, Problem)


def test_the_folders_of_a_resumed_run_become_one_task(
    server: Served, environment: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    console, later = (
        message((13, message((1, 1), (2, message((1, 1_700_000_000 + n))), (3, "a line\n")))) for n in (1, 200)
    )
    first = [RUN, console, *(history(n, {"x": n, "more": 1}) for n in range(100))]
    second = [run(1_700_000_150), later, *(history(n, {"x": n}) for n in range(100, 150)), EXIT]
    for name, records in (("1", first), ("2", second)):
        (tmp_path / "w" / name).mkdir(parents=True)
        (tmp_path / "w" / name / "run-id7.wandb").write_bytes(log_of(records))
    for _ in range(2):
        assert main(["import", "wandb", str(tmp_path / "w")]) == 0
        (task,) = tasks_of(server).values()
        assert series_of(server, task["id"])["x"]["x"]["x"] == list(range(150))
        assert lines_of(server, task["id"]) == ["a line", "a line"]
        assert task["status"] == "completed"
    assert "runs: 1 found, 0 imported, 1 imported before" in capsys.readouterr().err


@pytest.mark.parametrize("files", [[], ["--files"]], ids=["events", "files"])
def test_folders_of_a_run_that_say_different_things_are_known_again(
    server: Served, environment: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str], files: list[str]
) -> None:
    resumed = message(
        (17, message((1, "id7"), (3, "proj"), (8, "one"), (9, "again"), (17, message((1, 1_700_000_900)))))
    )
    for name, records in (("1", [RUN, history(0, {"x": 0}), FAILED]), ("2", [resumed, history(1, {"x": 1}), EXIT])):
        (tmp_path / "w" / name).mkdir(parents=True)
        (tmp_path / "w" / name / "run-id7.wandb").write_bytes(log_of(records))
    command = ["import", "wandb", str(tmp_path / "w"), *files]
    for said in ("1 imported, 0 imported before", "0 imported, 1 imported before", "0 imported, 1 imported before"):
        assert main(command) == 0
        assert f"runs: 1 found, {said}\n" in capsys.readouterr().err
        assert tasks_of(server)["one"]["status"] == "completed"
    (tmp_path / "w" / "2" / "run-id7.wandb").write_bytes(log_of([resumed, history(1, {"x": 1}), EXIT, FAILED]))
    assert main(command) == 0
    assert tasks_of(server)["one"]["status"] == "failed", "the source says so"


def test_a_run_that_has_ended_keeps_its_status(server: Served, environment: dict[str, str], tmp_path: Path) -> None:
    """Imported while it runs, when it has ended, into another project, and with what came after its end."""
    write(tmp_path / "w", log_of([RUN, history(0, {"x": 0})]))
    with following(environment) as taking:
        statuses = []
        for records in ([], [history(1, {"x": 1}), FAILED], [history(1, {"x": 1}), FAILED, history(2, {"x": 2})]):
            write(tmp_path / "w", log_of([RUN, history(0, {"x": 0}), *records]))
            taking.take(WandbFolder(tmp_path / "w", None))
            statuses.append(tasks_of(server)["one"]["status"])
        assert statuses == ["in_progress", "failed", "failed"]
    for more in ([], ["--project", "other"], ["--files"], ["--project", "more"]):
        assert main(["import", "wandb", str(tmp_path / "w"), *more]) == 0
        task = tasks_of(server)["one"]
        assert task["status"] == "failed"
    assert task["completed"] == "2023-11-14T22:13:22.000000+00:00"


def test_a_run_without_an_end_is_stopped_only_if_nobody_has_ended_it(
    server: Served, environment: dict[str, str], tmp_path: Path
) -> None:
    write(tmp_path / "w", log_of([RUN, history(0, {"x": 0})]))
    assert main(["import", "wandb", str(tmp_path / "w")]) == 0
    task = tasks_of(server)["one"]
    assert task["status"] == "stopped"
    server.call("tasks.completed", {"task": task["id"], "force": True})
    write(tmp_path / "w", log_of([RUN, history(0, {"x": 0}), history(1, {"x": 1})]))
    assert main(["import", "wandb", str(tmp_path / "w"), "--project", "other"]) == 0
    assert tasks_of(server)["one"]["status"] == "completed"


@pytest.mark.parametrize("content", [b"", b":W", b":W&B\xe1\xbe\x00", log_of([RUN])[:40]], ids=range(4))
def test_a_file_that_is_begun_is_no_problem_while_it_is_followed(
    server: Served, environment: dict[str, str], tmp_path: Path, content: bytes
) -> None:
    write(tmp_path / "w", content)
    for ends_whole in (False, True):
        with following(environment) as taking:
            taking.take(WandbFolder(tmp_path / "w", None))
            assert taking.report.problems == 0
            if ends_whole:
                write(tmp_path / "w", log_of([RUN]))
                taking.take(WandbFolder(tmp_path / "w", None))
        assert taking.report.problems == (not ends_whole)


@pytest.mark.parametrize(
    ("about", "steps", "expected"),
    [
        ((), [0, 1], [0, 1, 2, 3, 4]),  # begun again
        ((), [2, 3], [0, 1, 2, 2, 3]),  # resumed, after the last point was not uploaded
        (((14, 1),), [1, 2], [0, 1, 2, 1, 2]),  # rewound
        (((14, 1),), [0, 1], [0, 1, 2, 0, 1]),
        ((), [None, None], [0, 1, 2, 3, 4]),  # of several processes
    ],
    ids=["again", "resumed", "rewound", "as-it-says", "none"],
)
def test_the_steps_of_a_resumed_run(
    tmp_path: Path, about: tuple[tuple[int, Value], ...], steps: list[int | None], expected: list[int]
) -> None:
    rows = [history(step, {"x": 1}) if step is not None else message((2, message(item("x", 1)))) for step in steps]
    write(tmp_path, log_of([run(1_700_000_100, *about), *rows]), "run-b")
    write(tmp_path, log_of([RUN, *(history(n, {"x": 1}) for n in range(3))]), "run-z")
    write(tmp_path / "copy", log_of([RUN, *(history(n, {"x": 1}) for n in range(2))]), "a")
    parts = read(tmp_path)
    assert [iter for iter, _ in curves(parts)["x/x"]] == expected
    write(tmp_path, log_of([run(1_700_000_100, *about), *rows, *rows]), "run-b")
    assert len(curves(read(tmp_path, last_position(parts)))["x/x"]) == 2


def test_a_folder_that_comes_between_those_that_were_read(tmp_path: Path) -> None:
    def wrote(number: int, *more: bytes) -> None:
        write(
            tmp_path, log_of([run(1_700_000_000 + number), *more, history(0, {"x": number, "e": 5})]), f"run-{number}"
        )

    wrote(1)
    wrote(3)
    position = last_position(read(tmp_path))
    wrote(2)
    parts = read(tmp_path, position)
    assert parts[0] == Again(cleared=True)
    assert curves(parts)["x/x"] == [(0, 1.0), (1, 2.0), (2, 3.0)]
    for path in (tmp_path / "run-1").iterdir():
        path.rename(tmp_path / path.name) if path.suffix else None
    (tmp_path / "run-id7.wandb").unlink()
    wrote(4)
    assert curves(read(tmp_path, last_position(parts)))["x/x"] == [(3, 4.0)]
    wrote(4, defined("x", "e"))
    with pytest.raises(Malformed, match="import all folders of the run together, also 'run-1'"):
        read(tmp_path, last_position(parts))


def test_files_of_all_folders_of_a_run(tmp_path: Path) -> None:
    for number in (1, 2):
        folder = write(tmp_path, log_of([run(1_700_000_000 + number)]), f"run-{number}")
        (folder / "files" / "both.txt").write_bytes(b"")
        (folder / "files" / f"{number}.txt").write_bytes(b"")
    source = WandbFolder(tmp_path, None)

    def names() -> list[str]:
        (found,) = source.runs()
        assert isinstance(found, WandbRun)
        return [part.name for part in found.parts(None) if isinstance(part, Artifact)]

    assert names() == ["2.txt", "both.txt", "1.txt", "run-1/both.txt"]
    (tmp_path / "run-1" / "files" / "both.txt").write_bytes(b"changed")
    assert names() == ["run-1/both.txt"], "a source that is followed gives what has changed"
