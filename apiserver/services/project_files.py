"""Which files an access key sees that is limited to a project: those whose path names a task of it.

The SDK uploads to `/project/task name.task id/…`. The first step of a path that ends with a dot and an id says whose
the file is: `/vision/first try.0123456789abcdef0123456789abcdef/artifacts/data.csv` belongs to that task.
"""

from __future__ import annotations

import re

from apiserver.rpc.call import Identity
from apiserver.services.backend import Backend

_DOT_AND_ID = re.compile(r"\.([0-9a-f]{32})")


async def may_use_file(backend: Backend, caller: Identity, name: str) -> bool:
    """Whether the caller may read, write and delete a file, as far as the project of their key matters."""
    if caller.grant.project is None:
        return True
    ends = (_DOT_AND_ID.fullmatch(step[-33:]) for step in name.split("/")[:-1])
    task = next((end[1] for end in ends if end), None)
    return task is not None and await backend.visible_to(caller).count("tasks", {"id": task}) > 0
