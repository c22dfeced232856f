"""How much memory events take, and where a page of large events ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar, cast

from apiserver.events.model import LogLine, Sample

#: Bytes of memory that an event takes beside its text, about.
EVENT_BYTES = 256

#: A page of samples or log lines ends with the event that brings it to so many bytes, however few events it has.
PAGE_BYTES = 8 * 2**20

#: If a page must have all lines of a timestamp, it still ends at so many bytes.
TIMESTAMP_BYTES = 64 * 2**20

Event = TypeVar("Event", Sample, LogLine)


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


def page_of(events: Iterable[Event], most: int = PAGE_BYTES) -> list[Event]:
    """The first events, up to the one that brings them to `most` bytes. No more are taken from the iterator."""
    page, size = [], 0
    for event in events:
        page.append(event)
        size += bytes_of(event)
        if size >= most:
            break
    return page


def whole_timestamps_of(lines: list[LogLine]) -> list[LogLine]:
    """The lines without those of the last timestamp."""
    end = len(lines)
    while end and lines[end - 1].position.timestamp == lines[-1].position.timestamp:
        end -= 1
    return lines[:end]


def may_go_on(page: Sequence[Sample] | Sequence[LogLine], limit: int) -> bool:
    """Whether more events may follow a page of up to `limit` events: it has that many, or PAGE_BYTES."""
    return len(page) >= limit or bytes_of_all(page) >= PAGE_BYTES
