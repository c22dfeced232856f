"""Task documents: what a new one holds, how they are found, changed and answered.

A stored task always has its lists and objects (`execution.artifacts`, `models`, `last_metrics` …), never null, because
clients drop an answer whose fields have a wrong type. Keys below user-given names are escaped (`names.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any
from uuid import uuid4

from apiserver import answers
from apiserver.rpc.errors import ApiError, invalid_id, unavailable
from apiserver.services.backend import Call, documents, visible
from apiserver.services.document_keys import unescape_keys
from apiserver.services.last_metrics import RESET, REVISION
from apiserver.services.project_tree import touch_projects
from apiserver.services.public import denied
from apiserver.stores.documents.base import Document, Filter, Update
from apiserver.stores.documents.scoped import VisibleDocuments
from apiserver.times import utc_now

TASKS = "tasks"
STATUSES = (
    "created",
    "queued",
    "in_progress",
    "stopped",
    "closed",
    "failed",
    "completed",
    "publishing",
    "published",
    "unknown",
)
#: Statuses of tasks that are kept as they are.
LOCKED = ("publishing", "published")
#: How often a change is tried again when another one came between reading and writing.
ATTEMPTS = 50


def new_task(call: Call, fields: Document) -> Document:
    """A task of the caller with the (already escaped) `fields`, in status created."""
    now = utc_now()
    given = {key: fields[key] for key in ("execution", "models") if key in fields}
    return {
        **empty_task(),
        "id": uuid4().hex,
        "user": call.identity.user,
        "created": now,
        "last_update": now,
        "last_change": now,
        "last_changed_by": call.identity.user,
        **fields,
        "execution": new_execution() | given.get("execution", {}),
        "models": {"input": [], "output": []} | given.get("models", {}),
    }


def empty_task() -> Document:
    """What every task has, but who made it when, and sections that depend on what is given."""
    return {
        "status": "created",
        "last_iteration": 0,
        "last_metrics": {},
        "metric_stats": {},
        "tags": [],
        "system_tags": [],
        "output": {},
        "script": {"binary": "python", "repository": "", "entry_point": "", "requirements": {}},
        "hyperparams": {},
        "configuration": {},
        "runtime": {},
        "container": {},
    }


#: Their keys are digests of names: nothing is escaped there, and there may be thousands.
_WITH_DIGESTS = ("last_metrics", "metric_stats")


async def insert_task(call: Call, task: Document) -> None:
    """Keep a new task."""
    await documents(call).insert(TASKS, task)
    await touch_projects(call, task.get("project"))


def new_execution() -> Document:
    """The execution section of a task that has none."""
    return {"parameters": {}, "model_desc": {}, "model_labels": {}, "artifacts": []}


def answered(task: Document) -> Document:
    """A stored task as clients get it."""
    shown = {name: value if name in _WITH_DIGESTS else unescape_keys(value) for name, value in task.items()}
    for name in ("enqueue_status", REVISION, RESET):
        shown.pop(name, None)
    return shown


def changed_now(call: Call) -> Document:
    """The fields that every change of a task sets."""
    now = utc_now()
    return {"last_update": now, "last_change": now, "last_changed_by": call.identity.user}


async def get_task(call: Call, task_id: str, fields: Sequence[str] | None = None) -> Document:
    """The document (`fields` of it) of a task that the caller may change; 400/101, or 403/21 for a public one."""
    task = await documents(call).find_one(TASKS, {"id": task_id}, projection=fields)
    if task is None:
        raise await denied(call, TASKS, task_id)
    return task


async def get_tasks(call: Call, task_ids: Collection[str], fields: Sequence[str] | None = None) -> list[Document]:
    """The same for several, in the order of `task_ids`; the error names those that cannot be changed."""
    found = await _found(documents(call), task_ids, fields)
    if unknown := [task_id for task_id in task_ids if task_id not in found]:
        raise await denied(call, TASKS, *unknown)
    return [found[task_id] for task_id in dict.fromkeys(task_ids)]


async def read_task(call: Call, task_id: str, fields: Sequence[str] | None = None) -> Document:
    """The document (`fields` of it) of a task that the caller may read, or 400/101."""
    task = await visible(call).find_one(TASKS, {"id": task_id}, projection=fields, counted=answers.counter())
    if task is None:
        raise invalid_id("task", task_id)
    return task


async def read_tasks(call: Call, task_ids: Collection[str], fields: Sequence[str] | None = None) -> list[Document]:
    """The same for several, in the order of `task_ids`; the error names the unknown ones."""
    found = await _found(visible(call), task_ids, fields)
    if unknown := [task_id for task_id in task_ids if task_id not in found]:
        raise invalid_id("task", *unknown)
    return [found[task_id] for task_id in dict.fromkeys(task_ids)]


async def _found(
    among: VisibleDocuments, task_ids: Collection[str], fields: Sequence[str] | None
) -> dict[str, Document]:
    wanted: Filter = {"id": {"$in": list(task_ids)}}
    counter = answers.counter()
    return {task["id"]: task for task in await among.find(TASKS, wanted, projection=fields, counted=counter)}


def editable(force: bool) -> tuple[str, ...]:
    """The statuses a task's inputs and outputs may be changed in; with `force` all but those of published tasks."""
    return tuple(status for status in STATUSES if status not in LOCKED) if force else ("created",)


async def change_task(call: Call, task_id: str, update: Update, *, statuses: Collection[str] | None = None) -> Document:
    """Apply `update` if the task is in one of `statuses`; return the fields that are set besides.

    400/101 for an unknown task, 400/110 for a wrong status.
    """
    stamps = changed_now(call)
    wanted: Document = {"id": task_id}
    if statuses is not None:
        wanted["status"] = {"$in": list(statuses)}
    if not await documents(call).update(TASKS, wanted, _stamped(update, stamps)):
        task = await get_task(call, task_id, ["status"])
        if statuses is not None and task["status"] not in statuses:
            raise wrong_status(task, statuses)
        raise changed_meanwhile(task_id)
    return stamps


async def revise_task(
    call: Call,
    task_id: str,
    revise: Callable[[Document], Update | None],
    *,
    fields: Sequence[str],
    statuses: Collection[str] | None = None,
) -> bool:
    """Apply the update that `revise` makes of the task's current `fields`, as one step; False when it makes none."""
    for _ in range(ATTEMPTS):
        task = await get_task(call, task_id, [*fields, "status", "last_change"])
        if statuses is not None and task["status"] not in statuses:
            raise wrong_status(task, statuses)
        update = revise(task)
        if update is None:
            return False
        unchanged = {"id": task_id, "status": task["status"], "last_change": task["last_change"]}
        if await documents(call).update(TASKS, unchanged, _stamped(update, changed_now(call))):
            return True
    raise unavailable(f"task {task_id} is changed too often just now", retry_after=1)


def _stamped(update: Update, stamps: Document) -> Update:
    """`update` that also sets `stamps`, without operators that have nothing to do."""
    parts = {**update, "$set": {**stamps, **update.get("$set", {})}}
    return {operator: fields for operator, fields in parts.items() if fields}


def wrong_status(task: Document, wanted: Collection[str]) -> ApiError:
    """The task's status does not allow what was asked."""
    expected = ", ".join(wanted)
    return ApiError(
        400, 110, f"Invalid task status: task={task['id']}, status={task['status']}, expected one of ({expected})"
    )


def changed_meanwhile(task_id: str) -> ApiError:
    """Somebody else changed the task's status first."""
    return ApiError(400, 121, f"Failed changing task status, it was changed by another call: task={task_id}")


def set_fields(values: Document) -> dict[str, Any]:
    """The `$set` of `values`, merging one level into objects, so that fields which are not given stay."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if key in ("execution", "script", "output", "models") and isinstance(value, dict):
            flat |= {f"{key}.{inner}": item for inner, item in value.items()}
        else:
            flat[key] = value
    return flat
