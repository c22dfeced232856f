"""Reads messages in the wire format of Protocol Buffers, without their descriptions.

A message is a sequence of fields. Each has a number and one of four types. For example, the bytes 08 96 01 are field 1,
a varint, 150; the bytes 12 02 68 69 are field 2, two bytes, "hi". Nothing is copied that a caller does not ask for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from apiserver.events.model import Float64Array

#: The types of fields.
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_SIZES = {FIXED64: 8, FIXED32: 4}
_LONGEST_VARINT = 10


class Malformed(ValueError):
    """The bytes are not what they should be; the message says why."""


class Field(NamedTuple):
    """A field of a message: its number and type, and where its content starts and stops; of a varint also its value."""

    number: int
    type: int
    start: int
    stop: int
    value: int


def fields(data: bytes, start: int = 0, stop: int | None = None) -> Iterator[Field]:
    """The fields of the message in a part of `data`. Raises Malformed."""
    stop = len(data) if stop is None else stop
    while start < stop:
        tag = data[start]
        if tag < 0x80:
            start += 1
        else:
            tag, start = _varint(data, start, stop)
        number, type = tag >> 3, tag & 7
        if type == VARINT:
            value, end = _varint(data, start, stop)
        elif type == BYTES:
            if start < stop and data[start] < 0x80:
                value, start = data[start], start + 1
            else:
                value, start = _varint(data, start, stop)
            end = start + value
        elif type in _SIZES:
            value, end = 0, start + _SIZES[type]
        else:
            raise Malformed(f"field {number} has the type {type}")
        if end > stop or not number:
            raise Malformed(f"field {number} is longer than its message")
        yield Field(number, type, start, end, value)
        start = end


def _varint(data: bytes, start: int, stop: int) -> tuple[int, int]:
    """The unsigned number that starts there, and where it ends."""
    value = shift = 0
    for place in range(start, min(stop, start + _LONGEST_VARINT)):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, place + 1
        shift += 7
    raise Malformed("a number does not end")


def signed(value: int) -> int:
    """The signed 64-bit number of a varint."""
    return value - 2**64 if value >= 2**63 else value


class Message:
    """A message as its fields by number; what is missing has the value that the format gives it. Raises Malformed."""

    def __init__(self, data: bytes) -> None:
        self._fields: defaultdict[int, list[Field]] = defaultdict(list)
        self._data = data
        for field in fields(data):
            self._fields[field.number].append(field)

    def __contains__(self, number: int) -> bool:
        return number in self._fields

    def numbers(self) -> list[int]:
        """The numbers of its fields, each once."""
        return list(self._fields)

    def each(self, number: int, type: int = BYTES) -> list[bytes]:
        """The contents of all fields of that number and type."""
        found = self._fields.get(number, ())
        return [self._data[field.start : field.stop] for field in found if field.type == type]

    def bytes(self, number: int) -> bytes:
        """The content of the last field of that number; empty without one."""
        found = self.each(number)
        return found[-1] if found else b""

    def text(self, number: int) -> str:
        """As `bytes`, as text; what is not UTF-8 becomes U+FFFD."""
        return self.bytes(number).decode(errors="replace")

    def message(self, number: int) -> Message:
        """The last message in that field; an empty one without one."""
        return Message(self.bytes(number))

    def messages(self, number: int) -> list[Message]:
        """All messages in fields of that number."""
        return [Message(one) for one in self.each(number)]

    def integer(self, number: int) -> int:
        """The last signed number; 0 without one."""
        found = [field.value for field in self._fields.get(number, ()) if field.type == VARINT]
        return signed(found[-1]) if found else 0

    def integers(self, number: int) -> list[int]:
        """All signed numbers in fields of that number, one by one or packed."""
        found: list[int] = []
        for field in self._fields.get(number, ()):
            if field.type == VARINT:
                found.append(signed(field.value))
            elif field.type == BYTES:
                place = field.start
                while place < field.stop:
                    value, place = _varint(self._data, place, field.stop)
                    found.append(signed(value))
        return found

    def float64(self, number: int) -> float:
        """The last 64-bit float; 0 without one."""
        found = self.each(number, FIXED64)
        return float(np.frombuffer(found[-1], "<f8")[0]) if found else 0.0

    def floats(self, number: int, form: str) -> Float64Array:
        """All floats of the form `<f4` or `<f8`, one by one or packed."""
        size = np.dtype(form).itemsize
        single = FIXED64 if size == 8 else FIXED32
        parts = [
            self._data[field.start : field.stop]
            for field in self._fields.get(number, ())
            if field.type in (single, BYTES)
        ]
        joined = b"".join(parts)
        if len(joined) % size:
            raise Malformed(f"field {number} does not hold whole numbers")
        return np.frombuffer(joined, form).astype(np.float64)
