"""Documents of tasks: making, finding, changing and answering them.

The lists and objects of a stored task (`execution.artifacts`, `models`, `last_metrics` …) are always there, never null,
because clients drop an answer whose fields have a wrong type. Names that users choose are escaped
(`services/documents/keys.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any
from uuid import uuid4

from apiserver.common import answers
from apiserver.common.errors import Refusal, Why, invalid_id, unavailable
from apiserver.services.backend import Call, documents, visible
from apiserver.services.documents.keys import unescape_keys
from apiserver.services.documents.public import denied
from apiserver.services.documents.stamps import changed_now, made_now
from apiserver.services.events.last_metrics import RESET, REVISION
from apiserver.services.projects.tree import touch_projects
from apiserver.services.tasks.import_times import EVENTS_DELETED, IMPORTED
from apiserver.services.tasks.statuses import LOCKED, STATUSES
from apiserver.stores.documents.query import Document, Filter, In, Update
from apiserver.stores.documents.scoped import VisibleDocuments

TASKS = "tasks"
#: How often a change is tried again if another one came between reading and writing.
ATTEMPTS = 50


def new_task(call: Call, fields: Document) -> Document:
    """The document of a new task of the caller, in status created. `fields` are escaped already."""
    given = {key: fields[key] for key in ("execution", "models") if key in fields}
    return {
        **empty_task(),
        "id": uuid4().hex,
        **made_now(call),
        **fields,
        "execution": new_execution() | given.get("execution", {}),
        "models": {"input": [], "output": []} | given.get("models", {}),
    }


def empty_task() -> Document:
    """The fields that every task has, without those about who made it when, `execution` and `models`."""
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


#: The fields with the time until which a call holds a task (see `holds.py`).
BEING_RESET, BEING_QUEUED = "being_reset_until", "being_queued_until"

#: Fields that are not unescaped: their keys are digests of names, and there may be thousands of them.
_WITH_DIGESTS = ("last_metrics", "metric_stats")


async def insert_task(call: Call, task: Document) -> None:
    """Store a new task."""
    await documents(call).insert(TASKS, task)
    await touch_projects(call, task.get("project"))


def new_execution() -> Document:
    """An empty execution section."""
    return {"parameters": {}, "model_desc": {}, "model_labels": {}, "artifacts": []}


def answered(task: Document) -> Document:
    """A stored task in the form that clients get."""
    shown = {name: value if name in _WITH_DIGESTS else unescape_keys(value) for name, value in task.items()}
    for name in ("enqueue_status", BEING_RESET, BEING_QUEUED, REVISION, RESET, IMPORTED, EVENTS_DELETED):
        shown.pop(name, None)
    return shown


async def get_task(call: Call, task_id: str, fields: Sequence[str] | None = None) -> Document:
    """The document of a task that the caller may change, or `fields` of it.

    Raises Refusal(NO_TASK) if there is none, Refusal(FORBIDDEN) if it is public.
    """
    task = await documents(call).find_one(TASKS, {"id": task_id}, projection=fields)
    if task is None:
        raise await denied(call, TASKS, task_id)
    return task


async def get_tasks(call: Call, task_ids: Collection[str], fields: Sequence[str] | None = None) -> list[Document]:
    """Like `get_task` for several tasks, in the order of `task_ids`. The error names those that cannot be changed."""
    found = await _found(documents(call), task_ids, fields)
    if unknown := [task_id for task_id in task_ids if task_id not in found]:
        raise await denied(call, TASKS, *unknown)
    return [found[task_id] for task_id in dict.fromkeys(task_ids)]


async def read_tasks(call: Call, task_ids: Collection[str], fields: Sequence[str] | None = None) -> list[Document]:
    """Like `read_one` for several tasks, in the order of `task_ids`. The error names the unknown ones."""
    found = await _found(visible(call), task_ids, fields)
    if unknown := [task_id for task_id in task_ids if task_id not in found]:
        raise invalid_id("task", *unknown)
    return [found[task_id] for task_id in dict.fromkeys(task_ids)]


async def _found(
    among: VisibleDocuments, task_ids: Collection[str], fields: Sequence[str] | None
) -> dict[str, Document]:
    wanted: Filter = {"id": In(list(task_ids))}
    counter = answers.counter()
    return {task["id"]: task for task in await among.find(TASKS, wanted, projection=fields, counted=counter)}


def editable(force: bool) -> tuple[str, ...]:
    """The statuses in which a task's inputs and outputs may be changed; with `force` all but the `LOCKED` ones."""
    return tuple(status for status in STATUSES if status not in LOCKED) if force else ("created",)


async def change_task(call: Call, task_id: str, update: Update, *, statuses: Collection[str] | None = None) -> Document:
    """Apply `update` if the task is in one of `statuses`; returns the further fields that were set (`changed_now`).

    Raises Refusal(NO_TASK) if there is none, Refusal(TASK_STATUS) if it has another status.
    """
    stamps = changed_now(call)
    wanted: Document = {"id": task_id}
    if statuses is not None:
        wanted["status"] = In(list(statuses))
    if not await documents(call).update(TASKS, wanted, update.setting(stamps)):
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
    """Apply the update that `revise` makes from the task's current `fields`; False if it makes none.

    It is applied only if the task has not changed since it was read; otherwise all is tried again.
    """
    for _ in range(ATTEMPTS):
        task = await get_task(call, task_id, [*fields, "status", "last_change"])
        if statuses is not None and task["status"] not in statuses:
            raise wrong_status(task, statuses)
        update = revise(task)
        if update is None:
            return False
        unchanged = {"id": task_id, "status": task["status"], "last_change": task["last_change"]}
        if await documents(call).update(TASKS, unchanged, update.setting(changed_now(call))):
            return True
    raise unavailable(f"task {task_id} is being changed by too many calls at once", retry_after=1)


def wrong_status(task: Document, wanted: Collection[str]) -> Refusal:
    """The error if a task's status does not allow the call."""
    expected = ", ".join(wanted)
    return Refusal(
        Why.TASK_STATUS,
        f"Invalid task status: task={task['id']}, status={task['status']}, expected one of ({expected})",
    )


def changed_meanwhile(task_id: str) -> Refusal:
    """The error if another call changed the task's status first."""
    return Refusal(
        Why.TASK_CHANGED_MEANWHILE, f"Failed changing task status, it was changed by another call: task={task_id}"
    )


def set_fields(values: Document) -> dict[str, Any]:
    """The fields to set for `values`. Sections such as `script` are set field by field: fields not given stay."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if key in ("execution", "script", "output", "models") and isinstance(value, dict):
            flat |= {f"{key}.{inner}": item for inner, item in value.items()}
        else:
            flat[key] = value
    return flat
