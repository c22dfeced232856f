"""What `*_many` endpoints do: the same thing to each of several documents, one's failure leaving the others alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from apiserver.rpc.errors import ApiError


async def do_each(ids: Sequence[str], do: Callable[[str], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
    """Call `do` with each id once; answers `{succeeded: [{id, **its answer}], failed: [{id, error}]}`.

    Overload is nobody's failure: it is raised, and the whole call can be tried again.
    """
    succeeded: list[dict[str, Any]] = []
    failed: list[dict[str, Any]] = []
    for id in dict.fromkeys(ids):
        try:
            succeeded.append({"id": id, **await do(id)})
        except ApiError as error:
            if error.code >= 429:
                raise
            failure = {"codes": [error.code, error.subcode], "msg": error.message, "data": error.data}
            failed.append({"id": id, "error": failure})
    return {"succeeded": succeeded, "failed": failed}
