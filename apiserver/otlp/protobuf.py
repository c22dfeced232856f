"""OTLP in Protocol Buffers: bodies with metrics as points, and answers.

The numbers of fields are those of opentelemetry-proto 1.x. Fields without a name here are passed over.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from apiserver.common.protobuf_wire import BYTES, FIXED64, VARINT, Field, fields, signed
from apiserver.common.protobuf_wire import Malformed as NotProtobuf
from apiserver.otlp.points import NO_RECORDED_VALUE, Attributes, Figures, Malformed, Point, TooMuch, distribution

#: The most fields that are read of a body, so that reading always ends soon: a field takes about a microsecond. A point
#: with five attributes has about 8, not counting what is in attributes that were read before.
MOST_FIELDS = 1_000_000
#: How deep lists in the value of an attribute may be nested.
DEEPEST = 16
#: So many attributes of up to so many bytes are remembered while a body is read.
_MOST_PAIRS, _SHORT = 10_000, 200

_RESOURCE_METRICS = _PARTIAL_SUCCESS = 1
_RESOURCE, _SCOPE_METRICS = 1, 2
_RESOURCE_ATTRIBUTES = 1
_METRICS = 2
_NAME = 1
_POINTS = 1
_KEY, _VALUE = 1, 2
_TIME = 3
_COUNT = 4
_FLOAT_VALUE, _INTEGER_VALUE = 4, 6
_QUANTILES = 6

#: The values of attributes, by the number and type of their field.
_VALUES = {
    (1, BYTES): "text",
    (2, VARINT): "boolean",
    (3, VARINT): "integer",
    (4, FIXED64): "float",
    (5, BYTES): "list",
    (6, BYTES): "pairs",
    (7, BYTES): "bytes",
}


class _Kind(NamedTuple):
    """The numbers of a kind of points' fields; None for those that it lacks."""

    attributes: int
    flags: int
    total: int | None = None
    least: int | None = None
    greatest: int | None = None


_NUMBER = _Kind(attributes=7, flags=8)
_SUMMARY = _Kind(attributes=7, flags=8, total=5)
#: The kinds of metrics by the fields that hold them: gauge, sum, histogram, exponential histogram, summary.
_KINDS = {
    5: _NUMBER,
    7: _NUMBER,
    9: _Kind(attributes=9, flags=10, total=5, least=11, greatest=12),
    10: _Kind(attributes=1, flags=10, total=5, least=12, greatest=13),
    11: _SUMMARY,
}


def points(body: bytes, most: int = MOST_FIELDS) -> Iterator[Point]:
    """The points of a body of up to `most` fields. Raises Malformed and TooMuch."""
    try:
        yield from _Reading(body, most).points()
    except NotProtobuf as error:
        raise Malformed(f"The body is not a request in Protocol Buffers: {error}") from None


def memory_of(body: bytes) -> int:
    """About how many bytes of memory the points of a body take: the smallest point has 13 bytes, and takes 72."""
    return 6 * len(body)


class _Reading:
    def __init__(self, data: bytes, most: int) -> None:
        self._data = data
        self._most = self._left = most
        self._pairs: dict[bytes, tuple[str, Any]] = {}
        """Attributes that were read, by their bytes: most points have the same few."""

    def points(self) -> Iterator[Point]:
        for of_resource in self._messages(_RESOURCE_METRICS, 0, len(self._data)):
            resource: Attributes = {}
            for one in self._messages(_RESOURCE, of_resource.start, of_resource.stop):
                for pair in self._messages(_RESOURCE_ATTRIBUTES, one.start, one.stop):
                    self._add_pair(resource, pair, DEEPEST)
            for scope in self._messages(_SCOPE_METRICS, of_resource.start, of_resource.stop):
                for metric in self._messages(_METRICS, scope.start, scope.stop):
                    yield from self._of_metric(metric, resource)

    def _of_metric(self, metric: Field, resource: Attributes) -> Iterator[Point]:
        name, held = "", []
        for field in self._fields(metric.start, metric.stop):
            if field.type == BYTES and field.number == _NAME:
                name = self._text(field)
            elif field.type == BYTES and field.number in _KINDS:
                held.append(field)
        for field in held:
            kind = _KINDS[field.number]
            for point in self._messages(_POINTS, field.start, field.stop):
                yield self._point(point, kind, name, resource)

    def _point(self, point: Field, kind: _Kind, metric: str, resource: Attributes) -> Point:
        attributes: Attributes = {}
        numbers: dict[int, Field] = {}
        quantiles: list[tuple[float, float]] = []
        for field in self._fields(point.start, point.stop):
            if field.type != BYTES:
                numbers[field.number] = field
            elif field.number == kind.attributes:
                self._add_pair(attributes, field, DEEPEST)
            elif kind is _SUMMARY and field.number == _QUANTILES:
                found = {one.number: one for one in self._fields(field.start, field.stop)}
                quantiles.append((self._float(found, _KEY) or 0.0, self._float(found, _VALUE) or 0.0))
        flags = numbers.get(kind.flags)
        figures: Figures
        if flags is not None and flags.value & NO_RECORDED_VALUE:
            figures = ()
        elif kind.total is None:
            figures = self._number(numbers)
        else:
            total, least, greatest = (self._float(numbers, at) for at in (kind.total, kind.least, kind.greatest))
            figures = distribution(self._fixed("<Q", numbers, _COUNT) or 0, total, least, greatest, quantiles)
        return Point(metric, resource, attributes, self._fixed("<Q", numbers, _TIME) or 0, figures)

    def _number(self, numbers: dict[int, Field]) -> Figures:
        value = self._float(numbers, _FLOAT_VALUE)
        if value is None:
            value = self._fixed("<q", numbers, _INTEGER_VALUE)
        return () if value is None else [("", float(value))]

    def _add_pair(self, attributes: Attributes, pair: Field, levels: int) -> None:
        content = self._data[pair.start : pair.stop] if pair.stop - pair.start <= _SHORT else None
        known = None if content is None else self._pairs.get(content)
        if known is None:
            known = self._pair(pair, levels)
            if content is not None and len(self._pairs) < _MOST_PAIRS:
                self._pairs[content] = known
        attributes[known[0]] = known[1]

    def _pair(self, pair: Field, levels: int) -> tuple[str, Any]:
        name, value = "", None
        for field in self._fields(pair.start, pair.stop):
            if field.type == BYTES and field.number == _KEY:
                name = self._text(field)
            elif field.type == BYTES and field.number == _VALUE:
                value = self._value(field, levels)
        return name, value

    def _value(self, any_value: Field, levels: int) -> Any:
        """The value of an attribute. Lists in it may be nested `levels` deep."""
        if not levels:
            raise Malformed(f"The value of an attribute is nested deeper than {DEEPEST} levels")
        value: Any = None
        for field in self._fields(any_value.start, any_value.stop):
            match _VALUES.get((field.number, field.type)):
                case "text":
                    value = self._text(field)
                case "boolean":
                    value = bool(field.value)
                case "integer":
                    value = signed(field.value)
                case "float":
                    (value,) = struct.unpack_from("<d", self._data, field.start)
                case "list":
                    value = [self._value(message, levels - 1) for message in self._messages(1, field.start, field.stop)]
                case "pairs":
                    value = {}
                    for message in self._messages(1, field.start, field.stop):
                        self._add_pair(value, message, levels - 1)
                case "bytes":
                    value = self._data[field.start : field.stop]
        return value

    def _messages(self, number: int, start: int, stop: int) -> Iterator[Field]:
        return (field for field in self._fields(start, stop) if field.number == number and field.type == BYTES)

    def _fields(self, start: int, stop: int) -> Iterator[Field]:
        for field in fields(self._data, start, stop):
            self._left -= 1
            if self._left < 0:
                raise TooMuch(f"The request holds more than {self._most:,} fields: send fewer points at once")
            yield field

    def _text(self, field: Field) -> str:
        return self._data[field.start : field.stop].decode(errors="replace")

    def _float(self, numbers: dict[int, Field], at: int | None) -> float | None:
        value: float | None = self._fixed("<d", numbers, at)
        return value

    def _fixed(self, form: str, numbers: dict[int, Field], at: int | None) -> Any:
        field = None if at is None else numbers.get(at)
        return None if field is None or field.type != FIXED64 else struct.unpack_from(form, self._data, field.start)[0]


def taken(rejected: int, message: str) -> bytes:
    """The answer to a request that was taken but for `rejected` points."""
    if not rejected:
        return b""
    return _field(_PARTIAL_SUCCESS, _varint(1 << 3 | VARINT) + _varint(rejected) + _field(2, message.encode()))


def refused(message: str) -> bytes:
    """The answer to a request that was not taken: a google.rpc.Status."""
    return _field(2, message.encode())


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | BYTES) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)
