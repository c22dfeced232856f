"""The end of a log as a file, against the whole text joined."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.events.ingest import ingest_lines
from apiserver.events.model import EventBatch, EventType, LogColumns, LogLine, Owner
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.reading import log_tail
from apiserver.reading.log_tail import tail
from apiserver.stores.events.base import EventStore
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.contract.plain_event_store import PlainEventStore
from tests.reading.any_events import looked_at
from tests.reading.events import NOW, TASK

pytestmark = pytest.mark.anyio

Line = tuple[int, str, str]
"""(timestamp, worker, message)"""
MESSAGES = ["", "\n", "a", "a\n", "two\nlines", "two\n\nmore\n", "\r\n", "ä€😀" * 3, "😀" * 5 + "\n", "x" * 40]
LINES = st.tuples(st.integers(0, 9), st.sampled_from("vvvvw"), st.sampled_from(MESSAGES))
WORKERS = (frozenset("vw"), frozenset("v"), frozenset("w"), frozenset("u"))


@pytest.fixture(params=["plain", "embedded"])
async def any_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EventStore]:
    store = PlainEventStore() if request.param == "plain" else EmbeddedEventStore(tmp_path / "any")
    await store.open()
    yield store
    await store.close()


def batch(lines: Iterable[Line], owner: Owner = TASK) -> EventBatch:
    times, workers, messages = (list(column) for column in zip(*lines, strict=True))
    none, blank = [None] * len(times), [""] * len(times)
    stamps = np.array(times, np.int64)
    return EventBatch(NOW, logs=[LogColumns(owner, stamps, [*blank], workers, messages, [*none], [*blank], [*blank])])


async def all_lines(store: EventStore, owner: Owner = TASK) -> list[LogLine]:
    return await store.log_lines(SeriesQuery(owner, EventType.LOG), PageQuery(10**6))


def whole(lines: Iterable[LogLine], workers: Iterable[str]) -> bytes:
    """The file by brute force."""
    text = ""
    for line in lines:
        if line.worker in workers:
            text += line.message
            if not text.endswith("\n") or not line.message:
                text += "\n"
    return text.encode()


def end_of(file: bytes, limit: int) -> bytes:
    """The end by brute force: the longest one that is not too long and begins where it may."""
    ends = [file[start:] for start in range(len(file) + 1) if len(file) - start <= limit]
    at_lines = [end for end in ends if end and (end == file or file[-len(end) - 1 :][:1] == b"\n")]
    at_characters = [end for end in ends if len(end.decode(errors="ignore").encode()) == len(end)]
    return max(at_lines or at_characters, key=len)


async def end(store: EventStore, limit: int) -> str:
    return (await tail(store, TASK, ["w"], limit)).decode()


async def test_the_file_begins_at_a_line_when_it_is_cut(any_store: EventStore) -> None:
    assert await end(any_store, 100) == ""
    await any_store.add(batch([(3, "w", "third"), (1, "w", "one\ntwo\n"), (2, "v", "not this"), (4, "w", "")]))
    assert await end(any_store, 15) == "one\ntwo\nthird\n\n"
    assert await end(any_store, 14) == await end(any_store, 11) == "two\nthird\n\n"
    assert await end(any_store, 10) == await end(any_store, 7) == "third\n\n"
    assert await end(any_store, 6) == await end(any_store, 1) == "\n"
    assert await end(any_store, 0) == ""


async def test_a_last_line_that_is_too_long_is_cut_at_a_character(any_store: EventStore) -> None:
    await any_store.add(batch([(1, "w", "before"), (2, "w", "ä€😀")]))
    assert [await end(any_store, limit) for limit in range(11)] == [
        *("", "\n", "\n", "\n", "\n", "😀\n", "😀\n", "😀\n", "€😀\n", "€😀\n", "ä€😀\n")
    ]


async def test_what_no_utf8_can_carry_is_replaced_before(any_store: EventStore) -> None:
    body = rb'{"type": "log", "task": "t1", "timestamp": 1, "msg": "a\ud800\u00e4"}'
    await any_store.add(ingest_lines(body, company=TASK.company, received=NOW, worker="w").batch)
    assert await end(any_store, 5) == "a?ä\n"


@pytest.mark.test
@given(lines=st.lists(LINES, min_size=1, max_size=25), late=st.lists(LINES, max_size=5), page=st.integers(1, 9))
@looked_at
async def test_the_end_is_that_of_the_whole_text(
    store: EmbeddedEventStore, lines: list[Line], late: list[Line], page: int
) -> None:
    await store.delete([TASK])
    await store.add(batch(lines))
    await store.merge()
    if late:
        await store.add(batch(late))
    for workers in WORKERS:
        file = whole(await all_lines(store), workers)
        for limit in {*range(0, len(file), 7), *range(45), len(file) - 1, len(file)} - {-1}:
            assert await tail(store, TASK, workers, limit, page) == end_of(file, limit)


async def test_pages_are_short_where_messages_are_long(store: EmbeddedEventStore) -> None:
    messages = ["x"] * 600 + ["x" * 100] * 900 + ["x" * 5000] * 30 + ["x"] * 5
    await store.add(batch((n, "w", message) for n, message in enumerate(messages)))
    pages = [page async for page in log_tail.pages(store, TASK, ["w"], characters=1000)]
    assert [line.message for page in pages for line in page] == messages[::-1]
    assert max(sum(len(line.message) for line in page) for page in pages[1:]) <= 5000
