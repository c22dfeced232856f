"""Making tasks, models and projects public, and private again; and why what is public cannot be changed.

Which documents a caller may read or change, the views of documents say (`stores/documents/scoped.py`).
"""

from __future__ import annotations

from typing import Any

from apiserver.rpc.errors import ApiError, forbidden, invalid_id, some_of
from apiserver.services.backend import Call, documents, visible
from apiserver.stores.documents.base import Document, Filter
from apiserver.times import utc_now

_KINDS = {"tasks": "task", "models": "model", "projects": "project"}


async def make_public(call: Call, collection: str, ids: list[str]) -> dict[str, Any]:
    """Answers `{updated}`; 400 naming those that are not there, or are public already: then none is changed."""
    known = await documents(call).distinct(collection, "id", {"id": {"$in": ids}})
    _require_all(collection, ids, set(known))
    return {"updated": await documents(call).make_public(collection, known, _stamps(call, collection))}


async def make_private(call: Call, collection: str, ids: list[str]) -> dict[str, Any]:
    """Answers `{updated}`; 400 naming those that are not public, or another company's: then none is changed."""
    known = await documents(call).own_public(collection, {"id": {"$in": ids}})
    _require_all(collection, ids, set(known))
    return {"updated": await documents(call).make_private(collection, known, _stamps(call, collection))}


async def denied(call: Call, collection: str, *ids: str) -> ApiError:
    """Why the caller cannot change documents of these ids: 403/21 when they are public, 400 when there are none."""
    public = await visible(call).distinct(collection, "id", {"id": {"$in": list(ids)}})
    kind = _KINDS[collection]
    if public:
        return forbidden(f"a public {kind} cannot be changed: ids=({some_of(public)})")
    return invalid_id(kind, *ids)


async def require_private(call: Call, collection: str, filter: Filter) -> None:
    """403/21 when documents of the caller's company are public among those that match, and so cannot be changed."""
    if public := await documents(call).own_public(collection, filter):
        raise await denied(call, collection, *public)


def _require_all(collection: str, ids: list[str], known: set[str]) -> None:
    if unknown := list(dict.fromkeys(id for id in ids if id not in known)):
        raise invalid_id(_KINDS[collection], *unknown)


def _stamps(call: Call, collection: str) -> Document:
    now = utc_now()
    if collection == "projects":
        return {"last_update": now}
    return {"last_update": now, "last_change": now, "last_changed_by": call.identity.user}
