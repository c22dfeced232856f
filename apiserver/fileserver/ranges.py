"""Reads Range headers (RFC 9110, section 14): one range, or the whole file."""

from __future__ import annotations

import re
from typing import NamedTuple

_ONE_RANGE = re.compile(r"bytes=\s{0,9}([0-9]{0,19})\s{0,9}-\s{0,9}([0-9]{0,19})\s{0,9}", re.ASCII | re.IGNORECASE)


class Range(NamedTuple):
    """The bytes from `start` up to, but not including, `stop`."""

    start: int
    stop: int


class NotSatisfiable(Exception):
    """The range lies beyond the end of the file."""


def requested_range(header: str | None, size: int) -> Range | None:
    """The range of a file of `size` bytes; None for all of it, also if the header is malformed or has several ranges.

    `bytes=0-9` are the first ten bytes, `bytes=10-` are those after them, `bytes=-10` are the last ten.
    """
    match = _ONE_RANGE.fullmatch(header or "")
    if match is None or match[1] == match[2] == "":
        return None
    if not match[1]:
        count = int(match[2])
        if count == 0 or size == 0:
            raise NotSatisfiable
        return Range(max(size - count, 0), size)
    start = int(match[1])
    stop = min(int(match[2]) + 1, size) if match[2] else size
    if match[2] and int(match[2]) < start:
        return None
    if start >= size:
        raise NotSatisfiable
    return Range(start, stop)
