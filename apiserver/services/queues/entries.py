"""The entries of a queue's document: `[{task, added}]`, the next task first, each task at most once.

Every change is one conditional update, which is tried again if another change came first. So concurrent calls neither
lose nor double an entry. After each change, the queue's state goes into its history.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from apiserver.common.errors import unavailable
from apiserver.common.times import utc_now
from apiserver.services.backend import Call, documents
from apiserver.services.queues import history as queue_history
from apiserver.stores.documents.query import Document, Filter, HasSize, In, NotIn, Unequal, Update

ATTEMPTS = 100

Reorder = Callable[[list[Document]], list[Document] | None]


def tasks_of(queue: Document) -> list[str]:
    """The ids of the tasks in a queue, the next one first."""
    return [entry["task"] for entry in queue.get("entries", [])]


async def append(call: Call, queue: str, task: str) -> bool:
    """Append a task; False if it is in the queue already, or there is no such queue."""
    absent = {"id": queue, "entries.task": Unequal(task)}
    return await _change(call, absent, Update(push={"entries": [{"task": task, "added": utc_now()}]}))


async def append_many(call: Call, queue: str, tasks: Sequence[str]) -> set[str]:
    """Append the tasks that are not in the queue yet; returns these. If there is no such queue, it returns none."""
    for _ in range(ATTEMPTS):
        before = await documents(call).find_one("queues", {"id": queue}, projection=("entries",))
        there = set(tasks_of(before)) if before else set(tasks)
        fresh = [task for task in tasks if task not in there]
        entries = [{"task": task, "added": utc_now()} for task in fresh]
        absent = {"id": queue, "entries.task": NotIn(fresh)}
        if not fresh or await _change(call, absent, Update(push={"entries": entries})):
            return set(fresh)
    raise _contended(queue)


async def remove(call: Call, queue: str, task: str) -> bool:
    """Remove a task; False if it is not in the queue."""
    return await _change(call, {"id": queue, "entries.task": task}, Update(pull={"entries": {"task": task}}))


async def leave_queues(call: Call, *tasks: str, but: str | None = None) -> int:
    """Remove tasks from all queues except the queue `but`; returns how many queues had some of them."""
    if not tasks:
        return 0
    wanted: Any = tasks[0] if len(tasks) == 1 else In(list(tasks))
    found = await documents(call).find("queues", {"entries.task": wanted, "id": Unequal(but)}, projection=("id",))
    pull = Update(pull={"entries": {"task": wanted}})
    return sum([await _change(call, {"id": queue["id"], "entries.task": wanted}, pull) for queue in found])


async def pop(call: Call, queue: str, *, task: str | None = None) -> Document | None:
    """Remove and return the next entry; None if the queue is empty or does not exist. Each entry goes to one caller.

    With `task`, the entry is removed only if it is that task's.
    """
    for _ in range(ATTEMPTS):
        before = await documents(call).find_one("queues", {"id": queue}, projection=("entries",))
        if before is None or not before["entries"]:
            return None
        entry: Document = before["entries"][0]
        if task is not None and entry["task"] != task:
            return None
        if await remove(call, queue, entry["task"]):
            return entry
    raise _contended(queue)


async def remove_many(call: Call, queue: str, tasks: Sequence[str]) -> list[str]:
    """Remove tasks; returns the tasks that were in the queue."""
    wanted = In(list(tasks))
    change = Update(pull={"entries": {"task": wanted}}, set={"last_update": utc_now()})
    there = {"id": queue, "entries.task": wanted}
    before = await documents(call).find_and_update("queues", there, change, return_new=False)
    if before is None:
        return []
    gone = set(tasks)
    await queue_history.note(call, {**before, "entries": [e for e in before["entries"] if e["task"] not in gone]})
    return [task for task in tasks_of(before) if task in gone]


async def reorder(call: Call, queue: str, change: Reorder) -> list[Document] | None:
    """Replace the entries by what `change` makes of them; None if it returns None, or there is no such queue."""
    for _ in range(ATTEMPTS):
        before = await documents(call).find_one("queues", {"id": queue}, projection=("entries", "last_update"))
        after = change(before["entries"]) if before else None
        if not before or after is None:
            return None
        update = Update(set={"entries": after, "last_update": utc_now()})
        # Each change of entries sets `last_update`, so the queue matches only if it is as it was read.
        as_read = {"id": queue, "entries": HasSize(len(before["entries"])), "last_update": before.get("last_update")}
        if after == before["entries"] or await documents(call).update("queues", as_read, update):
            return after
    raise _contended(queue)


async def _change(call: Call, filter: Filter, update: Update) -> bool:
    """Change the entries of the matching queue; returns whether there is one."""
    changed = await documents(call).find_and_update("queues", filter, update.setting({"last_update": utc_now()}))
    if changed is not None:
        await queue_history.note(call, changed)
    return changed is not None


def _contended(queue: str) -> Exception:
    return unavailable(f"queue {queue} is being changed by too many calls at once", retry_after=1)
