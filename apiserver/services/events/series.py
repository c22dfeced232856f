"""Which metrics and variants tasks reported."""

from __future__ import annotations

from typing import Any

from apiserver.events.model import EventType, Owner, SeriesName
from apiserver.events.queries import SeriesQuery
from apiserver.reading.single_values import is_single_value
from apiserver.services.backend import Call, endpoint
from apiserver.services.events import owners


@endpoint("events.get_task_metrics", "2.7")
async def get_task_metrics(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    answer, type = [], owners.event_type(request)
    for owner in await owners.many(call, request):
        answer.append({"task": owner.id, "metrics": sorted(await _metrics(call, owner, type))})
    return {"metrics": answer}


async def _metrics(call: Call, owner: Owner, type: EventType | None) -> set[str]:
    """Names of metrics. Scalar metrics that have only single values are left out, because they have no curve."""
    if type is EventType.SCALAR:
        known = await call.backend.events.scalar_stats(SeriesQuery(owner, type))
        return {stats.metric for stats in known if not is_single_value(stats)}
    return {series.metric for series in await _series(call, owner, type)}


@endpoint("events.get_multi_task_metrics", "2.20")
async def get_multi_task_metrics(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    metrics: dict[str, set[str]] = {}
    for owner in await owners.many(call, request):
        for series in await _series(call, owner, owners.event_type(request)):
            metrics.setdefault(series.metric, set()).add(series.variant)
    return {"metrics": [{"metric": name, "variants": sorted(metrics[name])} for name in sorted(metrics)]}


@endpoint("events.get_scalar_metrics_and_variants", "2.1")
@endpoint("events.get_vector_metrics_and_variants", "2.1")
async def get_metrics_and_variants(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    type = EventType.SCALAR if call.endpoint == "events.get_scalar_metrics_and_variants" else EventType.VECTOR
    metrics: dict[str, list[str]] = {}
    for series in await _series(call, await owners.one(call, request), type):
        metrics.setdefault(series.metric, []).append(series.variant)
    return {"metrics": metrics}


async def _series(call: Call, owner: Owner, type: EventType | None) -> list[SeriesName]:
    return await call.backend.events.series(owner, [type] if type else None)
