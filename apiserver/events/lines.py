"""Parses the lines of a request body into events: all at once with msgspec, or one by one on a slow path.

The fast path takes what the SDK sends. If it refuses a body, the body is read again line by line. A line that it then
refuses goes to `odd.normalize`. That accepts what clients have always been allowed to send: numbers as text, `5.0` as
an iteration, spaces in a type, NaN as text or as Python writes it, fields that no type has. If it cannot accept a line,
it names the field. A bad line costs only itself.
"""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import orjson

from apiserver.common.json_structure import has_more_values, is_deeper
from apiserver.events import odd
from apiserver.events.event_types import OddEvent, PlainEvent, SentEvent
from apiserver.events.figures import MOST_VALUES
from apiserver.events.rejects import Contradiction, Reject, Rejects

#: A body with more malformed lines is not a batch of events.
MAX_MALFORMED = 10_000

#: How many levels deep the values of a line may be.
DEEPEST = 64

#: About how many bytes of memory a line takes besides its text.
_EACH_LINE = 160
#: The number of a body's lines is estimated from so many places, of so many bytes each.
_PLACES, _PLACE = 16, 1024
#: The slow path asks after so many lines whether to stop.
_LINES_AT_ONCE = 100

#: What the fast path raises for a line that it cannot read: wrong or odd JSON, invalid UTF-8, endless nesting.
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_decoder: msgspec.json.Decoder[PlainEvent] = msgspec.json.Decoder(PlainEvent)

#: Reads what Python's `json` writes: the SDK sends NaN and infinities with it.
_python_decoder = json.JSONDecoder(parse_constant=odd.NotFinite)


class Stopped(Exception):
    """Reading was stopped, because nobody waits for its result any longer."""


#: Whether to stop reading.
Stop = Callable[[], bool]


def never() -> bool:
    """Never stop: read to the end."""
    return False


def always() -> bool:
    """Stop as soon as reading takes long."""
    return True


def memory_of(body: bytes) -> int:
    """About how many bytes of memory the lines of a body take.

    Of a large body, line ends are counted in a few places only. These are taken at random, so that no client can know
    where to hide short lines.
    """
    if len(body) <= _PLACES * _PLACE:
        ends, part = body.count(b"\n"), 1.0
    else:
        places = (random.randrange(len(body) - _PLACE) for _ in range(_PLACES))
        ends = sum(body.count(b"\n", place, place + _PLACE) for place in places)
        part = _PLACES * _PLACE / len(body)
    return max(len(body), int(_EACH_LINE * (ends / part + 1)))


def decode(body: bytes, stop: Stop = never) -> tuple[Sequence[SentEvent], Rejects]:
    """The events of a JSON-lines body, and the lines that are not events.

    The fast path cannot tell a missing task from an empty one, so callers check `task` and `model`. Raises
    Contradiction for too many malformed lines, and Stopped when `stop` says so.
    """
    if _has_crowded_line(body):
        return _decode_each(body, stop)
    try:
        return _decoder.decode_lines(body), Rejects()
    except _UNREADABLE:
        return _decode_each(body, stop)


def from_object(event: dict[str, Any]) -> SentEvent:
    """The event that a parsed JSON object is. Raises Reject."""
    sent: SentEvent = msgspec.convert(odd.normalize(event), OddEvent)
    return sent


def _has_crowded_line(body: bytes) -> bool:
    """Whether a line holds too many values. Lines with fewer bytes than that cannot, so most are not looked at."""
    position = MOST_VALUES
    while position < len(body):
        start, stop = body.rfind(b"\n", 0, position) + 1, body.find(b"\n", position)
        stop = stop if stop >= 0 else len(body)
        if has_more_values(body[start:stop], MOST_VALUES):
            return True
        position = stop + MOST_VALUES
    return False


def _decode_each(body: bytes, stop: Stop) -> tuple[Sequence[SentEvent], Rejects]:
    lines: list[SentEvent] = []
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


def _decode_one(text: bytes) -> SentEvent:
    if has_more_values(text, MOST_VALUES):
        return _slow(text)
    try:
        return _decoder.decode(text)
    except _UNREADABLE:
        return _slow(text)


def _slow(text: bytes) -> SentEvent:
    event = parse_json(text)
    if not isinstance(event, dict):
        raise Reject(f"A line must be a JSON object, not {odd.kind_of(event)}")
    return from_object(event)


def parse_json(text: bytes) -> Any:
    """The value of JSON, or of what Python writes as JSON, with NaN, infinities and lone surrogates. Raises Reject."""
    if has_more_values(text, MOST_VALUES):
        raise Reject(f"A line holds more than {MOST_VALUES:,} values")
    if is_deeper(text, DEEPEST):
        raise Reject(f"A line is nested deeper than {DEEPEST} levels")
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    try:
        # Python's own `json.loads` would make a decoder for each line.
        decoded = text.decode(json.detect_encoding(text), "surrogatepass")
        return odd.without_surrogates(_python_decoder.decode(decoded))
    except (ValueError, UnicodeDecodeError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else "invalid UTF-8 or number"
        raise Reject(f"A line is not valid JSON ({reason})") from None
