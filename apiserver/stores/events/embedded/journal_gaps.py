"""Finds the bytes of a journal segment that are no whole record, and the whole records behind them.

A server reads a segment up to the first record that is not whole (`journal.py`). If a byte in the middle was damaged,
whole records lie behind it, which nobody would read. For example, a byte of the second record of three was flipped:

    magic, record of 900 bytes, record of 500 bytes, record of 700 bytes
    the records lie at 8–908 and 1408–2108; there is a gap at 908–1408
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from apiserver.stores.events.embedded.journal import HEAD_BYTES, MAGIC, end_of_whole

#: Bytes that are searched at once, and the most beginnings of records that are tried for a gap.
_WINDOW, _MOST_TRIED = 2**20, 10_000
#: What the structure of a record begins with: a list of five (`records._Meta`).
_META = 0x95
#: Bytes of a point in the columns of a record.
_POINT = 24


class Stretch(NamedTuple):
    """The bytes from `start` to `stop`."""

    start: int
    stop: int


class Contents(NamedTuple):
    """Where the records of a segment lie, and the damaged bytes between them."""

    magic: bool
    """Whether it begins as a journal does, as far as it goes: one that was just begun may still be empty."""
    records: list[Stretch]
    gaps: list[Stretch]
    """What is no whole record."""


def contents_of(content: memoryview) -> Contents:
    """The records and the gaps of a segment, in order."""
    at = len(MAGIC)
    records: list[Stretch] = []
    gaps: list[Stretch] = []
    while at < len(content):
        end = end_of_whole(content, at)
        if end is None:
            end = _next_whole(content, at + 1)
            gaps.append(Stretch(at, end))
        else:
            records.append(Stretch(at, end))
        at = end
    return Contents(MAGIC.startswith(content[: len(MAGIC)]), records, gaps)


def _next_whole(content: memoryview, start: int) -> int:
    """Where the next whole record begins; the end of the content if there is none."""
    tried = 0
    for first in range(start, len(content) - HEAD_BYTES, _WINDOW):
        for at in _beginnings(content, first):
            tried += 1
            if tried > _MOST_TRIED:
                return len(content)
            if end_of_whole(content, at) is not None:
                return at
    return len(content)


def _beginnings(content: memoryview, first: int) -> list[int]:
    """Where a record may begin among the next `_WINDOW` bytes: with sizes that fit, and something that looks right."""
    size = min(_WINDOW, len(content) - HEAD_BYTES - first)
    bytes = np.frombuffer(content, np.uint8)
    meta, columns = _number(bytes, first + 4, size), _number(bytes, first + 8, size)
    body = np.arange(first, first + size) + HEAD_BYTES
    may = (_number(bytes, first + 12, size) == 0) & (columns % _POINT == 0) & (body + columns + meta <= len(content))
    which = np.flatnonzero(may & (meta > 0))
    which = which[bytes[body[which] + columns[which]] == _META]
    found: list[int] = (which + first).tolist()
    return found


def _number(bytes: npt.NDArray[np.uint8], first: int, size: int) -> npt.NDArray[np.int64]:
    """The number of four bytes that begins at each of the next bytes."""
    numbers = np.zeros(size, np.int64)
    for place in range(4):
        numbers |= bytes[first + place : first + place + size].astype(np.int64) << 8 * place
    return numbers
