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

from apiserver.common.errors import unavailable
from apiserver.services.backend import Call, documents
from apiserver.services.documents.holds import Hold
from apiserver.services.tasks.holds import QUEUEING, RESETTING
from apiserver.services.tasks.task_documents import BEING_QUEUED, TASKS
from apiserver.stores.documents.query import AllOf, Document, Filter, In, NoneOf, Unequal, Update

#: Seconds until a call looks again whether it is its turn.
_PAUSE = 0.02


@asynccontextmanager
async def in_turn(call: Call, *task_ids: str, though_reset: bool = False) -> AsyncIterator[None]:
    """Keep other calls from queueing the tasks meanwhile. Raises Refusal(UNAVAILABLE) if another does not end soon.

    With `though_reset`, it is also the turn of tasks that another call resets or deletes.
    """
    holds = [QUEUEING] if though_reset else [QUEUEING, RESETTING]
    ids, until = list(task_ids), QUEUEING.until()
    tired = time.monotonic() + call.backend.bounds.queue_turn_seconds
    try:
        while not await take(call, ids, until, holds):
            if time.monotonic() > tired:
                raise unavailable(f"another call queues, dequeues, resets or deletes a task of {ids}", retry_after=1)
            await asyncio.sleep(_PAUSE)
        yield
    finally:
        mine: Document = {"id": In(ids), BEING_QUEUED: until}
        await documents(call).update(TASKS, mine, Update(unset=(BEING_QUEUED,)), many=True)


async def take(call: Call, ids: list[str], until: str, holds: list[Hold]) -> bool:
    """Take the turns of those tasks that nobody has; returns whether the call has all. Unknown tasks have no turns."""
    free: Filter = AllOf([{"id": In(ids)}, NoneOf([hold.condition() for hold in holds])])
    if await documents(call).update(TASKS, free, Update(set={BEING_QUEUED: until}), many=True) == len(ids):
        return True
    return not await documents(call).count(TASKS, {"id": In(ids), BEING_QUEUED: Unequal(until)})
