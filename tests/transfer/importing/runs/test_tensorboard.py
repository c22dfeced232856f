"""TensorBoard's event files: what is in them, what is broken in them, and what attackers write into them."""

from __future__ import annotations

import math
import os
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.transfer.importing.runs.model import Figure, Image, Line, Part, Points, Position, Problem, Run, Unmapped
from apiserver.transfer.importing.runs.tensorboard import records, scalars
from apiserver.transfer.importing.runs.tensorboard.events import EventReader
from apiserver.transfer.importing.runs.tensorboard.files import TensorboardFolder
from apiserver.transfer.importing.runs.tensorboard.run import TensorboardRun
from apiserver.transfer.importing.runs.tensorboard.times import Times, time_of
from tests.transfer.importing.runs import tfevents
from tests.transfer.importing.runs.tfevents import event, message, record, scalar, tensor_scalar

NAME = "events.out.tfevents.1700000000.host.1.0"
STEPS = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(width=32)


def run_of(folder: Path, content: bytes, grows: bool = False, /, **bounds: int) -> TensorboardRun:
    folder.mkdir(exist_ok=True)
    (folder / NAME).write_bytes(content)
    (run,) = TensorboardFolder(folder, None, False, grows, **bounds).runs()
    assert isinstance(run, TensorboardRun)
    return run


def taken(folder: Path, content: bytes, **bounds: int) -> list[Part]:
    return [part for part in run_of(folder, content, **bounds).parts(None) if not isinstance(part, Position)]


def points_of(parts: list[Part]) -> dict[tuple[str, str], list[tuple[int, int, bytes]]]:
    """By series, the points as (iteration, timestamp, bits of the value)."""
    found: dict[tuple[str, str], list[tuple[int, int, bytes]]] = {}
    for part in parts:
        if isinstance(part, Points):
            rows = zip(part.iters.tolist(), part.timestamps.tolist(), part.values.tolist(), strict=True)
            made = [(iter, time, struct.pack("<d", value)) for iter, time, value in rows]
            found.setdefault((part.metric, part.variant), []).extend(made)
    return found


# --- scalars ----------------------------------------------------------------------------------------

EVENTS = st.lists(
    st.one_of(
        st.builds(
            scalar, st.sampled_from(["a", "b", "a/b", "ü/x"]), STEPS, FLOATS, st.sampled_from([0.0, 1.7e9, 1.8e9])
        ),
        st.builds(
            tensor_scalar,
            st.sampled_from(["a", "t/x"]),
            st.integers(0, 300),
            st.integers(-(2**20), 2**20),
            st.sampled_from(["<f4", "<f8", "<i8"]),
        ),
    ),
    max_size=60,
)


def block_of(events: list[bytes], folder: Path) -> records.Block:
    path = folder / NAME
    path.write_bytes(tfevents.records(events))
    (block,) = records.blocks(path, 0)
    return block


@pytest.mark.test
@given(EVENTS)
def test_many_at_once_are_what_each_by_itself_is(tmp_path_factory: pytest.TempPathFactory, events: list[bytes]) -> None:
    block = block_of(events * 3, tmp_path_factory.mktemp("events"))
    columns, others = scalars.read(block)
    together: dict[int, tuple[str, int, bytes]] = {}
    for column in columns:
        rows = zip(column.numbers.tolist(), column.steps.tolist(), column.values.tolist(), strict=True)
        together |= {number: (column.tag, step, struct.pack("<d", value)) for number, step, value in rows}
        assert column.numbers.tolist() == sorted(column.numbers.tolist())
    assert sorted([*together, *others.tolist()]) == list(range(len(block.starts)))
    reader = EventReader(Run("s", "p", "n"), NAME, Times(1.7e9))
    for number, (tag, step, value) in together.items():
        (point,) = reader.parts(block.record(number), 0)
        assert isinstance(point, Points)
        assert (point.iters.tolist(), struct.pack("<d", point.values[0])) == ([step], value)
        assert (point.metric, point.variant) == (("a", "b") if tag == "a/b" else tuple((tag.split("/") * 2)[:2]))


@pytest.mark.test
def test_most_are_read_at_once(tmp_path: Path) -> None:
    events = [write(f"m/{n % 5}", n, n / 3) for n in range(500) for write in (scalar, tensor_scalar)]
    columns, others = scalars.read(block_of(events, tmp_path))
    assert sum(len(column.steps) for column in columns) > 950
    assert len(others) < 50


def test_odd_numbers_are_kept_bit_for_bit(tmp_path: Path) -> None:
    values = [math.nan, math.inf, -math.inf, -0.0, 1e-45, 3.4e38] * 3
    steps = [0, -1, 2**63 - 1, -(2**63), 127, 128] * 3
    found = points_of(taken(tmp_path / "run", tfevents.records(map(scalar, ["x"] * 18, steps, values))))
    expected = [
        (step, 1_700_000_000_500, struct.pack("<d", np.float32(value)))
        for step, value in zip(steps, values, strict=True)
    ]
    assert sorted(found["x", "x"]) == sorted(expected)


# --- all else ---------------------------------------------------------------------------------------


def plugin(name: str, content: bytes = b"") -> tuple[int, bytes]:
    return (9, message((1, message((1, name), (2, content)))))


def test_text_images_and_histograms(tmp_path: Path) -> None:
    png = b"\x89PNG and so on"
    bins = np.array([[0, 1, 5], [1, 3, 2]], "<f8").tobytes()
    counts = message((1, 0.5), (2, 2.5), (6, np.array([1.0, 2.0, 1e300], "<f8").tobytes()))
    counts += message((7, np.array([3.0, 0.0, 1.0], "<f8").tobytes()))
    parts = taken(
        tmp_path / "run",
        tfevents.records(
            [
                event("note/a", 3, (8, message((1, 7), (8, "one ü"))), plugin("text")),
                event("note/a", 4, (8, message((1, 7), (8, "two")))),
                event("image", 5, (4, message((1, 2), (2, 2), (4, png)))),
                event("images", 6, (8, message((1, 7), (8, "2"), (8, "2"), (8, png), (8, png))), plugin("images")),
                event("new", 7, (8, message((1, 2), (2, b""), (4, bins))), plugin("histograms")),
                event("old", 8, (5, counts)),
                event("sound", 9, (6, message((4, b"wav")))),
                message((1, 1.0), (4, b"graph")),
            ]
        ),
    )
    texts = [(one.metric, one.variant, one.iter, one.text) for one in parts if isinstance(one, Line)]
    assert texts == [("note", "a", 3, "one ü"), ("note", "a", 4, "two")]
    images = [one for one in parts if isinstance(one, Image)]
    assert [(one.metric, one.variant, one.iter) for one in images] == [
        ("image", "image", 5),
        ("images", "images", 6),
        ("images", "images/1", 6),
    ]
    assert {(one.suffix, one.content.open().read()) for one in images} == {(".png", png)}
    new, old = (one.figure["data"][0] for one in parts if isinstance(one, Figure))
    assert (new["x"], new["width"], new["y"]) == ([0.5, 2.0], [1.0, 2.0], [5.0, 2.0])
    assert (old["x"], old["width"], old["y"]) == ([0.75, 1.5, 2.25], [0.5, 1.0, 0.5], [3.0, 0.0, 1.0])
    unmapped = [(one.kind, one.name) for one in parts if isinstance(one, Unmapped)]
    assert unmapped == [("audio clip", f"{NAME}: sound"), ("graph", NAME)]


def test_what_is_of_no_known_kind_is_named(tmp_path: Path) -> None:
    checkpoint = message((1, 3), (2, "model.ckpt-7"))
    events = [
        message((1, 1.0), (12, b"new")),
        message((1, 1.0), (7, checkpoint)),
        message((1, 1.0), (7, message((1, 2)))),  # the end of a session
        event("curve", 1, (8, message((1, 1))), plugin("pr_curves")),
        event("odd", 1, (30, b"x")),
    ]
    parts = taken(tmp_path / "run", tfevents.records(events))
    assert [(one.kind, one.name) for one in parts if isinstance(one, Unmapped)] == [
        ("field 12 of an event", NAME),
        ("checkpoint", f"{NAME}: model.ckpt-7"),
        ("pr_curves", f"{NAME}: curve"),
        ("value of no known kind", f"{NAME}: odd"),
    ]


def test_a_plugin_is_known_in_the_next_import(tmp_path: Path) -> None:
    images = (8, message((1, 7), (8, "2"), (8, "2"), (8, b"\x89PNG 1")))
    content = tfevents.records([event("i", 1, images, plugin("images"))])
    *_, position = run_of(tmp_path / "run", content).parts(None)
    assert isinstance(position, Position)
    (image, _) = run_of(tmp_path / "run", content + record(event("i", 2, images))).parts(position.text)
    assert isinstance(image, Image)


def test_what_is_broken_for_good_is_told_once_in_each_import(tmp_path: Path) -> None:
    content = tfevents.records(scalar("a", n, n) for n in range(9)) + b"\0" * 50
    position = None
    for _ in range(3):
        parts = list(run_of(tmp_path / "run", content).parts(position))
        assert isinstance(parts[-1], Problem), "behind the last position"
        assert [part.of for part in parts if isinstance(part, Problem)] == [NAME]
        position = next(part.text for part in parts if isinstance(part, Position))


# --- times ------------------------------------------------------------------------------------------


def test_times_are_believed_by_their_magnitude(tmp_path: Path) -> None:
    times = [1.8e9, 1.8e9 * 1e3, 1.8e9 * 1e6, 1.8e9 * 1e9, 17.0, math.nan, -1.0, 1e300, 1.9e9]
    run = run_of(tmp_path / "run", tfevents.records(scalar("a", n, n, time) for n, time in enumerate(times, 1)))
    parts = list(run.parts(None))
    assert [time for _, time, _ in points_of(parts)["a", "a"]] == [1_800_000_000_000] * 8 + [1_900_000_000_000]
    (problem,) = [part for part in parts if isinstance(part, Problem)]
    assert (problem.of, problem.cause, problem.count) == ("series a/a", "a time that cannot be believed", 4)
    assert (run.run.started, run.run.completed) == (1.8e9, 1.9e9)


@pytest.mark.parametrize("count", [1, 9])
def test_without_a_time_it_is_that_of_the_file(tmp_path: Path, count: int) -> None:
    run = run_of(tmp_path / "run", tfevents.records(scalar("a", n, n, 5.0) for n in range(count)))
    assert {time for _, time, _ in points_of(list(run.parts(None)))["a", "a"]} == {1_700_000_000_000}
    other = tmp_path / "tfevents.other"
    other.touch()
    os.utime(other, (1.6e9, 1.6e9))
    assert time_of(other) == 1.6e9


def test_hyperparameters(tmp_path: Path) -> None:
    values: list[tuple[str, bytes]] = [
        ("lr", message((2, 0.1))),
        ("n", message((2, 64.0))),
        ("opt", message((3, "adam"))),
        ("flag", message((4, 1))),
    ]
    start = message(*((1, message((1, key), (2, value))) for key, value in values), (5, 1_700_000_000.0))
    end = message((1, 2), (2, 1_700_000_100.0))
    run = run_of(
        tmp_path / "run",
        tfevents.records(
            [
                event("_hparams_/session_start_info", 0, plugin("hparams", message((3, start)))),
                event("_hparams_/session_end_info", 0, plugin("hparams", message((4, end)))),
            ]
        ),
    )
    assert not [part for part in run.parts(None) if not isinstance(part, Position)]
    assert run.run.parameters == {"hparams": {"lr": "0.1", "n": "64", "opt": "adam", "flag": "True"}}
    assert (run.run.status, run.run.started) == ("failed", 1_700_000_000.0)


def test_a_status_that_is_not_said_is_none(tmp_path: Path) -> None:
    found = []
    for name, said in (("none", []), ("unknown", [0]), ("success", [0, 1]), ("again", [2, 3])):
        ends = [message((4, message((1, status)))) for status in said]
        events = [event("_hparams_/session_end_info", 0, plugin("hparams", end)) for end in ends]
        run = run_of(tmp_path / name, tfevents.records([scalar("x", 1, 1), *events]))
        list(run.parts(None))
        found.append(run.run.status)
    assert found == [None, None, "completed", "in_progress"]


# --- broken and hostile files -----------------------------------------------------------------------


def test_a_broken_record_costs_only_itself(tmp_path: Path) -> None:
    content = bytearray(tfevents.records(scalar("a", n, n) for n in range(100)))
    content[content.index(scalar("a", 50, 50)) + 3] ^= 1
    parts = taken(tmp_path / "run", bytes(content))
    assert [iter for iter, _, _ in sorted(points_of(parts)["a", "a"])] == [n for n in range(100) if n != 50]
    (problem,) = [part for part in parts if isinstance(part, Problem)]
    assert "does not fit its checksum" in problem.cause


@pytest.mark.test
@pytest.mark.parametrize("length", [2**20, 2**40, 2**63, 2**64 - 1])
@pytest.mark.parametrize("checked", [False, True])
def test_a_declared_length_takes_no_memory(tmp_path: Path, length: int, checked: bool) -> None:
    head = struct.pack("<Q", length)
    sums = record(head)[12 + 8 :] if checked else b"\0\0\0\0"
    content = tfevents.records(scalar("a", n, n) for n in range(10)) + head + sums + b"x" * 100
    tracemalloc.start()
    parts = taken(tmp_path / "run", content)
    assert tracemalloc.get_traced_memory()[1] < 10 * 2**20
    tracemalloc.stop()
    assert len(points_of(parts)["a", "a"]) == 10
    (problem,) = [part for part in parts if isinstance(part, Problem)]
    assert problem.of == NAME
    assert ("ends in the middle of a record" if checked else "does not fit its checksum") in problem.cause


def test_a_file_is_read_on_where_it_ended(tmp_path: Path) -> None:
    content = tfevents.records(scalar("a", n, n) for n in range(1, 100))
    run = run_of(tmp_path / "run", content[: len(content) // 2], True)
    position, found = None, []
    for size in (0, len(content) // 2 + 7, len(content)):
        (tmp_path / "run" / NAME).write_bytes(content[: max(size, len(content) // 2)])
        for part in run.parts(position):
            if isinstance(part, Position):
                position = part.text
            elif isinstance(part, Points):
                found += part.iters.tolist()
    assert sorted(found) == list(range(1, 100))


def test_a_record_longer_than_a_block(tmp_path: Path) -> None:
    texts = ["x" * 50_000, "y" * 10, "z" * 200_000, "w" * 999]
    events = [event("t", n, (8, message((1, 7), (8, text))), plugin("text")) for n, text in enumerate(texts)]
    bounds = {"block_bytes": 1000, "most": 100_000}
    parts = taken(tmp_path / "run", tfevents.records([*events, scalar("a", 1, 1)]), **bounds)
    assert [len(part.text) for part in parts if isinstance(part, Line)] == [50_000, 10, 999]
    assert ["too much" in part.cause for part in parts if isinstance(part, Problem)] == [True]
    assert len(points_of(parts)["a", "a"]) == 1


@pytest.mark.test
@given(st.lists(st.binary(max_size=120), max_size=8))
def test_any_bytes_in_records_are_parts_or_problems(
    tmp_path_factory: pytest.TempPathFactory, contents: list[bytes]
) -> None:
    values = [message((1, 1.0), (5, message((1, content)))) for content in contents]
    parts = taken(tmp_path_factory.mktemp("any") / "run", tfevents.records([*contents, *values, scalar("a", 1, 1)]))
    assert ("a", "a") in points_of(parts)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / NAME)
    assert not list(TensorboardFolder(tmp_path, None).runs())
