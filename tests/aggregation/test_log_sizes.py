"""How long each worker's part of a log is, against the whole text joined."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.aggregation import log_file, log_sizes
from apiserver.aggregation.log_sizes import LogSizes, WorkerLog
from apiserver.events.model import LogLine, Owner
from apiserver.stores.events.base import EventStore, EventStoreBusy
from apiserver.stores.events.embedded import EmbeddedEventStore
from tests.aggregation.any_events import looked_at
from tests.aggregation.events import TASK
from tests.aggregation.test_log_file import LINES, Line, all_lines, any_store, batch, whole

__all__ = ["any_store"]

pytestmark = pytest.mark.anyio


def sizes_of(lines: Iterable[LogLine]) -> dict[str, WorkerLog]:
    found: dict[str, list[LogLine]] = {}
    for line in lines:
        found.setdefault(line.worker, []).append(line)
    return {
        worker: WorkerLog(theirs[0].position.timestamp, len(whole(theirs, [worker])))
        for worker, theirs in found.items()
    }


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
