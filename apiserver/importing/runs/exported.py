"""Runs in the folder of `apiserver export`: the tasks of another server, or of this one as they were."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from apiserver.events.event_types import ADDRESSES
from apiserver.events.model import EventType, JsonObject
from apiserver.importing.report import ImportFailed
from apiserver.importing.runs.export_folder import EVENTS, SCALARS, TASK, file_path, name_of, task_folders
from apiserver.importing.runs.folders import file_at, is_below, small_file
from apiserver.importing.runs.model import Artifact, Image, Line, Other, Part, Points, Position, Problem, Run
from apiserver.importing.runs.tables import Batch, batches

#: Fields of events that the server makes itself.
_MADE = ("task", "@timestamp", "plot_len", "valid_plot", "source_urls", "model_event", "key")
_TEXTS = ("level", "worker", "metric", "variant")
_LONGEST = 64 * 2**20
#: What tasks become that are in none of the server's other statuses: nobody executes or publishes them here.
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

    def runs(self) -> Iterator[ExportedTask | Problem]:
        for path in sorted(task_folders(self._folder).glob(f"*/{TASK}")):
            try:
                yield ExportedTask(self._folder, path.parent, orjson.loads(small_file(path, _LONGEST)), self._project)
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
        self._artifacts = list(about.get("execution", {}).get("artifacts", ()))
        named = (about.get("project") or {}).get("name") or "exported"
        self.run = Run(
            f"export {about['server']} {about['id']}", f"{project}/{named}" if project else named, about["name"]
        )
        self.run.status = _STATUSES.get(about["status"], str(about["status"]))
        self.run.system_tags = list(about.get("system_tags", ()))
        self.run.tags, self.run.comment = list(about.get("tags", ())), str(about.get("comment") or "")
        self.run.started, self.run.completed = (_seconds(about.get(name)) for name in ("started", "completed"))
        self.run.parameters = {
            section: {name: str(item.get("value", "")) for name, item in items.items()}
            for section, items in about.get("hyperparams", {}).items()
        }
        self.run.configuration = {
            name: str(item.get("value", "")) for name, item in about.get("configuration", {}).items()
        }

    def parts(self, position: str | None) -> Iterator[Part]:
        """The points, then all other events, then the files. A position is the time of the last change, and the lines
        that were given: a task that has changed is read anew, but for them.
        """
        changed, _, given = (position or " 0").rpartition(" ")
        if changed == self._changed:
            return
        lines = 0
        try:
            for batch in batches(self._folder / SCALARS):
                yield from _points(batch)
        except (OSError, ValueError, KeyError) as error:
            yield Problem(SCALARS, str(error))
        for part in self._events():
            lines += isinstance(part, Line)
            if not isinstance(part, Line) or lines > int(given):
                yield part
        for artifact in self._artifacts:
            yield from self._artifact(artifact)
        yield Position(f"{self._changed} {lines}", 1)

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
            iter = event.get("iter")
            yield Line(int(event["timestamp"]), str(event["msg"]), level, worker, metric, variant, iter)
        elif event["type"] == EventType.IMAGE:
            yield from self._image(event, str(event.get(ADDRESSES[EventType.IMAGE])))
        else:
            yield _other(event)

    def _image(self, event: JsonObject, url: str) -> Iterator[Part]:
        """The image with its file. Without the file, the event as it was: its address may lead elsewhere."""
        if path := self._path(url):
            names = (str(event["metric"]), str(event["variant"]))
            yield Image(*names, int(event["iter"]), int(event["timestamp"]), path.suffix, file_at(path))
            return
        yield _other(event)
        if self._with_files and name_of(url, self._files_url) is not None:
            yield Problem(f"image {event.get('metric')}", f"its file is not in the export: {url}")

    def _artifact(self, artifact: JsonObject) -> Iterator[Part]:
        if path := self._path(str(artifact.get("uri"))):
            yield Artifact(str(artifact["key"]), file_at(path), path.name)
        else:
            yield Problem(f"artifact {artifact.get('key')}", f"its file is not in the export: {artifact.get('uri')}")

    def _path(self, url: str) -> Path | None:
        """The exported file of an address; None if there is none."""
        name = name_of(url, self._files_url)
        path = None if name is None else file_path(self._root, name)
        return path if path and is_below(path, self._root / "files") and path.is_file() else None


def _other(event: JsonObject) -> Other:
    return Other({name: value for name, value in event.items() if name not in _MADE or (name == "key" and value)})


def _points(batch: Batch) -> Iterator[Points]:
    names = list(zip(batch["metric"], batch["variant"], strict=True))
    numbers = {one: number for number, one in enumerate(dict.fromkeys(names))}
    series = np.array([numbers[one] for one in names], np.int64)
    iters, times, values = (np.asarray(batch[name]) for name in ("iter", "timestamp", "value"))
    for (metric, variant), number in numbers.items():
        rows = np.flatnonzero(series == number)
        columns = (iters[rows].astype(np.int64), times[rows].astype(np.int64), values[rows].astype(np.float64))
        yield Points(str(metric), str(variant), *columns)


def _seconds(text: Any) -> float | None:
    return datetime.fromisoformat(text).timestamp() if text else None
