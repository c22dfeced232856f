"""MLflow's file store, `mlruns`: a folder for each experiment, in it one for each run, in it a file for each metric.

A metric's file has a line for each point: timestamp, value, step. Experiments and runs are described in `meta.yaml`.
After a crash, any of these files may end in the middle, or hold NULs. What is whole of it is taken, and the rest named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from apiserver.common.protobuf_wire import Malformed
from apiserver.transfer.importing.missing import Reason
from apiserver.transfer.importing.report import ImportFailed
from apiserver.transfer.importing.runs.folders import files_below, is_below, small_file
from apiserver.transfer.importing.runs.mlflow.artifacts import artifacts_in
from apiserver.transfer.importing.runs.mlflow.stores import Recorded, Row, Values, values_of
from apiserver.transfer.importing.runs.mlflow.yaml import flat_yaml
from apiserver.transfer.importing.runs.model import Artifact, Problem, Unmapped

#: Bytes of a metric's file that are read at once, and the most of a line or of a file with one value.
_BLOCK, _MOST = 2**20, 2**20
_STATUSES = {1: "RUNNING", 2: "SCHEDULED", 3: "FINISHED", 4: "FAILED", 5: "KILLED"}
#: Stands between the lines of a block, to find out whether each has three numbers.
_END = b";"
_META = "meta.yaml"
#: Each run has at least one of these.
_KINDS = ("metrics", "params", "artifacts")
#: Deleted experiments, and the folder of registered models.
_TRASH, _MODELS = ".trash", "models"
_ID = re.compile(r"[\w-]+")
_ENTRY = re.compile(r"^\w+:", re.M)


class FileStore:
    """The store in a folder."""

    def __init__(self, folder: Path, block: int = _BLOCK) -> None:
        """`block`: bytes of a metric's file that are read at once."""
        self._block = block
        self._folder = folder
        if not folder.is_dir():
            raise ImportFailed(f"there is no folder '{folder}'")

    def count(self) -> int:
        return sum(1 for _ in self._folder.glob(f"*/*/{_META}"))

    def runs(self) -> Iterator[Recorded | Problem | Unmapped]:
        for folder in _folders_in(self._folder):
            try:
                if folder.name == _TRASH:
                    yield from _deleted(folder)
                elif folder.name != _MODELS:
                    yield from self._runs_of(folder)
            except OSError as error:
                yield Problem(folder.name, f"it cannot be read: {error}")

    def has(self, id: str) -> bool:
        if not _ID.fullmatch(id):
            return False
        return any(_described(path.parent)[0].get("lifecycle_stage") != "deleted" for path in self._metas(id))

    def _metas(self, id: str) -> Iterator[Path]:
        return (path for path in self._folder.glob(f"*/{id}/{_META}") if path.parent.parent.name != _TRASH)

    def _runs_of(self, experiment: Path) -> Iterator[Recorded | Problem | Unmapped]:
        is_there = (experiment / _META).is_file()
        folders = [folder for folder in _folders_in(experiment) if _is_run(folder, needs_kind=not is_there)]
        if not is_there and not folders:
            return
        if not is_below(experiment, self._folder):
            yield Problem(experiment.name, "it leads out of the folder", Reason.ABSENT)
            return
        about, wrong = _described(experiment, "name")
        if wrong:
            yield Problem(experiment.name, f"{wrong}; what it does not say of the experiment is missing")
        for folder in folders:
            yield self._run(folder, about.get("name") or experiment.name)

    def _run(self, folder: Path, experiment: str) -> Recorded | Problem | Unmapped:
        place = folder.relative_to(self._folder).as_posix()
        if not all(is_below(folder / name, self._folder) for name in (*_KINDS, "tags", _META)):
            return Problem(place, "it leads out of the folder", Reason.ABSENT)
        if not (folder / _META).exists():
            return Problem(place, f"it has no {_META}, so it is not imported", Reason.ABSENT)
        try:
            return _recorded(folder, place, experiment)
        except (OSError, ValueError) as error:
            return Problem(place, f"it cannot be read: {error}")

    def metrics(self, run: Recorded) -> dict[str, object]:
        files = [(key, path.stat()) for key, path in files_below(self._folder / run.place / "metrics")]
        return {key: [file.st_size, file.st_mtime_ns] for key, file in files}

    def points(self, run: Recorded, key: str) -> Iterator[Values | Problem]:
        place = f"{run.place}/metrics/{key}"
        line, rest = 1, b""
        with (self._folder / place).open("rb") as file:
            while block := file.read(self._block):
                block = rest + block
                end = block.rfind(b"\n") + 1
                yield from _values(block[:end], line, place)
                line += block.count(b"\n")
                rest = block[end:][:_MOST]
        if rest.strip():
            yield Problem(_line(place, line), "it is cut, as no line break ends it")

    def artifacts(self, run: Recorded) -> Iterator[Artifact | Problem]:
        return artifacts_in(self._folder, run)


def _folders_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir())


def _is_run(folder: Path, needs_kind: bool) -> bool:
    """Whether a folder is one of a run. Where the experiment does not say that it is one, it has to look like that."""
    has_kind = any((folder / kind).is_dir() for kind in _KINDS)
    return has_kind or (not needs_kind and (folder / _META).is_file())


def _deleted(trash: Path) -> Iterator[Unmapped]:
    for folder in _folders_in(trash):
        name = _described(folder)[0].get("name") if (folder / _META).is_file() else None
        yield Unmapped("deleted experiment", name or folder.name, on_purpose=True)


def _recorded(folder: Path, place: str, experiment: str) -> Recorded | Unmapped:
    about, wrong = _described(folder, "status", "start_time")
    problems = [Problem(f"{place}/{_META}", f"{wrong}; what it does not say of the run is missing")] if wrong else []
    tags = dict(_texts(folder, "tags", place, problems))
    name = about.get("run_name") or tags.get("mlflow.runName", "")
    if about.get("lifecycle_stage") == "deleted":
        return Unmapped("deleted run", name or folder.name, on_purpose=True)
    status = about.get("status", "")
    return Recorded(
        about.get("run_id") or about.get("run_uuid") or folder.name,
        experiment,
        name,
        status=_STATUSES.get(int(status), "") if status.isdigit() else status,
        start=_time(about.get("start_time")),
        end=_time(about.get("end_time")),
        artifacts=about.get("artifact_uri", ""),
        place=place,
        changed=(folder / _META).stat().st_mtime_ns // 10**6,
        params=dict(_texts(folder, "params", place, problems)),
        tags=tags,
        problems=problems,
    )


def _texts(folder: Path, kind: str, place: str, problems: list[Problem]) -> Iterator[tuple[str, str]]:
    """The texts of the files of a kind, one each; adds unreadable files to `problems`."""
    for key, path in files_below(folder / kind):
        try:
            text = _text(path)
        except OSError as error:
            problems.append(Problem(f"{place}/{kind}/{key}", str(error)))
            continue
        if "\0" in text:
            problems.append(Problem(f"{place}/{kind}/{key}", "it holds NULs"))
        else:
            yield key, text


def _described(folder: Path, *needed: str) -> tuple[dict[str, str], str]:
    """The fields of the folder's `meta.yaml`, as far as it is whole, and its faults.

    If its end is missing, its last entry may be cut, too, so it is not believed.
    """
    if not (folder / _META).exists():
        return {}, f"it has no {_META}"
    try:
        text = _text(folder / _META).replace("\r\n", "\n")
        whole = text.partition("\0")[0]
        is_cut = whole != text or not whole.endswith("\n")
        about = flat_yaml(_without_last_entry(whole) if is_cut else whole)
    except (OSError, ValueError) as error:
        return {}, f"its {_META} cannot be read: {error}"
    if not whole.strip():
        return {}, f"its {_META} is empty"
    return about, f"its {_META} is cut" if is_cut or not set(needed) <= about.keys() else ""


def _without_last_entry(text: str) -> str:
    return text[: max((entry.start() for entry in _ENTRY.finditer(text)), default=0)]


def _time(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None


def _text(path: Path) -> str:
    return small_file(path, _MOST).decode(errors="replace")


def _line(place: str, number: int) -> str:
    return f"{place}, line {number}"


def _values(block: bytes, first: int, place: str) -> Iterator[Values | Problem]:
    """The points in whole lines, which begin with the line `first`."""
    parts = [*block.rstrip(b"\n").replace(b"\n", b" ; ").split(), _END]
    if parts == [_END]:
        return
    if len(parts) % 4 == 0 and set(parts[3::4]) == {_END}:
        try:
            yield Values.of(parts[0::4], parts[1::4], parts[2::4])
            return
        except Malformed:
            pass
    fields = [(number, line.split()) for number, line in enumerate(block.split(b"\n"), first)]
    numbers = [number for number, some in fields if some]
    # Older versions wrote no step; later ones may write the dataset behind it.
    rows: list[Row] = [(some[0], (some[1:2] or [b""])[0], (some[2:3] or [b"0"])[0]) for _, some in fields if some]
    yield from values_of(rows, lambda index: _line(place, numbers[index]))
