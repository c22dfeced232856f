"""The life of a task: started, stopped, completed, published, archived."""

from __future__ import annotations

from functools import partial
from typing import Any

from apiserver.common.times import utc_now
from apiserver.events.model import Owner
from apiserver.services.backend import Call, documents, endpoint
from apiserver.services.documents.many import do_each, for_each, for_one
from apiserver.services.documents.public import denied
from apiserver.services.documents.stamps import changed_now
from apiserver.services.events import owners
from apiserver.services.models.deletions import DELETING
from apiserver.services.queues.entries import leave_queues
from apiserver.services.tasks.pipeline_steps import do_to_steps_too
from apiserver.services.tasks.queueing import release
from apiserver.services.tasks.queueing_turns import in_turn
from apiserver.services.tasks.status import change_status
from apiserver.services.tasks.stopping import FIELDS, STOPPING, needs_telling
from apiserver.services.tasks.task_documents import TASKS, change_task, get_task
from apiserver.stores.documents.query import AllOf, Document, Filter, NoneOf, Unequal, Update


@endpoint("tasks.started", "1.0")
async def started(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    """A run begins. If the task is running already, its start stays the first one."""
    task, now = await get_task(call, request["task"], ["status", "started"]), utc_now()
    if task["status"] == "in_progress" and task.get("started"):
        done = await change_status(call, task["id"], "in_progress", request, earliest={"started": now})
    else:
        begun = {"started": now, "active_duration": 0}
        done = await change_status(call, task["id"], "in_progress", request, values=begun, unset=("completed",))
    return {"started": 1, **done}


@endpoint("tasks.ping", "1.0")
async def ping(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    """A run goes on. Its document says so a moment later, because thousands of runs say it all the time."""
    if not await owners.find(call, [request["task"]], model=False, to_change=True):
        raise await denied(call, TASKS, request["task"])
    call.backend.last_metrics.heard_of(Owner(call.identity.company, request["task"]))
    return {}


@endpoint("tasks.completed", "2.2")
async def completed(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    done = await change_status(call, request["task"], "completed", request, values={"completed": utc_now()})
    if not request["publish"]:
        return {**done, "published": 0}
    published = await publish_task(call, request["task"], request)
    return {"updated": 1, "published": 1, "fields": done["fields"] | published["fields"]}


@endpoint("tasks.stopped", "1.0")
@endpoint("tasks.failed", "1.0")
async def ended(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    status = call.endpoint.removeprefix("tasks.")
    return await change_status(call, request["task"], status, request, values={"completed": utc_now()})


@endpoint("tasks.close", "1.0")
async def close(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return await change_status(call, request["task"], "closed", request)


@endpoint("tasks.archive", "1.0")
async def archive(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    for task_id in request["tasks"]:
        await get_task(call, task_id, ["id"])
    for task_id in request["tasks"]:
        await do_to_steps_too(call, task_id, request, _archive)
    return {"archived": len(request["tasks"])}


@endpoint("tasks.archive_many", "1.0")
async def archive_many(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return await do_each(
        call,
        "task",
        request["ids"],
        lambda task_id: do_to_steps_too(call, task_id, request, _archive),
        first=lambda ids: release(call, *ids),
    )


@for_each("tasks.unarchive_many")
async def unarchive(call: Call, task_id: str, request: dict[str, Any]) -> dict[str, Any]:
    return await do_to_steps_too(call, task_id, request, _unarchive)


@for_one("tasks.stop")
@for_each("tasks.stop_many")
async def stop(call: Call, task_id: str, request: dict[str, Any]) -> dict[str, Any]:
    act = partial(_stop, at_once=request["force"])  # steps always have `force`
    # Pipeline steps that have ended keep their status.
    return await do_to_steps_too(call, task_id, request, act, statuses=("queued", "in_progress"))


async def _stop(call: Call, task_id: str, request: dict[str, Any], *, at_once: bool) -> Document:
    """Stop a task. If it stops itself, only the status message says so, and it reports when it has (`stopping.py`)."""
    if needs_telling(await get_task(call, task_id, FIELDS), at_once=at_once):
        told = {**request, "status_message": STOPPING}
        return await change_status(call, task_id, "in_progress", told)
    by = {"status_message": f"Stopped by {call.identity.user_name or call.identity.user}"} | request
    ended = {"completed": utc_now()}
    async with in_turn(call, task_id):
        await leave_queues(call, task_id)
        return await change_status(call, task_id, "stopped", by, values=ended, unset=("enqueue_status",))


@for_one("tasks.publish")
@for_each("tasks.publish_many")
async def publish_task(call: Call, task_id: str, request: dict[str, Any]) -> Document:
    """Publish a task and, unless `publish_model` is false, its last output model."""
    task = await get_task(call, task_id, ["models"])
    now = {"published": utc_now()}
    done = await change_status(call, task_id, "published", request, values=now, may_stay=False)
    output = task.get("models", {}).get("output")
    if output and request.get("publish_model", True):
        ready = Update(set={**changed_now(call), "ready": True})
        draft: Filter = {"id": output[-1]["model"], "ready": Unequal(True)}
        await documents(call).update("models", AllOf([draft, NoneOf([DELETING.condition()])]), ready)
    return done


async def _archive(call: Call, task_id: str, request: dict[str, Any]) -> dict[str, Any]:
    await release(call, task_id)
    if (await get_task(call, task_id, ["status"]))["status"] == "in_progress":
        await change_status(call, task_id, "stopped", {**request, "force": True}, values={"completed": utc_now()})
    marked = Update(add={"system_tags": ["archived"]}, set=_status_texts(request))
    await change_task(call, task_id, marked)
    return {"archived": True}


async def _unarchive(call: Call, task_id: str, request: dict[str, Any]) -> dict[str, Any]:
    await change_task(call, task_id, Update(pull={"system_tags": "archived"}, set=_status_texts(request)))
    return {"unarchived": True}


def _status_texts(request: dict[str, Any]) -> Document:
    return {name: request.get(name, "") for name in ("status_reason", "status_message")}
