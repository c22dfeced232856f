"""Folders of each schema so far are read as they were, written on, and sealed."""

from __future__ import annotations

from pathlib import Path

import pytest
import zstandard

from apiserver import resources
from apiserver.events.model import EventType, Owner
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.contract.event_stores import batch, iters, messages, scalars
from tests.stores.events.embedded import golden

pytestmark = pytest.mark.anyio

SCHEMAS = sorted(int(file.name[:4]) for file in resources.path("migrations/sqlite/events").glob("*.sql"))
Rows = list[tuple[str, int, float, int, str]]


def test_each_schema_has_a_file() -> None:
    assert sorted(int(file.name[7:].partition(".")[0]) for file in golden.FILES.iterdir()) == SCHEMAS


@pytest.mark.test
@pytest.mark.parametrize("schema", SCHEMAS)
async def test_a_folder_of_a_schema_is_read_as_it_was(tmp_path: Path, schema: int) -> None:
    compressed = (golden.FILES / f"schema-{schema}.db.zst").read_bytes()
    (tmp_path / "events.db").write_bytes(zstandard.decompress(compressed))
    store = EmbeddedEventStore(tmp_path, merge_points=10**9, merge_seconds=10**6)
    await store.open()
    (owner,) = [owner async for owner in store.owners()]
    expected = [
        (variant, iter, value, golden.time_of(n), golden.worker_of(n))
        for variant, points in golden.points().items()
        for n, (iter, value) in enumerate(points)
    ]
    assert await rows(store, owner) == expected
    assert await messages(store, SeriesQuery(owner, EventType.LOG)) == [f"line {n}" for n in range(golden.LINES)]
    assert await iters(store, SeriesQuery(owner, EventType.PLOT)) == [0, 1, 2]

    for values, places in (([0.5], [10]), ([2.5, 3.5], [69_990, 10**9])):
        await store.add(batch(scalars(values, iters=places, metric="golden", variant="float64", owner=owner)))
    await store.merge()
    found = await rows(store, owner)
    new = [row[:3] for row in found if row[4] == "worker"]
    assert new == [("float64", 10, 0.5), ("float64", 69_990, 2.5), ("float64", 10**9, 3.5)]
    overwritten = [row[:2] for row in new]
    assert [row for row in found if row[4] != "worker"] == [row for row in expected if row[:2] not in overwritten]
    await store.seal()
    assert await rows(store, owner) == found
    await store.close()


async def rows(store: EmbeddedEventStore, owner: Owner) -> Rows:
    """Variant, iteration, value, timestamp and worker of all points."""
    page = await store.scalar_points(SeriesQuery(owner, EventType.SCALAR), PageQuery(10**6))
    names = [page.names[n][1] for n in page.series.tolist()]
    columns = (page.iters.tolist(), page.values.tolist(), page.timestamps.tolist(), page.workers)
    return sorted(zip(names, *columns, strict=True))
