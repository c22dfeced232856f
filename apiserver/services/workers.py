"""workers.*: the agents that run tasks, as they register and report.

A worker is forgotten when it does not call for its timeout. Its document is named by the company and the worker's own
id, which is unique in the company only; `name` is that id.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from apiserver.rpc.errors import invalid_id
from apiserver.services.backend import Call, documents, endpoint
from apiserver.services.names import escape
from apiserver.services.queries import QuerySpec, all_of, build_filter
from apiserver.services.queue_entries import tasks_of
from apiserver.services.references import expand
from apiserver.stores.documents.base import Document, Filter
from apiserver.stores.documents.scoped import CompanyDocuments
from apiserver.times import utc_now

SPEC = QuerySpec(patterns=(), lists=("tags", "system_tags"), times=())
DEFAULT_TIMEOUT = 600
REFERENCES = {
    "company": "companies",
    "user": "users",
    "project": "projects",
    "queue": "queues",
    "task": "tasks",
    "queues.next_task": "tasks",
}
SHOWN = (
    "company.name",
    "user.name",
    "project.name",
    "queue.name",
    "task.name",
    "task.started",
    "task.last_iteration",
    "queues.next_task.name",
)


# --- what workers call -------------------------------------------------------------------------------


@endpoint("workers.register", "1.0")
async def register(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    queues = request.get("queues", [])
    known = await documents(call).distinct("queues", "id", {"id": {"$in": queues}})
    if unknown := [queue for queue in queues if queue not in known]:
        raise invalid_id("queue", *unknown)
    await documents(call).delete("workers", {"expires": {"$lte": utc_now()}})
    tags = {key: request.get(key, []) for key in ("tags", "system_tags")}
    fields = {"register_time": utc_now(), "timeout": request["timeout"], "queues": queues}
    await _seen(call, request["worker"], fields | tags)
    return {}


@endpoint("workers.unregister", "1.0")
async def unregister(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    if not await documents(call).delete("workers", {"name": request["worker"]}):
        raise invalid_id("worker", request["worker"])
    return {}


@endpoint("workers.status_report", "1.0")
async def status_report(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    now, task_id = utc_now(), request.get("task")
    task = await documents(call).find_one("tasks", {"id": task_id}, projection=("project",)) if task_id else None
    fields: Document = {
        "last_report_time": now,
        "task": task_id,
        "project": task.get("project") if task else None,
        "queue": request.get("queue"),
        **{key: request[key] for key in ("queues", "tags", "system_tags", "machine_stats") if key in request},
    }
    await _seen(call, request["worker"], fields)
    if task:
        report = {"last_worker": request["worker"], "last_worker_report": now, "last_update": now}
        await documents(call).update("tasks", {"id": task["id"]}, {"$set": report})
    return {}


async def _seen(call: Call, worker: str, fields: Document) -> None:
    """Note that the worker called just now, and what it said; one that is not known becomes known."""
    now = datetime.now(UTC)
    id = f"{call.identity.company}/{worker}"
    known = await documents(call).find_one("workers", {"id": id}, projection=("timeout",)) or {}
    timeout = fields.get("timeout") or known.get("timeout") or DEFAULT_TIMEOUT
    said = {
        **fields,
        "ip": call.client,
        "last_activity_time": _text(now),
        "expires": _text(now + timedelta(seconds=timeout)),
    }
    await documents(call).update(
        "workers", {"id": id}, {"$set": said}, upsert=_new_worker(call, id, worker, _text(now))
    )


def _new_worker(call: Call, id: str, worker: str, now: str) -> Document:
    return {
        "id": id,
        "name": worker,
        "user": call.identity.user,
        "ip": call.client,
        "register_time": now,
        "last_activity_time": now,
        "last_report_time": None,
        "timeout": DEFAULT_TIMEOUT,
        "queues": [],
        "queue": None,
        "task": None,
        "project": None,
        "tags": [],
        "system_tags": [],
        "machine_stats": None,
    }


def _text(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds")


# --- what others ask ---------------------------------------------------------------------------------


@endpoint("workers.get_all", "1.0")
async def get_all(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    found = await live_workers(documents(call), _filter(request))
    workers = [_answer(worker) for worker in found]
    await _describe_queues(documents(call), workers)
    await expand(documents(call), workers, REFERENCES, SHOWN)
    for worker in workers:
        if worker["task"] and "started" in worker["task"]:
            worker["task"]["running_time"] = _milliseconds_since(worker["task"].pop("started"))
    return {"workers": workers}


@endpoint("workers.get_count", "1.0")
async def get_count(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return {"count": await documents(call).count("workers", all_of([_live(), _filter(request)]))}


def key_of(worker: Document) -> str:
    """What clients tell workers apart by, whichever company they are of."""
    return f"worker_{worker['company']}_{worker['user']}_{worker['name']}"


async def live_workers(documents: CompanyDocuments, filter: Filter) -> list[Document]:
    """The matching workers that have not timed out, by id."""
    return await documents.find("workers", all_of([_live(), filter]), sort=[("name", 1)])


def _live() -> Filter:
    return {"expires": {"$gt": utc_now()}}


def _filter(request: dict[str, Any]) -> Filter:
    conditions = [build_filter(request, SPEC)]
    if seconds := request["last_seen"]:
        conditions.append({"last_activity_time": {"$gte": _ago(seconds)}})
    if pattern := request.get("worker_pattern"):
        parts = (re.escape(part) for part in pattern.split("*"))
        conditions.append({"name": {"$regex": f"^{'.*'.join(parts)}$"}})
    return all_of(conditions)


def _ago(seconds: int) -> str:
    """The time so many seconds ago; the beginning of time when there were not so many."""
    now = datetime.now(UTC)
    return _text(now - timedelta(seconds=min(seconds, int(now.timestamp()))))


def _answer(worker: Document) -> Document:
    hidden = ("name", "expires", "timeout")
    shown = {key: value for key, value in worker.items() if key not in hidden}
    return {**shown, "id": worker["name"], "key": key_of(worker)}


def _milliseconds_since(started: str | None) -> int | None:
    if started is None:
        return None
    return max(0, int((datetime.now(UTC) - datetime.fromisoformat(started)).total_seconds() * 1000))


async def _describe_queues(documents: CompanyDocuments, workers: list[Document]) -> None:
    """Put what waits in them in the place of the ids of the queues that each worker listens to."""
    ids = sorted({id for worker in workers for id in worker["queues"]})
    fields = ("name", "display_name", "entries")
    found = await documents.find("queues", {"id": {"$in": ids}}, projection=fields) if ids else []
    queues = {queue["id"]: _describe(queue) for queue in found}
    for worker in workers:
        worker["queues"] = [dict(queues.get(id, {"id": id})) for id in worker["queues"]]


def _describe(queue: Document) -> Document:
    tasks = tasks_of(queue)
    names = {field: queue[field] for field in ("id", "name", "display_name")}
    return {**names, "num_tasks": len(tasks), "next_task": tasks[0] if tasks else None}


# --- runtime properties ------------------------------------------------------------------------------


@endpoint("workers.get_runtime_properties", "1.0")
async def get_runtime_properties(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    properties = await _properties(call, request["worker"])
    return {"runtime_properties": [{"key": item["key"], "value": item["value"]} for item in properties.values()]}


@endpoint("workers.set_runtime_properties", "1.0")
async def set_runtime_properties(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    worker, given = request["worker"], request["runtime_properties"]
    before = await _properties(call, worker)
    changes = {f"properties.{escape(item['key'])}": _property(item) for item in given}
    new = {"id": f"{call.identity.company}/{worker}", "name": worker, "properties": {}}
    await documents(call).update("worker_properties", {"id": new["id"]}, {"$set": changes}, upsert=new)
    keys = list(dict.fromkeys(item["key"] for item in given))
    return {
        "added": [key for key in keys if escape(key) not in before],
        "updated": [key for key in keys if escape(key) in before],
        "errors": [],
    }


async def _properties(call: Call, worker: str) -> dict[str, Document]:
    """The properties of a worker that have not expired, by escaped key."""
    found = await documents(call).find_one("worker_properties", {"name": worker})
    now = utc_now()
    stored = found["properties"] if found else {}
    return {key: item for key, item in stored.items() if item["expires"] is None or item["expires"] > now}


def _property(item: dict[str, Any]) -> Document:
    seconds = item.get("expiry")
    expires = None if seconds is None else _text(datetime.now(UTC) + timedelta(seconds=seconds))
    return {"key": item["key"], "value": item.get("value", ""), "expires": expires}
