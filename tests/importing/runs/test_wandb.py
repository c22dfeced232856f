"""W&B's `.wandb` files, written by hand: all kinds of values, broken pieces, and what attackers write into them."""

from __future__ import annotations

import json
import struct
import tracemalloc
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.cli import main
from apiserver.events.event_types import LATEST_TIMESTAMP
from apiserver.importing.report import Report
from apiserver.importing.runs.model import Artifact, Figure, Image, Line, Part, Points, Position, Problem, Unmapped
from apiserver.importing.runs.progress import Progress
from apiserver.importing.runs.server import Server, address
from apiserver.importing.runs.taking import Taking
from apiserver.importing.runs.wandb.runs import WandbFolder, WandbRun
from tests.harness import Served
from tests.importing.runs.test_mlflow import points_of
from tests.importing.runs.test_taking import environment, lines_of, series_of, tasks_of
from tests.importing.runs.tfevents import Value, message, varint

__all__ = ["environment"]
RUN = message(
    (17, message((1, "id7"), (3, "proj"), (8, "one"), (9, "note"), (10, "t"), (17, message((1, 1_700_000_000)))))
)
EXIT, FAILED = (message((18, message((1, code)))) for code in (0, 1))


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


def item(name: str | list[str], value: Any) -> tuple[int, Value]:
    names = [(1, name)] if isinstance(name, str) else [(2, one) for one in name]
    return (1, message(*names, (16, json.dumps(value))))


def history(step: int, values: dict[str, Any]) -> bytes:
    """A record of the history; "a.b" is a nested name."""
    items = [item(name.split("."), value) for name, value in values.items()]
    own = [item(["_step"], step), item(["_timestamp"], 1_700_000_000 + step)]
    return message((1, 3), (2, message(*items, *own, (2, message((1, step))))), (200, b""))


def log_of(records: list[bytes]) -> bytes:
    """The content of a file."""
    made = bytearray(b":W&B\xe1\xbe\x00")
    for data in records:
        rest, is_first = data, True
        while rest or is_first:
            room = 32768 - len(made) % 32768
            if room < 7:
                made += b"\0" * room
                continue
            piece, rest = rest[: room - 7], rest[room - 7 :]
            kind = {(True, True): 1, (True, False): 2, (False, False): 3, (False, True): 4}[is_first, not rest]
            made += struct.pack("<IHB", zlib.crc32(bytes([kind]) + piece), len(piece), kind) + piece
            is_first = False
    return bytes(made)


def write(folder: Path, content: bytes) -> Path:
    run = folder / "offline-run-20261123_065159-id7"
    (run / "files" / "media" / "images").mkdir(parents=True, exist_ok=True)
    (run / "run-id7.wandb").write_bytes(content)
    return run


def parts_of(folder: Path, records: list[bytes], position: str | None = None) -> list[Part]:
    write(folder, log_of([RUN, *records]))
    (run,) = WandbFolder(folder, None).runs()
    assert isinstance(run, WandbRun)
    return list(run.parts(position))


def test_the_values_of_a_history(tmp_path: Path) -> None:
    parts = parts_of(
        tmp_path,
        [
            history(0, {"loss": 0.1, "n.x": 1, "odd": float("nan"), "text": "hi ü", "flag": True}),
            history(2**40, {"loss": float("-inf"), "n": {"y": {"z": 2}}, "none": None, "list": [1]}),
            history(3, {"h": {"_type": "histogram", "values": [1, 2], "bins": [0, 1, 3]}}),
            history(4, {"h._type": "histogram", "h.values": [5], "h.packedBins": {"min": 0, "size": 2, "count": 1}}),
            history(5, {"v": {"_type": "video-file", "path": "x"}}),
            history(6, {"long" * 50: 7}),
        ],
    )
    points = points_of(parts)
    assert points["loss", "loss"] == [(0, 1_700_000_000_000, "0.1"), (2**40, LATEST_TIMESTAMP, "-inf")]
    assert {name: rows[0][2] for (name, _), rows in points.items()} == {
        **{"loss": "0.1", "n.x": "1.0", "odd": "nan", "flag": "1.0", "n.y.z": "2.0", "long" * 50: "7.0"}
    }
    assert [(one.text, one.iter) for one in parts if isinstance(one, Line)] == [("hi ü", 0)]
    figures = [one.figure["data"][0] for one in parts if isinstance(one, Figure)]
    assert [(one["x"], one["y"]) for one in figures] == [([0.5, 2.0], [1, 2]), ([1.0], [5])]
    assert {one.kind for one in parts if isinstance(one, Unmapped)} == {"video-file", "empty value", "list"}


def test_a_run_is_taken_whole(
    server: Served, environment: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = message(
        (
            5,
            message(
                item("odd", "\ud800"), item("lr", 0.1), item("opt", {"name": "adam", "b": [1, 2]}), item("_wandb", {})
            ),
        )
    )
    console = [
        message((13, message((1, 1), (2, message((1, 1_700_000_001))), (3, text))))
        for text in ("10 %\r", "20 %\rdo", "ne\nnext\n", "last")
    ]
    stats = message((7, message((2, message((1, 1_700_000_030))), (3, message((1, "gpu.0.temp"), (16, "41.5"))))))
    summary = message((3, message(item("best", 3))))
    image = history(1, {"img": {"_type": "image-file", "path": "media/images/a.png"}})
    records = [RUN, config, *console, image, *(history(n, {"a/b": n / 3}) for n in range(200)), stats, summary, EXIT]
    run = write(tmp_path / "wandb", log_of(records))
    (run / "files" / "media" / "images" / "a.png").write_bytes(b"png")
    (run / "files" / "out.txt").write_bytes(b"text")
    (run.parent / "latest-run").symlink_to(run)
    assert main(["import", "wandb", str(tmp_path / "wandb"), "--files"]) == 0
    (task,) = tasks_of(server).values()
    assert (task["name"], task["status"], task["tags"], task["comment"]) == ("one", "completed", ["t"], "note")
    params = {name: one["value"] for name, one in task["hyperparams"]["config"].items()}
    assert params == {"odd": "?", "lr": "0.1", "opt/name": "adam", "opt/b": "[1, 2]"}
    assert task["hyperparams"]["summary"]["best"]["value"] == "3"
    series = series_of(server, task["id"])
    assert series["a"]["b"] == {"x": list(range(200)), "y": [n / 3 for n in range(200)]}
    assert series[":monitor:gpu"]["gpu.0.temp"] == {"x": [30], "y": [41.5]}
    assert lines_of(server, task["id"]) == ["done", "next", "last"]
    (artifact,) = task["execution"]["artifacts"]
    with server.client() as client:
        assert client.get(artifact["uri"]).content == b"text"
    capsys.readouterr()
    assert main(["import", "wandb", str(tmp_path / "wandb"), "--files"]) == 0
    assert "0 imported, 1 imported before" in capsys.readouterr().err
    assert tasks_of(server)["one"] == task


@pytest.mark.test
def test_reading_goes_on_behind_a_broken_piece_and_at_a_position(tmp_path: Path) -> None:
    records = [history(n, {"x": n, "y": "z" * 200}) for n in range(1000)]
    content = bytearray(log_of([RUN, *records]))
    content[40_000] ^= 1
    write(tmp_path, bytes(content))
    (run,) = WandbFolder(tmp_path, None).runs()
    assert isinstance(run, WandbRun)
    parts = list(run.parts(None))
    steps = [iter for iter, _, _ in points_of(parts)["x", "x"]]
    assert 800 < len(steps) < 1000
    assert steps[-1] == 999
    assert len([part for part in parts if isinstance(part, Problem)]) == 1
    (position,) = [part.text for part in parts if isinstance(part, Position)]
    write(tmp_path, log_of([RUN, *records, history(1000, {"x": 1})]))
    assert [iter for iter, _, _ in points_of(list(run.parts(position)))["x", "x"]] == [1000]


def test_a_file_that_is_being_written(tmp_path: Path) -> None:
    content = log_of([RUN, *(history(n, {"x": n}) for n in range(50))])
    write(tmp_path, content[:-10])
    (run,) = WandbFolder(tmp_path, None).runs()
    assert isinstance(run, WandbRun)
    parts = list(run.parts(None))
    assert len(points_of(parts)["x", "x"]) == 49
    assert not [part for part in parts if isinstance(part, Problem)]


def test_nothing_outside_the_run_is_read(tmp_path: Path) -> None:
    (tmp_path / "secret.png").write_bytes(b"secret")
    run = write(tmp_path / "w", b"")
    (run / "files" / "link.png").symlink_to(tmp_path / "secret.png")
    paths = ["../../../secret.png", str(tmp_path / "secret.png"), "link.png", "\0", "."]
    parts = parts_of(tmp_path / "w", [history(1, {"i": {"_type": "image-file", "path": path}}) for path in paths])
    assert not [part for part in parts if isinstance(part, Image | Artifact)]
    assert len([part for part in parts if isinstance(part, Problem)]) == len(paths)


def test_a_long_record_takes_no_memory(tmp_path: Path) -> None:
    records = [message((2, b"x" * 5_000_000)), message((2, varint(10) + varint(2**62))), history(1, {"x": 1})]
    write(tmp_path, log_of([RUN, *records]))
    (run,) = WandbFolder(tmp_path, None, most=100_000).runs()
    assert isinstance(run, WandbRun)
    tracemalloc.start()
    parts = list(run.parts(None))
    assert tracemalloc.get_traced_memory()[1] < 2_000_000
    tracemalloc.stop()
    assert len([part for part in parts if isinstance(part, Problem)]) == 2
    assert len(points_of(parts)["x", "x"]) == 1


def test_what_is_no_run_is_named(tmp_path: Path) -> None:
    for content in (b"", b"nothing", log_of([]), log_of([history(1, {"x": 1})])):
        write(tmp_path, content)
        (problem,) = WandbFolder(tmp_path, None).runs()
        assert isinstance(problem, Problem)


@pytest.mark.test
@given(st.lists(st.binary(max_size=120), max_size=6))
def test_any_bytes_in_records_are_parts_or_problems(
    tmp_path_factory: pytest.TempPathFactory, contents: list[bytes]
) -> None:
    fields: list[bytes] = [message((number, content)) for content in contents for number in (2, 3, 5, 7, 13, 18)]
    parts = parts_of(tmp_path_factory.mktemp("any"), [*contents, *fields, history(1, {"x": 1})])
    assert [part for part in parts if isinstance(part, Points) and part.metric == "x"]


def test_the_folders_of_a_resumed_run_become_one_task(
    server: Served, environment: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    console, later = (
        message((13, message((1, 1), (2, message((1, 1_700_000_000 + n))), (3, "a line\n")))) for n in (1, 200)
    )
    first = [RUN, console, *(history(n, {"x": n, "more": 1}) for n in range(100))]
    for name, records in (("1", first), ("2", [RUN, later, *(history(n, {"x": n}) for n in range(100, 150)), EXIT])):
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
