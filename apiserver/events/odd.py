"""The slow path of parsing: makes an exact event of one that a client spells in another way.

For example, `{"type": "training stats scalar", "iter": "5", "value": "NaN"}` becomes
`{"type": "training_stats_scalar", "iter": 5, "value": nan}`.

Fields that an event's type does not have are kept, within the limits MAX_EXTRA_…. Those of scalars are dropped, because
scalars are kept in columns.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, get_args

import orjson
from msgspec import structs

from apiserver.events.event_types import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    Extra,
    Int64,
    Milliseconds,
    OddEvent,
    SentEvent,
    check_url,
)
from apiserver.events.model import EventType
from apiserver.events.rejects import Reject

_TYPES = {type.value for type in EventType}
_NAN_SPELLINGS = {"nan": math.nan, "inf": math.inf, "infinity": math.inf, "-inf": -math.inf, "-infinity": -math.inf}
_LARGEST = 2**63 - 1
_INTEGER = re.compile(r"\s*[+-]?[0-9]{1,32}\s*")
_NUMBER = re.compile(r"\s*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")

#: The fields that an event's type does not have may be so many, with so many bytes of JSON and levels of nesting.
MAX_EXTRA_FIELDS, MAX_EXTRA_BYTES, MAX_EXTRA_DEPTH = 100, 64 * 1024, 20


class NotFinite(float):
    """NaN, Infinity or -Infinity, which a line has as this word. A number beyond 64 bits, as 1e400, is none of them."""


def normalize(event: dict[str, Any]) -> dict[str, Any]:
    """The event with exact types, and with `extra` for fields that its type does not have. Raises Reject."""
    type = _event_type(event)
    exact: dict[str, Any] = {"type": type}
    if "ts" in event and event.get("timestamp") is None:
        event = {**event, "timestamp": event["ts"]}
    for name, convert in _FIELDS[type].items():
        value = event.get(name)
        if value is not None:
            exact[name] = convert(name, value)
    if type != EventType.SCALAR:
        extras = {name: event[name] for name in event if name not in _FIELDS[type] and name not in _NOT_KEPT}
        if extras:
            exact["extra"] = _extra(extras)
    return exact


def _extra(fields: dict[str, Any]) -> Extra:
    if len(fields) > MAX_EXTRA_FIELDS:
        raise Reject(f"an event has at most {MAX_EXTRA_FIELDS} fields that its type does not have")
    for name, value in fields.items():
        _check_plain(name, value, MAX_EXTRA_DEPTH)
    if isinstance(fields.get("url"), str) and fields["url"]:
        check_url(fields["url"])
    try:
        extra = Extra(orjson.dumps(fields))
    except orjson.JSONEncodeError as error:
        raise Reject(f"fields that an event's type does not have cannot be kept ({error})") from None
    if len(extra) > MAX_EXTRA_BYTES:
        raise Reject(f"fields that an event's type does not have are longer than {MAX_EXTRA_BYTES} bytes together")
    return extra


def _check_plain(name: str, value: Any, levels: int) -> None:
    """Raise Reject for a value that is not JSON, or is nested deeper than so many levels."""
    if isinstance(value, float) and not math.isfinite(value):
        raise Reject(f"field '{name[:64]}': NaN and Infinity are not JSON", field=name[:64])
    if isinstance(value, (dict, list)):
        if not levels:
            raise Reject(f"field '{name[:64]}' is nested deeper than {MAX_EXTRA_DEPTH} levels", field=name[:64])
        for item in value.values() if isinstance(value, dict) else value:
            _check_plain(name, item, levels - 1)


def kind_of(value: Any) -> str:
    """The name that JSON has for a value's type."""
    names = {dict: "an object", list: "an array", str: "a text", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def without_surrogates(value: Any) -> Any:
    """The value with "?" for lone surrogates, which UTF-8 does not have. They come from consoles' undecodable bytes."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode() if not value.isascii() else value
    if isinstance(value, list):
        return [without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {without_surrogates(key): without_surrogates(item) for key, item in value.items()}
    return value


def _event_type(event: dict[str, Any]) -> str:
    given = event.get("type")
    if not given:
        raise Reject("Event must have a 'type' field", malformed=False)
    name = str(given).replace(" ", "_")
    if name not in _TYPES:
        raise Reject(f"Invalid event type {str(given)[:64]}", malformed=False)
    return name


def _wrong(name: str, expected: str, value: Any) -> Reject:
    return Reject(f"field '{name}' must be {expected}, not {kind_of(value)}", field=name)


def _text(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (dict, list, bool)):
        raise _wrong(name, "a text", value)
    if isinstance(value, float) and not math.isfinite(value):
        raise Reject(f"field '{name}': NaN and Infinity are not JSON", field=name)
    return str(value)


def _flag(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if value in (0, 1):
        return bool(value)
    raise _wrong(name, "a boolean", value)


def _number(name: str, value: Any) -> float:
    if isinstance(value, str):
        return _spelled_number(name, value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _wrong(name, "a number", value)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isinf(number) and not isinstance(value, NotFinite):
        raise Reject(f"field '{name}' is beyond a 64-bit float", field=name)
    return number


def _spelled_number(name: str, value: str) -> float:
    spelled = value.strip().lower().lstrip("+")
    if spelled in _NAN_SPELLINGS:
        return _NAN_SPELLINGS[spelled]
    if not _NUMBER.fullmatch(value):
        raise Reject(f"field '{name}' must be a number, not the text {value[:32]!r}", field=name)
    return float(value)


def _integer(name: str, value: Any) -> int:
    number: int | float
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        number = int(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    else:
        number = _number(name, value)
        if not math.isfinite(number):
            raise Reject(f"field '{name}' must be an integer", field=name)
    # The parser makes a float of an integer beyond 64 bits, so -2.0**63 may stand for a lesser number.
    least = -_LARGEST if isinstance(number, float) else -_LARGEST - 1
    number = int(number)
    if not least <= number <= _LARGEST:
        raise Reject(f"field '{name}' is beyond a 64-bit integer", field=name)
    return number


def _timestamp(name: str, value: Any) -> int:
    iso = isinstance(value, str) and not _NUMBER.fullmatch(value)
    timestamp = _iso_timestamp(name, value) if iso else _integer(name, value)
    if not EARLIEST_TIMESTAMP <= timestamp <= LATEST_TIMESTAMP:
        raise Reject(f"field '{name}' must lie between the years 1 and 9999, in epoch milliseconds", field=name)
    return timestamp


def _iso_timestamp(name: str, value: str) -> int:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise Reject(f"field '{name}' must be epoch milliseconds or ISO-8601 text", field=name) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def _vector(name: str, value: Any) -> list[float]:
    if not isinstance(value, list):
        raise _wrong(name, "an array of numbers", value)
    return [math.nan if item is None else _number(f"{name}[{n}]", item) for n, item in enumerate(value)]


#: By the type of a field, the function that makes an exact value of what a client has sent.
_CONVERSIONS: dict[Any, Callable[[str, Any], Any]] = {
    str: _text,
    bool: _flag,
    float: _number,
    Int64: _integer,
    Milliseconds: _timestamp,
    list[float | None]: _vector,
}


def _fields_of(sent: type[SentEvent]) -> dict[str, Callable[[str, Any], Any]]:
    """The fields of an event that clients may spell in other ways, each with its conversion."""
    conversions = {}
    for field in structs.fields(sent):
        types = (field.type, *get_args(field.type))  # those of `str | None` are this, str and None
        convert = next((_CONVERSIONS[type] for type in types if type in _CONVERSIONS), None)
        if convert is not None:
            conversions[field.name] = convert
    return conversions


#: By event type, its fields.
_FIELDS = {str(sent.__struct_config__.tag): _fields_of(sent) for sent in get_args(OddEvent)}

#: Fields of every event of the SDK, the old name of `timestamp`, and fields that the server itself adds.
_NOT_KEPT = frozenset({"type", "method", "ts", "@timestamp", "plot_len", "plot_data", "source_urls", "valid_plot"})
