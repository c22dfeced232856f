"""Request bodies to typed lines: one msgspec decode for all of a body, and a slow path for the odd line.

The fast path takes what the SDK sends. A body it refuses is read again line by line, and a line it refuses goes to
`odd.normalize`, which accepts what clients have always been allowed (numbers as text, `5.0` as an iteration, spaces in
a type, NaN spelled as text), gathers fields that the server knows nothing about, and names the field of what it cannot
accept. A bad line costs that line alone.
"""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
import orjson

from apiserver.events import odd
from apiserver.events.odd import Extra
from apiserver.events.rejects import Contradiction, Reject, Rejects
from apiserver.json_structure import has_more_values, is_deeper

Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Milliseconds = Annotated[int, msgspec.Meta(ge=odd.EARLIEST_TIMESTAMP, le=odd.LATEST_TIMESTAMP)]


#: What a server says of events in its answers, and may get back.
_Ignored = msgspec.Raw
_IGNORED = msgspec.Raw()


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


class WholeLine(Line, gc=False, kw_only=True, forbid_unknown_fields=True):
    """A line that is kept with all its fields: one that is not named here is a matter of the slow path."""

    method: Literal["get", "post", "put"] = "get"  # in every line of the SDK, and ignored


class LogLine(WholeLine, tag="log", gc=False, kw_only=True):
    """A piece of console output: one line or several.

    A line is kept small, so that lines do not share blocks of memory with their messages: these stay for long, and
    blocks with holes in them made reading a third slower. What few lines have is in `OddLogLine`.
    """

    iter: Int64 | None = None
    level: str | None = None
    msg: str = ""


class OddLogLine(LogLine, tag="log", gc=False, kw_only=True):
    """One that the slow path has read."""

    extra: Extra | None = None


class SampleLine(WholeLine, gc=False, kw_only=True):
    """One of several, with different keys, that a series may have in an iteration."""

    written: _Ignored = msgspec.field(name="@timestamp", default=_IGNORED)
    extra: Extra | None = None
    iter: Int64 = 0
    key: str | None = None


class VectorLine(SampleLine, tag="training_stats_vector", gc=False, kw_only=True):
    """A vector of numbers, in `values` or, as older clients have it, in `value`."""

    values: list[float | None] | None = None
    value: list[float | None] | None = None


class ImageLine(SampleLine, tag="training_debug_image", gc=False, kw_only=True):
    """An image or other media that lies at `url`."""

    url: str | None = None


class PlotLine(SampleLine, tag="plot", gc=False, kw_only=True):
    """A plotly figure as JSON text."""

    plot_str: str | None = None
    skip_validation: bool = False
    plot_len: _Ignored = _IGNORED
    source_urls: _Ignored = _IGNORED
    valid_plot: _Ignored = _IGNORED


EventLine = ScalarLine | LogLine | VectorLine | ImageLine | PlotLine
_OddLine = ScalarLine | OddLogLine | VectorLine | ImageLine | PlotLine

#: With more malformed lines than this, a body is no batch of events.
MAX_MALFORMED = 10_000

#: How many values a line may hold, in all its objects and arrays, and how deep these may lie in each other.
MOST_VALUES = 500_000
DEEPEST = 64

#: Bytes of memory that a line takes beside its text, about, however short it is.
_EACH_LINE = 160
#: How many places of a body are looked at to estimate its lines, and how long each is, in bytes.
_PLACES, _PLACE = 16, 1024
#: Lines that are read one by one before looking whether to go on.
_LINES_AT_ONCE = 100

#: The old name of `timestamp`, which only the slow path knows.
_OLD_NAME = b'"ts"'

#: What the fast path raises when it cannot read a line: wrong or odd JSON, bytes that are no text, endless nesting.
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_decoder: msgspec.json.Decoder[EventLine] = msgspec.json.Decoder(EventLine)


class Stopped(Exception):
    """Nobody waits any longer for the lines of a body that takes long to read."""


#: Whether to stop reading.
Stop = Callable[[], bool]


def never() -> bool:
    """Read to the end."""
    return False


def always() -> bool:
    """Have it stopped as soon as it takes long."""
    return True


def memory_of(body: bytes) -> int:
    """About how many bytes of memory the lines of a body take.

    Their number is estimated: line ends are counted in a few places of a large body. The places are taken at random, so
    that nobody knows where to put lines that are not counted.
    """
    if len(body) <= _PLACES * _PLACE:
        ends, part = body.count(b"\n"), 1.0
    else:
        places = (random.randrange(len(body) - _PLACE) for _ in range(_PLACES))
        ends = sum(body.count(b"\n", place, place + _PLACE) for place in places)
        part = _PLACES * _PLACE / len(body)
    return max(len(body), int(_EACH_LINE * (ends / part + 1)))


def decode(body: bytes, stop: Stop = never) -> tuple[list[EventLine], Rejects]:
    """The events of a JSON-lines body, and the lines that are none.

    The fast path cannot tell an absent task from an empty one, so callers check `task` and `model` themselves. Raises
    Contradiction when there is no end of malformed lines, Stopped when told to `stop`.
    """
    if _OLD_NAME in body or _has_crowded_line(body):
        return _decode_each(body, stop)
    try:
        return _decoder.decode_lines(body), Rejects()
    except _UNREADABLE:
        return _decode_each(body, stop)


def from_object(event: dict[str, Any]) -> EventLine:
    """The event of an already parsed object; raises Reject."""
    line: EventLine = msgspec.convert(odd.normalize(event), _OddLine)
    return line


def _has_crowded_line(body: bytes) -> bool:
    """Whether a line holds too many values. Only one that is longer than their commas can."""
    position = MOST_VALUES
    while position < len(body):
        start, stop = body.rfind(b"\n", 0, position) + 1, body.find(b"\n", position)
        stop = stop if stop >= 0 else len(body)
        if has_more_values(body[start:stop], MOST_VALUES):
            return True
        position = stop + MOST_VALUES
    return False


def _decode_each(body: bytes, stop: Stop) -> tuple[list[EventLine], Rejects]:
    lines: list[EventLine] = []
    rejects = Rejects()
    for number, line in enumerate(io.BytesIO(body), start=1):
        if not number % _LINES_AT_ONCE and stop():
            raise Stopped
        text = line.removesuffix(b"\n")
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
    if _OLD_NAME in text or has_more_values(text, MOST_VALUES):
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
    if has_more_values(text, MOST_VALUES):
        raise Reject(f"A line holds more than {MOST_VALUES:,} values")
    if is_deeper(text, DEEPEST):
        raise Reject(f"A line is nested deeper than {DEEPEST} levels")
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    try:
        return odd.without_surrogates(json.loads(text))
    except (ValueError, UnicodeDecodeError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else "invalid UTF-8 or number"
        raise Reject(f"A line is not valid JSON ({reason})") from None
