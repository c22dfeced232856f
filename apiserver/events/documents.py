"""Vectors, plots and images as the documents readers get; and scalars and logs, which are put together when read."""

from __future__ import annotations

import re
from typing import Any

import orjson

from apiserver.events.lines import ImageLine, PlotLine, VectorLine
from apiserver.events.model import EventType, JsonObject, Owner, Sample
from apiserver.times import iso_millis

_SCALAR, _LOG = EventType.SCALAR.value, EventType.LOG.value
_HAS_SOURCE = re.compile(r'"source"')


def sample(line: VectorLine | ImageLine | PlotLine, owner: Owner, *, received: int, worker: str) -> Sample:
    """The sample of one line; `received` and `worker` stand in for a missing timestamp and worker."""
    type, payload, key = _payload(line)
    timestamp = received if line.timestamp is None else line.timestamp
    document: JsonObject = {
        **_head(type, owner, line.iter, timestamp, line.worker or worker, line.metric, line.variant),
        **payload,
        **_tail(owner, received),
    }
    if isinstance(line, PlotLine):
        document |= _plot_facts(line)
    return Sample(owner, type, line.metric, line.variant, line.iter, key, timestamp, orjson.dumps(document))


def _payload(line: VectorLine | ImageLine | PlotLine) -> tuple[EventType, JsonObject, str]:
    if isinstance(line, PlotLine):
        return EventType.PLOT, {"plot_str": line.plot_str}, ""
    if isinstance(line, ImageLine):
        return EventType.IMAGE, {"key": line.key, "url": line.url}, line.key
    return EventType.VECTOR, {"value": line.values or line.value or []}, ""


def _head(
    type: EventType, owner: Owner, iter: int | None, timestamp: int, worker: str, metric: str, variant: str
) -> JsonObject:
    head: JsonObject = {"type": type.value, "task": owner.id}
    if iter is not None:
        head["iter"] = iter
    return head | {"timestamp": timestamp, "worker": worker, "metric": metric, "variant": variant}


def _tail(owner: Owner, received: int) -> JsonObject:
    return {"model_event": owner.is_model, "@timestamp": iso_millis(received)}


def scalar(
    owner: Owner, iter: int, timestamp: int, worker: str, metric: str, variant: str, value: float, received: int
) -> JsonObject:
    """A scalar event as readers get it."""
    return {
        "type": _SCALAR,
        "task": owner.id,
        "iter": iter,
        "timestamp": timestamp,
        "worker": worker,
        "metric": metric,
        "variant": variant,
        "value": value,
        "model_event": owner.is_model,
        "@timestamp": iso_millis(received),
    }


def log(
    owner: Owner,
    iter: int | None,
    timestamp: int,
    worker: str,
    metric: str,
    variant: str,
    level: str,
    message: str,
    received: int,
) -> JsonObject:
    """A log event as readers get it."""
    event: JsonObject = {
        "type": _LOG,
        "task": owner.id,
        "iter": iter,
        "timestamp": timestamp,
        "worker": worker,
        "metric": metric,
        "variant": variant,
        "msg": message,
        "level": level,
        "model_event": owner.is_model,
        "@timestamp": iso_millis(received),
    }
    if iter is None:
        del event["iter"]
    return event


def _plot_facts(line: PlotLine) -> JsonObject:
    """`plot_len`; `source_urls` of the images a plot shows; `valid_plot` false when its text is not JSON."""
    facts: JsonObject = {"plot_len": len(line.plot_str)}
    if line.skip_validation and not _HAS_SOURCE.search(line.plot_str):
        return facts
    try:
        plot = orjson.loads(line.plot_str)
    except orjson.JSONDecodeError:
        # Plotly writes NaN, which browsers' plotly reads; only what is not a figure at all is marked.
        if not line.skip_validation and not line.plot_str.lstrip().startswith("{"):
            facts["valid_plot"] = False
        return facts
    urls = _source_urls(plot)
    return facts | {"source_urls": urls} if urls else facts


def _source_urls(plot: Any) -> list[str]:
    layout = plot.get("layout") if isinstance(plot, dict) else None
    images = layout.get("images") if isinstance(layout, dict) else None
    if not isinstance(images, list):
        return []
    sources = (image.get("source") for image in images if isinstance(image, dict))
    return [source for source in sources if isinstance(source, str)]
