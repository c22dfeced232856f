"""What restarts take back from TensorBoard's files: the same as from its own reader, whatever was imported before."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.transfer.importing.missing import Reason
from apiserver.transfer.importing.runs.model import Again, Figure, Image, Line, Part, Points, Position, Problem
from apiserver.transfer.importing.runs.tensorboard.files import TensorboardFolder
from apiserver.transfer.importing.runs.tensorboard.restarts import holds_tag
from tests.transfer.importing.runs.test_tensorboard import plugin
from tests.transfer.importing.runs.tfevents import event, message, record, scalar, tensor_scalar

#: An event: its kind or "start", its tag and its step. A file is a version and events.
Event = tuple[str, str, int]
File = tuple[int, list[Event]]
#: By tag, the steps that are kept; those of scalars with their values.
Kept = dict[str, dict[int, float]]

KINDS = ("scalar", "tensor", "text", "image", "histogram")


def written(file: File) -> bytes:
    version, events = file
    header = record(message((1, 1.0), (3, f"brain.Event:{version}"))) if version else b""
    return header + b"".join(record(_event(number, *one)) for number, one in enumerate(events))


def _event(number: int, kind: str, tag: str, step: int) -> bytes:
    match kind:
        case "start":
            return message((1, 1.7e9), (2, step), (7, message((1, 1))))
        case "scalar":
            return scalar(f"{kind} {tag}", step, number)
        case "tensor":
            return tensor_scalar(f"{kind} {tag}", step, number)
        case "text":
            return event(f"{kind} {tag}", step, (8, message((1, 7), (8, "hi"))), plugin("text"))
        case "image":
            return event(f"{kind} {tag}", step, (4, message((1, 2), (2, 2), (4, b"\x89PNG"))))
    edges, counts = np.array([1.0, 2.0], "<f8").tobytes(), np.array([3.0, 1.0], "<f8").tobytes()
    return event(f"{kind} {tag}", step, (5, message((1, 0.5), (2, 2.5), (6, edges), (7, counts))))


def expected(files: list[File]) -> Kept:
    """What TensorBoard's EventAccumulator keeps; of one step, the last value."""
    kept: dict[str, list[tuple[int, float]]] = {}
    recent, version = -1, 0
    for said, events in files:
        if said:
            version, recent = said, 0 if said < 2 else recent
        for number, (kind, tag, step) in enumerate(events):
            name = f"{kind} {tag}"
            if version >= 2 and kind == "start":
                kept = {name: [one for one in those if one[0] < step] for name, those in kept.items()}
            elif version < 2 and kind != "start" and step < recent:
                kept[name] = [one for one in kept.get(name, []) if one[0] < step]
            else:
                recent = step
            if kind != "start":
                kept.setdefault(name, []).append((step, number if kind in ("scalar", "tensor") else 0))
    return {name: dict(those) for name, those in kept.items() if those}


class Imported:
    """A task that takes parts as an import does."""

    def __init__(self, folder: Path, **bounds: int) -> None:
        self._folder, self._bounds = folder, bounds
        self.kept: Kept = {}
        self.position: str | None = None
        self.begun = 0
        self.taken_back = 0

    def take(self) -> None:
        (run,) = TensorboardFolder(self._folder, None, False, True, **self._bounds).runs()
        assert not isinstance(run, Problem)
        for part in run.parts(self.position):
            self._part(part)

    def _part(self, part: Part) -> None:
        match part:
            case Again(cleared=True):
                self.kept, self.taken_back, self.begun = {}, 0, self.begun + 1
            case Position():
                self.position = part.text
            case Points():
                rows = zip(part.iters.tolist(), part.values.tolist(), strict=True)
                self.kept.setdefault(part.metric, {}).update(rows)
            case Line() | Image() | Figure():
                self.kept.setdefault(part.metric, {})[part.iter or 0] = 0
            case Problem(reason=Reason.OVERWRITTEN):
                self.taken_back += part.count
            case _:
                raise AssertionError(part)


def write(folder: Path, number: int, content: bytes) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"events.out.tfevents.17000000{number:02}.host").write_bytes(content)


def scalars(*steps: int, tag: str = "a", kind: str = "scalar") -> list[Event]:
    return [(kind, tag, step) for step in steps]


def start(step: int) -> list[Event]:
    return [("start", "", step)]


ALL = [(kind, "x", step) for step in range(20) for kind in KINDS]
CASES: dict[str, list[File]] = {
    "a file goes on": [(2, scalars(*range(101))), (2, start(50) + scalars(*range(50, 81)))],
    "in the middle of a file": [(2, scalars(*range(60)) + start(20) + scalars(*range(20, 30)))],
    "twice": [(2, scalars(*range(60))), (2, start(40) + scalars(*range(40, 50))), (2, start(10) + scalars(10, 11))],
    "less the second time": [(2, scalars(*range(60))), (2, start(10) + scalars(*range(10, 90))), (2, start(80))],
    "from 0 on": [(2, scalars(*range(60))), (2, start(0) + scalars(0, 1))],
    "from a negative step on": [(2, scalars(-3, -2, -1, 0, 1)), (2, start(-2) + scalars(5))],
    "nothing": [(2, scalars(*range(60))), (2, start(60) + scalars(60, 61))],
    "at once": [(2, start(0) + scalars(*range(60)))],
    "of all kinds": [(2, ALL), (2, start(7) + scalars(7, tag="x", kind="image"))],
    "of all tags": [(2, scalars(*range(9)) + scalars(*range(9), tag="b")), (2, start(4) + scalars(4, tag="b"))],
    "that wrote nothing": [(2, scalars(*range(9))), (2, start(4))],
    "steps that are no order": [(2, scalars(5, 90, 7, 3, 80) + start(7) + scalars(2, 9, 1))],
    "without a start": [(2, scalars(*range(9))), (2, scalars(4, 5))],
    "a version without starts": [(1, scalars(*range(9)) + scalars(4, 5))],
    "no version": [(0, scalars(*range(9))), (0, scalars(4, 5) + scalars(1, 2, tag="b"))],
    "no version, and tags at other steps": [(0, scalars(*range(9)) + scalars(0, 1, 2, tag="b") + scalars(9, 10, 3))],
    "a start in a version without": [(1, scalars(*range(9)) + start(4) + scalars(9))],
    "a newer version": [(1, scalars(*range(9), 3)), (2, start(2) + scalars(2))],
}


@pytest.mark.parametrize("files", CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize("bounds", [{}, {"block_bytes": 200}], ids=["", "small blocks"])
def test_a_restart_takes_back_what_tensorboard_does_not_show(
    tmp_path: Path, files: list[File], bounds: dict[str, int]
) -> None:
    at_once, followed = Imported(tmp_path / "run", **bounds), Imported(tmp_path / "run", **bounds)
    for number, file in enumerate(files):
        write(tmp_path / "run", number, written(file))
        followed.take()
        assert followed.kept == expected(files[: number + 1])
    at_once.take()
    assert at_once.kept == followed.kept
    assert at_once.taken_back == followed.taken_back


def test_a_start_that_was_cut_takes_back_when_it_is_whole(tmp_path: Path) -> None:
    files: list[File] = [(2, scalars(*range(9))), (2, start(4) + scalars(4))]
    content = written(files[1])
    for size in range(len(content)):
        folder = tmp_path / str(size) / "run"
        folder.parent.mkdir()
        write(folder, 0, written(files[0]))
        write(folder, 1, content[:size])
        run = Imported(folder)
        run.take()
        write(folder, 1, content)
        run.take()
        assert (size, run.kept) == (size, expected(files))


EVENTS = st.tuples(st.sampled_from([*KINDS, "scalar", "start"]), st.sampled_from("ab"), st.integers(-1, 12))


@pytest.mark.test
@given(st.sampled_from([2, 2, 1, 0]), st.lists(st.lists(EVENTS, max_size=25), min_size=1, max_size=4), st.data())
def test_any_restarts(
    tmp_path_factory: pytest.TempPathFactory, version: int, events: list[list[Event]], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("any")
    files = [(version, those) for those in events]
    run = Imported(folder / "run", block_bytes=data.draw(st.sampled_from([150, 2**20])))
    for number, file in enumerate(files):
        content = written(file)
        for size in sorted([*data.draw(st.lists(st.integers(0, len(content)), max_size=2)), len(content)]):
            write(folder / "run", number, content[:size])
            if data.draw(st.booleans()):
                run.take()
    run.take()
    assert run.kept == expected(files)


def test_an_import_goes_on_behind_a_restart(tmp_path: Path) -> None:
    """What is read before a start that is known need not be read again, also if the import is ended in between."""
    write(tmp_path / "run", 0, written((2, scalars(*range(99)))))
    write(tmp_path / "run", 1, written((2, start(50) + scalars(50))))
    run = Imported(tmp_path / "run", block_bytes=200)
    (source,) = TensorboardFolder(tmp_path / "run", None, block_bytes=200).runs()
    assert not isinstance(source, Problem)
    positions = 0
    for part in source.parts(None):
        run._part(part)
        positions += isinstance(part, Position)
        if positions == 3:
            break
    run.take()
    assert run.begun == 0
    assert run.kept == expected([(2, scalars(*range(99))), (2, start(50) + scalars(50))])
    write(tmp_path / "run", 0, written((2, scalars(*range(99), 7, 70))))  # by a writer that had not ended yet
    run.take()
    assert run.begun == 0
    assert run.kept["scalar a"][7] == 99
    assert 70 not in run.kept["scalar a"]


@pytest.mark.parametrize("length", [127, 128, 2**14, 2**15, 5 * 2**20])
def test_a_tag_is_found_however_long_it_is(tmp_path: Path, length: int) -> None:
    tag = "x" * length
    write(tmp_path, 0, content := record(scalar(tag, 1, 1)))
    (path,) = tmp_path.iterdir()
    assert holds_tag(path, 0, len(content), tag)
    assert not holds_tag(path, 0, len(content), f"{tag}y")


def test_another_form_of_position_is_read_anew(tmp_path: Path) -> None:
    write(tmp_path / "run", 0, written((2, scalars(1, 2))))
    run = Imported(tmp_path / "run")
    run.position = '{"events.out.tfevents.1700000000.host": 99}'
    run.take()
    assert (run.begun, run.kept) == (1, {"scalar a": {1: 0, 2: 1}})
