"""What the embedded store remembers of series that are thinned, and series that cannot be read."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from apiserver.events.model import BucketAxis
from apiserver.events.queries import BucketQuery
from apiserver.stores.events.base import EventStoreError
from apiserver.stores.events.embedded import decoded
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.contract.event_stores import SCALARS, batch, scalars
from tests.stores.events.whole import points_of

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[EmbeddedEventStore]:
    """A store with two merged series, each of one chunk."""
    opened = EmbeddedEventStore(tmp_path / "events", merge_points=10**9, merge_seconds=10**6)
    await opened.open()
    values = [math.sin(n) for n in range(4000)]
    await opened.add(batch(scalars(values), scalars(values, metric="other")))
    await opened.merge()
    yield opened
    await opened.close()


async def test_what_is_remembered_of_a_curve_is_forgotten(
    store: EmbeddedEventStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decoded, "LEAST_POINTS", 10)
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
