"""What `*_many` endpoints do: the same thing to each of several documents, one's failure leaving the others alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Literal

from apiserver.rpc.errors import ApiError, invalid_id
from apiserver.services.backend import Call, visible

#: So many are made ready at once.
TOGETHER = 100


async def do_each(
    call: Call,
    kind: Literal["task", "model"],
    ids: Sequence[str],
    do: Callable[[str], Awaitable[dict[str, Any]]],
    *,
    first: Callable[[Sequence[str]], Awaitable[Any]] | None = None,
) -> dict[str, Any]:
    """Call `do` with each id once; answers `{succeeded: [{id, **its answer}], failed: [{id, error}]}`.

    `first` is called with some ids at a time, before `do` is with these: for what costs as much for many as for one.
    So is it looked for things of that kind which the caller may see: `do` is called with no other ids.
    Overload is nobody's failure: it is raised, and the whole call can be tried again.
    """
    succeeded: list[dict[str, Any]] = []
    failed: list[dict[str, Any]] = []
    for some in together(ids):
        known = set(await visible(call).distinct(f"{kind}s", "id", {"id": {"$in": some}}))
        if first is not None:
            await first(some)
        for id in some:
            try:
                if id not in known:
                    raise invalid_id(kind, id)
                succeeded.append({"id": id, **await do(id)})
            except ApiError as error:
                if error.code >= 429:
                    raise
                failed.append(failure(id, error))
    return {"succeeded": succeeded, "failed": failed}


def together(ids: Sequence[str]) -> Iterator[list[str]]:
    """Each id once, some at a time."""
    once = list(dict.fromkeys(ids))
    for start in range(0, len(once), TOGETHER):
        yield once[start : start + TOGETHER]


def failure(id: str, error: ApiError) -> dict[str, Any]:
    """What an answer says of one that could not be done."""
    return {"id": id, "error": {"codes": [error.code, error.subcode], "msg": error.message, "data": error.data}}
