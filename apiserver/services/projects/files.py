"""Which files an access key sees that is limited to a project: those whose path names a task of it."""

from __future__ import annotations

from apiserver.fileserver.addresses import task_of
from apiserver.rpc.call import Identity
from apiserver.services.backend import Backend


async def may_use_file(backend: Backend, caller: Identity, name: str) -> bool:
    """Whether the caller may read, write and delete a file, as far as the project of their key matters."""
    if caller.grant.project is None:
        return True
    task = task_of(name)
    return task is not None and await backend.visible_to(caller).count("tasks", {"id": task}) > 0
