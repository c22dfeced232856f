"""Reading scalars: histograms, single and last values, and the events of one metric."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from typing import Any

from apiserver.common.errors import validation_error
from apiserver.common.off_loop import off_loop, together
from apiserver.events.model import EventType, MetricSelection
from apiserver.events.queries import PageQuery, Range, SeriesQuery
from apiserver.events.smoothing import MOST_OF_MEDIAN, Kind, Smoothing
from apiserver.reading import latest_scalars as latest
from apiserver.reading import task_events
from apiserver.reading.histogram import Histogram, HistogramQuery, Key, histogram, histograms
from apiserver.reading.single_values import single_values
from apiserver.rpc.call import Encoded
from apiserver.rpc.encode import encode_many
from apiserver.services.backend import Call, endpoint
from apiserver.services.events import owners
from apiserver.services.events.labels import add_labels

log = logging.getLogger(__name__)

#: The most points of a series that are answered if not all are asked for.
MOST_SAMPLES = 6000

_SideBySide = dict[str, dict[str, dict[str, Any]]]


@endpoint("events.scalar_metrics_iter_histogram", "2.1")
async def scalar_metrics_iter_histogram(call: Call, request: dict[str, Any]) -> Encoded:
    selection, asked = owners.selection(request.get("metrics")), _asked(call, request)
    owner = await owners.one(call, request)
    answer = await histogram(call.backend.events, SeriesQuery(owner, EventType.SCALAR, selection), asked)
    await add_labels(call, {owner: answer}, model=owner.is_model)
    return Encoded(await encode_many(answer, _series(answer)))


@endpoint("events.multi_task_scalar_metrics_iter_histogram", "2.1")
async def multi_task_scalar_metrics_iter_histogram(call: Call, request: dict[str, Any]) -> Encoded:
    metrics = await side_by_side(call, request)
    return Encoded(await encode_many({"metrics": metrics}, _series(metrics)))


@endpoint("events.get_task_single_value_metrics", "2.20")
async def get_task_single_value_metrics(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    asked = await owners.many(call, request)
    selection = owners.selection(request.get("metrics"))
    values = await together(
        *(single_values(call.backend.events, SeriesQuery(owner, EventType.SCALAR, selection)) for owner in asked)
    )
    return {
        "tasks": [
            {"task": owner.id, "task_name": name, "values": found}
            for (owner, name), found in zip(asked.items(), values, strict=True)
            if found
        ]
    }


@endpoint("events.get_task_latest_scalar_values", "2.1")
async def get_task_latest_scalar_values(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    task = (await owners.require(call, [request["task"]]))[request["task"]]
    series = SeriesQuery(owners.owner(task), EventType.SCALAR)
    last_iter, last_timestamp = await latest.last_iteration(call.backend.events, series)
    return {
        "metrics": await latest.latest_scalars(call.backend.events, series),
        "last_iter": last_iter,
        "name": task.get("name"),
        "status": task.get("status"),
        "last_timestamp": last_timestamp,
    }


@endpoint("events.get_scalar_metric_data", "2.1")
async def get_scalar_metric_data(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    owner = await owners.one(call, request)
    store, scrolls = call.backend.events, call.backend.scrolls
    series = SeriesQuery(owner, EventType.SCALAR, [MetricSelection(request["metric"])])
    query = ("get_scalar_metric_data", owner, request["metric"])
    position = scrolls.decode(query, request["scroll_id"]) if request.get("scroll_id") else None
    events = await task_events.scalars(store, series, PageQuery(call.backend.bounds.scalars, position, descending=True))
    if events:
        position, _ = events[-1]
    return {
        "events": [event for _, event in events],
        "returned": len(events),
        "total": sum(stats.count for stats in await store.scalar_stats(series)),
        "scroll_id": None if request["no_scroll"] else scrolls.encode(query, position),
    }


async def side_by_side(call: Call, request: dict[str, Any]) -> _SideBySide:
    """Scalar series of `tasks`: {metric: {variant: {task: {name, x, y}}}}."""
    asked = await owners.many(call, request, limit=call.backend.settings.multi_task_limit)
    selection = owners.selection(request.get("metrics"))
    queries = [SeriesQuery(owner, EventType.SCALAR, selection) for owner in asked]
    answers = dict(zip(asked, await histograms(call.backend.events, queries, _asked(call, request)), strict=True))
    await add_labels(call, answers, model=request["model_events"])
    metrics: _SideBySide = {}
    for owner, answer in answers.items():
        await off_loop(_series(answer), partial(_put_beside, metrics, owner.id, asked[owner], answer))
    return metrics


def _put_beside(metrics: _SideBySide, task: str, name: str, answer: Histogram) -> None:
    for metric, variants in answer.items():
        for variant, series in variants.items():
            metrics.setdefault(metric, {}).setdefault(variant, {})[task] = {**series, "name": name}


def _asked(call: Call, request: dict[str, Any]) -> HistogramQuery:
    key, envelope, smooth = Key(request["key"]), request["envelope"], smoothing(request.get("smooth"))
    return HistogramQuery(_samples(call, request["samples"]), key, envelope, range_of(request.get("range")), smooth)


def _samples(call: Call, asked: int) -> int:
    """How many points of a series are answered. Where that is less than what is asked for, a header and the log say so.

    A refusal would be worse: the SDK makes of it that there are no scalars.
    """
    if asked <= MOST_SAMPLES:
        return asked
    call.response_headers.append(("X-Samples-Limit", str(MOST_SAMPLES)))
    if call.backend.told.due(("samples", call.identity.company, call.identity.user)):
        text = "user %s asked for %d samples of scalars, and is answered %d, the most there are; 0 means all points"
        log.warning(text, call.identity.user, asked, MOST_SAMPLES)
    return MOST_SAMPLES


def range_of(asked: dict[str, Any] | None) -> Range:
    """The range of the axis that a request asks for."""
    start, stop = (asked or {}).get("from"), (asked or {}).get("to")
    if start is not None and stop is not None and start > stop:
        raise validation_error("'from' must not be greater than 'to'", field="range")
    return Range.of(start, stop)


def smoothing(asked: dict[str, Any] | None) -> Smoothing | None:
    """The smoothing that a request asks for in `smooth`; None if it asks for none."""
    if asked is None:
        return None
    found = Smoothing(Kind(asked["by"]), asked["weight"], asked["points"])
    if found.kind is Kind.MEDIAN and found.points > MOST_OF_MEDIAN:
        raise validation_error(f"a median has up to {MOST_OF_MEDIAN} points", field="smooth.points")
    return found


def _series(metrics: Mapping[str, Mapping[str, Any]]) -> int:
    return sum(map(len, metrics.values()))
