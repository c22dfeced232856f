"""What `*_many` endpoints share: they do one thing to each of several documents. One failure does not stop the rest."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Literal, TypeAlias, TypeVar

from apiserver.common.errors import PASSING, Refusal, invalid_id
from apiserver.rpc.statuses import answer_to
from apiserver.services.backend import Call, endpoint, visible
from apiserver.stores.documents.query import In

#: How many ids are looked up at once.
BATCH = 100

Kind: TypeAlias = Literal["task", "model"]
#: Does something to one document (call, id, request), and answers it.
Act: TypeAlias = Callable[[Call, str, dict[str, Any]], Awaitable[dict[str, Any]]]
ActT = TypeVar("ActT", bound=Act)


def for_one(name: str) -> Callable[[ActT], ActT]:
    """Register the decorated function for the endpoint `name`, whose requests have the id in `task` or `model`."""

    def register(act: ActT) -> ActT:
        kind = _kind_of(name)
        endpoint(name, "1.0")(lambda call, request: act(call, request[kind], request))
        return act

    return register


def for_each(name: str) -> Callable[[ActT], ActT]:
    """Register the decorated function for the endpoint `name`, whose requests have `ids`: `do_each` calls it."""

    def register(act: ActT) -> ActT:
        kind = _kind_of(name)
        endpoint(name, "1.0")(
            lambda call, request: do_each(call, kind, request["ids"], lambda id: act(call, id, request))
        )
        return act

    return register


def _kind_of(endpoint: str) -> Kind:
    return "model" if endpoint.startswith("models.") else "task"


async def do_each(
    call: Call,
    kind: Kind,
    ids: Sequence[str],
    do: Callable[[str], Awaitable[dict[str, Any]]],
    *,
    first: Callable[[Sequence[str]], Awaitable[Any]] | None = None,
) -> dict[str, Any]:
    """Call `do` once for each id; answers `{succeeded: [{id, **its answer}], failed: [{id, error}]}`.

    Ids of documents that the caller may not read fail without `first` and `do`. `first` is called with the other ids of
    each batch before `do`, for work that costs as much for many ids as for one. A refusal that ends by itself
    (`PASSING`) is raised, not noted as a failure of one id, so that the client tries the whole call again.
    """
    succeeded: list[dict[str, Any]] = []
    failed: list[dict[str, Any]] = []
    for batch in batches(ids):
        readable = set(await visible(call).distinct(f"{kind}s", "id", {"id": In(batch)}))
        if first is not None:
            await first([id for id in batch if id in readable])
        for id in batch:
            try:
                if id not in readable:
                    raise invalid_id(kind, id)
                succeeded.append({"id": id, **await do(id)})
            except Refusal as refusal:
                if refusal.why in PASSING:
                    raise
                failed.append(failure(id, refusal))
    return {"succeeded": succeeded, "failed": failed}


def batches(ids: Sequence[str]) -> Iterator[list[str]]:
    """The ids without repetitions, in batches of at most `BATCH`."""
    once = list(dict.fromkeys(ids))
    for start in range(0, len(once), BATCH):
        yield once[start : start + BATCH]


def failure(id: str, refusal: Refusal) -> dict[str, Any]:
    """The entry in `failed` for one id."""
    error = answer_to(refusal)
    return {"id": id, "error": {"codes": [error.code, error.subcode], "msg": error.message, "data": error.data}}
