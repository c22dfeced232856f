"""Which folders of TensorBoard's are of one run, and what their series are called there."""

from __future__ import annotations

from pathlib import Path

import pytest

from apiserver.transfer.importing.runs.model import Again, Points, Position, Problem, Unmapped
from apiserver.transfer.importing.runs.tensorboard.files import TensorboardFolder
from apiserver.transfer.importing.runs.tensorboard.run import TensorboardRun
from tests.transfer.importing.runs import tfevents
from tests.transfer.importing.runs.test_tensorboard import plugin
from tests.transfer.importing.runs.tfevents import event, message, record, scalar

Series = dict[str, list[tuple[int, float]]]


def write(folder: Path, *events: bytes, begun: int = 0) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"events.out.tfevents.17000000{begun:02}.host").write_bytes(tfevents.records(events))


def session(metrics: list[str], **parameters: float) -> list[bytes]:
    """The events with which add_hparams begins."""
    experiment = message(*((5, message((1, message((2, metric))))) for metric in metrics))
    start = message(*((1, message((1, name), (2, message((2, value))))) for name, value in parameters.items()))
    kinds = {"experiment": (2, experiment), "session_start_info": (3, start), "session_end_info": (4, message((1, 1)))}
    return [event(f"_hparams_/{name}", 0, plugin("hparams", message(one))) for name, one in kinds.items()]


def runs_of(folder: Path, *, each: bool = False) -> dict[str, TensorboardRun]:
    runs = [run for run in TensorboardFolder(folder, "p", each).runs() if not isinstance(run, Problem)]
    return {run.run.name: run for run in runs}


def series_of(run: TensorboardRun) -> Series:
    found: Series = {}
    for part in run.parts(None):
        if isinstance(part, Points):
            rows = zip(part.iters.tolist(), part.values.tolist(), strict=True)
            found.setdefault(f"{part.metric}|{part.variant}", []).extend(rows)
        else:
            assert isinstance(part, Position)
    return {name: sorted(points) for name, points in found.items()}


def taken(folder: Path, *, each: bool = False) -> dict[str, tuple[Series, dict[str, str]]]:
    """By run, the points and the parameters."""
    return {
        name: (series_of(run), run.run.parameters.get("hparams", {}))
        for name, run in runs_of(folder, each=each).items()
    }


def test_folders_of_hparams_and_of_scalars_are_of_the_run_above(tmp_path: Path) -> None:
    write(tmp_path / "x", *(scalar("loss", n, n) for n in range(5)))
    for name, tag in (("acc/A", "acc"), ("acc_B", "acc"), ("val/iou/A", "val/iou"), ("val_iou_B", "val/iou")):
        write(tmp_path / "x" / name, scalar(tag, 1, 0.5), begun=1)
    write(tmp_path / "x" / "1795871019.57", *session(["m"], lr=0.5), scalar("m", 0, 2), begun=2)
    loss = [(float(n), float(n)) for n in range(5)]
    points = [(1, 0.5)]
    curves = {"acc|A": points, "acc|B": points, "val/iou|A": points, "val/iou|B": points}
    assert taken(tmp_path) == {"x": ({"loss|loss": loss, **curves, "m|m": [(0, 2.0)]}, {"lr": "0.5"})}
    assert taken(tmp_path, each=True) == {
        "x": ({"loss|loss": loss}, {}),
        "x/1795871019.57": ({"m|m": [(0, 2.0)]}, {"lr": "0.5"}),
        "x/acc/A": ({"acc|acc": points}, {}),
        "x/acc_B": ({"acc|acc": points}, {}),
        "x/val/iou/A": ({"val|iou": points}, {}),
        "x/val_iou_B": ({"val|iou": points}, {}),
    }


def test_a_tag_whose_folder_is_that_of_a_series_of_another(tmp_path: Path) -> None:
    write(tmp_path / "x", scalar("loss", 1, 1))
    write(tmp_path / "x/a/b", scalar("a", 1, 1), begun=1)
    write(tmp_path / "x/a/b/c", scalar("a/b", 1, 1), begun=1)
    write(tmp_path / "x/my loss/d", scalar("my_loss", 1, 1), begun=1)
    assert taken(tmp_path)["x"][0].keys() == {"loss|loss", "a|b", "a/b|c", "my_loss|d"}


def test_the_folders_of_keras_are_put_before_the_tags(tmp_path: Path) -> None:
    write(tmp_path / "one/train", scalar("epoch_loss", 1, 3), scalar("batch/loss", 1, 4))
    write(tmp_path / "one/validation", scalar("epoch_loss", 1, 5), begun=1)
    write(tmp_path / "two/train", scalar("epoch_loss", 1, 6), begun=2)
    write(tmp_path / "two/train/acc_A", scalar("acc", 1, 7), begun=3)
    assert taken(tmp_path) == {
        "one": (
            {"train|epoch_loss": [(1, 3)], "train/batch|loss": [(1, 4)], "validation|epoch_loss": [(1, 5)]},
            {},
        ),
        "two": ({"train|epoch_loss": [(1, 6)], "train/acc|A": [(1, 7)]}, {}),
    }
    assert taken(tmp_path / "one").keys() == {"one"}
    assert taken(tmp_path / "one" / "train").keys() == {"train"}


def test_scalars_may_be_called_as_the_folders_of_keras(tmp_path: Path) -> None:
    run = tmp_path / "logs" / "x"
    write(tmp_path / "logs", scalar("lr", 1, 1))
    write(run)  # without values but those of add_scalars
    for name in ("loss/train", "loss/validation", "f1/train", "f1/val", "grp/loss/train", "train/validation"):
        write(run / name, scalar(name.rpartition("/")[0], 1, 2), begun=1)
    write(run / "train", scalar("epoch_loss", 1, 3), begun=1)
    for name in ("train", "validation"):
        write(tmp_path / "logs" / "keras" / name, scalar("epoch_loss", 1, 4), begun=2)
    series = {name: list(points) for name, (points, _) in taken(tmp_path).items()}
    assert {name: sorted(names) for name, names in series.items()} == {
        "logs": ["lr|lr"],
        "logs/keras": ["train|epoch_loss", "validation|epoch_loss"],
        "logs/x": [
            *("f1|train", "f1|val", "grp/loss|train", "loss|train", "loss|validation"),
            *("train|epoch_loss", "train|validation"),
        ],
    }


@pytest.mark.parametrize(
    ("tag", "run", "names"),
    [
        ("loss", "x", {"lr|lr", "loss|train", "loss|validation"}),
        ("epoch_loss", "x/loss", {"train|epoch_loss", "validation|epoch_loss"}),
    ],
)
def test_folders_called_train_that_hold_nothing_yet(tmp_path: Path, tag: str, run: str, names: set[str]) -> None:
    write(tmp_path / "x", scalar("lr", 1, 1))
    write(tmp_path / "x/loss/train", begun=1)
    source = TensorboardFolder(tmp_path, "p", False, True)
    sources = []
    for name in (None, "validation", "train"):
        if name:
            write(tmp_path / "x/loss" / name, scalar(tag, 1, 1), begun=1 if name == "train" else 2)
        runs = {found.run.name: found for found in source.runs() if isinstance(found, TensorboardRun)}
        assert runs.keys() == ({"x", run} if name else {"x"})
        sources.append(runs[run].run.source if name else None)
    assert series_of(runs[run]).keys() == names
    assert sources[1] == sources[2]


@pytest.mark.parametrize(
    "events",
    [
        [scalar("loss", 1, 1)],  # one tag, but the folder is not named by it
        [scalar("acc", 1, 1), scalar("loss", 1, 1)],
        [event("acc", 1, (8, message((1, 7), (8, "text"))), plugin("text"))],
        session([], lr=0.5)[:1],  # an experiment without a session
        session([], lr=0.5)[1:],  # a session of an experiment that is above, as Keras' tuner writes it
        [*session(["m"], lr=0.5), scalar("m", 1, 1), scalar("loss", 1, 1)],  # a run of its own, as Lightning writes it
    ],
)
def test_other_folders_are_runs(tmp_path: Path, events: list[bytes]) -> None:
    write(tmp_path / "x", scalar("loss", 1, 1))
    write(tmp_path / "x" / "acc_A", *events, begun=1)
    assert runs_of(tmp_path).keys() == {"x", "x/acc_A"}


def test_of_several_sessions_the_first_is_of_the_run(tmp_path: Path) -> None:
    write(tmp_path / "x")
    for number, name in enumerate(["b", "a", "c"]):
        write(tmp_path / "x" / name, *session(["m"], lr=number + 1.0), scalar("m", 0, number), begun=number + 1)
    assert taken(tmp_path) == {
        name: ({"m|m": [(0, number)]}, {"lr": str(number + 1)}) for number, name in enumerate(["x", "x/a", "x/c"])
    }


def test_what_identifies_a_run_stays_when_more_folders_come(tmp_path: Path) -> None:
    x = tmp_path / "x"
    write(x / "train", scalar("loss", 1, 1))
    source = runs_of(tmp_path)["x"].run.source
    for number, folder in enumerate([x / "validation", x, x / "acc_A", x / "hp"], 1):
        write(folder, *session([]), scalar("acc", 1, 1), begun=number) if folder.name == "hp" else write(
            folder, scalar("acc", 1, 1), begun=number
        )
        assert {name: run.run.source for name, run in runs_of(tmp_path).items() if name == "x"} == {"x": source}


def test_a_folder_that_holds_nothing_yet_is_not_a_run(tmp_path: Path) -> None:
    write(tmp_path / "x", scalar("loss", 1, 1))
    write(tmp_path / "x" / "acc_A", begun=1)
    (tmp_path / "x" / "acc_B").mkdir()
    (tmp_path / "x" / "acc_B" / "events.out.tfevents.1700000002.host").touch()
    source = TensorboardFolder(tmp_path, "p", False, True)
    assert len(list(source.runs())) == 1
    write(tmp_path / "x" / "acc_A", scalar("acc", 1, 1), begun=1)
    (run,) = source.runs()
    assert isinstance(run, TensorboardRun)
    assert series_of(run).keys() == {"loss|loss", "acc|A"}


def test_what_is_broken_is_a_run_that_names_it(tmp_path: Path) -> None:
    write(tmp_path / "x", scalar("loss", 1, 1))
    (tmp_path / "x" / "bad").mkdir()
    (tmp_path / "x" / "bad" / "events.out.tfevents.1700000002.host").write_bytes(b"no record at all")
    assert runs_of(tmp_path).keys() == {"x", "x/bad"}


def test_metrics_of_hparams_do_not_come_into_curves(tmp_path: Path) -> None:
    write(tmp_path / "x", scalar("other", 1, 1))
    write(tmp_path / "x" / "hp", *session(["loss", "m"]), scalar("loss", 0, 9), scalar("m", 0, 8), begun=1)
    run = runs_of(tmp_path)["x"]
    *_, position = run.parts(None)
    assert isinstance(position, Position)
    assert series_of(run).keys() == {"other|other", "loss|loss", "m|m"}
    write(tmp_path / "x", scalar("other", 1, 1), scalar("loss", 0, 1))
    first, *rest = run.parts(position.text)
    assert first == Again(cleared=True)
    *_, position = rest
    assert isinstance(position, Position)
    assert series_of(run) == {
        "other|other": [(1, 1)],
        "loss|loss": [(0, 1)],
        "hparams|loss": [(0, 9)],
        "m|m": [(0, 8)],
    }
    assert not list(run.parts(position.text)), "that is known now"


def test_another_wish_for_the_folders_is_read_anew(tmp_path: Path) -> None:
    write(tmp_path / "x", scalar("loss", 1, 1))
    write(tmp_path / "x" / "acc_A", scalar("acc", 1, 1), begun=1)
    *_, position = runs_of(tmp_path)["x"].parts(None)
    assert isinstance(position, Position)
    for each in (False, True):
        run = runs_of(tmp_path, each=each)["x"]
        assert run.run.source.startswith("tensorboard p: x (events.out.tfevents.1700000000")
        assert isinstance(next(run.parts(position.text), None), Again) == each


def test_files_are_named_with_their_folder(tmp_path: Path) -> None:
    write(tmp_path / "one" / "train", message((1, 1.0), (4, b"graph")))
    (name,) = (part.name for part in runs_of(tmp_path)["one"].parts(None) if isinstance(part, Unmapped))
    assert name == "train/events.out.tfevents.1700000000.host"


def test_a_record_is_named_with_its_byte(tmp_path: Path) -> None:
    write(tmp_path / "x", b"\xff")
    (problem,) = (part for part in runs_of(tmp_path)["x"].parts(None) if isinstance(part, Problem))
    header = len(record(message((1, 1.0), (3, "brain.Event:2"))))
    assert problem.cause.startswith(f"the record at byte {header}: ")
