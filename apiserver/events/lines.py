"""Request bodies to typed lines: one msgspec decode for all of a body, and a slow path for the odd line.

The fast path takes what the SDK sends. A body it refuses is read again line by line, and a line it refuses goes to
`odd.normalize`, which accepts what clients have always been allowed (numbers as text, `5.0` as an iteration, spaces in
a type, NaN spelled as text) and names the field of what it cannot accept. A bad line costs that line alone.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

import msgspec
import orjson

from apiserver.events import odd
from apiserver.events.rejects import Contradiction, Reject, Rejects

Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Milliseconds = Annotated[int, msgspec.Meta(ge=odd.EARLIEST_TIMESTAMP, le=odd.LATEST_TIMESTAMP)]


class Line(msgspec.Struct, tag_field="type", gc=False, kw_only=True):
    """What every event line has. `timestamp` is epoch milliseconds; None means "now"."""

    task: str = ""
    model: str | None = None
    metric: str = ""
    variant: str = ""
    worker: str = ""
    timestamp: Milliseconds | None = None
    model_event: bool = False
    allow_locked: bool = False


class ScalarLine(Line, tag="training_stats_scalar", gc=False, kw_only=True):
    """A point of a scalar series; no value means NaN."""

    iter: Int64 = 0
    value: float | None = None
    x_axis_label: str | None = None


class LogLine(Line, tag="log", gc=False, kw_only=True):
    """A piece of console output: one line or several."""

    iter: Int64 | None = None
    level: str = ""
    msg: str = ""


class VectorLine(Line, tag="training_stats_vector", gc=False, kw_only=True):
    """A vector of numbers, in `values` or, as older clients have it, in `value`."""

    iter: Int64 = 0
    values: list[float | None] | None = None
    value: list[float | None] | None = None


class ImageLine(Line, tag="training_debug_image", gc=False, kw_only=True):
    """An image or other media that lies at `url`."""

    iter: Int64 = 0
    key: str = ""
    url: str = ""


class PlotLine(Line, tag="plot", gc=False, kw_only=True):
    """A plotly figure as JSON text."""

    iter: Int64 = 0
    plot_str: str = ""
    skip_validation: bool = False


EventLine = ScalarLine | LogLine | VectorLine | ImageLine | PlotLine

#: With more malformed lines than this, a body is no batch of events.
MAX_MALFORMED = 10_000

#: The old name of `timestamp`, which only the slow path knows.
_OLD_NAME = b'"ts"'

#: What the fast path raises when it cannot read a line: wrong or odd JSON, bytes that are no text, endless nesting.
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_decoder: msgspec.json.Decoder[EventLine] = msgspec.json.Decoder(EventLine)


def decode(body: bytes) -> tuple[list[EventLine], Rejects]:
    """The events of a JSON-lines body, and the lines that are none.

    The fast path cannot tell an absent task from an empty one, so callers check `task` and `model` themselves. Raises
    Contradiction when there is no end of malformed lines.
    """
    if _OLD_NAME in body:
        return _decode_each(body)
    try:
        return _decoder.decode_lines(body), Rejects()
    except _UNREADABLE:
        return _decode_each(body)


def from_object(event: dict[str, Any]) -> EventLine:
    """The event of an already parsed object; raises Reject."""
    line: EventLine = msgspec.convert(odd.normalize(event), EventLine)
    return line


def _decode_each(body: bytes) -> tuple[list[EventLine], Rejects]:
    lines: list[EventLine] = []
    rejects = Rejects()
    for number, text in enumerate(body.split(b"\n"), start=1):
        if not text.strip():
            continue
        try:
            lines.append(_decode_one(text))
        except Reject as reject:
            rejects.add(reject, line=number)
            if rejects.total > MAX_MALFORMED:
                raise Contradiction(f"more than {MAX_MALFORMED} malformed lines") from None
    return lines, rejects


def _decode_one(text: bytes) -> EventLine:
    if _OLD_NAME in text:
        return _slow(text)
    try:
        return _decoder.decode(text)
    except _UNREADABLE:
        return _slow(text)


def _slow(text: bytes) -> EventLine:
    event = parse_json(text)
    if not isinstance(event, dict):
        raise Reject(f"A line must be a JSON object, not {odd.kind_of(event)}")
    return from_object(event)


def parse_json(text: bytes) -> Any:
    """JSON as strictly as it gets, then as loosely as Python writes it (NaN, lone surrogates); raises Reject."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    try:
        return odd.without_surrogates(json.loads(text))
    except RecursionError:
        raise Reject("A line is nested too deeply") from None
    except (ValueError, UnicodeDecodeError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else "invalid UTF-8 or number"
        raise Reject(f"A line is not valid JSON ({reason})") from None
