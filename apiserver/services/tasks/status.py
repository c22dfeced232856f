"""The status of a task: which one may follow which, and the change from one to the next."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from apiserver.common.errors import Refusal, Why, unavailable
from apiserver.events.last_metrics import run_time
from apiserver.services.backend import Call, documents
from apiserver.services.documents.stamps import changed_now
from apiserver.services.projects.tree import touch_projects
from apiserver.services.tasks.holds import RESETTING
from apiserver.services.tasks.statuses import STATUSES
from apiserver.services.tasks.task_documents import ATTEMPTS, BEING_RESET, TASKS, answered, changed_meanwhile, get_task
from apiserver.stores.documents.query import Document, Update

#: By status, those that may follow without `force`. A task may also stay in its status, so that a retried call
#: succeeds; calls that publish do not allow this.
NEXT: dict[str, frozenset[str]] = {
    "created": frozenset({"queued", "in_progress"}),
    "queued": frozenset({"created", "in_progress", "stopped"}),
    "in_progress": frozenset({"created", "stopped", "failed", "completed"}),
    "stopped": frozenset(
        {"created", "queued", "in_progress", "closed", "failed", "completed", "publishing", "published"}
    ),
    "closed": frozenset({"created", "stopped", "failed", "publishing", "published"}),
    "failed": frozenset({"created", "queued", "stopped", "published"}),
    "completed": frozenset({"created", "in_progress", "published"}),
    "publishing": frozenset({"published"}),
    "published": frozenset(),
    "unknown": frozenset(),
}

_FIELDS = ("status", "project", "started", "enqueue_status", BEING_RESET)
#: The answer about a task that stays as it is.
UNCHANGED: Document = {"updated": 0, "fields": {}}
#: The system tag that a task loses when it is queued.
_DEVELOPMENT = "development"


async def change_status(
    call: Call,
    task_id: str,
    status: str,
    request: dict[str, Any],
    *,
    values: Document | None = None,
    earliest: Document | None = None,
    unset: tuple[str, ...] = (),
    may_stay: bool = True,
    reset: str | None = None,
    only_from: Collection[str] = STATUSES,
) -> Document:
    """Set a task's status; the same update sets `values`, lowers fields to `earliest`, and unsets the fields `unset`.

    `request` may have `force`, `status_reason` and `status_message`. Answers `{updated, fields}`. A task whose present
    status is none of `only_from` stays as it is, with the answer `UNCHANGED`.

    Raises Refusal(TASK_STATUS) if the new status may not follow the present one, and Refusal(UNAVAILABLE) while the
    task is reset by another call than that which has set BEING_RESET to `reset`.
    """
    for _ in range(ATTEMPTS):
        task = await get_task(call, task_id, _FIELDS)
        if task["status"] not in only_from:
            return UNCHANGED
        check_transition(task, status, force=request.get("force", False), may_stay=may_stay)
        if reset is None:
            check_not_being_reset(task)
        elif task.get(BEING_RESET) != reset:  # a server with another clock took the reset for dead
            raise unavailable(f"task {task_id} was changed while it was reset", retry_after=1)
        fields = _status_fields(call, task, status, request) | (values or {})
        # One update may not both set and unset a field.
        fields = {name: value for name, value in fields.items() if name not in unset}
        pull = {"system_tags": _DEVELOPMENT} if status == "queued" else {}
        # Whoever changes the status ends a reset, so that one that is late does not take the new status back.
        update = Update(set=fields, min=earliest or {}, unset=(*unset, BEING_RESET), pull=pull)
        if await documents(call).update(TASKS, as_it_is(task), update):
            await touch_projects(call, task.get("project"))
            return {"updated": 1, "fields": answered(fields)}
    raise changed_meanwhile(task_id)


def check_not_being_reset(task: Document) -> None:
    """Raises Refusal(UNAVAILABLE) if the task is being reset or deleted."""
    if RESETTING.holds(task):
        raise unavailable(f"task {task['id']} is being reset or deleted", retry_after=1)


def as_it_is(task: Document) -> Document:
    """The filter for the task while its status is as it was read, and the same call resets or deletes it, if any."""
    return {"id": task["id"], "status": task["status"], BEING_RESET: task.get(BEING_RESET)}


def check_transition(task: Document, status: str, *, force: bool, may_stay: bool = True) -> None:
    """Raises Refusal(TASK_STATUS) unless `status` may follow the task's status, or (with `may_stay`) is the same."""
    current = task["status"]
    if not force and status not in NEXT[current] and not (may_stay and status == current):
        raise Refusal(
            Why.TASK_STATUS, f"Invalid status change: task={task['id']}, current_status={current}, new_status={status}"
        )


def _status_fields(call: Call, task: Document, status: str, request: dict[str, Any]) -> Document:
    fields = changed_now(call)
    fields |= {
        "status": status,
        "status_reason": request.get("status_reason", ""),
        "status_message": request.get("status_message", ""),
        "status_changed": fields["last_change"],
    }
    return fields | run_time(task, fields["status_changed"])
