"""Encodes answers as JSON; a large one in pieces and in a thread, because encoding holds up all other threads.

For example, 10,000 events are encoded 16 at a time. Between two pieces, other threads run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import islice
from typing import Any

import orjson

from apiserver.common.answers import MUCH, AnswerTooLarge, held_size
from apiserver.common.off_loop import MANY

#: The JSON of an answer. A large one stays in pieces: joining them would take its size once more.
Json = bytes | list[bytes]

#: Bytes of the largest answer.
MOST_JSON = 100 * 2**20
#: Least bytes of a piece.
_PIECE = 2**18
#: Items of a list that are encoded at once. For an answer beyond MUCH it is one, so that no large piece is copied.
_AT_ONCE = 16
#: An answer for which more bytes were read is encoded in a thread, even if it holds few things.
_MUCH = 2**21
#: Levels of objects that are encoded entry by entry: a histogram has its metrics, and in these their variants.
_LEVELS = 3


def encode(value: Any) -> bytes:
    """The JSON of a value; NaN and infinities become null. TypeError for types that JSON does not have."""
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)


async def encode_many(
    answer: dict[str, Any], size: int | None = None, *, levels: int = _LEVELS, entries: int = 1
) -> Json:
    """The JSON of an answer, in pieces if the answer holds many things or much was read for it.

    `size`: the number of things; by default, that of the items in its lists. `levels`: those of objects that are
    encoded entry by entry. `entries`: how many entries of the last level are encoded at once, more than one if they
    are small. AnswerTooLarge beyond MOST_JSON, which can happen if the answer holds the same long text
    many times.
    """
    if size is None:
        size = sum([len(value) for value in answer.values() if type(value) is list])
    if size <= MANY and held_size() <= _MUCH:
        return encode(answer)
    return await asyncio.to_thread(_in_pieces, answer, levels, entries)


def size_of(json: Json) -> int:
    """The number of bytes."""
    return len(json) if isinstance(json, bytes) else sum(map(len, json))


def _in_pieces(value: Any, levels: int, entries: int) -> list[bytes]:
    """The JSON of the value, in pieces of `_PIECE` bytes or more."""
    made: list[bytes] = []
    small: list[bytes] = []
    size = total = 0
    for piece in _pieces(value, levels, 1 if held_size() > MUCH else _AT_ONCE, entries):
        total += len(piece)
        if total > MOST_JSON:
            raise AnswerTooLarge
        is_large = len(piece) > _PIECE
        if is_large or size > _PIECE:
            made.append(b"".join(small))
            small, size = [], 0
        if is_large:
            made.append(piece)  # as it is: joining would copy it
        else:
            small.append(piece)
            size += len(piece)
    return [*made, b"".join(small)]


def _pieces(value: Any, levels: int, at_once: int, entries: int) -> Iterator[bytes]:
    """The JSON of the value, in pieces; a list longer than `at_once` is encoded `at_once` items at a time."""
    if levels == 1 and entries > 1 and isinstance(value, dict):
        left, before = iter(value.items()), b"{"
        while some := dict(islice(left, entries)):
            yield before + encode(some)[1:-1]
            before = b","
        yield b"}" if value else b"{}"
    elif levels and isinstance(value, dict):
        before = b"{"
        for name, item in value.items():
            yield b"%b%b:" % (before, encode(name))
            yield from _pieces(item, levels - 1, at_once, entries)
            before = b","
        yield b"}" if value else b"{}"
    elif isinstance(value, list) and len(value) > at_once:
        for start in range(0, len(value), at_once):
            yield b"," if start else b"["
            yield encode(value[start]) if at_once == 1 else encode(value[start : start + at_once])[1:-1]
        yield b"]"
    else:
        yield encode(value)
