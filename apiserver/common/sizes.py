"""Sizes and numbers for people, the same in all commands."""

from __future__ import annotations

import re

_UNITS = ("kB", "MB", "GB", "TB", "PB")
#: What the names of several things end with: "segments", "batches", "tasks or models", "log lines in the journal".
_SEVERAL = re.compile(r"((?<=ch)e|(?<=sh)e|(?<=x)e|(?<=ss)e)?(?<!serie)s(?= or |$| in the journal$)")


def shown_bytes(size: float) -> str:
    """Bytes in units of a thousand: 1234567 is "1.2 MB"."""
    if size < 1000:
        return f"{size:.0f} B"
    for unit in _UNITS:
        size /= 1000
        if size < 999.95 or unit == _UNITS[-1]:  # else it would be shown as 1000.0
            return f"{size:.1f} {unit}"
    raise AssertionError


def counted(number: int, things: str) -> str:
    """A number with the name of what it counts: "1,200 segments", and "1 segment"."""
    return f"{number:,} {_SEVERAL.sub('', things) if number == 1 else things}"
