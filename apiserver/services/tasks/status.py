"""The status of a task: which one may follow which, and the change from one to the next."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from apiserver.events.last_metrics import run_time
from apiserver.rpc.errors import ApiError
from apiserver.services.backend import Call, documents
from apiserver.services.project_tree import touch_projects
from apiserver.services.stamps import changed_now
from apiserver.services.tasks.task_documents import (
    ATTEMPTS,
    STATUSES,
    TASKS,
    answered,
    changed_meanwhile,
    get_task,
    wrong_status,
)
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

_FIELDS = ("status", "project", "started", "enqueue_status")
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
    never_from: Collection[str] = (),
) -> Document:
    """Set a task's status; the same update sets `values`, lowers fields to `earliest`, and unsets the fields `unset`.

    `request` may have `force`, `status_reason` and `status_message`. Answers `{updated, fields}`; 400/110 if the new
    status may not follow the present one, or that is one of `never_from`, also with `force`.
    """
    for _ in range(ATTEMPTS):
        task = await get_task(call, task_id, _FIELDS)
        check_transition(task, status, force=request.get("force", False), may_stay=may_stay)
        if task["status"] in never_from:
            raise wrong_status(task, [one for one in STATUSES if one not in never_from])
        fields = _status_fields(call, task, status, request) | (values or {})
        # One update may not both set and unset a field.
        fields = {name: value for name, value in fields.items() if name not in unset}
        pull = {"system_tags": _DEVELOPMENT} if status == "queued" else {}
        update = Update(set=fields, min=earliest or {}, unset=unset, pull=pull)
        if await documents(call).update(TASKS, {"id": task_id, "status": task["status"]}, update):
            await touch_projects(call, task.get("project"))
            return {"updated": 1, "fields": answered(fields)}
    raise changed_meanwhile(task_id)


def check_transition(task: Document, status: str, *, force: bool, may_stay: bool = True) -> None:
    """400/110 unless `status` may follow the task's status, or (with `may_stay`) is the same."""
    current = task["status"]
    if not force and status not in NEXT[current] and not (may_stay and status == current):
        raise ApiError(
            400, 110, f"Invalid status change: task={task['id']}, current_status={current}, new_status={status}"
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
