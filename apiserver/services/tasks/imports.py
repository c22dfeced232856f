"""Tasks of runs that another tracker recorded: `apiserver import` makes them, finds them again, and updates them.

The id of such a task is made from its company and from what identifies the run there. So a second import of the same
run finds the task of the first.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from apiserver.common.errors import validation_error
from apiserver.common.times import seconds_since, utc_now
from apiserver.services.access.roles import is_admin
from apiserver.services.backend import Call, documents, endpoint
from apiserver.services.lists.conditions import parse_time
from apiserver.services.projects.tree import find_or_create, touch_projects
from apiserver.services.tasks.edit import checked_fields
from apiserver.services.tasks.import_times import EVENTS_DELETED, IMPORTED
from apiserver.services.tasks.task_documents import TASKS, change_task, editable, insert_task, new_task, set_fields
from apiserver.stores.documents.base import DuplicateDocument
from apiserver.stores.documents.query import Document, In, Update

#: The runtime properties of such a task: what it was made from, and how far its events have been read there.
SOURCE, POSITION = "imported_from", "import_position"
_TIMES = ("created", "started", "completed", "published", "status_changed")
#: The statuses of tasks that have not ended.
_OPEN = ("created", "queued", "in_progress", "unknown")
_AS_GIVEN = ("active_duration", "status_reason", "status_message", "report", "report_assets")
#: An id in the page of a report, or an escaped character of an address, which may stand before an id.
_ID = re.compile("%[0-9a-fA-F]{2}|[0-9a-f]{32}")


@endpoint("tasks.import_run", "2.34")
async def import_run(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    task_id, fields = _task_of(call, request["source"]), await _fields(call, request)
    guess = request.get("guessed_status") if "status" not in request else None
    of_guess = _of_status(guess, fields) if guess else {}
    there = await documents(call).find_one(TASKS, {"id": task_id}, projection=["id"])
    if there is None and await _made(call, task_id, request["source"], {**fields, **of_guess}):
        return {"id": task_id, "made": True}
    await change_task(call, task_id, Update(set=_one_by_one(fields)), statuses=editable(force=True))
    if of_guess:
        await documents(call).update(TASKS, {"id": task_id, "status": In(_OPEN)}, Update(set=of_guess))
    await touch_projects(call, fields.get("project"))
    return {"id": task_id, "made": False}


@endpoint("tasks.get_imported_runs", "2.34")
async def get_imported_runs(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    sources = {_task_of(call, source): source for source in request["sources"]}
    fields = ["id", f"runtime.{POSITION}", EVENTS_DELETED]
    found = await documents(call).find(TASKS, {"id": In(list(sources))}, projection=fields)
    return {"runs": [_known(sources[task["id"]], task) for task in found]}


def _known(source: str, task: Document) -> Document:
    """What is known of an imported run."""
    run = {"source": source, "task": task["id"], "position": task.get("runtime", {}).get(POSITION)}
    return {**run, "events_deleted": task[EVENTS_DELETED]} if EVENTS_DELETED in task else run


def _task_of(call: Call, source: str) -> str:
    """The id of the task of a run."""
    named = f"{call.identity.company}\0{source}".encode()
    return hashlib.blake2b(named, digest_size=16).hexdigest()


def _one_by_one(fields: Document) -> Document:
    """The fields to set, with each property, configuration and parameter by itself: others stay."""
    flat: Document = {}
    for section in ("runtime", "configuration"):
        flat |= {f"{section}.{name}": value for name, value in fields.pop(section, {}).items()}
    for section, params in fields.pop("hyperparams", {}).items():
        flat |= {f"hyperparams.{section}.{name}": value for name, value in params.items()}
    return {**set_fields(fields), **flat}


async def _made(call: Call, task_id: str, source: str, fields: Document) -> bool:
    """Make the task; False if another call made it meanwhile."""
    if "name" not in fields:
        raise validation_error("a new task needs a name", field="name")
    given = {"type": "training", **fields, "runtime": {**fields.get("runtime", {}), SOURCE: source}}
    try:
        await insert_task(call, {**new_task(call, given), "id": task_id, IMPORTED: utc_now()})
    except DuplicateDocument:
        return False
    return True


def _of_status(status: str, fields: Document) -> Document:
    """The status, and its times if the other fields do not have them."""
    found = {"status": status}
    if status != "created":
        found["status_changed"] = fields.get("status_changed") or fields.get("completed") or utc_now()
    if status == "published":
        found["published"] = fields.get("published") or found["status_changed"]
    return found


async def _fields(call: Call, request: dict[str, Any]) -> Document:
    """The stored fields of the task that the request sets."""
    if request.get("project_name") and not request.get("project"):
        request = {**request, "project": (await find_or_create(call, request["project_name"]))["id"]}
    fields = await checked_fields(call, request)
    fields |= {name: parse_time(request[name], name) for name in _TIMES if name in request}
    fields |= {name: request[name] for name in _AS_GIVEN if name in request}
    if "parent_source" in request:
        fields["parent"] = _task_of(call, request["parent_source"])
    if "report" in fields:
        runs = request.get("report_runs", {})
        fields["report"] = _ID.sub(lambda id: _task_of(call, runs[id[0]]) if id[0] in runs else id[0], fields["report"])
    if "user_name" in request and is_admin(call):
        owner = await documents(call).find_one("users", {"name": request["user_name"]}, projection=["id"])
        fields |= {"user": owner["id"]} if owner else {}
    for name in ("result", "error"):
        if f"output_{name}" in request:
            fields["output"] = {**fields.get("output", {}), name: request[f"output_{name}"]}
    if "position" in request:
        fields["runtime"] = {**fields.get("runtime", {}), POSITION: request["position"]}
    if "status" in request:
        fields |= _of_status(request["status"], fields)
    if "started" in fields and "completed" in fields:
        fields.setdefault("active_duration", seconds_since(fields["started"], fields["completed"]))
    return fields
