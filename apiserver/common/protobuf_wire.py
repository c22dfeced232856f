"""Finds the fields of messages of Protocol Buffers, without descriptions of these, where the place of each counts.

A message is a sequence of fields. Each has a number and one of four types. For example, the bytes 08 96 01 are field 1,
a varint, 150; the bytes 12 02 68 69 are field 2, two bytes, "hi". Nothing is copied.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

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
