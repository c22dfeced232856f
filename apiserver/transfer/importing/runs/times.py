"""Which numbers are times, and what time a point has whose own cannot be believed.

A number is seconds, milliseconds, microseconds or nanoseconds since 1970: whichever of them makes a time between 2000
and 2100. No number makes two such times. Other numbers, such as seconds since a run began, are no times, and a point
with one gets the nearest time that is believed. For example, in the order of their rows:

    1772352000         2026-03-01 08:00:00, seconds
    1772352060000      2026-03-01 08:01:00, milliseconds
    61.5               no time, so 08:01:00 as the row before
    2026-03-01 08:03   08:03:00, a date as text: believed whatever its year is

Times are epoch milliseconds; those that are not known are UNKNOWN.
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from apiserver.events.model import Int64Array

UNKNOWN = -(2**63)
#: The message about a number that should be a time, and is none.
NO_TIME = "a time that cannot be believed"
#: 2000-01-01 and 2100-01-01.
_FIRST, _LAST = 946_684_800_000, 4_102_444_800_000
#: Milliseconds of a second, a millisecond, a microsecond and a nanosecond.
_UNITS = (1e3, 1.0, 1e-3, 1e-6)
#: "00:18", "1:02:03.5", "1 day, 0:00:18", "0 days 00:00:18"
_DURATION = re.compile(r"(?:(\d{1,9}) days?,? +)?(?:(\d{1,9}):)?(\d{1,2}):(\d{2}(?:\.\d{1,9})?)", re.ASCII)


def believed(numbers: np.typing.NDArray[Any]) -> Int64Array:
    """The times that numbers stand for; UNKNOWN for a number that is no time."""
    numbers = numbers.astype(np.float64)
    millis = np.full(len(numbers), UNKNOWN, np.int64)
    for unit in _UNITS:
        times = numbers * unit
        is_time = (times >= _FIRST) & (times <= _LAST)
        if is_time.all():  # the usual case
            return np.rint(times).astype(np.int64)
        millis[is_time] = np.rint(times[is_time]).astype(np.int64)
    return millis


def of_number(number: float) -> int | None:
    """The time of one number; None if it is none."""
    if not abs(number) < 2**63:
        return None
    return next((round(number * unit) for unit in _UNITS if _FIRST <= number * unit <= _LAST), None)


def nearest(times: Int64Array, before: int = UNKNOWN) -> Int64Array:
    """The times; an UNKNOWN time becomes that of the nearest row with one. `before`: the time of the row before."""
    timed = np.flatnonzero(times != UNKNOWN)
    if before != UNKNOWN:
        times, timed = np.concatenate(([before], times)), np.concatenate(([0], timed + 1))
    if len(timed):
        rows = np.arange(len(times))
        after = np.searchsorted(timed, rows).clip(max=len(timed) - 1)
        earlier, later = timed[(after - 1).clip(min=0)], timed[after]
        times = times[np.where(np.abs(rows - earlier) <= np.abs(later - rows), earlier, later)]
    return times if before == UNKNOWN else times[1:]


def of_text(text: str) -> int:
    """The time of a date as ISO-8601 has it, in UTC if it names no zone; UNKNOWN for another text."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return UNKNOWN
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def seconds_of(text: str) -> float | None:
    """The seconds of a duration, "minutes:seconds" or "hours:minutes:seconds"; None for another text."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def of_file(path: Path) -> int:
    """When a file was last changed; now, if that cannot be believed. Raises OSError."""
    changed = int(believed(np.array([path.stat().st_mtime_ns / 1e9]))[0])
    return round(time.time() * 1000) if changed == UNKNOWN else changed
