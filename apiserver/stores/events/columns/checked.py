"""Puts a checksum before what is stored, and the name of what it belongs to, so that damage is found and named.

Before the content stand:

    marker (4 bytes)   says that a checksum follows; nothing that was stored without one begins so
    checksum (4)       CRC-32 of all that follows
    kind (1), id (8)   what the content belongs to: the id of a chunk, or of a page of the tail
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Callable
from enum import IntEnum
from functools import wraps
from typing import NamedTuple, ParamSpec, Self, TypeVar

import zstandard

_MARKER = 0xFFFFFFFF
_HEAD = struct.Struct("<II")
_NAME = struct.Struct("<Bq")
_CONTENT = _HEAD.size + _NAME.size
#: What decoding raises when it meets bytes that make no sense.
_NONSENSE = (ValueError, KeyError, IndexError, RuntimeError, OverflowError, struct.error, zstandard.ZstdError)

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Kind(IntEnum):
    """What a checked content belongs to."""

    CHUNK = 1
    TAIL_PAGE = 2


class Place(NamedTuple):
    """A chunk or a page of the tail."""

    kind: Kind
    id: int

    @classmethod
    def of(cls, id: str) -> Self:
        """The chunk or fragment whose id is this text, of which eight bytes are made."""
        hashed = hashlib.blake2b(id.encode(), digest_size=8).digest()
        return cls(Kind.CHUNK, int.from_bytes(hashed, "big", signed=True))

    def __str__(self) -> str:
        return f"{self.kind.name.lower().replace('_', ' ')} {self.id}"


class Damaged(Exception):
    """What was read at `place` is not what was stored; None: it has no name, or that is damaged, too."""

    def __init__(self, place: Place | None, what: str = "a chunk") -> None:
        super().__init__(f"{place or what} is damaged: what was read is not what was stored")
        self.place = place


def wrap(content: bytes, place: Place) -> bytes:
    """The content, with its checksum."""
    named = _NAME.pack(*place) + content
    return _HEAD.pack(_MARKER, zlib.crc32(named)) + named


def unwrap(stored: bytes) -> memoryview:
    """The content of what was stored; Damaged. What older versions stored has no checksum, and is content as it is."""
    view = memoryview(stored)
    if len(stored) < _CONTENT:
        return view
    marker, checksum = _HEAD.unpack_from(stored)
    if zlib.crc32(view[_HEAD.size :]) == checksum:
        return view[_CONTENT:]  # if only the marker is damaged, nothing is lost
    if marker != _MARKER:
        return view
    kind, id = _NAME.unpack_from(stored, _HEAD.size)
    raise Damaged(Place(Kind(kind), id) if kind in iter(Kind) else None)


def decoder(function: Callable[Arguments, Result], what: str = "a chunk") -> Callable[Arguments, Result]:
    """`function`, which decodes what was stored. Damaged if it cannot: not all that was stored has a checksum."""

    @wraps(function)
    def decode(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        try:
            return function(*arguments, **named)
        except _NONSENSE as error:
            raise Damaged(None, what) from error

    return decode
