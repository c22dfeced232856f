"""Documents of workers.

A worker that does not call for its timeout is gone. Worker ids are unique within a company only, so a document's id has
the company in front, and `name` is the worker's id. `present` and `busy` are the current spans (`history/spans.py`);
spans that ended are in the worker's history.
"""

from __future__ import annotations

import re
import time
from typing import Any

from apiserver.common.times import from_now, utc_now
from apiserver.services.backend import Call, documents
from apiserver.services.history.spans import Span
from apiserver.services.history.store import Subject
from apiserver.services.lists.conditions import QuerySpec, build_filter
from apiserver.stores.documents.query import AtLeast, Document, Filter, Greater, In, Matches, Update, all_of
from apiserver.stores.documents.scoped import CompanyDocuments

WORKERS = "workers"
#: The kinds of spans: while a worker reports, and while it runs a task.
PRESENT, BUSY = "present", "busy"

_SPEC = QuerySpec(patterns=(), lists=("tags", "system_tags"), times=())


def id_of(call: Call, worker: str) -> str:
    """The id of a worker's document."""
    return f"{call.identity.company}/{worker}"


def key_of(worker: Document) -> str:
    """A key of a worker that is unique among all companies, for clients."""
    return f"worker_{worker['company']}_{worker['user']}_{worker['name']}"


def subject_of(call: Call, worker: str) -> Subject:
    """The worker as a subject of the history."""
    return Subject(call.identity.company, "worker", worker)


async def live_workers(documents: CompanyDocuments, filter: Filter) -> list[Document]:
    """The matching workers that have not timed out, sorted by id."""
    return await documents.find(WORKERS, all_of([live(), filter]), sort=[("name", 1)])


def live() -> Filter:
    """The condition that a worker has not timed out."""
    return {"expires": Greater(utc_now())}


def workers_filter(request: dict[str, Any]) -> Filter:
    """The condition on workers that a request to list or count them sets."""
    conditions = [build_filter(request, _SPEC)]
    if seconds := request["last_seen"]:
        longest = time.time()  # not before 1970
        conditions.append({"last_activity_time": AtLeast(from_now(-min(seconds, longest)))})
    if pattern := request.get("worker_pattern"):
        parts = (re.escape(part) for part in pattern.split("*"))
        conditions.append({"name": Matches(f"^{'.*'.join(parts)}$")})
    return all_of(conditions)


async def forget(call: Call, filter: Filter) -> int:
    """Delete the matching workers, after storing their spans in the history; returns how many there were."""
    found = await documents(call).find(WORKERS, filter, projection=["name", PRESENT, BUSY])
    for worker in found:
        await note_spans(call, worker["name"], {kind: worker[kind] for kind in (PRESENT, BUSY) if worker.get(kind)})
    ids = [worker["id"] for worker in found]
    return await documents(call).delete(WORKERS, all_of([{"id": In(ids)}, filter])) if ids else 0


async def note_spans(call: Call, worker: str, ended: dict[str, Span]) -> None:
    """Put spans that ended, by kind, into the worker's history."""
    for kind, span in ended.items():
        update = Update(push={kind: [list(span)]})
        await call.backend.history.note(subject_of(call, worker), span[1], update)
