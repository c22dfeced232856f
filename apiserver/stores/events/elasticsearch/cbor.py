"""Decodes CBOR (RFC 8949), in which Elasticsearch answers stored bytes as they are, without base64.

For example, `bf 61 61 42 01 02 ff` is a map that ends at `ff`: its key "a" has a value of two bytes, 1 and 2.
"""

from __future__ import annotations

import struct
from typing import Any

_BREAK = object()
"""What ends a map, a list, or a text in pieces, whose length is not told before."""
_SIMPLE = {20: False, 21: True, 22: None, 31: _BREAK}
_FLOATS = {25: ">e", 26: ">f", 27: ">d"}
#: The kinds of items: the first three bits of the first byte.
_UNSIGNED, _NEGATIVE, _BYTES, _TEXT, _LIST, _MAP, _TAG, _OTHER = range(8)
_ENDLESS = 31


def loads(data: bytes) -> Any:
    """The item that `data` begins with. ValueError or IndexError: it is none."""
    return _Reader(data).item()


class _Reader:
    """Reads one item after another."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def item(self) -> Any:
        """The next item. Most are short texts and numbers, and lists and maps of a length that is not told."""
        head = self._data[self._at]
        self._at += 1
        kind, argument = head >> 5, head & 31
        if argument > 23 and kind != _OTHER:
            if argument == _ENDLESS:
                return self._until_break(kind)
            argument = int.from_bytes(self._take(1 << argument - 24), "big")
        if kind == _TEXT:
            return self._take(argument).decode()
        if kind == _UNSIGNED:
            return argument
        if kind == _BYTES:
            return self._take(argument)
        if kind == _OTHER:
            return self._other(argument)
        if kind == _NEGATIVE:
            return -1 - argument
        if kind == _LIST:
            return [self.item() for _ in range(argument)]
        if kind == _MAP:
            return {self.item(): self.item() for _ in range(argument)}
        raise ValueError(f"tag {argument} of CBOR")

    def _other(self, argument: int) -> Any:
        if argument in _FLOATS:
            (number,) = struct.unpack(_FLOATS[argument], self._take(1 << argument - 24))
            return number
        if argument not in _SIMPLE:
            raise ValueError(f"simple value {argument} of CBOR")
        return _SIMPLE[argument]

    def _until_break(self, kind: int) -> Any:
        items = [*iter(self.item, _BREAK)]
        if kind == _MAP:
            return dict(zip(items[::2], items[1::2], strict=True))
        if kind == _LIST:
            return items
        if kind == _TEXT:
            return "".join(items)
        if kind == _BYTES:
            return b"".join(items)
        raise ValueError(f"an endless item of CBOR of kind {kind}")

    def _take(self, count: int) -> bytes:
        start, self._at = self._at, self._at + count
        if self._at > len(self._data):
            raise ValueError("CBOR that ends too early")
        return self._data[start : self._at]
