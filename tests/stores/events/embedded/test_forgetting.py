"""What the embedded store remembers of owners goes with their events, also if they are deleted while they are read."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from apiserver.events.aggregates import ALL
from apiserver.events.changes import EVERYTHING, ChangesQuery
from apiserver.events.model import BucketAxis, Owner
from apiserver.events.queries import EVERYWHERE, BucketQuery, SeriesQuery
from apiserver.events.smoothing import Kind, Smoothing
from apiserver.stores.events.embedded.bounds import EmbeddedBounds
from apiserver.stores.events.embedded.hot import Memtable
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from apiserver.stores.events.embedded.unmerged import Unmerged
from tests.contract.event_stores import OWNER, SCALARS, batch, lines, sample, scalars
from tests.stores.events.embedded.sizes import SMALL
from tests.stores.events.embedded.waiting import eventually

pytestmark = pytest.mark.anyio

OTHER = Owner("company", "other")

Read = Callable[[EmbeddedEventStore, Owner], Coroutine[Any, Any, object]]


@pytest.fixture
def bounds() -> EmbeddedBounds:
    return SMALL


@pytest.fixture
async def store(tmp_path: Path, bounds: EmbeddedBounds) -> AsyncIterator[EmbeddedEventStore]:
    """A store with merged events of two owners."""
    made = EmbeddedEventStore(tmp_path, merge_points=10**9, merge_seconds=10**6, bounds=bounds)
    await made.open()
    for owner in (OWNER, OTHER):
        points = scalars([float(n % 13) for n in range(1000)], iters=range(1000), owner=owner)
        await made.add(batch(points, lines(["a", "b"], owner=owner), sample(1, owner=owner)))
    await made.merge()
    yield made
    await made.close()


async def smoothed(store: EmbeddedEventStore, owner: Owner) -> object:
    asked = BucketQuery(BucketAxis.ITER, lambda *_: 12, EVERYWHERE, ALL, Smoothing(Kind.EXPONENTIAL, 0.9))
    return await store.scalar_buckets(SeriesQuery(owner, SCALARS.type), asked)


async def numbered(store: EmbeddedEventStore, owner: Owner) -> object:
    return await store.log_numbered(owner, [0])


def known(store: EmbeddedEventStore) -> set[Owner]:
    """Whose curves and logs are remembered."""
    return {key.owner for key in store._parts.curves._curves} | {*store._parts.block_ends._known._known}


@pytest.mark.test
@pytest.mark.parametrize("read", [smoothed, numbered])
async def test_what_was_found_out_about_deleted_owners_is_forgotten(store: EmbeddedEventStore, read: Read) -> None:
    for owner in (OWNER, OTHER):
        await read(store, owner)
    assert known(store) == {OWNER, OTHER}
    await store.delete([OWNER])
    assert known(store) == {OTHER}
    await read(store, OWNER)
    assert known(store) == {OTHER}


@pytest.mark.test
@pytest.mark.parametrize("read", [smoothed, numbered])
async def test_a_reader_who_still_sees_a_deleted_owner_keeps_nothing(
    store: EmbeddedEventStore, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, go_on = threading.Event(), threading.Event()
    snapshot = Unmerged.snapshot

    @contextmanager
    def late(self: Unmerged, pick: Callable[[Memtable], Any]) -> Iterator[Any]:
        """A view that is looked at only when the owner is gone."""
        with snapshot(self, pick) as view:
            seen.set()
            go_on.wait()
            yield view

    with monkeypatch.context() as patch:
        patch.setattr(Unmerged, "snapshot", late)
        reading = asyncio.create_task(read(store, OWNER))
        await eventually(seen.is_set)
    await store.delete([OWNER])
    go_on.set()
    await reading
    assert known(store) == set()


async def test_curves_of_who_loses_only_samples_are_still_known_and_kept(store: EmbeddedEventStore) -> None:
    await smoothed(store, OWNER)
    assert await store.delete_samples(SeriesQuery(OWNER, sample(1).type)) == 1
    assert known(store) == {OWNER}
    await smoothed(store, OTHER)
    await store.delete_samples(SeriesQuery(OTHER, sample(1).type))
    await smoothed(store, OTHER)
    assert known(store) == {OWNER, OTHER}


@pytest.mark.parametrize("bounds", [replace(SMALL, deletions=5)])
async def test_deletions_without_a_merge_take_bounded_memory(store: EmbeddedEventStore) -> None:
    for number in range(20):
        await store.delete([Owner("company", f"deleted {number}")])
        assert len(store._parts.curves._deleted) <= 6


async def test_segments_do_not_tell_of_deleted_owners_and_followers_are_told(store: EmbeddedEventStore) -> None:
    feed = store._parts.unmerged._feed
    await store.add(batch(scalars([1.0], owner=OWNER)))
    await store.merge()
    before = (await store.changes(ChangesQuery([OWNER, OTHER]))).cursor
    size = feed._size
    assert [set(summary.owners) for summary in feed._merged] == [{OWNER, OTHER}, {OWNER}]
    await store.delete([OWNER])
    assert [set(summary.owners) for summary in feed._merged] == [{OTHER}]
    assert feed._size < size
    told = await store.changes(ChangesQuery([OWNER, OTHER], before))
    assert told.owners == {OWNER: EVERYTHING}
    await store.add(batch(scalars([1.0], owner=OWNER)))
    await store.merge()
    again = await store.changes(ChangesQuery([OWNER, OTHER], told.cursor))
    assert [*again.owners] == [OWNER]
    assert not again.owners[OWNER].everything


async def test_segments_tell_of_owners_who_still_have_events(store: EmbeddedEventStore) -> None:
    """Who deletes up to a place has to find what came since, though other events were deleted meanwhile."""
    before = (await store.changes(ChangesQuery([OWNER]))).cursor
    await store.add(batch(scalars([1.0], iters=[5000], owner=OWNER)))
    await store.merge()
    await store.delete_samples(SeriesQuery(OWNER, sample(1).type))
    assert await store.delete_scalars(OWNER, before) == 0
    assert len(store._parts.unmerged._feed._merged) == 2
