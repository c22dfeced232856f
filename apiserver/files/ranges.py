"""The parts of a file that a Range header asks for (RFC 9110, section 14): one range, or the whole file."""

from __future__ import annotations

import re
from typing import NamedTuple

_ONE_RANGE = re.compile(r"bytes=\s{0,9}([0-9]{0,19})\s{0,9}-\s{0,9}([0-9]{0,19})\s{0,9}", re.ASCII | re.IGNORECASE)


class Range(NamedTuple):
    """Bytes `start` up to, not including, `stop`."""

    start: int
    stop: int


class NotSatisfiable(Exception):
    """The range lies beyond the end of the file."""


def requested_range(header: str | None, size: int) -> Range | None:
    """The range of a file of `size` bytes; None: all of it, also when the header is malformed or has several."""
    match = _ONE_RANGE.fullmatch(header or "")
    if match is None or match[1] == match[2] == "":
        return None
    if not match[1]:
        return _last(int(match[2]), size)
    start = int(match[1])
    stop = min(int(match[2]) + 1, size) if match[2] else size
    if match[2] and int(match[2]) < start:
        return None
    if start >= size:
        raise NotSatisfiable
    return Range(start, stop)


def _last(count: int, size: int) -> Range:
    if count == 0 or size == 0:
        raise NotSatisfiable
    return Range(max(size - count, 0), size)
