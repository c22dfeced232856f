"""How much memory events take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from apiserver.events.model import LogLine, Sample

#: Bytes of memory that an event takes beside its text, about.
EVENT_BYTES = 256


def bytes_of(event: Sample | LogLine) -> int:
    """Bytes of memory that an event takes, about."""
    if isinstance(event, LogLine):
        return EVENT_BYTES + len(event.message) + len(event.extra or b"")
    return EVENT_BYTES + len(event.document)


def bytes_of_all(page: Sequence[Sample] | Sequence[LogLine]) -> int:
    """Bytes of memory that events, all of them lines or all samples, take together; a page may have many lines."""
    if not page or not isinstance(page[0], LogLine):
        return sum(map(bytes_of, page))
    lines = cast(Sequence[LogLine], page)
    extras = sum([len(line.extra) for line in lines if line.extra is not None])
    return EVENT_BYTES * len(lines) + sum([len(line.message) for line in lines]) + extras
