"""The log as a file: what is cut off it, and how long it is, against the whole text joined."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.aggregation import log_file, log_sizes
from apiserver.aggregation.log_file import tail
from apiserver.aggregation.log_sizes import LogSizes, WorkerLog
from apiserver.events.ingest import ingest_lines
from apiserver.events.model import EventBatch, LogColumns, LogLine, Owner
from apiserver.stores.events.base import EventStore, EventStoreBusy
from apiserver.stores.events.embedded import EmbeddedEventStore
from tests.aggregation.any_events import looked_at
from tests.aggregation.events import NOW, TASK
from tests.contract.plain_event_store import PlainEventStore

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
    return await store.log_lines(owner, limit=10**6)


def whole(lines: Iterable[LogLine], workers: Iterable[str]) -> bytes:
    """The file by brute force."""
    text = ""
    for line in lines:
        if line.worker in workers:
            text += line.message
            if not text.endswith("\n") or not line.message:
                text += "\n"
    return text.encode()


def sizes_of(lines: Iterable[LogLine]) -> dict[str, WorkerLog]:
    found: dict[str, list[LogLine]] = {}
    for line in lines:
        found.setdefault(line.worker, []).append(line)
    return {
        worker: WorkerLog(theirs[0].position.timestamp, len(whole(theirs, [worker])))
        for worker, theirs in found.items()
    }


def end_of(file: bytes, limit: int) -> bytes:
    """The end by brute force: the longest one that is not too long and begins where it may."""
    ends = [file[start:] for start in range(len(file) + 1) if len(file) - start <= limit]
    at_lines = [end for end in ends if end and (end == file or file[-len(end) - 1 :][:1] == b"\n")]
    at_characters = [end for end in ends if len(end.decode(errors="ignore").encode()) == len(end)]
    return max(at_lines or at_characters, key=len)


# --- the end of the file ---------------------------------------------------------------------------


async def end(store: EventStore, limit: int) -> str:
    return (await tail(store, TASK, lambda worker: worker == "w", limit)).decode()


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
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_file, "FIRST_PAGE", page)
        for workers in WORKERS:
            file = whole(await all_lines(store), workers)
            for limit in {*range(0, len(file), 7), *range(45), len(file) - 1, len(file)} - {-1}:
                assert await tail(store, TASK, workers.__contains__, limit) == end_of(file, limit)


async def test_pages_are_short_where_messages_are_long(
    store: EmbeddedEventStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_file, "PAGE_CHARACTERS", 1000)
    messages = ["x"] * 600 + ["x" * 100] * 900 + ["x" * 5000] * 30 + ["x"] * 5
    await store.add(batch((n, "w", message) for n, message in enumerate(messages)))
    pages = [page async for page in log_file.pages(store, TASK)]
    assert [line.message for page in pages for line in page] == messages
    assert [len(page) for page in pages] == [100, 400, 1000, 11, *[1] * 19, 1, 4]


# --- how long the file is --------------------------------------------------------------------------


@dataclass
class Changing:
    """A store that changes before it is read, as long as there are changes; `states` are what there was to read."""

    store: EventStore
    changes: list[Callable[[EventStore], Awaitable[Any]] | None]
    states: list[dict[str, WorkerLog]]

    async def log_lines(self, *which: Any, **how: Any) -> list[LogLine]:
        await self._change()
        return await self.store.log_lines(*which, **how)

    async def log_count(self, *which: Any) -> int:
        await self._change()
        return await self.store.log_count(*which)

    async def _change(self) -> None:
        change = self.changes.pop(0) if self.changes else None
        if change:
            await change(self.store)
            self.states.append(sizes_of(await all_lines(self.store)))


def adding(lines: list[Line]) -> Callable[[EventStore], Awaitable[Any]]:
    return lambda store: store.add(batch(lines))


def deleting_before(time: int) -> Callable[[EventStore], Awaitable[Any]]:
    return lambda store: store.delete_logs(TASK, time, (), ())


def deleting(store: EventStore) -> Awaitable[Any]:
    return store.delete([TASK])


async def merging(store: EventStore) -> None:
    if isinstance(store, EmbeddedEventStore):
        await store.merge()


BATCHES = st.lists(LINES, min_size=1, max_size=8)
CHANGES = st.one_of(
    BATCHES.map(adding),
    BATCHES.map(adding),
    st.integers(0, 9).map(deleting_before),
    st.sampled_from([deleting, merging, None, None]),
)


async def test_sizes_are_those_of_the_workers_texts(any_store: EventStore) -> None:
    sizes = LogSizes()
    assert await sizes.by_worker(any_store, TASK) == {}
    await any_store.add(batch([(5, "w", "ä"), (6, "v", "a\nb\n"), (7, "w", "")]))
    assert await sizes.by_worker(any_store, TASK) == {"w": (5, 4), "v": (6, 4)}
    await any_store.add(batch([(7, "w", "\n"), (3, "v", "late")]))
    assert await sizes.by_worker(any_store, TASK) == {"w": (5, 5), "v": (3, 9)}
    assert await sizes.by_worker(any_store, Owner("acme", "other")) == {}
    await deleting_before(6)(any_store)
    assert await sizes.by_worker(any_store, TASK) == {"w": (7, 2), "v": (6, 4)}
    await deleting(any_store)
    assert await sizes.by_worker(any_store, TASK) == {}


async def test_what_no_utf8_can_carry_is_replaced_before(any_store: EventStore) -> None:
    body = rb'{"type": "log", "task": "t1", "timestamp": 1, "msg": "a\ud800\u00e4"}'
    await any_store.add(ingest_lines(body, company=TASK.company, received=NOW, worker="w").batch)
    assert await LogSizes().by_worker(any_store, TASK) == {"w": (1, 5)}
    assert await end(any_store, 5) == "a?ä\n"


@given(
    asked=st.lists(st.lists(CHANGES, max_size=12), min_size=1, max_size=6),
    page=st.integers(1, 4),
    remembered=st.sampled_from([0, 3, 1000]),
)
@looked_at
async def test_sizes_are_exact_whatever_comes_and_goes_meanwhile(
    any_store: EventStore,
    asked: list[list[Callable[[EventStore], Awaitable[Any]] | None]],
    page: int,
    remembered: int,
) -> None:
    await any_store.delete([TASK])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_file, "FIRST_PAGE", page)
        patch.setattr(log_file, "LARGEST_PAGE", page)
        patch.setattr(log_sizes, "WORKERS", remembered)
        sizes = LogSizes()
        for changes in asked:
            changing = Changing(any_store, [*changes], [sizes_of(await all_lines(any_store))])
            assert await sizes.by_worker(cast(EventStore, changing), TASK) in changing.states
            assert await sizes.by_worker(any_store, TASK) == sizes_of(await all_lines(any_store))


@dataclass
class Counting:
    """A store that counts the lines it gives, and is busy once when it has given `stop_at`."""

    store: EventStore
    stop_at: int | None = None
    lines: int = 0

    async def log_lines(self, *which: Any, **how: Any) -> list[LogLine]:
        if self.lines == self.stop_at:
            self.stop_at = None
            raise EventStoreBusy("for now")
        found = await self.store.log_lines(*which, **how)
        self.lines += len(found)
        return found

    async def log_count(self, *which: Any) -> int:
        return await self.store.log_count(*which)


async def test_what_is_known_is_not_read_again(store: EmbeddedEventStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_file, "LARGEST_PAGE", 10)
    monkeypatch.setattr(log_file, "FIRST_PAGE", 10)
    sizes, counting = LogSizes(), Counting(store)

    async def read() -> tuple[int, Mapping[str, WorkerLog]]:
        before = counting.lines
        found = await sizes.by_worker(cast(EventStore, counting), TASK)
        return counting.lines - before, found

    await store.add(batch((n, "w", "four") for n in range(1000)))
    (first, _), (second, found) = await read(), await read()
    assert (first, second, found) == (1001, 1, {"w": (0, 5000)})
    await store.add(batch((n, "w", "four") for n in range(1000, 1005)))
    assert await read() == (6, {"w": (0, 5025)})
    size = 5025
    for late, most in ((1003, 50), (990, 100), (900, 600), (500, 3000)):
        await store.add(batch([(late, "w", "four")]))
        lines, found = await read()
        size += 5
        assert found == {"w": (0, size)}
        assert lines < most


async def test_lines_that_arrive_meanwhile_are_walked_on_to(
    store: EmbeddedEventStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_file, "LARGEST_PAGE", 100)
    await store.add(batch((n, "w", "four") for n in range(1000)))
    arrivals = [adding([(n, "w", "four")]) for n in range(1000, 1020)]
    counting = Counting(cast(EventStore, Changing(store, [*arrivals], [])))
    assert await LogSizes().by_worker(cast(EventStore, counting), TASK) == {"w": (0, 5100)}
    assert counting.lines < 1050


async def test_calls_at_once_share_one_walk(store: EmbeddedEventStore) -> None:
    await store.add(batch((n, "w", "four") for n in range(1000)))
    sizes, counting = LogSizes(), Counting(store)
    calls = [sizes.by_worker(cast(EventStore, counting), TASK) for _ in range(3)]
    assert await asyncio.gather(*calls) == [{"w": (0, 5000)}] * 3
    assert counting.lines == 1000 + 3


async def test_an_interrupted_walk_is_gone_on_with(store: EmbeddedEventStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_file, "LARGEST_PAGE", 100)
    await store.add(batch((n, "w", "four") for n in range(1000)))
    sizes, counting = LogSizes(), Counting(store, stop_at=500)
    with pytest.raises(EventStoreBusy):
        await sizes.by_worker(cast(EventStore, counting), TASK)
    assert await sizes.by_worker(cast(EventStore, counting), TASK) == {"w": (0, 5000)}
    assert counting.lines == 1000 + 1


async def test_only_the_last_logs_are_remembered(store: EmbeddedEventStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_sizes, "OWNERS", 2)
    owners = [Owner("acme", id) for id in "abc"]
    for owner in owners:
        await store.add(batch(((n, "w", "four") for n in range(50)), owner))
    sizes, counting = LogSizes(), Counting(store)
    a, b, c = owners
    for owner, lines in ((a, 51), (b, 51), (c, 51), (b, 1), (a, 51), (b, 1)):
        before = counting.lines
        assert await sizes.by_worker(cast(EventStore, counting), owner) == {"w": (0, 250)}
        assert counting.lines - before == lines
