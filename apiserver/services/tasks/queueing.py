"""Putting tasks into queues and taking them out.

A task in status queued is in one queue, which `execution.queue` names. `enqueue_status` is its status before.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from apiserver.common.errors import Refusal, Why, invalid_id, validation_error
from apiserver.services.backend import Call, documents, endpoint
from apiserver.services.documents.many import batches, do_each, failure
from apiserver.services.queues import entries as queue_entries
from apiserver.services.queues.entries import leave_queues
from apiserver.services.queues.queue_documents import create_queue, default_queue
from apiserver.services.tasks.edit import check_references
from apiserver.services.tasks.holds import RESETTING
from apiserver.services.tasks.queueing_turns import in_turn
from apiserver.services.tasks.status import UNCHANGED, change_status, check_transition
from apiserver.services.tasks.task_documents import TASKS, get_task
from apiserver.services.workers.worker_documents import live_workers
from apiserver.stores.documents.query import AllOf, Document, Filter, In, NoneOf


@endpoint("tasks.enqueue", "1.0")
async def enqueue(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    queue = await wanted_queue(call, request)
    done = await enqueue_task(call, request["task"], queue, request)
    return {"queued": 1, **done, **await watched(call, queue, request)}


@endpoint("tasks.enqueue_many", "1.0")
async def enqueue_many(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    """Tasks are added in batches, because each change of a queue costs time in proportion to its length."""
    queue = await wanted_queue(call, request)

    async def act(task_id: str) -> dict[str, Any]:
        return {"queued": True, **await _begin_to_wait(call, task_id, queue, request)}

    succeeded: list[dict[str, Any]] = []
    failed: list[dict[str, Any]] = []
    for batch in batches(request["ids"]):
        async with in_turn(call, *batch):
            done = await do_each(call, "task", batch, act)
            begun = [item["id"] for item in done["succeeded"]]
            added = await queue_entries.append_many(call, queue, begun)
            await leave_queues(call, *begun, but=queue)
        succeeded += (item for item in done["succeeded"] if item["id"] in added)
        failed += done["failed"]
        failed += (failure(task_id, _is_there(queue, task_id)) for task_id in begun if task_id not in added)
    return {"succeeded": succeeded, "failed": failed, **await watched(call, queue, request)}


@endpoint("tasks.dequeue", "1.0")
async def dequeue(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    async with in_turn(call, request["task"]):
        return {"dequeued": 1, **await _dequeue_in_turn(call, request["task"], request)}


@endpoint("tasks.dequeue_many", "1.0")
async def dequeue_many(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    async def act(task_id: str) -> dict[str, Any]:
        return {"dequeued": True, **await _dequeue_in_turn(call, task_id, request)}

    succeeded: list[dict[str, Any]] = []
    failed: list[dict[str, Any]] = []
    for batch in batches(request["ids"]):
        async with in_turn(call, *batch):
            done = await do_each(call, "task", batch, act, first=lambda ids: leave_queues(call, *ids))
        succeeded += done["succeeded"]
        failed += done["failed"]
    return {"succeeded": succeeded, "failed": failed}


async def release(call: Call, *task_ids: str, though_reset: bool = False) -> int:
    """As `release_in_turn`, when it is this call's turn."""
    async with in_turn(call, *task_ids, though_reset=though_reset):
        return await release_in_turn(call, *task_ids)


async def release_in_turn(call: Call, *task_ids: str) -> int:
    """Remove tasks from their queues; those that were queued get back their status before. Returns how many queues.

    Tasks that another call resets or deletes stay as they are, because their status must not change.
    """
    wanted: Filter = AllOf([{"id": In(list(task_ids))}, NoneOf([RESETTING.condition()])])
    tasks = await documents(call).find(TASKS, wanted, projection=["id", "status", "enqueue_status"])
    left = await leave_queues(call, *(task["id"] for task in tasks))
    for task in tasks:
        await _back(call, task, {}, ("queued",))
    return left


async def wanted_queue(call: Call, request: dict[str, Any]) -> str:
    """The id of the queue that `queue` or `queue_name` of a request name, else of the default queue.

    A queue with an unknown `queue_name` is made. Raises Refusal(NO_QUEUE) if there is no queue with the id `queue`.
    """
    queue_id, name = request.get("queue"), request.get("queue_name")
    if queue_id and name:
        raise validation_error("give the queue's id or its name, not both", field="queue_name")
    if queue_id:
        if await documents(call).find_one("queues", {"id": queue_id}, projection=["id"]) is None:
            raise invalid_id("queue", queue_id)
        return str(queue_id)
    if not name:
        return str((await default_queue(call))["id"])
    known = await documents(call).find_one("queues", {"name": name}, projection=["id"])
    return str((known or await create_queue(call, name))["id"])


async def enqueue_task(call: Call, task_id: str, queue: str, request: dict[str, Any]) -> Document:
    """Put a task into a queue. Its status is set before the entry is added, so an agent always finds a queued task."""
    async with in_turn(call, task_id):
        done = await _begin_to_wait(call, task_id, queue, request)
        if not await queue_entries.append(call, queue, task_id):
            raise _is_there(queue, task_id)
        await leave_queues(call, task_id, but=queue)
    return done


async def _begin_to_wait(call: Call, task_id: str, queue: str, request: dict[str, Any]) -> Document:
    """Set a task's status to queued."""
    task = await get_task(call, task_id, ["status", "enqueue_status", "execution.queue", "project", "parent"])
    check_transition(task, "queued", force=request.get("force", False))
    if request.get("validate_tasks"):
        await check_references(call, task)
    named = queue if request.get("update_execution_queue", True) else _queue_of(task)
    before = task.get("enqueue_status", "created") if task["status"] == "queued" else task["status"]
    values = {"enqueue_status": before, "execution.queue": named}
    return await change_status(call, task_id, "queued", request, values=values)


def _is_there(queue: str, task_id: str) -> Refusal:
    return Refusal(Why.TASK_QUEUED, f"Task is in the queue already: queue={queue}, task={task_id}")


def _queue_of(task: Document) -> str:
    """The queue that a queued task has in `execution.queue`. Raises Refusal(INVALID) if it is not queued."""
    queue = task.get("execution", {}).get("queue")
    if task["status"] != "queued" or not queue:
        raise validation_error(
            "false is allowed only for a task that is in a queue already", field="update_execution_queue"
        )
    return str(queue)


async def watched(call: Call, queue: str, request: dict[str, Any]) -> dict[str, Any]:
    """If the request asks for it: `{queue_watched}`, whether workers take tasks from the queue."""
    if not request.get("verify_watched_queue"):
        return {}
    return {"queue_watched": bool(await live_workers(documents(call), {"queues": queue}))}


async def _dequeue_in_turn(call: Call, task_id: str, request: dict[str, Any]) -> Document:
    task = await get_task(call, task_id, ["status", "enqueue_status", "execution.queue"])
    await leave_queues(call, task_id)
    # An agent also dequeues a task that its daemon has taken and started already.
    return await _back(call, task, request, ("queued", "in_progress"))


async def _back(call: Call, task: Document, request: dict[str, Any], statuses: Collection[str]) -> Document:
    """Give a task the status that it had before it was queued, or `new_status`, as long as it is in one of `statuses`.

    Another status that it gets meanwhile stays: the task may just have been published.
    """
    forced = {**request, "force": True}
    while task["status"] in statuses:
        status = request.get("new_status") or task.get("enqueue_status", "created")
        unset = ("enqueue_status", "execution.queue") if task["status"] == "queued" else ("enqueue_status",)
        done = await change_status(call, task["id"], status, forced, unset=unset, only_from=(task["status"],))
        if done["updated"]:
            return done
        task = await get_task(call, task["id"], ["status", "enqueue_status"])
    return UNCHANGED
