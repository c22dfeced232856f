"""Reads the items of a history record: names and values, which are JSON.

An item holds a name, or the names that lead into nested values, and its value:

    0a 10 | 12 04 "loss" | 82 01 04 "0.25"

Most items are short and have one or two names, so their lengths are one byte each. These are read here. For all others,
the record is read as any message.
"""

from __future__ import annotations

from typing import TypeAlias

from apiserver.protobuf_wire import Message

#: The name of a value, or the names that lead to it, and its JSON.
Item: TypeAlias = tuple[tuple[bytes, ...], bytes]

_ITEM, _KEY, _NESTED = 0x0A, 0x0A, 0x12
_VALUE = b"\x82\x01"


def items(data: bytes) -> list[Item]:
    """The items of a record of history, summary or config. Raises Malformed."""
    found, at = _short(data)
    if at < len(data):
        found += [(tuple(item.each(1) or item.each(2)), item.bytes(16)) for item in Message(data[at:]).messages(1)]
    return found


def _short(data: bytes) -> tuple[list[Item], int]:
    """The items up to the first field that is not a short one, and where that is."""
    found: list[Item] = []
    start, at, stop = 0, 0, len(data)
    try:
        while at < stop:
            if data[at] != _ITEM or data[at + 1] > 127:
                return found, start
            end = at + 2 + data[at + 1]
            at += 2
            names: tuple[bytes, ...] = ()
            while (tag := data[at]) in (_KEY, _NESTED):
                after = at + 2 + data[at + 1]
                names = (*names, data[at + 2 : after])
                at = after
            if data[at : at + 2] != _VALUE or at + 3 + data[at + 2] != end or end > stop or tag != _VALUE[0]:
                return found, start
            found.append((names, data[at + 3 : end]))
            start = at = end
    except IndexError:
        pass
    return found, start
