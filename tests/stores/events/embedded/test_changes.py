"""Whatever happens: who reads what the embedded store says has changed, has what the store has.

`EVENTS_EXAMPLES=5000 pytest tests/stores/events/embedded/test_changes.py` looks longer.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.events.changes import Changes, ChangesQuery, Cursor, OwnerChanges
from apiserver.events.model import EventBatch, EventType, Owner, SeriesName
from apiserver.events.queries import Range
from apiserver.stores.events.embedded.bounds import EmbeddedBounds
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.chance import examples
from tests.contract.event_stores import batch, sample, scalars
from tests.stores.events.embedded.merging import copy_as_of_a_crash, half_merged
from tests.stores.events.following import Follower
from tests.stores.events.random_events import (
    OWNERS,
    batches,
    log_series,
    owners,
    ranges,
    sample_series,
    selections,
    times,
    types,
)

LAST = Owner("company", "last")
LOSS = SeriesName(EventType.SCALAR, "loss", "train")

followers = st.sampled_from([0, 0, 0, 1, 2])
operations = st.lists(
    st.one_of(
        st.tuples(st.just("add"), batches),
        st.tuples(st.just("add"), batches),
        st.tuples(st.just("again"), st.integers(0, 5)),
        st.tuples(st.sampled_from(["merge", "reopen", "crash"])),
        st.tuples(st.just("follow"), followers),
        st.tuples(st.just("follow"), followers),
        st.tuples(st.just("follow_meanwhile"), followers, batches),
        st.tuples(st.just("begin"), followers),
        st.tuples(st.just("delete"), st.lists(owners, min_size=1, max_size=2), types),
        st.tuples(st.just("delete_logs"), log_series, st.none() | times, selections),
        st.tuples(st.just("delete_samples"), sample_series, ranges, st.none() | times),
    ),
    max_size=20,
)


#: Little is remembered.
BOUNDS = EmbeddedBounds(changed_series=60, deletions=2, owners_at_once=1)


class Followed:
    """A store, and readers who ask it at different times."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._generation = 0
        self._store = self._made()
        self._followers = [Follower(OWNERS, 1000), Follower(OWNERS, 1000), Follower(OWNERS, 3)]
        self._added: list[EventBatch] = []

    def _made(self) -> EmbeddedEventStore:
        return EmbeddedEventStore(
            self._folder / str(self._generation), merge_points=10**9, merge_seconds=10**6, bounds=BOUNDS
        )

    async def run(self, operations: list[tuple[Any, ...]]) -> None:
        await self._store.open()
        try:
            for follower in self._followers:
                await follower.begin(self._store)
            for name, *arguments in operations:
                await getattr(self, f"do_{name}")(*arguments)
            for number in range(len(self._followers)):
                await self.do_follow(number)
        finally:
            await self._store.close()

    async def do_add(self, batch: EventBatch) -> None:
        await self._store.add(batch)
        self._added.append(batch)

    async def do_again(self, number: int) -> None:
        if number < len(self._added):
            await self._store.add(self._added[number])

    async def do_merge(self) -> None:
        await self._store.merge()

    async def do_reopen(self) -> None:
        await self._store.close()
        await self._store.open()

    async def do_crash(self) -> None:
        """Go on with the files as they are now."""
        before, old = self._store, self._folder / str(self._generation)
        self._generation += 1
        copy_as_of_a_crash(before, old, self._folder / str(self._generation))
        self._store = self._made()
        await before.close()
        await self._store.open()

    async def do_begin(self, number: int) -> None:
        await self._followers[number].begin(self._store)

    async def do_follow(self, number: int) -> None:
        await self._followers[number].follow(self._store)
        await self._followers[number].assert_same(self._store)

    async def do_follow_meanwhile(self, number: int, batch: EventBatch) -> None:
        """Somebody follows, and a batch arrives, while a merge is half done."""
        async with half_merged(self._store):
            await self.do_follow(number)
            await self.do_add(batch)
            await self.do_follow(number)

    async def do_delete(self, owners: list[Owner], types: list[EventType] | None) -> None:
        await self._store.delete(owners, types)

    async def do_delete_logs(self, *arguments: Any) -> None:
        await self._store.delete_logs(*arguments)

    async def do_delete_samples(self, *arguments: Any) -> None:
        await self._store.delete_samples(*arguments)


# --- how much is told -------------------------------------------------------------------------------


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[EmbeddedEventStore]:
    made = quiet(tmp_path / "events")
    await made.open()
    yield made
    await made.close()


def quiet(folder: Path) -> EmbeddedEventStore:
    """A store that merges only when it is told to."""
    return EmbeddedEventStore(folder, merge_points=10**9, merge_seconds=10**6, bounds=BOUNDS)


def points(owner: Owner, *iters: int) -> EventBatch:
    return batch(scalars([1.0] * len(iters), iters=iters, owner=owner))


async def told(store: EmbeddedEventStore, cursor: Cursor = None) -> Changes:
    return await store.changes(ChangesQuery(OWNERS, cursor))


def some(least: int, greatest: int) -> OwnerChanges:
    return OwnerChanges({LOSS: Range(least, greatest)})


ONE, OTHER = OWNERS
EVERYTHING = OwnerChanges(everything=True)


@pytest.mark.anyio
async def test_who_has_seen_all_of_a_merged_segment_is_told_nothing_of_it(store: EmbeddedEventStore) -> None:
    await store.add(points(ONE, 0))
    before = (await told(store)).cursor
    await store.add(points(OTHER, 1))
    after = (await told(store)).cursor
    await store.merge()
    assert (await told(store, before)).owners == {OTHER: some(1, 1)}
    assert (await told(store, after)).owners == {}
    await store.close()
    await store.open()
    assert (await told(store, before)).owners == {OTHER: EVERYTHING}
    assert (await told(store, after)).owners == {}


@pytest.mark.anyio
async def test_of_merged_segments_whole_ones_are_told(store: EmbeddedEventStore) -> None:
    await store.add(points(ONE, 0))
    cursor = (await told(store)).cursor
    await store.add(points(ONE, 7))
    await store.merge()
    await store.add(points(ONE, 9))
    await store.merge()
    await store.add(points(OTHER, 5))
    assert (await told(store, cursor)).owners == {ONE: some(0, 9), OTHER: some(5, 5)}


@pytest.mark.anyio
async def test_of_forgotten_segments_it_is_known_who_changed(store: EmbeddedEventStore) -> None:
    await store.add(points(ONE, 0))
    await store.add(points(OTHER, 0))
    cursor = (await told(store)).cursor
    for n in range(10):
        await store.add(points(ONE, n))
        await store.merge()
    assert (await told(store, cursor)).owners == {ONE: EVERYTHING}
    await store.add(points(OTHER, 5))
    assert (await told(store, cursor)).owners == {ONE: EVERYTHING, OTHER: some(5, 5)}


@pytest.mark.anyio
async def test_of_forgotten_deletions_every_owner_is_told(store: EmbeddedEventStore) -> None:
    cursors = []
    for n in range(5):
        await store.add(points(ONE, n))
        cursors.append((await told(store)).cursor)
        await store.delete([Owner("company", str(n))])
    assert (await told(store, cursors[-1])).owners == {}
    assert (await told(store, cursors[0])).owners == {ONE: EVERYTHING, OTHER: EVERYTHING}


@pytest.mark.anyio
async def test_after_a_restart_it_is_known_whose_events_were_deleted(store: EmbeddedEventStore) -> None:
    """A part of one owner's, and all of the other one's, who comes back."""
    await store.add(batch(scalars([1.0], owner=ONE), sample(1, owner=ONE), scalars([1.0], owner=OTHER)))
    await store.merge()
    before = (await told(store)).cursor
    await store.delete([ONE], [EventType.PLOT])
    await store.delete([OTHER])
    after = (await told(store)).cursor
    await store.close()
    await store.open()
    assert (await told(store, before)).owners == {ONE: EVERYTHING, OTHER: EVERYTHING}
    await store.add(points(OTHER, 5))
    await store.merge()
    assert (await told(store, before)).owners == {ONE: EVERYTHING, OTHER: EVERYTHING}
    assert (await told(store, after)).owners.keys() >= {OTHER}
    await store.close()
    await store.open()
    assert (await told(store, before)).owners == {ONE: EVERYTHING, OTHER: EVERYTHING}
    assert (await told(store, (await told(store)).cursor)).owners == {}


@pytest.mark.anyio
async def test_after_a_crash_the_journal_tells_exactly(tmp_path: Path) -> None:
    store = quiet(tmp_path / "before")
    await store.open()
    await store.add(points(ONE, 0))
    await store.add(points(OTHER, 0))
    await store.merge()
    await store.add(points(ONE, 1))
    cursor = (await told(store)).cursor
    await store.add(points(ONE, 2))
    copy_as_of_a_crash(store, tmp_path / "before", tmp_path / "after")
    await store.close()
    store = quiet(tmp_path / "after")
    await store.open()
    found = await told(store, cursor)
    assert found.owners in ({ONE: some(2, 2)}, {ONE: some(1, 2)})  # it may have been merged at once
    assert (await told(store, found.cursor)).owners == {}
    await store.close()


@pytest.mark.anyio
async def test_a_restored_folder_tells_what_came_since_to_those_who_saw_what_was_lost(tmp_path: Path) -> None:
    """Its places must not be those that readers know from before, or they would miss what comes there."""
    store = quiet(tmp_path / "lost")
    await store.open()
    await store.add(points(ONE, 0))
    await store.close()
    shutil.copytree(tmp_path / "lost", tmp_path / "restored")
    await store.open()
    for n in range(3):
        await store.add(points(OTHER, n))
        await store.merge()
    cursor = (await told(store)).cursor
    await store.close()
    store = quiet(tmp_path / "restored")
    await store.open()
    for n in range(5):
        await store.add(points(ONE, n))
        await store.merge()
        assert ONE in (await told(store, cursor)).owners
    await store.close()


# --- never too little ------------------------------------------------------------------------------


@pytest.mark.check
@examples(40)
@given(operations)
def test_a_follower_has_what_the_store_has(operations: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(Followed(Path(folder)).run(operations))


writes = st.lists(
    st.tuples(st.just("add"), batches) | st.tuples(st.just("delete"), st.lists(owners, min_size=1, max_size=2)),
    max_size=12,
)


@pytest.mark.test
@examples(15)
@given(writes)
def test_who_watches_has_what_the_store_has(operations: list[tuple[Any, ...]]) -> None:
    """While another adds and deletes, and the store merges as often as it can."""

    async def run(folder: Path) -> None:
        store, follower = (
            EmbeddedEventStore(folder, merge_points=20, merge_seconds=0.001, bounds=BOUNDS),
            Follower(OWNERS, 1000),
        )
        await store.open()
        await follower.begin(store)
        watching = asyncio.create_task(follower.watch(store, until=LAST))
        for name, *arguments in operations:
            await getattr(store, name)(*arguments)
            await asyncio.sleep(0)
        await store.add(batch(scalars([1.0], owner=LAST)))
        async with asyncio.timeout(60):
            await watching
        await follower.assert_same(store)
        await store.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder)))
