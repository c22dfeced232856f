"""The entries of a queue's document: `[{task, added}]`, the next one first, a task at most once.

Every change is one conditional update, tried again when another one came first, so that concurrent callers neither lose
nor double an entry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apiserver.rpc.errors import unavailable
from apiserver.stores.documents.base import Document, Filter
from apiserver.stores.documents.scoped import CompanyDocuments
from apiserver.times import utc_now

ATTEMPTS = 100

Reorder = Callable[[list[Document]], list[Document] | None]


def tasks_of(queue: Document) -> list[str]:
    """The ids of the tasks in a queue, the next one first."""
    return [entry["task"] for entry in queue.get("entries", [])]


async def append(documents: CompanyDocuments, queue: str, task: str) -> bool:
    """Put a task at the end; False when it is in that queue already or there is no such queue."""
    now = utc_now()
    absent = {"id": queue, "entries.task": {"$ne": task}}
    change = {"$push": {"entries": {"task": task, "added": now}}, "$set": {"last_update": now}}
    return await documents.update("queues", absent, change) == 1


async def remove(documents: CompanyDocuments, queue: str, task: str) -> bool:
    """Take a task out; False when it is not in that queue."""
    change = {"$pull": {"entries": {"task": task}}, "$set": {"last_update": utc_now()}}
    return await documents.update("queues", {"id": queue, "entries.task": task}, change) == 1


async def pop(documents: CompanyDocuments, queue: str) -> Document | None:
    """Take the next entry out and return it; None when the queue is empty or not there. No two callers get the same."""
    for _ in range(ATTEMPTS):
        before = await documents.find_one("queues", {"id": queue}, projection=("entries",))
        if before is None or not before["entries"]:
            return None
        entry: Document = before["entries"][0]
        if await remove(documents, queue, entry["task"]):
            return entry
    raise _contended(queue)


async def take_all(documents: CompanyDocuments, queue: str) -> list[str]:
    """Empty the queue; returns the ids of the tasks that were in it."""
    change = {"$set": {"entries": [], "last_update": utc_now()}}
    before = await documents.find_and_update("queues", {"id": queue}, change, return_new=False)
    return tasks_of(before) if before else []


async def reorder(documents: CompanyDocuments, queue: str, change: Reorder) -> list[Document] | None:
    """Give the entries the order that `change` returns; None when that is None or there is no such queue."""
    for _ in range(ATTEMPTS):
        before = await documents.find_one("queues", {"id": queue}, projection=("entries",))
        after = change(before["entries"]) if before else None
        if not before or after is None:
            return None
        update: dict[str, Any] = {"$set": {"entries": after, "last_update": utc_now()}}
        if after == before["entries"] or await documents.update("queues", _holds(before), update):
            return after
    raise _contended(queue)


def _holds(queue: Document) -> Filter:
    """The queue, as long as it holds the same tasks."""
    tasks = tasks_of(queue)
    return {"id": queue["id"], "entries": {"$size": len(tasks)}, "entries.task": {"$all": tasks}}


def _contended(queue: str) -> Exception:
    return unavailable(f"queue {queue} is being changed by too many calls at once", retry_after=1)
