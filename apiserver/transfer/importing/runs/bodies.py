"""Writes events as the lines of a request."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson

from apiserver.events.model import EventType, JsonObject
from apiserver.transfer.importing.runs.model import Figure, Image, Line, Points

#: JSON has no infinities. Our server takes them as text, and null as NaN.
_INFINITE = {np.inf: b'"inf"', -np.inf: b'"-inf"'}


def as_json(value: Any) -> bytes:
    """The value as JSON, with "?" for lone surrogates, which UTF-8 does not have."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def of_points(task: str, series: Sequence[Points]) -> bytes:
    """A line for each point."""
    return b"".join(_of_series(task, points) for points in series)


def _of_series(task: str, points: Points) -> bytes:
    named = {"type": EventType.SCALAR, "task": task, "metric": points.metric, "variant": points.variant, **points.more}
    head = as_json(named)[:-1] + b',"iter":'
    values = _numbers(points.values)
    for number in np.flatnonzero(np.isinf(points.values)).tolist():
        values[number] = _INFINITE[points.values[number]]
    rows = zip(_numbers(points.iters), _numbers(points.timestamps), values, strict=True)
    return b"".join([b'%b%b,"timestamp":%b,"value":%b}\n' % (head, iter, time, value) for iter, time, value in rows])


def _numbers(column: np.typing.NDArray[np.generic]) -> list[bytes]:
    """Each number as JSON."""
    return orjson.dumps(np.ascontiguousarray(column), option=orjson.OPT_SERIALIZE_NUMPY)[1:-1].split(b",")


def of_lines(task: str, lines: Sequence[Line]) -> bytes:
    """A line for each line of a log."""
    return b"".join(as_json(_log_event(task, line)) + b"\n" for line in lines)


def _log_event(task: str, line: Line) -> JsonObject:
    event: JsonObject = {"type": EventType.LOG, "task": task, "timestamp": line.timestamp, "msg": line.text}
    more = {"level": line.level, "worker": line.worker, "metric": line.metric, "variant": line.variant}
    event = line.more | event | {name: text for name, text in more.items() if text}
    return event if line.iter is None else event | {"iter": line.iter}


def of_figure(task: str, figure: Figure) -> bytes:
    """The line of a plot."""
    text = as_json(figure.figure).decode()
    return _sample(EventType.PLOT, task, figure.metric, figure.variant, figure.iter, figure.timestamp, plot_str=text)


def of_image(task: str, image: Image, url: str) -> bytes:
    """The line of an image that lies at an address."""
    content = {**image.more, "url": url}
    return _sample(EventType.IMAGE, task, image.metric, image.variant, image.iter, image.timestamp, **content)


def of_event(task: str, event: JsonObject) -> bytes:
    """The line of any event."""
    return as_json({**event, "task": task}) + b"\n"


def _sample(type: EventType, task: str, metric: str, variant: str, iter: int, timestamp: int, **content: Any) -> bytes:
    named = {"type": type, "task": task, "metric": metric, "variant": variant, "iter": iter, "timestamp": timestamp}
    return as_json({**content, **named}) + b"\n"
