"""Makes the documents that readers get. Those of samples are stored; those of scalars and logs are made when read."""

from __future__ import annotations

import orjson

from apiserver.events.event_types import SentSample
from apiserver.events.model import EventType, JsonObject, Owner, Sample
from apiserver.times import iso_millis

_SCALAR, _LOG = EventType.SCALAR.value, EventType.LOG.value


def sample(sent: SentSample, owner: Owner, *, received: int, worker: str) -> Sample:
    """The sample of one event. `received` and `worker` stand in for a missing timestamp and worker."""
    content = sent.content()
    if None in content.values():
        content = {name: value for name, value in content.items() if value is not None}
    timestamp = received if sent.timestamp is None else sent.timestamp
    document: JsonObject = {
        **_head(sent.type, owner, sent.iter, timestamp, sent.worker or worker, sent.metric, sent.variant),
        **content,
        **_tail(owner, received),
    }
    if sent.extra is not None:
        document = orjson.loads(bytes(sent.extra)) | document
    key = sent.key or ""
    return Sample(owner, sent.type, sent.metric, sent.variant, sent.iter, key, timestamp, orjson.dumps(document))


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
    """The document of a point of a scalar series."""
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
    """The document of a log line. `extra` is a JSON object with further fields."""
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
