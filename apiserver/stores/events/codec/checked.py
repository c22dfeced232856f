"""Puts a checksum before what is stored, and the name of what it belongs to, so that damage is found and named.

Before the content stand:

    checksum (4 bytes)   CRC-32 of all that follows
    kind (1), id (8)     what the content belongs to: the id of a chunk, or of a page of the tail
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

_CHECKSUM = struct.Struct("<I")
_NAME = struct.Struct("<Bq")
_CONTENT = _CHECKSUM.size + _NAME.size
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
    return _CHECKSUM.pack(zlib.crc32(named)) + named


def place_of(stored: bytes) -> Place | None:
    """What the content says that it belongs to; None if it says nothing that makes sense."""
    if len(stored) < _CONTENT:
        return None
    kind, id = _NAME.unpack_from(stored, _CHECKSUM.size)
    return Place(Kind(kind), id) if kind in iter(Kind) else None


def unwrap(stored: bytes) -> memoryview:
    """The content of what was stored; Damaged."""
    view = memoryview(stored)
    if len(stored) < _CONTENT or _CHECKSUM.unpack_from(stored)[0] != zlib.crc32(view[_CHECKSUM.size :]):
        raise Damaged(place_of(stored))
    return view[_CONTENT:]


def decoder(function: Callable[Arguments, Result], what: str = "a chunk") -> Callable[Arguments, Result]:
    """`function`, which decodes what was stored. Damaged if it cannot: not all that was stored has a checksum."""

    @wraps(function)
    def decode(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        try:
            return function(*arguments, **named)
        except _NONSENSE as error:
            raise Damaged(None, what) from error

    return decode
