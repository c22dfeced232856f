"""What is in W&B's `.wandb` files, written by hand: all kinds of values, broken pieces, and what attackers write."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.cli import main
from apiserver.transfer.importing.missing import Reason
from apiserver.transfer.importing.runs.model import Artifact, Figure, Image, Line, Points, Position, Problem
from apiserver.transfer.importing.runs.wandb.history import items
from apiserver.transfer.importing.runs.wandb.run import WandbRun
from apiserver.transfer.importing.runs.wandb.runs import WandbFolder
from tests.harness import Served
from tests.transfer.importing.runs.test_mlflow import points_of
from tests.transfer.importing.runs.test_taking import environment, lines_of, series_of, tasks_of
from tests.transfer.importing.runs.tfevents import Value, message, varint
from tests.transfer.importing.runs.wandb_logs import (
    EXIT,
    RUN,
    curves,
    defined,
    history,
    item,
    last_position,
    log_of,
    missing,
    parts_of,
    read,
    write,
)

__all__ = ["environment"]


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


def test_names_of_nested_values_are_bounded(tmp_path: Path) -> None:
    """50,000 values behind a name of 500 kB would have names of 25 GB."""
    nested = {"n" * 500_000: {str(number): number for number in range(50_000)}}
    config = message((5, message((1, message((1, "c"), (16, json.dumps(nested)))))))
    tracemalloc.start()
    parts = parts_of(tmp_path, [defined("*", "epoch"), config, history(0, {"x": 1, "deep": nested})])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert curves(parts)["x/x"] == [(0, 1.0)]
    assert ("deep at step 0", "names inside of it are too long") in {
        (part.of, part.cause) for part in parts if isinstance(part, Problem)
    }
    assert peak < 100 * 2**20


def test_values_of_types_of_their_own_are_those_of_json() -> None:
    typed: dict[Any, tuple[int, Value]] = {
        -3: (5, 5),  # its last bit is the sign
        2**62: (5, 2**63),
        0.1: (6, 0.1),
        float("-inf"): (6, float("-inf")),
        True: (4, 1),
        'a "text"': (7, 'a "text"'),
        "[1, {}]": (8, "[1, {}]"),
    }
    for value, of_type in typed.items():
        data = message((1, message((2, "a"), (2, "b"), of_type)))
        expected = value if value == "[1, {}]" else json.dumps(value)
        assert items(data) == [((b"a", b"b"), str(expected).encode())]
    assert items(message((1, message((1, "a"), (3, 0))))) == [((b"a",), b"null")]
    assert items(message((1, message((1, "a"), (6, 0.5), (16, "1"))))) == [((b"a",), b"1")]
    assert items(message((1, message((1, "a"))))) == [((b"a",), b"")]


def test_an_item_of_a_history_is_looked_at_only_where_it_is() -> None:
    """Behind an empty item, the ones that follow look like its names."""

    class Counted(bytes):
        looks = 0

        def __getitem__(self, place: Any) -> Any:
            Counted.looks += 1
            return super().__getitem__(place)

    assert items(Counted(b"\x0a\x00" * 1000)) == [((), b"")] * 1000
    assert Counted.looks < 10


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

    absent = [(Reason.ABSENT.value, f"run one: artifact {name}") for name in ("gone.bin", "outside.bin", "self.bin")]
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
