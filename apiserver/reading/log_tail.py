"""The end of an owner's log, as if the log were a file."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection

from apiserver.events.log_text import text_of
from apiserver.events.model import EventType, LogLine, LogPosition, Owner
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.stores.events.protocols.logs import LogStore
from apiserver.stores.events.sizes import may_go_on

#: Lines that are read at once: few at first, then as many as have about PAGE_CHARACTERS together.
FIRST_PAGE = 100
LARGEST_PAGE = 2000
PAGE_CHARACTERS = 4 * 2**20


async def pages(
    store: LogStore,
    owner: Owner,
    workers: Collection[str],
    first: int = FIRST_PAGE,
    characters: int = PAGE_CHARACTERS,
) -> AsyncIterator[list[LogLine]]:
    """The workers' lines, newest first, in pages. The first has `first` lines; pages of long messages have fewer."""
    series, limit = SeriesQuery(owner, EventType.LOG), first
    after: LogPosition | None = None
    while True:
        page = await store.log_lines(series, PageQuery(limit, after, descending=True), workers)
        if page:
            yield page
        if not may_go_on(page, limit):
            return
        after = page[-1].position
        length = sum([len(line.message) for line in page]) / len(page)
        limit = max(1, min(LARGEST_PAGE, 4 * limit, int(characters / max(length, 1))))


async def tail(store: LogStore, owner: Owner, workers: Collection[str], limit: int, first: int = FIRST_PAGE) -> bytes:
    """The last bytes of the workers' log, at most `limit`.

    They begin with a whole line or, if the last line alone is longer than `limit`, with a whole character. For example,
    the last 8 bytes of "one\\ntwo\\nthree\\n" are "o\\nthree\\n", so the answer is "three\\n". With a limit of 3 the
    answer is "ee\\n", because "three\\n" is too long.
    """
    parts: list[bytes] = []
    size = 0
    async for page in pages(store, owner, workers, first):
        parts.append(text_of([line.message for line in reversed(page)]))
        size += len(parts[-1])
        if size >= limit:
            break
    return _end(b"".join(reversed(parts)), limit)


def _end(file: bytes, limit: int) -> bytes:
    if len(file) <= limit:
        return file
    start = len(file) - limit
    line = file.find(b"\n", start - 1) + 1  # every line ends with a line feed
    if line < len(file):
        return file[line:]
    while start < len(file) and file[start] & 0b1100_0000 == 0b1000_0000:  # not the first byte of a character
        start += 1
    return file[start:]
