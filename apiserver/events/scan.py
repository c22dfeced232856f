"""Reads request bodies with the compiled scanner (`accelerator/`), if it is installed.

The scanner takes plain scalar lines. All other lines are read as they are without a scanner. The result is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from apiserver.events import lines
from apiserver.events.event_types import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, SentEvent, SentScalar
from apiserver.events.gathered import Gathered, gather, has_mixed_series
from apiserver.events.lines import Stop, never
from apiserver.events.rejects import Rejects

Read = tuple[Gathered, Sequence[SentEvent], Rejects]
"""Points, other events, and lines that are not events."""

#: If the share of other lines is greater, the scanner only takes time.
_MOST_ODD = 0.5
_SCALAR = b'"training_stats_scalar"'

#: The form of the scanner's answers. A scanner with another form was built for another version, and is not used.
_FORMAT = 1

try:
    import apiserver_accelerator as _installed
except ImportError:
    _installed = None

scanner: Callable[[bytes, int, int], Any] | None
"""The compiled scanner, if it is installed."""
scanner = _installed.scan if _installed and _installed.FORMAT == _FORMAT else None


def read(body: bytes, stop: Stop = never) -> Read:
    """The events of a JSON-lines body. Raises Contradiction for too many malformed lines, and Stopped when told to."""
    return _scanned(body, stop) or _decoded(body, stop)


def _decoded(body: bytes, stop: Stop) -> Read:
    parsed, rejects = lines.decode(body, stop)
    return *gather(parsed), rejects


def _scanned(body: bytes, stop: Stop = never) -> Read | None:
    """The events as the scanner reads them; None if it is of no use for this body."""
    if scanner is None or _SCALAR not in body:
        return None
    try:
        keys, lengths, iters, timestamps, values, left = scanner(body, EARLIEST_TIMESTAMP, LATEST_TIMESTAMP)
    except UnicodeDecodeError:
        return None
    if len(left) > _MOST_ODD * (len(iters) // 8):
        return None
    columns = np.frombuffer(iters, np.int64), np.frombuffer(timestamps, np.int64), np.frombuffer(values, np.float64)
    gathered = Gathered(keys, lengths, *columns)
    if keys and has_mixed_series(gathered.columns):
        return None
    if not left:
        return gathered, [], Rejects()
    others, rejects = lines.decode(b"\n".join(body[start:end] for _, start, end in left), stop)
    if any(type(line) is SentScalar for line in others):
        return None  # a point among the others may have to come before one that was scanned
    rejects.lines = [left[n - 1][0] for n in rejects.lines]
    return gathered, others, rejects
