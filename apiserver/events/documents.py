"""Vectors, plots and images as the documents readers get; and scalars and logs, which are put together when read."""

from __future__ import annotations

import re
from typing import Any

import orjson

from apiserver.events.lines import MOST_VALUES, ImageLine, PlotLine, VectorLine
from apiserver.events.model import EventType, JsonObject, Owner, Sample
from apiserver.json_structure import has_more_values
from apiserver.times import iso_millis

_SCALAR, _LOG = EventType.SCALAR.value, EventType.LOG.value
_HAS_SOURCE = re.compile(r'"source"')


def sample(line: VectorLine | ImageLine | PlotLine, owner: Owner, *, received: int, worker: str) -> Sample:
    """The sample of one line; `received` and `worker` stand in for a missing timestamp and worker."""
    type, payload = _payload(line)
    if None in payload.values():
        payload = {name: value for name, value in payload.items() if value is not None}
    timestamp = received if line.timestamp is None else line.timestamp
    document: JsonObject = {
        **_head(type, owner, line.iter, timestamp, line.worker or worker, line.metric, line.variant),
        **payload,
        **_tail(owner, received),
    }
    if isinstance(line, PlotLine) and line.plot_str is not None:
        document |= _plot_facts(line.plot_str, skip_validation=line.skip_validation)
    if line.extra is not None:
        document = orjson.loads(line.extra.json) | document
    return Sample(owner, type, line.metric, line.variant, line.iter, line.key or "", timestamp, orjson.dumps(document))


def _payload(line: VectorLine | ImageLine | PlotLine) -> tuple[EventType, JsonObject]:
    """What the type has; None is what was not sent."""
    if isinstance(line, PlotLine):
        return EventType.PLOT, {"key": line.key, "plot_str": line.plot_str}
    if isinstance(line, ImageLine):
        return EventType.IMAGE, {"key": line.key, "url": line.url}
    return EventType.VECTOR, {"key": line.key, "value": line.values or line.value or []}


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
    level: str | None,
    message: str,
    received: int,
    extra: bytes | None,
) -> JsonObject:
    """A log event as readers get it, with the fields of the JSON object `extra`."""
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
    if level is None:
        del event["level"]
    return event if extra is None else orjson.loads(extra) | event


def _plot_facts(text: str, *, skip_validation: bool) -> JsonObject:
    """`plot_len`; `source_urls` of the images a plot shows; `valid_plot` false when its text is not JSON."""
    facts: JsonObject = {"plot_len": len(text)}
    # What begins as a figure is taken for one: it is parsed for its images only, and not if it holds too much for that.
    if (skip_validation or text.lstrip().startswith("{")) and not _HAS_SOURCE.search(text):
        return facts
    if len(text) > MOST_VALUES and has_more_values(text.encode("utf-8", "replace"), MOST_VALUES):
        return facts
    try:
        plot = orjson.loads(text)
    except orjson.JSONDecodeError:
        # Plotly writes NaN, which browsers' plotly reads; only what is not a figure at all is marked.
        if not skip_validation and not text.lstrip().startswith("{"):
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
