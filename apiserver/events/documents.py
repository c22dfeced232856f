"""Makes the documents that readers get. Those of samples are stored; those of scalars and logs are made when read."""

from __future__ import annotations

import orjson

from apiserver.common.times import iso_millis
from apiserver.events.event_types import SentSample
from apiserver.events.model import EventType, JsonObject, LogLine, Owner, Sample

_SCALAR, _LOG = EventType.SCALAR.value, EventType.LOG.value


def sample(sent: SentSample, owner: Owner, *, received: int, worker: str) -> Sample:
    """The sample of one event. `received` and `worker` stand in for a missing timestamp and worker."""
    content = sent.content()
    if None in content.values():
        content = {name: value for name, value in content.items() if value is not None}
    timestamp = received if sent.timestamp is None else sent.timestamp
    document: JsonObject = {
        "type": sent.type.value,
        "task": owner.id,
        "iter": sent.iter,
        "timestamp": timestamp,
        "worker": sent.worker or worker,
        "metric": sent.metric,
        "variant": sent.variant,
        **content,
        "model_event": owner.is_model,
        "@timestamp": iso_millis(received),
    }
    if sent.extra is not None:
        document = orjson.loads(bytes(sent.extra)) | document
    key = sent.key or ""
    return Sample(owner, sent.type, sent.metric, sent.variant, sent.iter, key, timestamp, orjson.dumps(document))


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


def log(owner: Owner, line: LogLine) -> JsonObject:
    """The document of a log line."""
    event: JsonObject = {
        "type": _LOG,
        "task": owner.id,
        "iter": line.iter,
        "timestamp": line.position.timestamp,
        "worker": line.worker,
        "metric": line.metric,
        "variant": line.variant,
        "msg": line.message,
        "level": line.level,
        "model_event": owner.is_model,
        "@timestamp": iso_millis(line.received),
    }
    if line.iter is None:
        del event["iter"]
    if line.level is None:
        del event["level"]
    return event if line.extra is None else orjson.loads(line.extra) | event
