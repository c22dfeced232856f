"""Charts over time: the load of the workers' machines, and how many workers there were."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from apiserver.common.errors import Refusal, Why, some_of
from apiserver.common.times import now_ms
from apiserver.events.model import Float64Array
from apiserver.services.backend import Call, documents, endpoint
from apiserver.services.history.spans import Span, counts
from apiserver.services.history.steps import ChartCurve, Steps
from apiserver.services.history.store import DAY, HistorySeries
from apiserver.services.workers.machine_stats import curve_of, curves_of, has_parts
from apiserver.services.workers.worker_documents import BUSY, PRESENT, WORKERS, subject_of
from apiserver.stores.documents.query import Document


@endpoint("workers.get_metric_keys", "2.4")
async def get_metric_keys(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    names = set(request.get("worker_ids") or [])
    weeks = await call.backend.history.weeks(
        call.identity.company, "worker", start=0, stop=now_ms() + DAY, fields=["metrics"]
    )
    metrics = {metric for week in weeks if not names or week["name"] in names for metric in week["metrics"]}
    if not metrics:
        raise Refusal(Why.NO_WORKER_STATISTICS, f"Worker stats not found: workers=({some_of(sorted(names))})")
    categories: dict[str, list[str]] = {}
    for metric in sorted(metrics):
        categories.setdefault(metric.partition("_")[0], []).append(metric)
    return {"categories": [{"name": name, "metric_keys": keys} for name, keys in categories.items()]}


@endpoint("workers.get_stats", "2.4")
async def get_stats(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    steps = Steps.whole(request)
    if not (names := request.get("worker_ids")):
        weeks = await call.backend.history.weeks(call.identity.company, "worker", start=steps.start, stop=steps.stop)
        names = sorted({week["name"] for week in weeks})
    aggregations_of: dict[str, list[str]] = {}
    for item in request["items"]:
        aggregations = aggregations_of.setdefault(item["key"], [])
        if item["aggregation"] not in aggregations:
            aggregations.append(item["aggregation"])
    subjects = [subject_of(call, name) for name in names]
    by_worker = await call.backend.history.curves(subjects, list(aggregations_of), steps)
    split = request.get("split_by_resource")
    workers = [
        {
            "worker": subject.name,
            "metrics": [
                {
                    "metric": metric,
                    "stats": [_stats(metric, aggregation, curves, steps, split) for aggregation in aggregations],
                }
                for metric, aggregations in aggregations_of.items()
                if curves_of(metric, curves)
            ],
        }
        for subject, curves in by_worker.items()
    ]
    return {"workers": sorted(workers, key=lambda worker: str(worker["worker"]))}


@endpoint("workers.get_activity_report", "2.4")
async def get_activity_report(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    steps = Steps.whole(request)
    stop = max(steps.stop, now_ms() + DAY)  # a span is stored in the week when it ended, by the worker's clock
    weeks = await call.backend.history.weeks(
        call.identity.company, "worker", start=steps.start, stop=stop, fields=[PRESENT, BUSY]
    )
    known = await documents(call).find(WORKERS, {}, projection=["name", PRESENT, BUSY])
    dates = steps.dates.tolist()
    total, active = (counts(steps, _spans(kind, weeks, known)).tolist() for kind in (PRESENT, BUSY))
    return {"total": {"dates": dates, "counts": total}, "active": {"dates": dates, "counts": active}}


def _stats(
    metric: str, aggregation: str, curves: dict[HistorySeries, ChartCurve], steps: Steps, split: bool | None
) -> dict[str, Any]:
    """The values of a metric's chart; with `split` also the values of each GPU, if there are several."""
    values = _filled(curve_of(metric, aggregation, curves, steps).values(aggregation))
    stats = {"aggregation": aggregation, "dates": steps.dates.tolist(), "values": values}
    if not split:
        return stats
    parts = curves_of(metric, curves) if has_parts(metric) else {}
    series = [{"name": name, "values": _filled(one.values(aggregation))} for name, one in parts.items()]
    return {**stats, "resource_series": series if len(series) > 1 else []}


def _filled(values: Float64Array) -> list[float]:
    """The values, with 0 for steps without one."""
    return np.nan_to_num(values, nan=0.0).tolist()  # type: ignore[no-any-return]


def _spans(kind: str, weeks: list[Document], workers: list[Document]) -> Iterator[tuple[str, Span]]:
    """The spans of workers, by name: ended spans (from the history), and current ones."""
    for week in weeks:
        yield from ((week["name"], span) for span in week.get(kind) or ())
    yield from ((worker["name"], worker[kind]) for worker in workers if worker.get(kind))
