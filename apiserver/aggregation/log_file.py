"""An owner's log as if it were a file: each line's message, ended by a line feed, in UTF-8."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable

from apiserver.events.model import LogLine, LogPosition, Owner
from apiserver.stores.events.base import EventStore

#: Lines that are read at once: few at first, then as many as have about these many characters.
FIRST_PAGE = 100
LARGEST_PAGE = 2000
PAGE_CHARACTERS = 4 * 2**20


def text(messages: Iterable[str]) -> bytes:
    """What the messages are in the file."""
    return "".join([message if message.endswith("\n") else message + "\n" for message in messages]).encode()


async def pages(
    store: EventStore, owner: Owner, *, after: LogPosition | None = None, descending: bool = False
) -> AsyncIterator[list[LogLine]]:
    """All lines beyond `after`, in pages that are the shorter the longer their messages are; none is empty."""
    limit = FIRST_PAGE
    while True:
        page = await store.log_lines(owner, after=after, descending=descending, limit=limit)
        if page:
            yield page
        if len(page) < limit:
            return
        after = page[-1].position
        length = sum([len(line.message) for line in page]) / limit
        limit = max(1, min(LARGEST_PAGE, 4 * limit, int(PAGE_CHARACTERS / max(length, 1))))


async def tail(store: EventStore, owner: Owner, of: Callable[[str], bool], limit: int) -> bytes:
    """The last `limit` bytes, or all if there are fewer, of the file of the workers that `of` accepts.

    What is cut off ends at a line feed; when the last line alone is longer than `limit`, at a whole character.
    """
    parts: list[bytes] = []
    size = 0
    async for page in pages(store, owner, descending=True):
        parts.append(text([line.message for line in reversed(page) if of(line.worker)]))
        size += len(parts[-1])
        if size >= limit:
            break
    return _end(b"".join(reversed(parts)), limit)


def _end(file: bytes, limit: int) -> bytes:
    if len(file) <= limit:
        return file
    start = len(file) - limit
    line = file.find(b"\n", start - 1) + 1
    if line < len(file):
        return file[line:]
    while start < len(file) and file[start] & 0b1100_0000 == 0b1000_0000:
        start += 1
    return file[start:]
