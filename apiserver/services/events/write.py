"""events.add, add_batch and the deletes. Events are checked against tasks and models, stored, then acknowledged."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from apiserver.common.errors import Refusal, Why, validation_error
from apiserver.common.times import from_now, now_ms, utc_now
from apiserver.events import ingest
from apiserver.events.ingest import Ingest
from apiserver.events.last_metrics import touched_by
from apiserver.events.lines import Stop, Stopped, always, memory_of, parse_json
from apiserver.events.model import EventBatch, Owner
from apiserver.events.rejects import Contradiction, Reject, Rejects
from apiserver.services.backend import Call, documents, endpoint
from apiserver.services.events import owners
from apiserver.services.events.last_metrics import RESET, new_revision
from apiserver.services.tasks.import_times import EVENTS_DELETED, IMPORTED
from apiserver.stores.documents.query import Document, Update

#: Bodies of more bytes are read in a thread, so that other calls do not wait for them.
LONG_BODY = 256 * 1024
#: Seconds after which it is noted anew that events come to an imported task.
_NOTED_SECONDS = 3600


@endpoint("events.add", "2.1", raw=True)
async def add(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    def read(stop: Stop, **context: Any) -> Ingest:
        return ingest.ingest_object(_object(call.body, request), body=call.body, **context)

    return await _taken(call, read)


@endpoint("events.add_batch", "2.1", raw=True)
async def add_batch(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    if not call.body.strip():
        raise Refusal(Why.NOTHING_SENT, "Batch request contains no items")
    return await _taken(call, partial(ingest.ingest_lines, call.body))


@endpoint("events.delete_for_task", "2.1")
async def delete_for_task(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return await _delete(call, request["task"], model=False, allow_locked=request["allow_locked"])


@endpoint("events.delete_for_model", "2.20")
async def delete_for_model(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return await _delete(call, request["model"], model=True, allow_locked=request["allow_locked"])


async def _read(call: Call, read: Callable[..., Ingest]) -> Ingest:
    """The events in the body. A body that takes long is read in a thread, which stops if the client has gone."""
    read = partial(read, company=call.identity.company, received=now_ms(), worker=call.worker)
    try:
        if len(call.body) <= LONG_BODY:
            try:
                return read(stop=always)  # raises Stopped where it would take long
            except Stopped:
                pass
        given_up = threading.Event()
        try:
            return await call.work(partial(read, stop=given_up.is_set), memory_of(call.body))
        finally:
            given_up.set()
    except Contradiction as contradiction:
        raise validation_error(str(contradiction)) from None


async def _taken(call: Call, read: Callable[..., Ingest]) -> dict[str, Any]:
    """The answer to a request with events."""
    events = await _read(call, read)
    added = await store(call, events)
    rejects = events.rejects
    if not added:
        raise _nothing_added(rejects)
    answer = {"added": added, "errors": rejects.total, "errors_info": dict(rejects.reasons)}
    return answer | {"errors_lines": rejects.lines} if rejects.lines else answer


async def store(call: Call, events: Ingest) -> int:
    """Store the events of the body, and return how many were stored. `events.rejects` has the others then.

    Refuses events of unknown or published owners, and of series beyond the limit of their owner or a quota.
    Raises Refusal(OVERLOADED) if the whole batch is over a quota.
    """
    documents = await _documents_of(call, events)
    if refusals := _refusals(events, documents):
        refuse = partial(events.refuse, refusals)
        if len(call.body) > LONG_BODY:
            await call.work(refuse)
        else:
            refuse()
    quotas = call.backend.quotas
    if events.batch and quotas is not None and not quotas.count_at_once(events.batch, documents):
        await quotas.admit(events, documents)
    if not events.batch:
        return 0
    crowded = call.backend.series_limit.spend(events.batch)
    if not crowded:
        return await _add(call, events, documents)
    async with call.backend.series_limit.counted(events, crowded):
        return await _add(call, events, documents) if events.batch else 0


async def _add(call: Call, events: Ingest, known: Mapping[Owner, Document | None]) -> int:
    resets = {owner: document.get(RESET) for owner, document in known.items() if document is not None}
    batch = events.batch
    await _note_imported(call, batch, known)
    with call.backend.last_metrics.adding(batch, resets):
        refused = await call.backend.events.add(batch)
    lines = sum([len(some.messages) for some in batch.logs])
    call.backend.counters.batch(len(call.body), len(batch.scalars.iters), lines, len(batch.samples))
    for reason, count in refused.items():
        events.rejects.add(Reject(reason, malformed=False), count)
    return events.accepted - sum(refused.values())


async def _note_imported(call: Call, batch: EventBatch, known: Mapping[Owner, Document | None]) -> None:
    """Note that events come to imported tasks: before they are stored, so that retention leaves these tasks alone."""
    noted = from_now(-_NOTED_SECONDS)
    due = [owner for owner, document in known.items() if document and document.get(IMPORTED, noted) < noted]
    for owner in touched_by(batch).keys() & due if due else ():
        await documents(call).update("tasks", {"id": owner.id}, Update(max={IMPORTED: utc_now()}))


async def _documents_of(call: Call, events: Ingest) -> dict[Owner, Document | None]:
    """The documents of the events' owners; None for an owner without one."""
    documents: dict[Owner, Document | None] = {}
    for model in (False, True):
        asked = [owner for owner in events.locked_allowed if owner.is_model == model]
        ids = [owner.id for owner in asked]
        known = await owners.find(call, ids, model=model, to_change=True) if ids else {}
        documents |= {owner: known.get(owner.id) for owner in asked}
    return documents


def _refusals(events: Ingest, documents: Mapping[Owner, Document | None]) -> dict[Owner, str]:
    """By owner, why its events cannot be taken: it is unknown, or published and the event lacks `allow_locked`."""
    return {
        owner: f"Invalid {'model' if owner.is_model else 'task'} id {owner.id}"
        for owner, document in documents.items()
        if document is None or (owners.is_locked(document) and not events.locked_allowed[owner])
    }


def _nothing_added(rejects: Rejects) -> Refusal:
    if not rejects.total:
        return Refusal(Why.NOTHING_SENT, "Batch request contains no items")
    if rejects.refused:
        return Refusal(Why.EVENTS_REFUSED, f"Events not added: {rejects}")
    data: dict[str, Any] = {"field": rejects.field} if rejects.field else {}
    if rejects.lines:
        data["lines"] = rejects.lines
    return Refusal(Why.INVALID, f"Validation error ({rejects})", data=data)


def _object(body: bytes, request: dict[str, Any]) -> dict[str, Any]:
    if not body.strip():
        return request
    try:
        event = parse_json(body)
    except Reject as reject:
        raise Refusal(Why.NOT_JSON, f"The body is not valid JSON ({reject.reason})") from None
    if not isinstance(event, dict):
        raise validation_error("the body must be a JSON object")
    return {**request, **event}


async def _delete(call: Call, id: str, *, model: bool, allow_locked: bool) -> dict[str, Any]:
    document = (await owners.require(call, [id], model=model, to_change=True))[id]
    if owners.is_locked(document) and not allow_locked:
        kind = "model" if model else "task"
        message = f"Cannot delete the events of a published {kind} without allow_locked: id={id}"
        raise Refusal(Why.MODEL_LOCKED if model else Why.TASK_LOCKED, message)
    owner = owners.owner(document, model=model)
    await call.backend.last_metrics.settle(owner.company, models=model, ids=[id])
    # What other servers still have to tell of these events is made from what is stored then, also if this server dies.
    marks = {RESET: new_revision(), **({EVENTS_DELETED: utc_now()} if IMPORTED in document else {})}
    await documents(call).update("models" if model else "tasks", {"id": id}, Update(set=marks))
    return {"deleted": await call.backend.delete_events([owner])}
