"""What becomes of the models of a task that is deleted.

Drafts can be deleted with their task: meanwhile, nobody else can change such a draft, for example publish it. All other
models of the task stay, and then name a deleted task.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

from apiserver.common.errors import unavailable
from apiserver.services.backend import Call, documents
from apiserver.services.documents.holds import Hold
from apiserver.services.documents.stamps import changed_now
from apiserver.stores.documents.query import Document, In, Unequal, Update

_MODELS, _TASKS = "models", "tasks"
#: While a model is deleted with its task, no other call may change it.
DELETING = Hold("being_deleted_until", 60.0)
#: If a task's parent, or a model's task, is deleted, this and the old id are stored in place of the id.
DELETED = "__DELETED__"


@asynccontextmanager
async def deleting_drafts(call: Call, ids: Collection[str]) -> AsyncIterator[None]:
    """Delete these models when the caller has deleted what belongs to them inside; nobody changes them meanwhile.

    Raises Refusal(UNAVAILABLE) if one of them is not there any more, or was published. If the caller takes longer than
    the hold lasts, models stay that were published since.
    """
    if not ids:
        yield
        return
    drafts: Document = {"id": In(sorted(ids)), "ready": Unequal(True)}
    held: Document = {DELETING.field: DELETING.until()}
    mine: Document = {**drafts, **held}
    try:
        if await documents(call).update(_MODELS, drafts, Update(set=held), many=True) < len(ids):
            raise unavailable("models were published or deleted while their task was reset or deleted", retry_after=1)
        yield
    except BaseException:
        await documents(call).update(_MODELS, mine, Update(unset=(DELETING.field,)), many=True)
        raise
    await documents(call).delete(_MODELS, mine)


async def tell_of_deleted_task(call: Call, task_id: str, **only: str) -> int:
    """Have models of a task (`only` some of them) name a deleted one; returns how many there were."""
    mark = Update(set={**changed_now(call), "task": DELETED + task_id})
    return await documents(call).update(_MODELS, {"task": task_id, **only}, mark, many=True)


async def tell_if_deleted(call: Call, model_id: str, task_id: str | None) -> None:
    """Have one model name a deleted task, if its task was deleted while somebody wrote the model.

    Whoever deletes a task calls `tell_of_deleted_task` after that. So one of both calls sees what the other has done.
    """
    if task_id and not await documents(call).count(_TASKS, {"id": task_id}):
        await tell_of_deleted_task(call, task_id, id=model_id)
