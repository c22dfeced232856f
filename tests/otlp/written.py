"""Writes requests of OTLP in Protocol Buffers, with the numbers of opentelemetry-proto."""

from __future__ import annotations

import struct
from typing import Any


def varint(value: int) -> bytes:
    written = bytearray()
    value &= 2**64 - 1
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(written) + bytes([value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def double(field: int, value: float) -> bytes:
    return varint(field << 3 | 1) + struct.pack("<d", value)


def fixed(field: int, value: int) -> bytes:
    return varint(field << 3 | 1) + (value & 2**64 - 1).to_bytes(8, "little")


def message(field: int, content: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(content)) + content


def any_value(value: Any) -> bytes:
    match value:
        case None:
            return b""
        case str():
            return message(1, value.encode())
        case bool():
            return number(2, value)
        case int():
            return number(3, value)
        case float():
            return double(4, value)
        case list():
            return message(5, b"".join(message(1, any_value(one)) for one in value))
        case dict():
            return message(6, pairs(1, value))
        case bytes():
            return message(7, value)
    raise TypeError(value)


def pairs(field: int, attributes: dict[str, Any]) -> bytes:
    return b"".join(
        message(field, message(1, name.encode()) + message(2, any_value(value))) for name, value in attributes.items()
    )


def request(resource: dict[str, Any], *metrics: bytes) -> bytes:
    """A request with metrics of one resource."""
    scope = b"".join(message(2, metric) for metric in metrics)
    return message(1, message(1, pairs(1, resource)) + message(2, scope))


def metric(name: str, kind: int, *points: bytes) -> bytes:
    """A metric; `kind` is the number of the field that holds its points."""
    return message(1, name.encode()) + message(kind, b"".join(message(1, point) for point in points))


def gauge(name: str, value: float, attributes: dict[str, Any], nanos: int = 0, more: bytes = b"") -> bytes:
    return metric(name, 5, pairs(7, attributes) + fixed(3, nanos) + double(4, value) + more)


#: The names of values of attributes in JSON.
def any_json(value: Any) -> dict[str, Any]:
    match value:
        case None:
            return {}
        case str():
            return {"stringValue": value}
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case list():
            return {"arrayValue": {"values": [any_json(one) for one in value]}}
        case dict():
            return {"kvlistValue": {"values": json_pairs(value)}}
    raise TypeError(value)


def json_pairs(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": name, "value": any_json(value)} for name, value in attributes.items()]
