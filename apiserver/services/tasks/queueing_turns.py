"""Turns: only one call at a time puts a task into a queue, or takes it out; none while the task is reset or deleted.

Such a call changes the task's status and the entries of queues, one after the other. If two calls did so at once, a
task could wait in a queue with status created, or have status queued and wait in no queue. So could a task whose status
must not change because it is reset or deleted, if only its entries were changed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from apiserver.rpc.errors import unavailable
from apiserver.services.backend import Call, documents
from apiserver.services.tasks.status import RESETTING
from apiserver.services.tasks.task_documents import BEING_QUEUED, BEING_RESET, TASKS
from apiserver.stores.documents.query import AllOf, AtMost, Both, Document, Filter, Greater, In, NoneOf, Unequal, Update
from apiserver.times import from_now, utc_now

#: Seconds that a turn lasts at most. If the server of the turn dies, others get theirs afterwards.
_TURN = 10.0
#: Seconds that a call waits for its turn, and seconds until it looks again.
_PATIENCE, _PAUSE = 1.0, 0.02


@asynccontextmanager
async def in_turn(call: Call, *task_ids: str, though_reset: bool = False) -> AsyncIterator[None]:
    """Keep other calls from queueing the tasks meanwhile. 503 if another call does not end soon.

    With `though_reset`, it is also the turn of tasks that another call resets or deletes.
    """
    held = [_held(BEING_QUEUED, _TURN)] if though_reset else [_held(BEING_QUEUED, _TURN), being_reset()]
    ids, until, tired = list(task_ids), from_now(_TURN), time.monotonic() + _PATIENCE
    try:
        while not await _take(call, ids, until, held):
            if time.monotonic() > tired:
                raise unavailable(f"another call queues, dequeues, resets or deletes a task of {ids}", retry_after=1)
            await asyncio.sleep(_PAUSE)
        yield
    finally:
        mine: Document = {"id": In(ids), BEING_QUEUED: until}
        await documents(call).update(TASKS, mine, Update(unset=(BEING_QUEUED,)), many=True)


def being_reset() -> Filter:
    """The condition for tasks that are being reset or deleted."""
    return _held(BEING_RESET, RESETTING)


def _held(field: str, seconds: float) -> Filter:
    # A call sets a time so many seconds ahead. A later one is of a server whose clock is wrong, and does not count.
    return {field: Both(Greater(utc_now()), AtMost(from_now(seconds)))}


async def _take(call: Call, ids: list[str], until: str, held: list[Filter]) -> bool:
    """Take the turns of those tasks that nobody has; returns whether the call has all. Unknown tasks have no turns."""
    free: Filter = AllOf([{"id": In(ids)}, NoneOf(held)])
    if await documents(call).update(TASKS, free, Update(set={BEING_QUEUED: until}), many=True) == len(ids):
        return True
    return not await documents(call).count(TASKS, {"id": In(ids), BEING_QUEUED: Unequal(until)})
