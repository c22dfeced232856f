"""Chunks that hardly change again are sealed; damaged ones are named, and cost only themselves."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from apiserver.events.model import BucketAxis, MetricSelection
from apiserver.events.queries import BucketQuery, PageQuery
from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.embedded.bounds import BOUNDS
from apiserver.stores.events.embedded.sealing import Sealer
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.contract.event_stores import OWNER, SCALARS, batch, scalars, select
from tests.stores.events.embedded.waiting import eventually

pytestmark = pytest.mark.anyio

VALUES = np.random.default_rng(0).random(100_000).tolist()


def opened(folder: Path, seal_seconds: float = 10**6) -> EmbeddedEventStore:
    return EmbeddedEventStore(folder, merge_points=10**9, merge_seconds=10**6, seal_seconds=seal_seconds)


async def add(store: EmbeddedEventStore, start: int, stop: int) -> None:
    """Add and merge points, about a chunk at a time."""
    for first in range(start, stop, BOUNDS.chunk_points):
        places = range(first, min(first + BOUNDS.chunk_points, stop))
        await store.add(batch(scalars(VALUES[places.start : places.stop], iters=places)))
        await store.merge()


def lengths(folder: Path, *, sealed: bool) -> list[int]:
    """How many points the chunks of a kind have."""
    with closing(sqlite3.connect(folder / "events.db")) as connection:
        rows = connection.execute("SELECT count FROM chunk_index WHERE sealed = ? ORDER BY last", (sealed,))
        return [count for (count,) in rows]


async def values(store: EmbeddedEventStore) -> list[float]:
    found: list[float] = (await store.scalar_points(SCALARS, PageQuery(10**6))).values.tolist()
    return found


async def test_a_series_is_sealed_by_the_store_itself(tmp_path: Path) -> None:
    store = opened(tmp_path, seal_seconds=0.01)
    await store.open()
    await add(store, 0, 40_000)
    await eventually(lambda: not lengths(tmp_path, sealed=False))
    assert max(lengths(tmp_path, sealed=True)) <= BOUNDS.sealed_chunk_points
    assert await values(store) == VALUES[:40_000]
    await store.close()


@pytest.mark.test
@pytest.mark.parametrize(("finer", "width"), [(False, 600), (True, 512)])
async def test_buckets_are_finer_only_if_they_may_be(tmp_path: Path, finer: bool, width: int) -> None:
    store = opened(tmp_path, seal_seconds=0.01)
    await store.open()
    await add(store, 0, 40_000)
    await eventually(lambda: not lengths(tmp_path, sealed=False))
    asked = BucketQuery(BucketAxis.ITER, lambda *_: 600, may_be_finer=finer)
    (found,) = await store.scalar_buckets(SCALARS, asked)
    assert set(np.diff(found.x).tolist()) == {width}
    await store.close()


@pytest.mark.test
async def test_the_end_of_a_series_that_grows_waits_for_more_points(tmp_path: Path) -> None:
    """Each look finds the series grown since the look before, so that only full chunks are sealed."""
    store = opened(tmp_path)
    await store.open()
    sealer, merger, connection = Sealer(), store._parts.merger, store._parts.database.writer
    expected = 0
    for start in range(0, 60_000, 12_000):
        await add(store, start, start + 12_000)
        sealer.note([1])
        sealer.look(connection)
        while sealer.is_busy:
            with merger._working:
                connection.execute("BEGIN")
                sealer.step(connection)
                connection.execute("COMMIT")
        assert sum(lengths(tmp_path, sealed=False)) <= BOUNDS.sealed_chunk_points
        assert all(count > BOUNDS.sealed_chunk_points - BOUNDS.chunk_points for count in lengths(tmp_path, sealed=True))
        expected = max(expected, len(lengths(tmp_path, sealed=True)))
    assert expected >= 3
    assert await values(store) == VALUES[:60_000]
    await store.close()


@pytest.mark.test
async def test_small_sealed_chunks_are_put_together(tmp_path: Path) -> None:
    store = opened(tmp_path)
    await store.open()
    for start in range(0, 32_000, 2_000):
        await add(store, start, start + 2_000)
        await store.seal()
    found = lengths(tmp_path, sealed=True)
    assert len(found) <= 5
    assert await values(store) == VALUES[:32_000]
    await store.close()


async def test_points_are_laid_over_sealed_chunks(tmp_path: Path) -> None:
    store = opened(tmp_path)
    await store.open()
    await add(store, 0, 40_000)
    await store.seal()
    await store.add(batch(scalars([7.0, 8.0], iters=[20_000, 20_001])))
    await store.merge()
    assert sum(lengths(tmp_path, sealed=False)) <= BOUNDS.sealed_chunk_points
    assert await values(store) == [*VALUES[:20_000], 7.0, 8.0, *VALUES[20_002:40_000]]
    await store.seal()
    assert not lengths(tmp_path, sealed=False)
    assert await values(store) == [*VALUES[:20_000], 7.0, 8.0, *VALUES[20_002:40_000]]
    await store.close()


async def test_sealed_points_take_few_bytes(tmp_path: Path) -> None:
    """Also after a while: the pages that sealing frees are given back."""
    store = opened(tmp_path, seal_seconds=0.01)
    await store.open()
    losses = 2 * np.exp(-np.arange(100_000) / 3e4) + 0.3 + 0.05 * np.random.default_rng(0).standard_normal(100_000)
    narrow = losses.astype(np.float32).astype(np.float64).tolist()
    await store.add(batch(scalars(narrow, timestamps=[137 * n for n in range(100_000)])))
    await store.merge()
    files = [tmp_path / name for name in ("events.db", "events.db-wal")]
    await eventually(lambda: sum(file.stat().st_size for file in files) < 4.5 * 100_000)
    assert await values(store) == narrow
    await store.close()


# --- damage ----------------------------------------------------------------------------------------


@pytest.mark.test
@pytest.mark.parametrize("table", ["chunk_curves", "chunk_details"])
@pytest.mark.parametrize("harm", [lambda body: body[:-9], lambda body: body[:500] + b"?" + body[501:]])
async def test_damage_is_named_and_never_answered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, table: str, harm: Callable[[bytes], bytes]
) -> None:
    store = opened(tmp_path)
    await store.open()
    await add(store, 0, 50_000)
    await store.seal()
    await store.close()
    id = damage(tmp_path, table, harm)
    await store.open()
    with pytest.raises(EventStoreBusy, match=f"chunk {id} is damaged.*task {OWNER.id}, metric loss, variant train"):
        await values(store)
    beyond = await store.scalar_points(SCALARS, PageQuery(10, None, descending=True))
    assert beyond.values.tolist() == VALUES[:50_000][:-11:-1]
    await store.seal()

    with caplog.at_level(logging.ERROR):
        await store.add(batch(scalars([7.0], iters=[20_000])))
        await store.merge()
    assert f"chunk {id} is damaged" in caplog.text
    found = await store.scalar_points(SCALARS, PageQuery(10**6))
    kept = dict(zip(found.iters.tolist(), found.values.tolist(), strict=True))
    assert kept.pop(20_000) == 7.0
    assert 33_000 < len(kept) < 50_000
    assert all(VALUES[place] == value for place, value in kept.items())
    with closing(sqlite3.connect(tmp_path / "events.db")) as connection:
        assert connection.execute("SELECT id FROM damaged_chunks").fetchall() == [(id,)]
    await store.close()


@pytest.mark.test
@pytest.mark.parametrize(
    "column", ["chunk_index.stats", "tail_pages.curve", "tail_pages.details", "tail_pages.lengths"]
)
@pytest.mark.parametrize("at", [0, 14])
async def test_damage_costs_only_its_series(tmp_path: Path, column: str, at: int) -> None:
    """Merging goes on, for the damaged series and for others."""
    store = opened(tmp_path)
    await store.open()
    await add(store, 0, 20_500)
    await store.seal()
    await store.close()
    table, _, name = column.partition(".")
    with closing(sqlite3.connect(tmp_path / "events.db")) as connection:
        for id, body in connection.execute(f"SELECT id, {name} FROM {table}").fetchall():
            flipped = body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]
            connection.execute(f"UPDATE {table} SET {name} = ? WHERE id = ?", (flipped, id))
        connection.commit()
    await store.open()
    with contextlib.suppress(EventStoreBusy):
        assert await values(store) == VALUES[:20_500]
    for iters in ([7, 20_400], range(20_500, 20_510)):
        await store.add(batch(scalars([7.0] * len(iters), iters=iters), scalars([1.0], variant="zero")))
        await store.merge()
    await store.check()
    found = await store.scalar_points(select(SCALARS, MetricSelection("loss", ("train",))), PageQuery(10**6))
    kept = dict(zip(found.iters.tolist(), found.values.tolist(), strict=True))
    assert kept.pop(7) == kept.pop(20_400) == kept.pop(20_505) == 7.0
    assert all(value in (VALUES[place], 7.0) for place, value in kept.items())
    stats, _ = await store.scalar_stats(SCALARS)
    assert stats.count == len(found.iters)
    assert await store.delete([OWNER]) == stats.count + 1
    await store.close()


async def test_merging_goes_on_after_a_last_chunk_was_damaged(tmp_path: Path) -> None:
    store = opened(tmp_path)
    await store.open()
    await add(store, 0, 20_480)
    await store.seal()
    await store.close()
    damage(tmp_path, "chunk_curves", lambda body: body[:-1])
    await store.open()
    for place in (20_000, 20_300, 20_470, 20_600):
        await store.add(batch(scalars([7.0], iters=[place])))
        await store.merge()
    found = await values(store)
    assert found[-4:] == [7.0] * 4
    (stats,) = await store.scalar_stats(SCALARS)
    assert stats.count == len(found)
    await store.close()


async def test_a_chunk_that_cannot_be_read_stays_as_it_is(tmp_path: Path) -> None:
    store = opened(tmp_path)
    await store.open()
    await add(store, 0, 30_000)
    await store.add(batch(scalars(VALUES[:5000], variant="z", iters=range(5000))))
    await store.close()
    id = damage(tmp_path, "chunk_curves", lambda body: body[:500])
    await store.open()
    await store.seal()
    await store.seal()
    with pytest.raises(EventStoreBusy, match="damaged"):
        await values(store)
    with closing(sqlite3.connect(tmp_path / "events.db")) as connection:
        unsealed = connection.execute("SELECT id FROM chunk_index WHERE sealed = 0").fetchall()
    assert (id,) in unsealed
    assert len(unsealed) <= 4
    await store.close()


async def test_chunks_that_were_laid_over_take_no_numbers(tmp_path: Path) -> None:
    """Else the numbers of a series would run into those of the next one."""
    store = opened(tmp_path)
    await store.open()
    await add(store, 0, 20_000)
    await store.seal()
    with closing(sqlite3.connect(tmp_path / "events.db")) as connection:
        before = connection.execute("SELECT chunks FROM scalars").fetchall()
        for n in range(3):
            await store.add(batch(scalars([float(n)], iters=[100])))
            await store.merge()
            await store.seal()
        assert connection.execute("SELECT chunks FROM scalars").fetchall() == before
    await store.close()


async def test_an_error_while_looking_does_not_end_merging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = threading.Event()

    def fail(self: Sealer, conn: sqlite3.Connection) -> None:
        failed.set()
        raise sqlite3.OperationalError("no such luck")

    monkeypatch.setattr(Sealer, "look", fail)
    store = EmbeddedEventStore(tmp_path, merge_points=10**9, merge_seconds=0.01, seal_seconds=0.01)
    await store.open()
    await store.add(batch(scalars([1.0])))
    await eventually(failed.is_set)
    await store.add(batch(scalars([2.0], iters=[1])))
    await eventually(lambda: not store._parts.unmerged.active.events)
    await store.close()


def damage(folder: Path, table: str, harm: Callable[[bytes], bytes]) -> int:
    """Damage the chunk that has iteration 20,000; its id."""
    with closing(sqlite3.connect(folder / "events.db")) as connection:
        query = "SELECT id FROM chunk_index WHERE first <= 20000 AND last >= 20000"
        ((id,),) = connection.execute(query).fetchall()
        ((body,),) = connection.execute(f"SELECT body FROM {table} WHERE id = ?", (id,)).fetchall()
        connection.execute(f"UPDATE {table} SET body = ? WHERE id = ?", (harm(body), id))
        connection.commit()
        return int(id)
