"""Counts the values of a JSON text, and how deep they are nested, before it is parsed.

Parsing makes a hundred bytes of memory of two bytes of text (`[]`), and holds up all other threads. Counting takes a
tenth of that time, and other threads run meanwhile.

It counts brackets and commas outside texts. For example, `{"a": [1, [2]], "b": "[,"}` has 3 opening brackets and 2
commas, so it holds at most 6 values, in 3 levels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

#: Bytes that are examined at once: few enough that the arrays made of them stay in the processor's cache.
SLICE = 64 * 2**10
_QUOTE, _COMMA = b'",'
#: `[` and `]` differ from `{` and `}` by one bit.
_BRACE_BIT = 0x20
_OPENING, _CLOSING = b"{}"


class Structure(NamedTuple):
    """The size of a JSON text. For a text that is not JSON, the numbers mean nothing."""

    values: int
    """Most values that it can hold, including objects and arrays."""
    depth: int
    """How deep objects and arrays are nested."""


def has_more_values(text: bytes, limit: int) -> bool:
    """Whether the text may hold more than `limit` values. A text of fewer bytes is not examined."""
    if len(text) < limit or sum(map(text.count, (b"[", b"{", b","))) < limit:
        return False
    return structure_of(text).values > limit


def is_deeper(text: bytes, levels: int) -> bool:
    """Whether objects and arrays are nested deeper than `levels`."""
    if len(text) <= levels or text.count(b"[") + text.count(b"{") <= levels:
        return False
    return structure_of(text).depth > levels


def structure_of(text: bytes, at_once: int = SLICE) -> Structure:
    """The number of values and the depth of a JSON text. For 50 MB it takes about a second.

    So many bytes are examined `at_once`.
    """
    marks = depth = deepest = inside = 0
    cut = b""
    for start in range(0, len(text), at_once):
        piece = cut + text[start : start + at_once]
        # If the end of the slice cuts an escape in two, the backslash belongs to the next slice.
        cut = b"\\" if (len(piece) - len(piece.rstrip(b"\\"))) % 2 else b""
        piece = piece.removesuffix(cut).replace(rb"\\", b"").replace(rb"\"", b"")
        if not piece:
            continue
        characters = np.frombuffer(piece, np.uint8)
        texts = (np.cumsum(characters == _QUOTE, dtype=np.uint8) + np.uint8(inside)) & 1
        inside = int(texts[-1])
        outside = texts == 0
        brackets = characters | _BRACE_BIT
        opening = (brackets == _OPENING) & outside
        levels = depth + np.cumsum(opening.astype(np.int8) - ((brackets == _CLOSING) & outside), dtype=np.int32)
        depth, deepest = int(levels[-1]), max(deepest, int(levels.max()))
        marks += int(np.count_nonzero(opening)) + int(np.count_nonzero((characters == _COMMA) & outside))
    return Structure(marks + 1, deepest)
