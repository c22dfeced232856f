"""The life of a task: which status may follow which, and how a task gets from one to the next."""

from __future__ import annotations

from typing import Any

from apiserver.events.last_metrics import run_time
from apiserver.rpc.errors import ApiError
from apiserver.services.backend import Call, documents
from apiserver.services.project_tree import touch_projects
from apiserver.services.tasks.task_documents import ATTEMPTS, TASKS, answered, changed_meanwhile, changed_now, get_task
from apiserver.stores.documents.base import Document

#: From each status, where a task may go without `force`. It may stay where it is, so that a retried call succeeds, but
#: for published ones.
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
#: What a task stops being when it is run for real.
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
) -> Document:
    """Move a task to `status`, in one step with setting `values`, `earliest` ($min) and `unset`ting fields.

    `request` may hold `force`, `status_reason` and `status_message`. Answers `{updated, fields}`; 400/110 when the
    task's status does not lead there.
    """
    for _ in range(ATTEMPTS):
        task = await get_task(call, task_id, _FIELDS)
        check_transition(task, status, force=request.get("force", False))
        fields = _status_fields(call, task, status, request) | (values or {})
        # One update may not both set and unset a field.
        fields = {name: value for name, value in fields.items() if name not in unset}
        update: Document = {"$set": fields}
        if earliest:
            update["$min"] = earliest
        if unset:
            update["$unset"] = dict.fromkeys(unset, 1)
        if status == "queued":
            update["$pull"] = {"system_tags": _DEVELOPMENT}
        if await documents(call).update(TASKS, {"id": task_id, "status": task["status"]}, update):
            await touch_projects(call, task.get("project"))
            return {"updated": 1, "fields": answered(fields)}
    raise changed_meanwhile(task_id)


def check_transition(task: Document, status: str, *, force: bool, may_stay: bool = True) -> None:
    """400/110 unless the task may go to `status`, or is there already."""
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
