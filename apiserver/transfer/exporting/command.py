"""`apiserver export`: reads a project over the API, task by task, into a folder.

A task is not read again if its `task.json` says what the server says, and its files still have the digests that are in
`task.json`. Everything is written under another name first, so an interrupted export goes on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from apiserver.events.model import SAMPLE_TYPES, EventType
from apiserver.services.projects.names import cleaned_name
from apiserver.stores import formats
from apiserver.stores.documents.query import Document
from apiserver.transfer.exporting.digests import Digests, Files
from apiserver.transfer.importing.report import ImportFailed, Report, SourceRefused
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
from apiserver.transfer.importing.runs.other_documents import escaped
from apiserver.transfer.importing.runs.progress import Progress
from apiserver.transfer.importing.runs.server import Server, address

_TASKS, _LINES, _SAMPLES = 100, 5000, 50
_FIELDS = (
    *("name", "type", "status", "comment", "tags", "system_tags", "parent", "project.name", "last_change"),
    "user.name",
    *("created", "started", "completed", "published", "status_changed", "active_duration"),
    *("status_reason", "status_message", "hyperparams", "configuration", "runtime", "container", "script"),
    *("execution.artifacts", "execution.framework", "execution.model_labels", "models"),
    *("output.destination", "output.result", "output.error"),
    *("report", "report_assets", "has_x_axis_labels"),
)
_MODEL_FIELDS = (
    *("name", "uri", "comment", "tags", "system_tags", "framework", "design", "labels", "ready", "metadata"),
    *("created", "project.name"),
)
_PROJECT_FIELDS = ("name", "description", "tags", "system_tags", "default_output_destination")
#: The name in a task that stands for a deleted model.
_DELETED = "__DELETED__"


def export(
    project: str, folder: Path, *, files: bool, api_url: str | None, files_url: str | None, said: Mapping[str, str]
) -> bool:
    """Export a project, by its name or id, with its subprojects; returns whether everything was exported.

    Raises ImportFailed to give up, and ValueError for options that cannot be meant.
    """
    server = Server(address(api_url, files_url, said))
    server.check()
    progress = Progress("tasks", 0)
    report = Report(progress.say, done="exported")
    try:
        exporting = _Export(server, folder, report, progress, files)
        ids = _project_ids(server, project)
        exporting.write_projects(ids)
        for page in _tasks(server, ids):
            models = _models(server, page)
            for task in page:
                exporting.take(task, models)
    finally:
        progress.clear()
        server.close()
    report.close()
    return not report.problems


def _project_ids(server: Server, name_or_id: str) -> list[str]:
    """The ids of the projects that a name or an id means."""
    name = cleaned_name(name_or_id)
    projects = server.call("projects.get_all", {"name": f"^{escaped(name)}$", "search_hidden": True})["projects"]
    ids = [project["id"] for project in projects if project["name"] == name]
    if not ids:
        projects = server.call("projects.get_all", {"id": [name_or_id], "search_hidden": True})["projects"]
        ids = [project["id"] for project in projects]
    if not ids:
        raise ImportFailed(f"there is no project '{name_or_id}'")
    return ids


def _tasks(server: Server, ids: list[str]) -> Iterator[list[Document]]:
    """Pages of the tasks of the projects and of their subprojects."""
    asked = {"project": ids, "include_subprojects": True, "only_fields": list(_FIELDS), "search_hidden": True}
    asked |= {"order_by": ["id"], "page_size": _TASKS}
    page = 0
    while some := server.call("tasks.get_all_ex", {**asked, "page": page})["tasks"]:
        yield [_with_ids(one) for one in some]
        page += 1


def _with_ids(task: Document) -> Document:
    """The task, with the ids of its parent and its models in place of their fields."""
    made = {**task, "parent": _id(task.get("parent"))}
    models = task.get("models", {}).items()
    made["models"] = {kind: [{**one, "model": _id(one.get("model"))} for one in items] for kind, items in models}
    return made


def _id(of: Any) -> str | None:
    found: str | None = of.get("id") if isinstance(of, dict) else of
    return found


def _models(server: Server, tasks: list[Document]) -> dict[str, Document]:
    """The models that the tasks name, by id; models that were deleted are not in it."""
    named = {id for task in tasks for id in _named_models(task) if not id.startswith(_DELETED)}
    if not named:
        return {}
    asked = {"id": sorted(named), "only_fields": list(_MODEL_FIELDS), "page": 0, "page_size": len(named)}
    return {one["id"]: one for one in server.call("models.get_all_ex", asked)["models"]}


def _named_models(task: Document) -> list[str]:
    """The ids of the models that a task started from or made."""
    return [str(one["model"]) for items in task.get("models", {}).values() for one in items if one.get("model")]


class _Export:
    def __init__(self, server: Server, folder: Path, report: Report, progress: Progress, files: bool) -> None:
        self._server = server
        self._folder = folder
        self._report = report
        self._progress = progress
        self._with_files = files
        self._files = Files(folder)

    def write_projects(self, ids: list[str]) -> None:
        """Write the fields of the projects and of their subprojects."""
        asked: Document = {"only_fields": list(_PROJECT_FIELDS), "search_hidden": True, "page_size": _TASKS}
        projects: dict[str, Document] = {}
        for which in ("id", "parent"):
            page = 0
            while listed := self._server.call("projects.get_all", {**asked, which: ids, "page": page})["projects"]:
                projects |= {project["id"]: project for project in listed}
                page += 1
        self._folder.mkdir(parents=True, exist_ok=True)
        _write(self._folder / PROJECTS, _json(list(projects.values())))

    def take(self, task: Document, models: Mapping[str, Document]) -> None:
        """Export a task, if it or a model of it has changed since it was exported, or a file of it is not whole."""
        count = self._report.count("tasks")
        count.found += 1
        folder = task_folders(self._folder) / task["id"]
        about = self._about(task, models)
        before = _content(folder / TASK)
        digests_before = before.pop(DIGESTS, None)
        digests = _Digests(digests_before if isinstance(digests_before, dict) else {})
        is_same = bool(digests.before) and before == orjson.loads(orjson.dumps(about))
        if is_same:
            wrong = self._files.wrong(digests.before)
            if not wrong:
                count.known += 1
                return
            self._tell_of(task, [name for name in wrong if digests.before[name] is not None])
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not is_same:  # else its digests say what is wrong, also if this is interrupted
                (folder / TASK).unlink(missing_ok=True)
            self._write_files(task, about["about_models"].values(), folder, digests)
            _write(folder / TASK, _json({**about, DIGESTS: digests.now}))
            count.taken += 1
        except (SourceRefused, OSError) as error:
            count.left += 1
            self._report.problem("task", f"{task['name']} ({task['id']})", str(error))

    def _about(self, task: Document, models: Mapping[str, Document]) -> Document:
        """The content of the task's `task.json`, without the digests of its files."""
        where = self._server.where
        about = {
            "format": formats.EXPORTS.number,
            **task,
            "files": self._with_files,
            "server": where.api_url,
            "files_url": where.files_url,
        }
        if task.get("has_x_axis_labels"):
            about["x_axis_labels"] = self._labels(task["id"])
        about["about_models"] = {id: models[id] for id in _named_models(task) if id in models}
        return about

    def _write_files(self, task: Document, models: Iterable[Document], folder: Path, digests: _Digests) -> None:
        """Write the task's scalars and events into its folder, and copy the files of the task and of its models."""
        url = f"{self._server.where.api_url}/data/tasks/{task['id']}/scalars.parquet?workers=1"
        self._server.fetch(url, folder / SCALARS)
        self._write_events(task["id"], folder / EVENTS, digests)
        for path in (folder / SCALARS, folder / EVENTS):
            name = path.relative_to(self._folder).as_posix()
            digests.now[name] = self._files.read_again(name)
        for artifact in task.get("execution", {}).get("artifacts", ()):
            self._take_file(artifact.get("uri"), digests, artifact.get("hash"))
        for model in models:
            self._take_file(model.get("uri"), digests)

    def _tell_of(self, task: Document, names: list[str]) -> None:
        """Say which files of the earlier export of a task are damaged or missing."""
        for name in names:
            state = "damaged" if self._files.digest(name) else "missing"
            self._report.note(f"{state}: {name} of the task {task['name']}: it is exported again")

    def _labels(self, task: str) -> list[list[str]]:
        """The metric, the variant and the label of each curve whose x axis has one."""
        asked = {"id": [task], "only_fields": ["last_metrics"], "search_hidden": True}
        (found,) = self._server.call("tasks.get_all", asked)["tasks"]
        curves = [one for of_metric in found.get("last_metrics", {}).values() for one in of_metric.values()]
        labelled = [one for one in curves if one.get("x_axis_label")]
        return [[one["metric"], one["variant"], one["x_axis_label"]] for one in labelled]

    def _write_events(self, task: str, path: Path, digests: _Digests) -> None:
        part = path.with_suffix(".part")
        with part.open("wb") as file:
            for event in self._events(task):
                if event["type"] == EventType.IMAGE:
                    self._take_file(event.get("url"), digests)
                file.write(orjson.dumps(event) + b"\n")
        part.replace(path)

    def _events(self, task: str) -> Iterator[Document]:
        """Log lines by time, then samples by type and iteration."""
        asked: Document = {"task": task, "batch_size": _LINES, "navigate_earlier": False}
        while lines := self._server.call("events.get_task_log", asked)["events"]:
            yield from lines
            self._progress.advance(events=len(lines))
            asked["from_timestamp"] = lines[-1]["timestamp"]
        for type in SAMPLE_TYPES:
            asked = {"task": task, "event_type": type.value, "batch_size": _SAMPLES, "order": "asc"}
            while (answer := self._server.call("events.get_task_events", asked))["events"]:
                yield from answer["events"]
                self._progress.advance(events=len(answer["events"]))
                asked["scroll_id"] = answer["scroll_id"]

    def _take_file(self, url: Any, digests: _Digests, digest: str | None = None) -> None:
        """Copy a file of this server, which has that digest, unless the export has it."""
        name = name_of(str(url), self._server.where.files_url)
        if not self._with_files or name is None:
            return
        path, count, in_export = file_path(self._folder, name), self._report.count("files"), f"files{name}"
        expected = digest or digests.before.get(in_export)
        was_refused = in_export in digests.before and digests.before[in_export] is None  # its copy may be damaged
        count.found += 1
        try:
            if path is None:
                raise OSError("it cannot have this name here")
            if not path.exists() or was_refused or (expected and self._files.digest(in_export) != expected):
                path.parent.mkdir(parents=True, exist_ok=True)
                self._server.fetch(str(url), path)
                self._files.read_again(in_export)
            digests.now[in_export] = self._files.digest(in_export)
            count.taken += 1
        except (SourceRefused, OSError) as error:
            digests.now[in_export] = None
            count.left += 1
            self._report.problem("file", name, str(error))


@dataclass(slots=True)
class _Digests:
    """The digests of a task's files, in the export before and in this one."""

    before: Digests
    now: dict[str, str | None] = field(default_factory=dict)


def _content(path: Path) -> Document:
    """The JSON object in a file; an empty one if there is none."""
    try:
        found = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return {}
    return found if isinstance(found, dict) else {}


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=1).encode("utf-8", "replace")


def _write(path: Path, content: bytes) -> None:
    part = path.with_suffix(".part")
    part.write_bytes(content)
    part.replace(path)
