"""events.clear_task_log and events.clear_scroll."""

from __future__ import annotations

from typing import Any

from apiserver.common.errors import Refusal, Why
from apiserver.common.times import now_ms, utc_now
from apiserver.events.model import EventType, MetricSelection, Selection
from apiserver.events.queries import SeriesQuery
from apiserver.services.backend import Call, documents, endpoint
from apiserver.services.events import owners
from apiserver.services.tasks.import_times import EVENTS_DELETED, IMPORTED
from apiserver.stores.documents.query import Update


@endpoint("events.clear_task_log", "2.20")
async def clear_task_log(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    id, seconds = request["task"], request["threshold_sec"]
    document = (await owners.require(call, [id], to_change=True))[id]
    if owners.is_locked(document) and not request["allow_locked"]:
        raise Refusal(Why.TASK_LOCKED, f"Cannot delete log lines of a published task without allow_locked: id={id}")
    deleted = await call.backend.events.delete_logs(
        SeriesQuery(owners.owner(document), EventType.LOG, _metrics(request.get("include_metrics"))),
        now_ms() - seconds * 1000 if seconds else None,
        _metrics(request.get("exclude_metrics")),
    )
    if deleted and IMPORTED in document:
        await documents(call).update("tasks", {"id": id}, Update(set={EVENTS_DELETED: utc_now()}))
    return {"deleted": deleted}


@endpoint("events.clear_scroll", "2.18")
async def clear_scroll(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    return {}


def _metrics(names: list[str] | None) -> Selection:
    return [MetricSelection(name) for name in names or ()]
