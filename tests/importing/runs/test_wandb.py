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
from apiserver.importing.missing import Reason
from apiserver.importing.report import Report
from apiserver.importing.runs.model import (
    Again,
    Artifact,
    Figure,
    Image,
    Line,
    Part,
    Points,
    Position,
    Problem,
    Unmapped,
)
from apiserver.importing.runs.progress import Progress
from apiserver.importing.runs.server import Server, address
from apiserver.importing.runs.taking import Taking
from apiserver.importing.runs.wandb.runs import WandbFolder, WandbRun
from apiserver.protobuf_wire import Malformed
from tests.harness import Served
from tests.importing.runs.test_mlflow import points_of
from tests.importing.runs.test_taking import environment, lines_of, series_of, tasks_of
from tests.importing.runs.tfevents import Value, message, varint

__all__ = ["environment"]


def run(start: int = 1_700_000_000, *more: tuple[int, Value]) -> bytes:
    """The record of a run that started then."""
    about: list[tuple[int, Value]] = [(1, "id7"), (3, "proj"), (8, "one"), (9, "note"), (10, "t"), *more]
    about.append((17, message((1, start))))
    return message((17, message(*about)))


RUN = run()
EXIT, FAILED = (message((18, message((1, code)))) for code in (0, 1))
TENSORBOARD = message((1, 9), (9, message((1, "logs"))))


def defined(name: str, step: str = "", *, sync: bool = True) -> bytes:
    """A record of `define_metric`."""
    options = message((3, 1), *([(1, 1)] if step and sync else []))
    return message((1, 4), (12, message((2 if "*" in name else 1, name), (4, step), (6, options))))


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


def write(folder: Path, content: bytes, name: str = "offline-run-20261123_065159-id7") -> Path:
    run = folder / name
    (run / "files" / "media" / "images").mkdir(parents=True, exist_ok=True)
    (run / "run-id7.wandb").write_bytes(content)
    return run


def parts_of(folder: Path, records: list[bytes], position: str | None = None) -> list[Part]:
    write(folder, log_of([RUN, *records]))
    return read(folder, position)


def read(folder: Path, position: str | None = None) -> list[Part]:
    """The parts of the only run below a folder."""
    (run,) = WandbFolder(folder, None).runs()
    assert isinstance(run, WandbRun)
    return list(run.parts(position))


def curves(parts: list[Part]) -> dict[str, list[tuple[int, float]]]:
    """By metric and variant, the points of all series."""
    return {
        f"{metric}/{variant}": [(iter, float(value)) for iter, _, value in points]
        for (metric, variant), points in points_of(parts).items()
    }


def last_position(parts: list[Part]) -> str:
    return [part.text for part in parts if isinstance(part, Position)][-1]


def missing(parts: list[Part]) -> list[tuple[str, str]]:
    """What cannot be given: its place and its kind or cause."""
    told = [(part.of, part.cause) for part in parts if isinstance(part, Problem)]
    return told + [(part.name, part.kind) for part in parts if isinstance(part, Unmapped)]


def test_the_values_of_a_history(tmp_path: Path) -> None:
    parts = parts_of(
        tmp_path,
        [
            history(0, {"loss": 0.1, "n.x": 1, "odd": float("nan"), "text": "hi ü", "flag": True}),
            history(2**62, {"loss": float("-inf"), "n": {"y": {"z": 2}}, "none": None, "list": [1]}),
            history(3, {"h": {"_type": "histogram", "values": [1, 2], "bins": [0, 1, 3]}}),
            history(4, {"h._type": "histogram", "h.values": [5], "h.packedBins": {"min": 0, "size": 2, "count": 1}}),
            history(5, {"v": {"_type": "video-file", "path": "x"}}),
            history(6, {"long" * 50: 7}),
        ],
    )
    points = points_of(parts)
    assert points["loss", "loss"] == [(0, 1_700_000_000_000, "0.1"), (2**62, 1_700_000_000_000, "-inf")]
    assert {name: rows[0][2] for (name, _), rows in points.items()} == {
        **{"loss": "0.1", "n.x": "1.0", "odd": "nan", "flag": "1.0", "n.y.z": "2.0", "long" * 50: "7.0"}
    }
    assert [(one.text, one.iter) for one in parts if isinstance(one, Line)] == [("hi ü", 0)]
    figures = [one.figure["data"][0] for one in parts if isinstance(one, Figure)]
    assert [(one["x"], one["y"]) for one in figures] == [([0.5, 2.0], [1, 2]), ([1.0], [5])]
    assert missing(parts) == [
        ("v at step 5", "there is no file 'x' in the run's folder"),
        *((f"series {name}", "a time that cannot be believed") for name in ("loss", "n", "none", "list")),
        ("none at step 4611686018427387904", "empty value"),
        ("list at step 4611686018427387904", "list"),
    ]


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
    measured = [
        (3, message((1, name), (16, value))) for name, value in (("gpu.0.temp", "41.5"), ("disk./.usageGB", "7"))
    ]
    stats = message((7, message((2, message((1, 1_700_000_030))), *measured)))
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
    assert series[":monitor:machine"]["disk./.usageGB"] == {"x": [30], "y": [7]}
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


@pytest.mark.parametrize("cut", [1, 10, 60])
def test_a_file_that_ends_in_the_middle_of_a_record(tmp_path: Path, cut: int) -> None:
    """It says so each time, until the rest has come; it may still be written to."""
    content = log_of([RUN, *(history(n, {"x": n}) for n in range(50))])
    write(tmp_path, content[:-cut])
    position = None
    for _ in range(2):
        parts = read(tmp_path, position)
        [problem] = [part for part in parts if isinstance(part, Problem)]
        assert (problem.may_come, problem.cause.endswith("it ends in the middle of a record")) == (True, True)
        position = position or last_position(parts)
    write(tmp_path, content)
    parts = read(tmp_path, position)
    assert not [part for part in parts if isinstance(part, Problem)]
    assert points_of(parts)["x", "x"][-1][2] == "49.0"


def test_nothing_outside_the_run_is_read(tmp_path: Path) -> None:
    (tmp_path / "secret.png").write_bytes(b"secret")
    run = write(tmp_path / "w", b"")
    (run / "files" / "link.png").symlink_to(tmp_path / "secret.png")
    paths = ["../../../secret.png", str(tmp_path / "secret.png"), "link.png", "\0", ".", "x" * 5000]
    parts = parts_of(tmp_path / "w", [history(1, {"i": {"_type": "image-file", "path": path}}) for path in paths])
    assert not [part for part in parts if isinstance(part, Image)]
    assert len([part for part in parts if isinstance(part, Problem)]) == len(paths)
    (artifact,) = [part for part in parts if isinstance(part, Artifact)]
    assert artifact.content is not None
    with pytest.raises(FileNotFoundError, match="outside of the folder that is imported"):
        artifact.content.open()


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
    fields: list[bytes] = [
        message((number, content)) for content in contents for number in (2, 3, 5, 7, 8, 9, 10, 12, 13, 18, 27)
    ]
    parts = parts_of(tmp_path_factory.mktemp("any"), [*contents, *fields, history(1, {"x": 1})])
    assert [part for part in parts if isinstance(part, Points) and part.metric == "x"]


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


# --- x ---------------------------------------------------------------------------------------------


def test_x_is_what_the_definitions_say(tmp_path: Path) -> None:
    """Those that come late count, too; the longest glob that fits; a definition without a step is `_step`."""
    parts = parts_of(
        tmp_path,
        [
            defined("*", "trainer/global_step"),
            defined("val/*", "epoch"),
            defined("plain"),
            *(
                history(
                    n, {"loss": n, "val/acc": n, "plain": n, "n.x": n, "trainer/global_step": 50 * n, "epoch": 2 * n}
                )
                for n in range(3)
            ),
            defined("n.x", "epoch"),
        ],
    )
    by_fifty, by_two, by_one = ([(step * n, float(n)) for n in range(3)] for step in (50, 2, 1))
    assert curves(parts) == {
        "loss/loss": by_fifty,
        "val/acc": by_two,
        "plain/plain": by_one,
        "n.x/n.x": by_two,
        "trainer/global_step": [(n, 50.0 * n) for n in range(3)],
        "epoch/epoch": [(50 * n, 2.0 * n) for n in range(3)],
    }


def test_points_without_their_x_have_the_last_one_or_stay_at_their_step(tmp_path: Path) -> None:
    records = [
        defined("synced", "epoch"),
        defined("alone", "epoch", sync=False),
        history(0, {"synced": 0}),
        history(1, {"epoch": 10, "synced": 1, "alone": 1}),
        history(2, {"epoch": float("nan"), "synced": 2, "alone": 2}),
        history(3, {"synced": 3, "alone": 3}),
    ]
    found = curves(parts_of(tmp_path, records))
    assert found["synced/synced"] == [(0, 0.0), (10, 1.0), (10, 2.0), (10, 3.0)]
    assert found["alone/alone"] == [(10, 1.0), (2, 2.0), (3, 3.0)]


def test_a_value_that_is_nested_deep_costs_only_itself(tmp_path: Path) -> None:
    records = [defined("*", "n.epoch"), *(history(step, {"loss": step}) for step in (1, 2))]
    odd = message((1, "odd"), (16, '{"list": ' + "[" * 1000 + "]" * 1000 + "}"))
    values = [item("n", {"epoch": 7}), item("loss", 3), item(["_step"], 3)]
    records.append(message((1, 3), (2, message((1, odd), *values))))
    assert curves(parts_of(tmp_path, records))["loss/loss"] == [(1, 1.0), (2, 2.0), (7, 3.0)]


def test_points_at_decimals_are_numbered_and_their_x_stays_readable(tmp_path: Path) -> None:
    records = [
        defined("*", "epoch"),
        *(history(n, {"epoch": n / 4, "train/loss": n, **({"whole": n} if n % 4 == 0 else {})}) for n in range(9)),
    ]
    parts = parts_of(tmp_path, records)
    assert curves(parts) == {
        "epoch/epoch": [(n, n / 4) for n in range(9)],
        "train/loss": [(n, float(n)) for n in range(9)],
        "x: epoch/train/loss": [(n, n / 4) for n in range(9)],
        "whole/whole": [(0, 0.0), (1, 4.0), (2, 8.0)],
    }
    more = [history(9, {"epoch": 2.25, "train/loss": 9, "new": 1, "whole": 9})]
    parts = parts_of(tmp_path, [*records, history(9, {"epoch": 2.25, "train/loss": 9, "new": 1})], last_position(parts))
    assert not [part for part in parts if isinstance(part, Again)]
    assert curves(parts) == {
        "epoch/epoch": [(9, 2.25)],
        "train/loss": [(9, 9.0)],
        "x: epoch/train/loss": [(9, 2.25)],
        "new/new": [(0, 1.0)],
        "x: epoch/new": [(0, 2.25)],
    }
    parts = parts_of(tmp_path, [*records, *more], last_position(parts_of(tmp_path, records)))
    assert parts[0] == Again(cleared=True), "a series that was whole is not any more"
    assert curves(parts)["whole/whole"] == [(0, 0.0), (1, 4.0), (2, 8.0), (3, 9.0)]


def test_a_definition_that_comes_after_points_were_given_begins_again(tmp_path: Path) -> None:
    records = [history(n, {"epoch": 10 * n, "x": n}) for n in range(3)]
    position = last_position(parts_of(tmp_path, records))
    parts = parts_of(tmp_path, [*records, defined("x", "epoch")], position)
    assert parts[0] == Again(cleared=True)
    assert curves(parts)["x/x"] == [(0, 0.0), (10, 1.0), (20, 2.0)]
    parts = parts_of(tmp_path, [*records, defined("x", "epoch"), defined("x", "epoch")], last_position(parts))
    assert not [part for part in parts if isinstance(part, Again | Points)], "nothing new is said"
    assert parts_of(tmp_path, records, '{"offline-run-20261123_065159-id7": 7}')[0] == Again(cleared=True), (
        "an old form"
    )


def test_the_steps_of_tensorboard_are_x(tmp_path: Path) -> None:
    records = [
        TENSORBOARD,
        history(0, {"global_step": 0, "a/loss": 1}),
        history(1, {"global_step": 10, "a/loss": 2}),
        history(2, {"a/global_step": 20, "a/loss": 3, "own": 1}),
    ]
    assert curves(parts_of(tmp_path, records)) == {
        "global_step/global_step": [(0, 0.0), (1, 10.0)],
        "a/global_step": [(2, 20.0)],
        "a/loss": [(0, 1.0), (10, 2.0), (20, 3.0)],
        "own/own": [(2, 1.0)],
    }


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


# --- values, files and times -----------------------------------------------------------------------


def test_media_their_captions_and_what_is_drawn_on_them(tmp_path: Path) -> None:
    files = write(tmp_path, b"") / "files"
    content = {
        "media/images/a.png": b"",
        "media/images/b.png": b"",
        "media/images/mask/a.mask.png": b"",
        "media/audio/a.wav": b"",
        "media/table/t.table.json": b'{"columns": ["a", 1], "data": [[1, NaN], [{"path": "p"}, [2]], ["cut"]]}',
        "media/plotly/p.plotly.json": b'{"data": [{"type": "bar"}]}',
        "media/table/odd.table.json": b"[]",
        "requirements.txt": b"",
    }
    for name, data in content.items():
        (files / name).parent.mkdir(parents=True, exist_ok=True)
        (files / name).write_bytes(data)
    image = {"_type": "image-file", "path": "media/images/a.png", "caption": "a cat"}
    listed = {
        "_type": "images/separated",
        "filenames": ["media/images/a.png", "media/images/b.png"],
        "captions": ["0", "1"],
    }
    audio = {"_type": "audio", "audio": [{"_type": "audio-file", "path": "media/audio/a.wav", "caption": "beep"}]}
    parts = parts_of(
        tmp_path,
        [
            history(1, {"i": image | {"masks": {"m": {"_type": "mask"}}, "boxes": {"b": {"_type": "boxes2D"}}}}),
            history(2, {"n.deep.i._type": "image-file", "n.deep.i.path": "media/images/b.png", "n.x": 7}),
            history(3, {"v/l": listed | {"all_masks": [None, {"m": {}}]}, "audio": audio}),
            history(4, {"t": {"_type": "table-file", "path": "media/table/t.table.json"}}),
            history(5, {"t": {"_type": "table-file", "path": "media/table/odd.table.json"}, "x": 1}),
            history(6, {"p": {"_type": "plotly-file", "path": "media/plotly/p.plotly.json"}}),
            history(7, {"o": {"_type": "object3D-file", "path": "x"}, "h": {"_type": "histogram"}, "x": 2}),
        ],
    )
    images = [(one.metric, one.variant, one.iter, one.suffix) for one in parts if isinstance(one, Image)]
    assert images == [
        *[("i", "i", 1, ".png"), ("n.deep.i", "n.deep.i", 2, ".png"), ("v", "l/0", 3, ".png"), ("v", "l/1", 3, ".png")],
        ("audio", "audio", 3, ".wav"),
    ]
    lines = [(one.text, one.variant, one.iter) for one in parts if isinstance(one, Line)]
    assert lines == [("a cat", "i", 1), ("0", "l/0", 3), ("1", "l/1", 3), ("beep", "audio", 3)]
    table, plot = [one.figure["data"][0] for one in parts if isinstance(one, Figure)]
    assert table["header"]["values"] == ["a", "1"]
    assert str(table["cells"]["values"]) == "[[1, 'p', 'cut'], [nan, '[2]', None]]"
    assert plot == {"type": "bar"}
    assert curves(parts) == {"n.x/n.x": [(2, 7.0)], "x/x": [(5, 1.0), (7, 2.0)]}
    assert missing(parts) == [
        ("t at step 5", "'odd.table.json' is no object of JSON"),
        ("h at step 7", "it has no 'count'"),
        ("m of i at step 1", "mask of an image"),
        ("b of i at step 1", "box of an image"),
        ("m of v/l/1 at step 3", "mask of an image"),
        ("o at step 7", "object3D-file"),
    ]
    assert [part.name for part in parts if isinstance(part, Artifact)] == [
        "media/images/mask/a.mask.png",
        *["media/plotly/p.plotly.json", "media/table/odd.table.json", "media/table/t.table.json", "requirements.txt"],
    ]


def test_links_are_followed_inside_the_folder_that_is_imported(
    server: Served, environment: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `run.save` makes them. What is added or mended later comes with the next import."""
    given = tmp_path / "given"
    files = write(given, log_of([RUN, history(0, {"x": 0}), EXIT])) / "files"
    (given / "weights.bin").write_bytes(b"weights")
    (tmp_path / "outside.bin").write_bytes(b"secret")
    (given / "folder").mkdir()
    (given / "folder" / "a.txt").write_bytes(b"a")
    (given / "folder" / "back").symlink_to(files)
    targets = {"weights.bin": given, "folder": given, "gone.bin": given, "outside.bin": tmp_path, "self.bin": files}
    for name, folder in targets.items():
        (files / name).symlink_to(folder / name)
    command = ["import", "wandb", str(given), "--files", "--report", str(tmp_path / "report.json")]

    def imported(code: int, said: str) -> list[tuple[str, str]]:
        """What is missing."""
        assert main(command) == code
        assert said in capsys.readouterr().err
        report = json.loads((tmp_path / "report.json").read_bytes())
        return [(one["reason"], one["of"]) for one in report["missing"]]

    absent = [(Reason.ABSENT.value, f"artifact {name}") for name in ("gone.bin", "outside.bin", "self.bin")]
    assert imported(1, "artifacts: 5 found, 2 imported, 0 imported before, 3 not imported") == absent
    assert imported(1, "artifacts: 5 found, 0 imported, 2 imported before, 3 not imported") == absent
    for name in ("outside.bin", "self.bin"):
        (files / name).unlink()
    (given / "gone.bin").write_bytes(b"found")
    (files / "added.txt").write_bytes(b"added")
    assert imported(0, "artifacts: 4 found, 2 imported, 2 imported before") == []
    assert imported(0, "runs: 1 found, 0 imported, 1 imported before") == []
    keys = {one["key"] for one in tasks_of(server)["one"]["execution"]["artifacts"]}
    assert keys == {"weights.bin", "folder/a.txt", "gone.bin", "added.txt"}


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


@pytest.mark.parametrize("unit", [1, 10**3, 10**6, 10**9])
def test_a_time_that_cannot_be_believed_costs_only_itself(tmp_path: Path, unit: int) -> None:
    def at(time: object) -> bytes:
        return message((2, message(item("x", 1), item("_timestamp", time), item("_step", 0))))

    odd = message((7, message((2, message((1, 5))), (3, message((1, "cpu"), (16, "1"))))))
    parts = parts_of(tmp_path, [at(1_700_000_060 * unit), at(12.5), at("soon"), odd])
    assert [time for _, time, _ in points_of(parts)["x", "x"]] == [1_700_000_060_000] * 3
    assert points_of(parts)[":monitor:machine", "cpu"] == [(60, 1_700_000_060_000, "1.0")]
    told = [(part.of, part.count) for part in parts if isinstance(part, Problem)]
    assert told == [("series x", 2), ("series cpu", 1)]


def test_alerts_are_lines_and_artifacts_are_named(tmp_path: Path) -> None:
    records = [
        message((10, message((1, "title"), (2, "text"), (3, "WARN")))),
        message((27, message((1, "logged")))),
        message((8, message((4, "dataset"), (5, "ds")))),
        message((8, message((4, "run_table"), (5, "run-id7-t")))),
        message((25, message((2, "model"), (3, "m:v0")))),
        history(0, {"_mine": 3, "list": [1]}),
    ]
    parts = parts_of(tmp_path, records)
    lines = [(one.text, one.level, one.timestamp) for one in parts if isinstance(one, Line)]
    assert lines == [("title: text", "warning", 1_700_000_000_000), ("logged", "", 1_700_000_000_000)]
    assert curves(parts) == {"_mine/_mine": [(0, 3.0)]}
    kinds = ["artifact", "use of an artifact", "list"]
    assert missing(parts) == list(zip(["ds (dataset)", "m:v0 (model)", "list at step 0"], kinds, strict=True))
