"""Which tasks, models and projects a call may read and change; making them public, and private again.

`stores/documents/scoped.py` decides which documents a caller may read or change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apiserver.common import answers
from apiserver.common.errors import Refusal, forbidden, invalid_id, some_of
from apiserver.services.backend import Call, documents, endpoint, visible
from apiserver.services.documents.stamps import changed_now
from apiserver.stores.documents.query import Document, Filter, In

_KINDS = {"tasks": "task", "models": "model", "projects": "project"}


@endpoint("models.make_public", "2.9")
@endpoint("projects.make_public", "2.9")
@endpoint("tasks.make_public", "2.9")
async def make_public(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    """Answers `{updated}`. Raises Refusal(NO_…), and changes nothing, if some ids are unknown or already public."""
    collection, ids = call.endpoint.partition(".")[0], request["ids"]
    if collection != "projects":
        await call.backend.last_metrics.settle(call.identity.company, models=collection == "models", ids=ids)
    private = await documents(call).distinct(collection, "id", {"id": In(ids)})
    _require_all(collection, ids, set(private))
    return {"updated": await documents(call).make_public(collection, private, _stamps(call, collection))}


@endpoint("models.make_private", "2.9")
@endpoint("projects.make_private", "2.9")
@endpoint("tasks.make_private", "2.9")
async def make_private(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    """Answers `{updated}`.

    Raises Refusal(NO_…), and changes nothing, if some ids are not public, or of another company.
    """
    collection, ids = call.endpoint.partition(".")[0], request["ids"]
    public = await documents(call).own_public(collection, {"id": In(ids)})
    _require_all(collection, ids, set(public))
    return {"updated": await documents(call).make_private(collection, public, _stamps(call, collection))}


async def read_one(call: Call, collection: str, id: str, fields: Sequence[str] | None = None) -> Document:
    """A task, model or project that the caller may read, or `fields` of it.

    Raises Refusal(NO_TASK), Refusal(NO_MODEL) or Refusal(NO_PROJECT) if there is none.
    """
    document = await visible(call).find_one(collection, {"id": id}, projection=fields, counted=answers.counter())
    if document is None:
        raise invalid_id(_KINDS[collection], id)
    return document


async def denied(call: Call, collection: str, *ids: str) -> Refusal:
    """The error for documents that the caller cannot change: FORBIDDEN if some are public, NO_… if none exists."""
    public = await visible(call).distinct(collection, "id", {"id": In(list(ids))})
    kind = _KINDS[collection]
    if public:
        return forbidden(f"a public {kind} cannot be changed: ids=({some_of(public)})")
    return invalid_id(kind, *ids)


async def require_private(call: Call, collection: str, filter: Filter) -> None:
    """Raises Refusal(FORBIDDEN) if some of the company's matching documents are public: they cannot be changed."""
    if public := await documents(call).own_public(collection, filter):
        raise await denied(call, collection, *public)


def _require_all(collection: str, ids: list[str], there: set[str]) -> None:
    if unknown := list(dict.fromkeys(id for id in ids if id not in there)):
        raise invalid_id(_KINDS[collection], *unknown)


def _stamps(call: Call, collection: str) -> Document:
    stamps = changed_now(call)
    return {"last_update": stamps["last_update"]} if collection == "projects" else stamps
