"""Request bodies to points and lines, by the compiled scanner when it is installed (`accelerator/`).

The scanner takes plain scalar lines; what it leaves goes the way that all lines go without it. Both ways answer alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from apiserver.events import lines, odd
from apiserver.events.gathered import Gathered, gather, has_mixed_series
from apiserver.events.lines import EventLine, ScalarLine, Stop, never
from apiserver.events.rejects import Rejects

Read = tuple[Gathered, list[EventLine], Rejects]
"""Points, lines that are something else, and what neither is."""

#: With a greater share of other lines, the scanner only costs.
_MOST_ODD = 0.5
_SCALAR = b'"training_stats_scalar"'

#: What the scanner's answers look like; one that was built for another version of this module is not used.
_FORMAT = 1

try:
    import apiserver_accelerator as _installed
except ImportError:
    _installed = None

scanner: Callable[[bytes, int, int], Any] | None
"""The compiled scanner, if it is installed."""
scanner = _installed.scan if _installed and _installed.FORMAT == _FORMAT else None


def read(body: bytes, stop: Stop = never) -> Read:
    """The events of a JSON-lines body.

    Raises Contradiction when there is no end of malformed lines, Stopped when told to `stop`.
    """
    return _scanned(body, stop) or _decoded(body, stop)


def _decoded(body: bytes, stop: Stop) -> Read:
    parsed, rejects = lines.decode(body, stop)
    return *gather(parsed), rejects


def _scanned(body: bytes, stop: Stop = never) -> Read | None:
    """The same by the scanner, or None where it is of no use."""
    if scanner is None or _SCALAR not in body:
        return None
    try:
        keys, lengths, iters, timestamps, values, left = scanner(body, odd.EARLIEST_TIMESTAMP, odd.LATEST_TIMESTAMP)
    except UnicodeDecodeError:
        return None
    if len(left) > _MOST_ODD * (len(iters) // 8) or has_mixed_series(keys):
        return None
    others, rejects = lines.decode(b"\n".join(body[start:end] for _, start, end in left), stop)
    if any(type(line) is ScalarLine for line in others):
        return None  # a point among the others may have to come before one that was scanned
    rejects.lines = [left[n - 1][0] for n in rejects.lines]
    columns = np.frombuffer(iters, np.int64), np.frombuffer(timestamps, np.int64), np.frombuffer(values, np.float64)
    return Gathered(keys, lengths, *columns), others, rejects
