"""Resetting and deleting tasks, with their outputs: events, models, links, files."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from apiserver.common.errors import Refusal, Why, unavailable
from apiserver.events.model import Owner
from apiserver.fileserver.addresses import is_in_object_store
from apiserver.services.backend import Call, documents, endpoint
from apiserver.services.documents.many import do_each, for_each, for_one
from apiserver.services.documents.stamps import changed_now
from apiserver.services.documents.unneeded_files import delete_files, event_urls
from apiserver.services.events.last_metrics import RESET, REVISION, new_revision
from apiserver.services.models.deletions import DELETED, deleting_drafts, tell_of_deleted_task
from apiserver.services.projects.tree import touch_projects
from apiserver.services.queues.entries import leave_queues
from apiserver.services.tasks.artifacts import artifacts_of
from apiserver.services.tasks.holds import RESETTING
from apiserver.services.tasks.models import models_of
from apiserver.services.tasks.pipeline_steps import of_step, steps_of
from apiserver.services.tasks.queueing import release, release_in_turn
from apiserver.services.tasks.queueing_turns import in_turn
from apiserver.services.tasks.status import as_it_is, change_status, check_not_being_reset
from apiserver.services.tasks.statuses import LOCKED
from apiserver.services.tasks.task_documents import (
    ATTEMPTS,
    BEING_RESET,
    TASKS,
    changed_meanwhile,
    editable,
    get_task,
    new_execution,
    wrong_status,
)
from apiserver.stores.documents.query import AllOf, AnyOf, Document, Filter, In, Unequal, Update

_RUN_FIELDS = (
    "output.result",
    "output.error",
    "last_worker",
    "last_worker_report",
    "started",
    "completed",
    "published",
    "active_duration",
    "enqueue_status",
)


@endpoint("tasks.delete_many", "1.0")
async def delete_many(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return await do_each(
        call,
        "task",
        request["ids"],
        lambda task_id: delete_task(call, task_id, request),
        first=(lambda ids: release(call, *ids, though_reset=True)) if request["force"] else None,
    )


@for_one("tasks.reset")
@for_each("tasks.reset_many")
async def reset_task(call: Call, task_id: str, request: dict[str, Any]) -> dict[str, Any]:
    """Set a task back to status created, without its outputs. `clear_all` also empties its script and execution."""
    force = request["force"]
    task = await get_task(call, task_id)
    _check_unlocked(task, force=force)
    if not force:
        await _check_unpublished(call, task)

    async def check(task: Document) -> None:
        _check_unlocked(task, force=force)
        check_not_being_reset(task)

    async with in_turn(call, task_id):
        removed = await release_in_turn(call, task_id)
        async with (
            _emptying(call, task_id, check) as task,
            # `rewriting` keeps a pending update of last_metrics from being written after the events are deleted.
            call.backend.last_metrics.rewriting([Owner(call.identity.company, task_id)]),
        ):
            outcome = await _clean(call, task, request)
            values, unset = _emptied(task, clear_all=request["clear_all"])
            told = {"force": True, "status_reason": "reset", "status_message": "reset"}
            held = task[BEING_RESET]
            done = await change_status(call, task_id, "created", told, values=values, unset=unset, reset=held)
    return {**done, "dequeued": {"removed": removed} if removed else {}, **outcome}


def _emptied(task: Document, *, clear_all: bool) -> tuple[Document, tuple[str, ...]]:
    """The fields that a reset sets, and those that it unsets."""
    values: Document = {
        "last_iteration": 0,
        "last_metrics": {},
        "metric_stats": {},
        REVISION: new_revision(),
        RESET: new_revision(),
        "models.output": [],
        "runtime": {},
    }
    if clear_all:
        return {**values, "execution": new_execution(), "script": {"requirements": {}}}, _RUN_FIELDS
    kept = [item for item in artifacts_of(task) if item.get("mode") == "input"]
    return {**values, "execution.artifacts": kept}, (*_RUN_FIELDS, "execution.queue")


def _check_unlocked(task: Document, *, force: bool) -> None:
    if task["status"] in LOCKED and not force:
        raise wrong_status(task, editable(force=True))


@asynccontextmanager
async def _emptying(call: Call, task_id: str, check: Callable[[Document], Awaitable[None]]) -> AsyncIterator[Document]:
    """Let nobody else change the task's status meanwhile: a run that starts or is published would lose its events.

    Gives the task as it is then, with BEING_RESET. If the server dies, that time passes. `check` may refuse the task.
    What takes long has to `_hold_on`.
    """
    for _ in range(ATTEMPTS):
        task = await get_task(call, task_id)
        await check(task)
        if await _hold(call, task, as_it_is(task)):
            break
    else:
        raise changed_meanwhile(task_id)
    try:
        yield task
    except BaseException:
        mine = {"id": task_id, BEING_RESET: task[BEING_RESET]}
        await documents(call).update(TASKS, mine, Update(unset=(BEING_RESET,)))
        raise


async def _hold(call: Call, task: Document, unchanged: Filter) -> bool:
    """Hold the task from now on, if it is `unchanged`; returns whether it is."""
    until = RESETTING.until()
    if not await documents(call).update(TASKS, unchanged, Update(set={BEING_RESET: until})):
        return False
    task[BEING_RESET] = until
    return True


async def _hold_on(call: Call, task: Document) -> None:
    """Hold a task longer that is being emptied.

    Raises Refusal(UNAVAILABLE) if the time has passed and another call has changed its status.
    """
    if not await _hold(call, task, {"id": task["id"], BEING_RESET: task[BEING_RESET]}):
        raise unavailable(f"task {task['id']} was changed while it was reset or deleted", retry_after=1)


@for_one("tasks.delete")
async def delete_task(call: Call, task_id: str, request: dict[str, Any]) -> dict[str, Any]:
    """Delete a task. Its children, and models that are kept, then name a deleted task (see `DELETED`).

    With `force`, the task is also deleted if another call resets or deletes it, such as one of a server that has died.
    """
    force = request["force"]

    async def check(task: Document) -> None:
        if not force:
            await _check_deletable(call, task)
            check_not_being_reset(task)

    async with in_turn(call, task_id, though_reset=force), _emptying(call, task_id, check) as task:
        for step in await steps_of(call, task_id, request):
            await delete_task(call, step, of_step(request))
            await _hold_on(call, task)
        outcome = await _clean(call, task, request)
        mark = Update(set={**changed_now(call), "parent": DELETED + task_id})
        children = await documents(call).update(TASKS, {"parent": task_id}, mark, many=True)
        models = await tell_of_deleted_task(call, task_id)
        await leave_queues(call, task_id)  # this late, because a deletion that fails leaves its status queued
        mine = {"id": task_id} if force else {"id": task_id, BEING_RESET: task[BEING_RESET]}
        if not await documents(call).delete(TASKS, mine) and await documents(call).count(TASKS, {"id": task_id}):
            raise unavailable(f"task {task_id} was changed while it was deleted", retry_after=1)
    models += await tell_of_deleted_task(call, task_id)  # those that were made meanwhile
    await touch_projects(call, task.get("project"))
    return {"deleted": True, "updated_children": children, "updated_models": models, **outcome}


async def _check_deletable(call: Call, task: Document) -> None:
    if task["status"] != "created" and "archived" not in task.get("system_tags", []):
        raise _not_deletable(task["id"], f"status={task['status']}")
    await _check_unpublished(call, task)


async def _check_unpublished(call: Call, task: Document) -> None:
    """Raises Refusal(TASK_NEEDED) if the task has published children or models."""
    task_id, made = task["id"], [item["model"] for item in models_of(task, "output")]
    if children := await documents(call).count(TASKS, {"parent": task_id, "status": "published"}):
        raise _not_deletable(task_id, f"published children={children}")
    published: Filter = AllOf([{"ready": True}, AnyOf([{"task": task_id}, {"id": In(made)}])])
    if models := await documents(call).count("models", published):
        raise _not_deletable(task_id, f"published models={models}")


def _not_deletable(task_id: str, reason: str) -> Refusal:
    return Refusal(Why.TASK_NEEDED, f"Task cannot be deleted or reset, use force: task={task_id}, {reason}")


async def _clean(call: Call, task: Document, request: dict[str, Any]) -> dict[str, Any]:
    """Delete a task's events, files and draft models as the request says; returns the answer's fields about that.

    Raises Refusal(UNAVAILABLE) before anything is deleted if the task is not held any more, as its events may be of a
    run that has started since, or if one of these models was published.
    """
    owner = Owner(call.identity.company, task["id"])
    models = await _removable_models(call, task) if request["delete_output_models"] else []
    owners = [owner, *(Owner(owner.company, model["id"], is_model=True) for model in models)]
    outcome: dict[str, Any] = {}
    shown = await event_urls(call, owners)
    artifacts = {a["uri"] for a in artifacts_of(task) if a.get("uri") and a["mode"] == "output"}
    weights = {model["uri"] for model in models if model.get("uri")}
    if request["return_file_urls"]:
        outcome["urls"] = {
            "event_urls": sorted(filter(is_in_object_store, shown)),
            "artifact_urls": sorted(artifacts),
            "model_urls": sorted(weights),
        }
    await _hold_on(call, task)
    if not request["force"]:  # again, as a model that was published just before is not among these
        await _check_unpublished(call, task)
    ids = [model["id"] for model in models]
    async with deleting_drafts(call, ids):
        if request["delete_external_artifacts"]:
            await delete_files(call, shown=shown, made=artifacts | weights, models=ids)
        deleted = await call.backend.delete_events(owners)
    return {"deleted_models": len(models), "events": {"deleted": deleted}, **outcome}


async def _removable_models(call: Call, task: Document) -> list[Document]:
    """The task's output models that are neither published nor the input of a task."""
    drafts = await documents(call).find(
        "models", {"task": task["id"], "ready": Unequal(True)}, projection=["id", "uri"]
    )
    used = {
        item["model"]
        for user in await documents(call).find(
            TASKS, {"models.input.model": In([model["id"] for model in drafts])}, projection=["models.input"]
        )
        for item in user["models"]["input"]
    }
    return [model for model in drafts if model["id"] not in used]
