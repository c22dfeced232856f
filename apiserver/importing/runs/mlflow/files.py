"""MLflow's file store, `mlruns`: a folder for each experiment, in it one for each run, in it a file for each metric.

A metric's file has a line for each point: timestamp, value, step. Experiments and runs are described in `meta.yaml`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from apiserver.importing.report import ImportFailed
from apiserver.importing.runs.folders import file_at, files_below, is_below, small_file
from apiserver.importing.runs.mlflow.stores import Recorded, Values
from apiserver.importing.runs.mlflow.yaml import flat_yaml
from apiserver.importing.runs.model import Artifact, Problem, Unmapped
from apiserver.protobuf_wire import Malformed

#: Bytes of a metric's file that are read at once, and the most of a file with one value.
_BLOCK, _MOST = 2**20, 2**20
_STATUSES = {1: "RUNNING", 2: "SCHEDULED", 3: "FINISHED", 4: "FAILED", 5: "KILLED"}
#: Stands between the lines of a block, to find out whether each has three numbers.
_END = b";"


class FileStore:
    """The store in a folder."""

    def __init__(self, folder: Path, block: int = _BLOCK) -> None:
        """`block`: bytes of a metric's file that are read at once."""
        self._block = block
        self._folder = folder
        if not folder.is_dir():
            raise ImportFailed(f"there is no folder '{folder}'")

    def count(self) -> int:
        return sum(1 for _ in self._folder.glob("*/*/meta.yaml"))

    def runs(self) -> Iterator[Recorded | Problem | Unmapped]:
        for experiment in sorted(path.parent for path in self._folder.glob("*/meta.yaml")):
            try:
                about = flat_yaml(_text(experiment / "meta.yaml"))
            except (OSError, ValueError) as error:
                yield Problem(experiment.name, f"its meta.yaml cannot be read: {error}")
                continue
            name = about.get("name") or experiment.name
            for folder in sorted(path.parent for path in experiment.glob("*/meta.yaml")):
                if not is_below(folder / "artifacts", self._folder):
                    yield Problem(f"{experiment.name}/{folder.name}", "it leads out of the folder")
                    continue
                try:
                    yield _run(folder, name)
                except (OSError, ValueError) as error:
                    yield Problem(f"{experiment.name}/{folder.name}", f"it cannot be read: {error}")

    def metrics(self, run: Recorded) -> dict[str, object]:
        return {key: path.stat().st_size for key, path in files_below(Path(run.artifacts).parent / "metrics")}

    def points(self, run: Recorded, key: str) -> Iterator[Values | Problem]:
        rest = b""
        with (Path(run.artifacts).parent / "metrics" / key).open("rb") as file:
            while block := file.read(self._block):
                block = rest + block
                end = block.rfind(b"\n") + 1
                if not end and len(block) > _MOST:
                    raise Malformed(f"a line of metric '{key}' is too long")
                yield from _values(block[:end], key)
                rest = block[end:]
        yield from _values(rest, key)

    def artifacts(self, run: Recorded) -> Iterator[Artifact | Problem | Unmapped]:
        for name, path in files_below(Path(run.artifacts)):
            yield Artifact(name, file_at(path))


def _run(folder: Path, experiment: str) -> Recorded | Unmapped:
    about = flat_yaml(_text(folder / "meta.yaml"))
    tags = {key: _text(path) for key, path in files_below(folder / "tags")}
    name = about.get("run_name") or tags.get("mlflow.runName", "")
    if about.get("lifecycle_stage") == "deleted":
        return Unmapped("deleted run", name or folder.name)
    status = about.get("status", "")
    return Recorded(
        about.get("run_id") or about.get("run_uuid") or folder.name,
        experiment,
        name,
        status=_STATUSES.get(int(status), "") if status.isdigit() else status,
        start=_time(about.get("start_time")),
        end=_time(about.get("end_time")),
        # Wherever the file says that they are: nothing outside the store is read.
        artifacts=str(folder / "artifacts"),
        params={key: _text(path) for key, path in files_below(folder / "params")},
        tags=tags,
    )


def _time(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None


def _text(path: Path) -> str:
    return small_file(path, _MOST).decode(errors="replace")


def _values(block: bytes, key: str) -> Iterator[Values | Problem]:
    """The points in whole lines; a line that is not one costs only itself."""
    parts = [*block.rstrip(b"\n").replace(b"\n", b" ; ").split(), _END]
    if parts == [_END]:
        return
    if len(parts) % 4 == 0 and set(parts[3::4]) == {_END}:
        try:
            yield Values.of(parts[0::4], parts[1::4], parts[2::4])
            return
        except Malformed:
            pass
    for line in block.splitlines():
        if line.strip():
            # Older versions wrote no step; later ones may write the dataset behind it.
            time, value, step = [*line.split(), b"", b"0"][:3] if len(line.split()) < 3 else line.split()[:3]
            try:
                yield Values.of([time], [value], [step or b"0"])
            except Malformed as error:
                yield Problem(f"metric {key}", str(error))
