"""The calls of workers: they register, report, and unregister."""

from __future__ import annotations

from typing import Any

from apiserver.common.errors import Refusal, Why, invalid_id
from apiserver.common.times import from_now, utc_now
from apiserver.services.backend import Call, documents, endpoint
from apiserver.services.history.spans import Span, joined
from apiserver.services.history.store import plausible
from apiserver.services.workers.machine_stats import values_of
from apiserver.services.workers.worker_documents import BUSY, PRESENT, WORKERS, forget, id_of, note_spans, subject_of
from apiserver.stores.documents.query import AtMost, Document, In, Update

DEFAULT_TIMEOUT = 600


@endpoint("workers.register", "1.0")
async def register(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    queues = request.get("queues", [])
    known = set(await documents(call).distinct("queues", "id", {"id": In(queues)})) if queues else set()
    if unknown := [queue for queue in queues if queue not in known]:
        raise invalid_id("queue", *unknown)
    await forget(call, {"expires": AtMost(utc_now())})
    if queues and (resources := request.get("resources")):
        await documents(call).update("queues", {"id": In(queues)}, Update(set={"resources": resources}), many=True)
    tags = {key: request.get(key, []) for key in ("tags", "system_tags")}
    fields = {"register_time": utc_now(), "timeout": request["timeout"], "queues": queues}
    await _seen(call, request["worker"], fields | tags, await _known(call, request["worker"]))
    return {}


@endpoint("workers.unregister", "1.0")
async def unregister(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    if not await forget(call, {"name": request["worker"]}):
        raise Refusal(Why.NO_WORKER, f"worker is not registered: worker={request['worker'][:200]}")
    return {}


@endpoint("workers.status_report", "1.0")
async def status_report(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    worker, now, task_id = request["worker"], utc_now(), request.get("task")
    at = plausible(request["timestamp"])
    task = await documents(call).find_one("tasks", {"id": task_id}, projection=("project",)) if task_id else None
    fields: Document = {
        "last_report_time": now,
        "task": task_id,
        "project": task.get("project") if task else None,
        "queue": request.get("queue"),
        **{key: request[key] for key in ("queues", "tags", "system_tags", "machine_stats") if key in request},
    }
    known = await _known(call, worker)
    spans, ended = _spans(known, at, busy=bool(task_id))
    await _seen(call, worker, fields | spans, known)
    await note_spans(call, worker, ended)
    await call.backend.history.record(subject_of(call, worker), at, values_of(request.get("machine_stats") or {}))
    if task:
        report = {"last_worker": worker, "last_worker_report": now, "last_update": now}
        await documents(call).update("tasks", {"id": task["id"]}, Update(set=report))
    return {}


def _spans(worker: Document, at: int, *, busy: bool) -> tuple[Document, dict[str, Span]]:
    """By kind of span: the current span (or None) after a report at this time, and the spans that ended."""
    current: Document = {}
    ended: dict[str, Span] = {}
    for kind, goes_on in ((PRESENT, True), (BUSY, busy)):
        before = worker.get(kind)
        current[kind], over = joined(before, at) if goes_on else (None, before)
        if over:
            ended[kind] = over
    return current, ended


async def _known(call: Call, worker: str) -> Document:
    """The timeout and the spans of a worker; {} if there is no such worker."""
    found = await documents(call).find_one(WORKERS, {"id": id_of(call, worker)}, projection=("timeout", PRESENT, BUSY))
    return found or {}


async def _seen(call: Call, worker: str, fields: Document, document: Document) -> None:
    """Store that the worker called now, and the fields it sent. An unknown worker is added."""
    now = utc_now()
    id = id_of(call, worker)
    timeout = fields.get("timeout") or document.get("timeout") or DEFAULT_TIMEOUT
    said = {**fields, "ip": call.client, "last_activity_time": now, "expires": from_now(timeout)}
    await documents(call).update(WORKERS, {"id": id}, Update(set=said), upsert=_new_worker(call, id, worker, now))


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
