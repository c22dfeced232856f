"""Listing and counting workers, with what they do."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from apiserver.services.backend import Call, documents, endpoint
from apiserver.services.lists.references import expand
from apiserver.services.queues.entries import tasks_of
from apiserver.services.workers.worker_documents import (
    BUSY,
    PRESENT,
    WORKERS,
    key_of,
    live,
    live_workers,
    workers_filter,
)
from apiserver.stores.documents.query import Document, In, all_of
from apiserver.stores.documents.scoped import CompanyDocuments

REFERENCES = {
    "company": "companies",
    "user": "users",
    "project": "projects",
    "queue": "queues",
    "task": "tasks",
    "queues.next_task": "tasks",
}
EXPANDED_FIELDS = (
    "company.name",
    "user.name",
    "project.name",
    "queue.name",
    "task.name",
    "task.started",
    "task.last_iteration",
    "queues.next_task.name",
)


@endpoint("workers.get_all", "1.0")
async def get_all(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    found = await live_workers(documents(call), workers_filter(request))
    workers = [_answer(worker) for worker in found]
    await _describe_queues(documents(call), workers)
    await expand(documents(call), workers, REFERENCES, EXPANDED_FIELDS)
    for worker in workers:
        if worker["task"] and "started" in worker["task"]:
            worker["task"]["running_time"] = _milliseconds_since(worker["task"].pop("started"))
    return {"workers": workers}


@endpoint("workers.get_count", "1.0")
async def get_count(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return {"count": await documents(call).count(WORKERS, all_of([live(), workers_filter(request)]))}


def _answer(worker: Document) -> Document:
    hidden = ("name", "expires", "timeout", PRESENT, BUSY)
    shown = {key: value for key, value in worker.items() if key not in hidden}
    return {**shown, "id": worker["name"], "key": key_of(worker)}


def _milliseconds_since(started: str | None) -> int | None:
    if started is None:
        return None
    return max(0, int((datetime.now(UTC) - datetime.fromisoformat(started)).total_seconds() * 1000))


async def _describe_queues(documents: CompanyDocuments, workers: list[Document]) -> None:
    """Replace the queue ids in each worker by the queues' names, number of tasks and next task."""
    ids = sorted({id for worker in workers for id in worker["queues"]})
    fields = ("name", "display_name", "entries")
    found = await documents.find("queues", {"id": In(ids)}, projection=fields) if ids else []
    queues = {queue["id"]: _describe(queue) for queue in found}
    for worker in workers:
        worker["queues"] = [dict(queues.get(id, {"id": id})) for id in worker["queues"]]


def _describe(queue: Document) -> Document:
    tasks = tasks_of(queue)
    names = {field: queue[field] for field in ("id", "name", "display_name")}
    return {**names, "num_tasks": len(tasks), "next_task": tasks[0] if tasks else None}
