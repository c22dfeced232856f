"""Answers as JSON. Encoding holds up all other threads, too, so a large answer is encoded in pieces, in a thread.

For example, an answer of 10,000 events is encoded by 16 of them at a time; between two pieces others have their turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import orjson

from apiserver.answers import MUCH, AnswerTooLarge, held_size
from apiserver.off_loop import MANY

#: The JSON of an answer: in pieces that follow one another when it is large, since to join them would double it.
Json = bytes | list[bytes]

#: Bytes of the largest answer.
MOST_JSON = 100 * 2**20
#: Bytes of a piece, at least.
_PIECE = 2**18
#: Items of a list that are encoded at once; those of MUCH one by one, so that no large piece is copied.
_AT_ONCE = 16
#: Bytes that are encoded in a thread, however few things they are.
_MUCH = 2**20
#: So many levels of objects are encoded entry by entry: a histogram has its metrics, in these their variants.
_LEVELS = 3


def encode(value: Any) -> bytes:
    """NaN and infinities become null; TypeError for values that JSON does not have."""
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)


async def encode_many(answer: dict[str, Any], size: int | None = None) -> Json:
    """The same, in pieces if there are many things in it, or if much was read for it.

    `size`: how many things, if not those that the lists directly in it hold. AnswerTooLarge beyond MOST_JSON, as a text
    that was read once may be in it many times.
    """
    if size is None:
        size = sum([len(value) for value in answer.values() if type(value) is list])
    if size <= MANY and held_size() <= _MUCH:
        return encode(answer)
    return await asyncio.to_thread(_in_pieces, answer)


def size_of(json: Json) -> int:
    """Bytes of it."""
    return len(json) if isinstance(json, bytes) else sum(map(len, json))


def _in_pieces(value: Any) -> list[bytes]:
    """Pieces of some size, which together are the JSON of the value."""
    made: list[bytes] = []
    small: list[bytes] = []
    total = size = 0
    for piece in _pieces(value, _LEVELS, 1 if held_size() > MUCH else _AT_ONCE):
        if len(piece) > _PIECE:  # it is not copied
            made += [b"".join(small), piece]
            small.clear()
            total, size = total + size + len(piece), 0
        else:
            small.append(piece)
            size += len(piece)
            if size > _PIECE:
                made.append(b"".join(small))
                small.clear()
                total, size = total + size, 0
        if total > MOST_JSON:
            raise AnswerTooLarge
    return [*made, b"".join(small)]


def _pieces(value: Any, levels: int, at_once: int) -> Iterator[bytes]:
    """Pieces which together are the JSON of the value; of lists with more items, `at_once` of these are a piece."""
    if levels and isinstance(value, dict):
        before = b"{"
        for name, item in value.items():
            yield b"%b%b:" % (before, encode(name))
            yield from _pieces(item, levels - 1, at_once)
            before = b","
        yield b"}" if value else b"{}"
    elif isinstance(value, list) and len(value) > at_once:
        for start in range(0, len(value), at_once):
            yield b"," if start else b"["
            yield encode(value[start]) if at_once == 1 else encode(value[start : start + at_once])[1:-1]
        yield b"]"
    else:
        yield encode(value)
