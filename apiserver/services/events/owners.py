"""The owners of events that a request names: tasks or models, looked up among the caller's documents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from apiserver.common.errors import invalid_id, validation_error
from apiserver.events.model import EventType, MetricSelection, Owner, Selection
from apiserver.services.backend import Call, documents, visible
from apiserver.services.events.last_metrics import RESET
from apiserver.services.quotas.quotas import FIELDS
from apiserver.services.tasks.import_times import IMPORTED
from apiserver.stores.documents.query import Document

#: The fields of an owner's document that these endpoints need, and quotas.
_FIELDS = ("id", "name", "status", "ready", "has_x_axis_labels", RESET, IMPORTED, *FIELDS)

_ALL_TYPES = "*"


async def find(call: Call, ids: Sequence[str], *, model: bool, to_change: bool = False) -> dict[str, Document]:
    """By id, the documents with these ids whose events the caller may read (or change)."""
    collection, allowed = "models" if model else "tasks", documents(call) if to_change else visible(call)
    if len(ids) == 1:
        one = await call.backend.document_cache.find_one(allowed, collection, ids[0], _FIELDS)
        return {ids[0]: one} if one else {}
    return {document["id"]: document for document in await allowed.find_kept(collection, ids, _FIELDS)}


async def require(
    call: Call, ids: Sequence[str], *, model: bool = False, to_change: bool = False
) -> dict[str, Document]:
    """By id, the documents with these ids.

    Raises Refusal(NO_TASK) or Refusal(NO_MODEL), which names all of them, if one does not exist.
    """
    found = await find(call, ids, model=model, to_change=to_change)
    if any(id not in found for id in ids):
        raise invalid_id("model" if model else "task", *ids)
    return found


async def one(call: Call, request: dict[str, Any]) -> Owner:
    """The owner that `task` and `model_events` of a request name."""
    model = bool(request.get("model_events"))
    found = await require(call, [request["task"]], model=model)
    return owner(found[request["task"]], model=model)


async def many(call: Call, request: dict[str, Any], *, limit: int | None = None) -> dict[Owner, str]:
    """The owners that `tasks` and `model_events` of a request name, each once, with their names.

    Raises Refusal(INVALID) if there are more than `limit`.
    """
    ids, model = list(dict.fromkeys(request["tasks"])), request["model_events"]
    if limit is not None and len(ids) > limit:
        raise validation_error(f"at most {limit} are allowed", field="tasks")
    known = await require(call, ids, model=model)
    return {owner(known[id], model=model): known[id].get("name", "") for id in ids}


def owner(document: Document, *, model: bool = False) -> Owner:
    """The owner of a document's events. Its company is the document's, which may not be the caller's."""
    return Owner(document["company"], document["id"], model)


def is_locked(document: Document) -> bool:
    """Whether a task or model is published, so that its events must not change."""
    return document.get("status") in ("published", "publishing") or document.get("ready") is True


def event_type(request: dict[str, Any]) -> EventType | None:
    """The type of events that a request asks for; None for all types."""
    asked = request.get("event_type", _ALL_TYPES)
    return None if asked == _ALL_TYPES else EventType(asked)


def selection(metrics: Iterable[dict[str, Any]] | None) -> Selection:
    """The series that a request's `metrics: [{metric, variants}]` select."""
    return [MetricSelection(one["metric"], tuple(one.get("variants") or ())) for one in metrics or ()]
