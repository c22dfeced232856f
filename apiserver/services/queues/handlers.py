"""queues.*: queues of tasks that wait for a worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apiserver.common.errors import Refusal, Why, invalid_id, validation_error
from apiserver.services.backend import Call, documents, endpoint
from apiserver.services.documents.keys import unescape_keys
from apiserver.services.documents.many import batches
from apiserver.services.documents.metadata_items import metadata_of, metadata_removal, metadata_update
from apiserver.services.documents.stamps import changed_now
from apiserver.services.history.steps import Steps
from apiserver.services.lists.conditions import QuerySpec
from apiserver.services.lists.fields import Fields, fields_of
from apiserver.services.lists.queries import list_query
from apiserver.services.lists.references import expand
from apiserver.services.lists.scrolls import scroll_answer, scrolled_page
from apiserver.services.queues import entries as queue_entries
from apiserver.services.queues import history as queue_history
from apiserver.services.queues.queue_documents import (
    FIELDS,
    change_queue,
    checked_name,
    create_queue,
    default_queue,
    get_queue,
)
from apiserver.services.tasks.queueing import release_in_turn
from apiserver.services.tasks.queueing_turns import in_turn
from apiserver.services.workers.worker_documents import key_of, live_workers
from apiserver.stores.documents.query import Document, Filter, HasSize, In, NotIn, Update

SPEC = QuerySpec()
REFERENCES = {"entries.task": "tasks"}
#: The system tags that hide a queue from lists. Agents in a Kubernetes cluster make queues with the second one.
HIDDEN = ["hidden", "k8s-glue"]
#: By endpoint, where a task moves in its queue: from its position, the last position, and the request's `count`.
_NEW_POSITIONS: dict[str, Callable[[int, int, int], int]] = {
    "queues.move_task_forward": lambda position, last, count: position - count,
    "queues.move_task_backward": lambda position, last, count: position + count,
    "queues.move_task_to_front": lambda position, last, count: 0,
    "queues.move_task_to_back": lambda position, last, count: last,
}


@endpoint("queues.create", "1.0")
async def create(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    fields = _fields(request)
    return {"id": (await create_queue(call, fields.pop("name"), **fields))["id"]}


@endpoint("queues.update", "1.0")
async def update(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    fields = _fields(request)
    if "name" in fields:
        checked_name(fields["name"])
    await change_queue(call, request["queue"], Update(set=fields))
    return {"updated": 1, "fields": unescape_keys(fields)}


@endpoint("queues.delete", "1.0")
async def delete(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    while True:
        queue = await get_queue(call, request["queue"])
        if request["force"]:
            await _clear(call, queue)
        if deleted := await documents(call).delete("queues", {"id": queue["id"], "entries": HasSize(0)}):
            return {"deleted": deleted}
        if not request["force"]:
            raise Refusal(Why.QUEUE_HAS_TASKS, f"Queue has tasks in it, use force to delete it: id={queue['id']}")


@endpoint("queues.get_by_id", "1.0")
async def get_by_id(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return {"queue": _answer(await get_queue(call, request["queue"]), request.get("max_task_entries"))}


@endpoint("queues.get_all", "1.0")
async def get_all(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return await _find(call, request, fields_of(request))


@endpoint("queues.get_all_ex", "1.0")
async def get_all_ex(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    answer = await _find(call, request, fields_of(request, REFERENCES))
    queues = answer["queues"]
    await expand(documents(call), queues, REFERENCES)
    await _add_workers(call, queues)
    return answer


async def _add_workers(call: Call, queues: list[Document]) -> None:
    """Add to each queue the `workers` that listen to it."""
    listening = await live_workers(documents(call), {"queues": In([queue["id"] for queue in queues])})
    for queue in queues:
        queue["workers"] = [
            {"name": worker["name"], "ip": worker.get("ip"), "task": worker["task"], "key": key_of(worker)}
            for worker in listening
            if queue["id"] in worker["queues"]
        ]
    await expand(documents(call), queues, {"workers.task": "tasks"})


@endpoint("queues.get_default", "1.0")
async def get_default(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    queue = await default_queue(call)
    return {"id": queue["id"], "name": queue["name"]}


# --- entries -----------------------------------------------------------------------------------------


@endpoint("queues.add_task", "1.0")
async def add_task(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    queue, task = await get_queue(call, request["queue"]), request["task"]
    if await documents(call).find_one("tasks", {"id": task}, projection=("id",)) is None:
        raise invalid_id("task", task)
    async with in_turn(call, task):
        if not await queue_entries.append(call, queue["id"], task):
            raise Refusal(Why.TASK_QUEUED, f"Task is in the queue already: queue={queue['id']}, task={task}")
        if request["update_execution_queue"] and await _now_waits_in(call, queue["id"], task):
            await queue_entries.leave_queues(call, task, but=queue["id"])
    return {"added": 1}


@endpoint("queues.remove_task", "1.0")
async def remove_task(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    queue, task = await get_queue(call, request["queue"]), request["task"]
    async with in_turn(call, task):
        if not await queue_entries.remove(call, queue["id"], task):
            raise _not_queued(queue["id"], task)
        if request["update_task_status"]:
            await release_in_turn(call, task)
    return {"removed": 1}


@endpoint("queues.move_task_to_queue", "2.34")
async def move_task_to_queue(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    task, [source, target] = request["task"], [request[name] for name in ("queue", "target_queue")]
    for queue in (source, target):
        await get_queue(call, queue)
    if source == target:
        raise validation_error("must not be the queue that the task is in", field="target_queue")
    async with in_turn(call, task):
        # The task is added first, so that a call which stops halfway leaves it in two queues rather than in none.
        added = await queue_entries.append(call, target, task)
        if not await queue_entries.remove(call, source, task):
            if added:
                await queue_entries.remove(call, target, task)
            raise _not_queued(source, task)
        if request["update_execution_queue"]:
            await _now_waits_in(call, target, task)
    return {"moved": 1}


@endpoint("queues.get_by_task_id", "2.34")
async def get_by_task_id(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    wanted, fields = {"entries.task": request["task"]}, ["name", "display_name"]
    queue = await documents(call).find_one("queues", wanted, projection=fields, sort=[("id", 1)])
    if queue is None:
        raise _not_queued("any", request["task"])
    return {"id": queue["id"], "name": queue["name"], "display_name": queue.get("display_name")}


@endpoint("queues.clear_queue", "1.0")
async def clear_queue(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    queue = await get_queue(call, request["queue"])
    return {"removed_tasks": await _clear(call, queue)}


@endpoint("queues.get_num_entries", "1.0")
async def get_num_entries(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return {"num": len((await get_queue(call, request["queue"]))["entries"])}


@endpoint("queues.peek_task", "1.0")
async def peek_task(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    queue = await get_queue(call, request["queue"])
    return {"task": next(iter(queue_entries.tasks_of(queue)), None)}


@endpoint("queues.get_next_task", "1.0")
async def get_next_task(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    queue = await get_queue(call, request["queue"])
    while entry := await queue_entries.pop(call, queue["id"], task=request.get("task")):
        task = await documents(call).find_one("tasks", {"id": entry["task"]}, projection=("user", "company"))
        if task is not None:
            info = {"task_info": {"company": task.get("company"), "user": task.get("user")}}
            return {"entry": entry, **(info if request["get_task_info"] else {})}
    return {}


@endpoint("queues.move_task_forward", "1.0")
@endpoint("queues.move_task_backward", "1.0")
@endpoint("queues.move_task_to_front", "1.0")
@endpoint("queues.move_task_to_back", "1.0")
async def move_task(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    """Move a task in its queue to its new position, or as near to it as the queue allows."""
    queue, task = await get_queue(call, request["queue"]), request["task"]
    target = _NEW_POSITIONS[call.endpoint]

    def moved(entries: list[Document]) -> list[Document] | None:
        position = next((index for index, entry in enumerate(entries) if entry["task"] == task), None)
        if position is None:
            return None
        last = len(entries) - 1
        others = entries[:position] + entries[position + 1 :]
        others.insert(min(max(target(position, last, request.get("count", 1)), 0), last), entries[position])
        return others

    entries = await queue_entries.reorder(call, queue["id"], moved)
    if entries is None:
        raise _not_queued(queue["id"], task)
    return {"position": [entry["task"] for entry in entries].index(task)}


# --- history -----------------------------------------------------------------------------------------


@endpoint("queues.get_queue_metrics", "2.4")
async def get_queue_metrics(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    steps, ids = Steps.touched(request), request.get("queue_ids")
    chosen = {"id": In(ids)} if ids else _visible(request)
    queues = await documents(call).find("queues", chosen, projection=["entries"], sort=[("id", 1)])
    if request["refresh"]:
        for queue in queues:
            await queue_history.note(call, queue)
    make = queue_history.charts if ids else queue_history.chart_of_all
    return {"queues": await make(call, queues, steps)}


# --- metadata ----------------------------------------------------------------------------------------


@endpoint("queues.add_or_update_metadata", "1.0")
async def add_or_update_metadata(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    await change_queue(call, request["queue"], metadata_update(request["metadata"], request["replace_metadata"]))
    return {"updated": 1}


@endpoint("queues.delete_metadata", "1.0")
async def delete_metadata(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    await change_queue(call, request["queue"], metadata_removal(request["keys"]))
    return {"updated": 1}


# --- shared by the handlers --------------------------------------------------------------------------


def _fields(request: dict[str, Any]) -> Document:
    """The stored fields that a request to make or change a queue sets."""
    fields = {key: request[key] for key in FIELDS if key in request}
    return fields | ({"metadata": metadata_of(request["metadata"])} if "metadata" in request else {})


async def _find(call: Call, request: dict[str, Any], fields: Fields) -> dict[str, Any]:
    page = await scrolled_page(call, request)
    queues = await documents(call).search("queues", list_query(request, SPEC, fields, page, _visible(request)))
    fields.leave_out(queues)
    answers = [
        _answer(queue, request.get("max_task_entries"), counted=request["count_task_entries"]) for queue in queues
    ]
    return {"queues": answers, **scroll_answer(call, page, len(queues))}


def _visible(request: dict[str, Any]) -> Filter:
    """The condition that leaves hidden queues out; `{}` if the request has `id`, `name` or `search_hidden`."""
    named = any(request.get(field) for field in ("search_hidden", "id", "name"))
    return {} if named else {"system_tags": NotIn(HIDDEN)}


def _answer(queue: Document, max_entries: int | None, *, counted: bool = False) -> Document:
    answer: Document = unescape_keys(queue)
    if "entries" in answer:
        count = {"entries_count": len(answer["entries"])} if counted else {}
        answer |= {"entries": answer["entries"][:max_entries], **count}
    return answer


async def _clear(call: Call, queue: Document) -> list[str]:
    """Remove all tasks from a queue, and give them back the status that they had before. Returns their ids."""
    removed: list[str] = []
    for batch in batches(queue_entries.tasks_of(queue)):
        async with in_turn(call, *batch):
            taken = await queue_entries.remove_many(call, queue["id"], batch)
            await release_in_turn(call, *taken)
        removed += taken
    return removed


async def _now_waits_in(call: Call, queue: str, task: str) -> bool:
    """Set `execution.queue` of a task if it is queued; returns whether it is."""
    change = Update(set={**changed_now(call), "execution.queue": queue})
    return await documents(call).update("tasks", {"id": task, "status": "queued"}, change) > 0


def _not_queued(queue: str, task: str) -> Refusal:
    return Refusal(Why.TASK_NOT_QUEUED, f"Task is not in the queue: queue={queue}, task={task}")
