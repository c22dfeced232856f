"""Runs in the folder of `apiserver export`: the tasks of another server, or of this one as they were."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from apiserver.events.event_types import ADDRESSES
from apiserver.events.model import EventType, JsonObject
from apiserver.stores import formats
from apiserver.transfer.importing.report import ImportFailed
from apiserver.transfer.importing.runs.export_folder import (
    DIGESTS,
    EVENTS,
    PROJECTS,
    SCALARS,
    TASK,
    file_path,
    name_of,
    task_folders,
)
from apiserver.transfer.importing.runs.folders import file_at, is_below, small_file
from apiserver.transfer.importing.runs.model import (
    Again,
    Artifact,
    Image,
    Line,
    Model,
    Other,
    Part,
    Points,
    Position,
    Problem,
    Run,
    Unmapped,
)
from apiserver.transfer.importing.runs.tables.batches import Batch, batches

#: Fields of events that the server makes itself.
_MADE = ("task", "@timestamp", "plot_len", "valid_plot", "source_urls", "model_event", "key")
_TEXTS = ("level", "worker", "metric", "variant")
_OF_LINES = (*_TEXTS, "type", "timestamp", "msg", "iter")
_OF_IMAGES = ("type", "metric", "variant", "iter", "timestamp", "url")
#: Fields that the task gets as they were.
_SAME = (
    *("type", "comment", "created", "started", "completed", "published", "status_changed", "active_duration"),
    *("status_reason", "status_message", "hyperparams", "configuration", "runtime", "container", "script"),
    *("report", "report_assets"),
)
#: Runtime properties by which a task that was imported is found again.
_OF_IMPORTS = ("imported_from", "import_position")
#: By their names in the task's output, fields as `tasks.import_run` takes them.
_OF_OUTPUT = {"destination": "output_dest", "result": "output_result", "error": "output_error"}
#: Matches a text that may be an id in the page of a report.
_ID = re.compile("(?=([0-9a-f]{32}))")
_OF_EXECUTION = ("framework", "model_labels")
_OF_MODELS = (
    *("name", "uri", "comment", "tags", "system_tags", "framework", "design", "labels", "ready", "metadata"),
    "created",
)
_LONGEST = 64 * 2**20
#: The status of imported tasks that are in none of the server's other statuses: nobody executes or publishes them here.
_STATUSES = {"queued": "created", "publishing": "completed", "unknown": "created"}


class ExportFolder:
    """The tasks in a folder; their projects are below `project`, if there is one."""

    unit = "tasks"

    def __init__(self, folder: Path, project: str | None) -> None:
        self._folder = folder
        self._project = project
        if not task_folders(folder).is_dir():
            raise ImportFailed(f"'{folder}' is no folder of `apiserver export`")

    def total(self) -> int:
        return sum(1 for _ in task_folders(self._folder).glob(f"*/{TASK}"))

    def projects(self) -> list[JsonObject]:
        """The projects of the export with their fields."""
        path = self._folder / PROJECTS
        if not path.is_file():
            return []
        try:
            projects = [
                {**project, "name": _below(self._project, str(project["name"]))}
                for project in orjson.loads(path.read_bytes())
            ]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ImportFailed(f"{path} is malformed: {error}") from None
        return [{name: value for name, value in project.items() if value is not None} for project in projects]

    def runs(self) -> Iterator[ExportedTask | Problem]:
        for path in sorted(task_folders(self._folder).glob(f"*/{TASK}")):
            try:
                about = orjson.loads(small_file(path, _LONGEST))
                if (number := about["format"]) > formats.EXPORTS.number:
                    text = (
                        f"its {TASK} has format {number} of exports, this version reads up to {formats.EXPORTS.number}"
                    )
                    yield Problem(path.parent.name, f"{text}: import it with the newer version that exported it")
                    continue
                yield ExportedTask(self._folder, path.parent, about, self._project)
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                yield Problem(path.parent.name, f"its {TASK} is malformed: {error}")


class ExportedTask:
    """One task. Raises KeyError, TypeError, AttributeError or ValueError if its document is malformed."""

    def __init__(self, root: Path, folder: Path, about: JsonObject, project: str | None) -> None:
        self._root = root
        self._folder = folder
        self._changed = str(about.get("last_change"))
        self._files_url = str(about["files_url"])
        self._with_files = bool(about.get("files"))
        self._files = [name.removeprefix("files") for name in about.get(DIGESTS) or () if name.startswith("files/")]
        self._server = str(about["server"])
        self._project = project
        execution = about.get("execution") or {}
        self._artifacts = list(execution.get("artifacts", ()))
        self._models = {kind: list(items) for kind, items in (about.get("models") or {}).items()}
        self._about_models = dict(about.get("about_models") or {})
        self._parent = about.get("parent")
        self._labels = {(metric, variant): label for metric, variant, label in about.get("x_axis_labels", ())}
        named = (about.get("project") or {}).get("name") or "exported"
        self.run = Run(self._source(about["id"]), _below(project, named), about["name"])
        self.run.status = _STATUSES.get(about["status"], str(about["status"]))
        self.run.system_tags = list(about.get("system_tags", ()))
        self.run.tags = list(about.get("tags", ()))
        self.run.started, self.run.completed = (_seconds(about.get(name)) for name in ("started", "completed"))
        self.run.task = {name: about[name] for name in _SAME if about.get(name) is not None}
        if owner := (about.get("user") or {}).get("name"):
            self.run.task["user_name"] = owner
        if runtime := self.run.task.get("runtime"):
            self.run.task["runtime"] = {name: value for name, value in runtime.items() if name not in _OF_IMPORTS}
        self.run.task["execution"] = {name: execution[name] for name in _OF_EXECUTION if execution.get(name)}
        output = about.get("output") or {}
        self.run.task |= {asked: output[name] for name, asked in _OF_OUTPUT.items() if output.get(name)}
        if shown := [id for id in _ID.findall(str(self.run.task.get("report", ""))) if self._is_exported(id)]:
            self.run.task["report_runs"] = {id: self._source(id) for id in shown}
        if self._parent and self._is_exported(str(self._parent)):
            self.run.task["parent_source"] = self._source(self._parent)

    def _source(self, id: str) -> str:
        return f"export {self._server} {id}"

    def _is_exported(self, id: str) -> bool:
        return (task_folders(self._root) / id / TASK).is_file()

    def parts(self, position: str | None) -> Iterator[Part]:
        """The points, then all other events, then the files."""
        reached = self._reached()
        if position == reached:
            return
        if position:
            yield Again()
        if self._parent and "parent_source" not in self.run.task:
            yield Unmapped("parent that is not in the export", str(self._parent))
        try:
            for batch in batches(self._folder / SCALARS):
                yield from self._points(batch)
        except (OSError, ValueError, KeyError) as error:
            yield Problem(SCALARS, str(error))
        yield from self._events()
        for artifact in self._artifacts:
            yield from self._artifact(artifact)
        for kind, items in self._models.items():
            for item in items:
                yield from self._model(kind, item)
        yield Position(reached, 1)

    def _reached(self) -> str:
        """The position: the time of the last change, and how large the files in the export are, as more may come."""
        sizes = [path.stat().st_size for path in map(self._file, self._files) if path]
        return f"{self._changed}, {len(sizes)} files of {sum(sizes)} bytes" if sizes else self._changed

    def _points(self, batch: Batch) -> Iterator[Points]:
        """The points of each series and worker."""
        workers = batch.get("worker") or [None] * len(batch["metric"])
        names = list(zip(batch["metric"], batch["variant"], workers, strict=True))
        numbers = {one: number for number, one in enumerate(dict.fromkeys(names))}
        series = np.array([numbers[one] for one in names], np.int64)
        iters, times, values = (np.asarray(batch[name]) for name in ("iter", "timestamp", "value"))
        for (metric, variant, worker), number in numbers.items():
            rows = np.flatnonzero(series == number)
            columns = (iters[rows].astype(np.int64), times[rows].astype(np.int64), values[rows].astype(np.float64))
            more = {"worker": worker, "x_axis_label": self._labels.get((metric, variant))}
            known = {name: str(value) for name, value in more.items() if value}
            yield Points(str(metric), str(variant), *columns, known)

    def _events(self) -> Iterator[Part]:
        try:
            if not (self._folder / EVENTS).is_file():
                raise OSError("there is no such file")
            with (self._folder / EVENTS).open("rb") as file:
                for number, line in enumerate(iter(lambda: file.readline(_LONGEST), b""), start=1):
                    try:
                        yield from self._event(orjson.loads(line))
                    except (ValueError, KeyError, TypeError, AttributeError) as error:
                        yield Problem(f"{EVENTS}, line {number}", str(error))
        except OSError as error:
            yield Problem(EVENTS, str(error))

    def _event(self, event: JsonObject) -> Iterator[Part]:
        if event["type"] == EventType.LOG:
            level, worker, metric, variant = (str(event.get(name) or "") for name in _TEXTS)
            more = {name: value for name, value in event.items() if name not in (*_OF_LINES, *_MADE)}
            names = (level, worker, metric, variant, event.get("iter"))
            yield Line(int(event["timestamp"]), str(event["msg"]), *names, more)
        elif event["type"] == EventType.IMAGE:
            yield from self._image(event, str(event.get(ADDRESSES[EventType.IMAGE])))
        else:
            yield _other(event)

    def _image(self, event: JsonObject, url: str) -> Iterator[Part]:
        """The image with its file. Without the file, the event as it was: its address may lead elsewhere."""
        if path := self._path(url):
            names = (str(event["metric"]), str(event["variant"]))
            more = {name: value for name, value in _other(event).event.items() if name not in _OF_IMAGES}
            yield Image(*names, int(event["iter"]), int(event["timestamp"]), path.suffix, file_at(path), more)
            return
        yield _other(event)
        if self._is_missing(url):
            yield Problem(f"image {event.get('metric')}", f"its file is not in the export: {url}")

    def _artifact(self, artifact: JsonObject) -> Iterator[Part]:
        """The artifact with its file. Without the file, as it was: its address may lead elsewhere."""
        about = {name: value for name, value in artifact.items() if value is not None}
        path = self._path(str(artifact.get("uri")))
        yield Artifact(str(artifact["key"]), file_at(path) if path else None, path.name if path else "", about)
        if path is None and self._is_missing(artifact.get("uri")):
            yield Problem(f"artifact {artifact.get('key')}", f"its file is not in the export: {artifact.get('uri')}")

    def _model(self, kind: str, item: JsonObject) -> Iterator[Part]:
        """The model with its file. Without the file, as it was."""
        model = self._about_models.get(item["model"])
        if model is None:
            yield Unmapped("model that is not there any more", str(item["name"]))
            return
        about = {name: model[name] for name in _OF_MODELS if model.get(name) is not None}
        project_name = (model.get("project") or {}).get("name")
        path = self._path(str(about.get("uri")))
        project = _below(self._project, str(project_name)) if project_name else None
        names = (self._source(item["model"]), kind, str(item["name"]), project)
        yield Model(*names, about, file_at(path) if path else None, path.name if path else "")
        if path is None and self._is_missing(about.get("uri")):
            yield Problem(f"model {item['name']}", f"its file is not in the export: {about.get('uri')}")

    def _is_missing(self, url: object) -> bool:
        """Whether the file at an address should be in the export."""
        return self._with_files and name_of(str(url), self._files_url) is not None

    def _path(self, url: str) -> Path | None:
        """The exported file of an address; None if there is none."""
        name = name_of(url, self._files_url)
        return None if name is None else self._file(name)

    def _file(self, name: str) -> Path | None:
        """The exported file of that name on the server; None if there is none."""
        path = file_path(self._root, name)
        return path if path and is_below(path, self._root / "files") and path.is_file() else None


def _below(project: str | None, name: str) -> str:
    return f"{project}/{name}" if project else name


def _other(event: JsonObject) -> Other:
    return Other({name: value for name, value in event.items() if name not in _MADE or (name == "key" and value)})


def _seconds(text: Any) -> float | None:
    return datetime.fromisoformat(text).timestamp() if text else None
