"""Writes Protocol Buffers and TensorBoard's event files, bit by bit."""

from __future__ import annotations

import struct
from collections.abc import Iterable

import google_crc32c
import numpy as np

Value = int | float | bytes | str


def varint(value: int) -> bytes:
    """A number as a varint; a negative one as its two's complement."""
    value &= 2**64 - 1
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def message(*fields: tuple[int, Value]) -> bytes:
    """A message of fields: an int is a varint, a float 64 bits, all else bytes. `single` makes 32 bits."""
    made = b""
    for number, value in fields:
        if isinstance(value, int):
            made += varint(number << 3) + varint(value)
        elif isinstance(value, float):
            made += varint(number << 3 | 1) + struct.pack("<d", value)
        else:
            content = value.encode() if isinstance(value, str) else value
            made += varint(number << 3 | 2) + varint(len(content)) + content
    return made


def single(number: int, value: float) -> bytes:
    """A field of 32 bits."""
    return varint(number << 3 | 5) + struct.pack("<f", value)


def scalar(tag: str, step: int, value: float, time: float = 1_700_000_000.5) -> bytes:
    """An event as PyTorch writes it, without what is 0."""
    numbers: list[tuple[int, Value]] = [(1, float(time))] if time else []
    numbers += [(2, step)] if step else []
    return message(*numbers, (5, message((1, message((1, tag)) + single(2, value)))))


def tensor_scalar(tag: str, step: int, value: float, form: str = "<f4", time: float = 1_700_000_000.5) -> bytes:
    """An event as TensorFlow 2 writes it."""
    kind = {"<f4": 1, "<f8": 2, "<i8": 9}[form]
    content = np.array([value], form).tobytes()
    tensor = message((1, kind), (2, b""), (4, content))
    return event(tag, step, (8, tensor), (9, message((1, message((1, "scalars"))))), time=time)


def event(tag: str, step: int, *content: tuple[int, Value], time: float = 1_700_000_000.5) -> bytes:
    """An event with one value."""
    return message((1, time), (2, step), (5, message((1, message((1, tag), *content)))))


def record(data: bytes) -> bytes:
    """Bytes as a record of a file."""
    length = struct.pack("<Q", len(data))
    return length + _sum(length) + data + _sum(data)


def records(events: Iterable[bytes]) -> bytes:
    """The content of a file, which begins with its version."""
    return b"".join(record(data) for data in (message((1, 1.0), (3, "brain.Event:2")), *events))


def _sum(data: bytes) -> bytes:
    checksum: int = google_crc32c.value(data)
    return struct.pack("<I", ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFF_FFFF)
