"""Answers as JSON. Encoding holds up all other threads, too, so a large answer is encoded in pieces, in a thread.

For example, an answer of 10,000 events is encoded by 16 of them at a time; between two pieces others have their turn.
"""

from __future__ import annotations

from typing import Any

import orjson

from apiserver.off_loop import MANY, off_loop

#: Items of a list that are encoded at once.
_AT_ONCE = 16
#: So many levels of objects are encoded entry by entry: a histogram has its metrics, in these their variants.
_LEVELS = 3


def encode(value: Any) -> bytes:
    """NaN and infinities become null; TypeError for values that JSON does not have."""
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)


async def encode_many(answer: dict[str, Any], size: int | None = None) -> bytes:
    """The same, in pieces if there are many things in it: `size`, or what the lists directly in it hold."""
    if size is None:
        size = sum([len(value) for value in answer.values() if type(value) is list])
    return await off_loop(size, lambda: _in_pieces(answer, _LEVELS)) if size > MANY else encode(answer)


def _in_pieces(value: Any, levels: int) -> bytes:
    if levels and isinstance(value, dict):
        entries = [b"%b:%b" % (encode(name), _in_pieces(item, levels - 1)) for name, item in value.items()]
        return b"{%b}" % b",".join(entries)
    if isinstance(value, list) and len(value) > _AT_ONCE:
        slices = (value[start : start + _AT_ONCE] for start in range(0, len(value), _AT_ONCE))
        return b"[%b]" % b",".join([encode(some)[1:-1] for some in slices])
    return encode(value)
