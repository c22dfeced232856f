"""What the embedded store remembers of series that are thinned, and series that cannot be read."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from apiserver.events.model import BucketAxis, EventBatch, EventType
from apiserver.events.queries import BucketQuery
from apiserver.stores.events import thinned
from apiserver.stores.events.base import EventStoreBusy, EventStoreError
from apiserver.stores.events.codec.points import WholePoints
from apiserver.stores.events.embedded.bounds import EmbeddedBounds
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from apiserver.stores.events.thinned import Thinned
from tests.contract.event_stores import OWNER, SCALARS, batch, lines, sample, scalars
from tests.stores.events.whole import points_of

pytestmark = pytest.mark.anyio

#: Seconds that a test waits for what must come.
PATIENCE = 120


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[EmbeddedEventStore]:
    """A store with two merged series, each of one chunk."""
    bounds = EmbeddedBounds(kept_curve_points=10)
    opened = EmbeddedEventStore(tmp_path / "events", merge_points=10**9, merge_seconds=10**6, bounds=bounds)
    await opened.open()
    values = [math.sin(n) for n in range(4000)]
    await opened.add(batch(scalars(values), scalars(values, metric="other")))
    await opened.merge()
    yield opened
    await opened.close()


async def test_what_is_remembered_of_a_curve_is_forgotten(store: EmbeddedEventStore) -> None:
    for _ in range(3):
        await store.scalar_buckets(SCALARS, BucketQuery(BucketAxis.ITER, lambda *_: 2**9))
    assert store._parts.curves.size > 0
    await store.thin_scalars(SCALARS, 2000)
    assert store._parts.curves.size == 0


async def test_a_damaged_series_stays_as_it_is_and_merging_goes_on(store: EmbeddedEventStore) -> None:
    conn = store._parts.database.writer
    query = "SELECT chunk.id FROM chunk_index AS chunk JOIN series ON series.id = chunk.series WHERE metric = 'loss'"
    ((id,),) = conn.execute(query).fetchall()
    ((body,),) = conn.execute("SELECT body FROM chunk_curves WHERE id = ?", (id,)).fetchall()
    conn.execute("UPDATE chunk_curves SET body = ? WHERE id = ?", (body[:-1] + bytes([body[-1] ^ 1]), id))
    with pytest.raises(EventStoreError, match=f"chunk {id} is damaged"):
        await store.thin_scalars(SCALARS, 2000)
    await store.check()
    conn.execute("UPDATE chunk_curves SET body = ? WHERE id = ?", (body, id))
    assert [len(rows) for rows in (await points_of(store, SCALARS)).values()] == [4000, 4000]
    assert await store.thin_scalars(SCALARS, 2000) > 4000


def meanwhile(store: EmbeddedEventStore, monkeypatch: pytest.MonkeyPatch, *batches: EventBatch) -> list[int]:
    """While series are read to be thinned, add the next batch each time, and merge it. Returns how often that was."""
    loop, real, times = asyncio.get_running_loop(), Thinned.end, list[int]()

    async def add(number: int) -> None:
        await store.add(batches[number])
        await store.merge()

    def end(self: Thinned) -> None:
        if self.kept.series == ("loss", "train"):
            if len(times) < len(batches):
                asyncio.run_coroutine_threadsafe(add(len(times)), loop).result(PATIENCE)
            times.append(len(times))
        real(self)

    monkeypatch.setattr(Thinned, "end", end)
    return times


async def test_others_merge_while_a_series_is_read_to_be_thinned(
    store: EmbeddedEventStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What they merge into other series does not keep it from being thinned."""
    times = meanwhile(store, monkeypatch, batch(scalars([1.0], metric="new"), lines(["a"]), sample(1)))
    assert await store.thin_scalars(SCALARS, 2000) > 4000
    assert len(times) == 1
    assert await store.events_count(OWNER, [EventType.LOG, EventType.PLOT]) == 2
    assert await store.last_values(SCALARS, 1) == {
        ("loss", "train"): [math.sin(3999)],
        ("new", "train"): [1.0],
        ("other", "train"): [math.sin(3999)],
    }


@pytest.mark.test
@pytest.mark.parametrize("iter", [4000, 5])
async def test_a_point_that_comes_while_its_series_is_read_to_be_thinned_stays(
    store: EmbeddedEventStore, monkeypatch: pytest.MonkeyPatch, iter: int
) -> None:
    """The series is read once more. If its points had to be others, it is left as it is."""
    long = await thinned.long_series(store, SCALARS, 2000)
    before = {name: one.checksum for name, one in (await thinned.read(store, OWNER, long, 2000)).items()}
    late = batch(scalars([9.0], iters=[iter]))
    times = meanwhile(store, monkeypatch, late)
    assert await store.thin_scalars(SCALARS, 2000, before) >= 2000
    assert len(times) == 2
    rows = await points_of(store, SCALARS)
    assert len(rows["loss", "train"]) == (4001 if iter == 4000 else 4000)
    assert len(rows["other", "train"]) <= 2000
    assert await store.thin_scalars(SCALARS, 2000) > 2000
    rows = await points_of(store, SCALARS)
    assert (iter, 9.0) in [(row[0], float(row[1])) for row in rows["loss", "train"]]


async def test_a_series_that_changes_again_and_again_is_given_up(
    store: EmbeddedEventStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    meanwhile(store, monkeypatch, *(batch(scalars([9.0], iters=[5000 + n])) for n in range(20)))
    with pytest.raises(EventStoreBusy, match="change again and again"):
        await store.thin_scalars(SCALARS, 2000)
    rows = await points_of(store, SCALARS)
    assert len(rows["loss", "train"]) > 4000


async def test_a_series_that_is_deleted_while_it_is_read_is_not_there(
    store: EmbeddedEventStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, real = asyncio.get_running_loop(), Thinned.read

    def read(self: Thinned, some: WholePoints) -> None:
        real(self, some)
        asyncio.run_coroutine_threadsafe(store.delete([OWNER]), loop).result(PATIENCE)

    monkeypatch.setattr(Thinned, "read", read)
    assert await store.thin_scalars(SCALARS, 2000) == 0
    assert await store.series(OWNER) == []
