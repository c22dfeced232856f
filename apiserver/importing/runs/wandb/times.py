"""Which numbers are times: those that are one between 2000 and 2100, in seconds, milli-, micro- or nanoseconds."""

from __future__ import annotations

_FIRST, _LAST = 946_684_800, 4_102_444_800
_UNITS = (1, 1e3, 1e6, 1e9)


def believed(time: float) -> float | None:
    """The epoch seconds of a number; None if it is no time that can be believed."""
    return next((time / unit for unit in _UNITS if _FIRST <= time / unit < _LAST), None)
