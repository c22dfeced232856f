"""Times as MLflow keeps them: milliseconds, but whoever logs one may give another unit, or a step in its place.

A number is seconds, milliseconds, micro- or nanoseconds since 1970, whichever makes it a time between 2000 and 2100.
Any other cannot be believed.
"""

from __future__ import annotations

import numpy as np

from apiserver.events.model import Int64Array

#: Epoch seconds of the years 2000 and 2100.
_FIRST, _LAST = 946_684_800, 4_102_444_800
#: How many of a unit are a second.
_UNITS = (1, 10**3, 10**6, 10**9)


def believed(times: Int64Array) -> Int64Array:
    """The times as epoch milliseconds; 0 for those that cannot be believed."""
    made = np.zeros_like(times)
    for unit in _UNITS:
        inside = (times >= _FIRST * unit) & (times < _LAST * unit)
        made[inside] = times[inside] * (1000 // unit) if unit < 1000 else times[inside] // (unit // 1000)
    return made


def believed_time(time: int | None) -> int | None:
    """One time as epoch milliseconds, or None."""
    if time is None or not 0 <= time < 2**63:
        return None
    return int(believed(np.array([time], np.int64))[0]) or None
