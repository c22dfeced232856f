"""A database of an older schema is read and written on."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from apiserver import resources
from apiserver.events.model import LogSize
from apiserver.events.queries import PageQuery
from apiserver.stores.events.columns import stats
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.contract.event_stores import OWNER, SCALARS, batch, lines, scalars

pytestmark = pytest.mark.anyio

#: What schema 5 has of owners, and those before it do not have.
MARKS = ("changed_segment", "changed_record", "whole_segment", "whole_record")
RUNS = {7: [(0, 0.5, 1000, 0, 5), (1, 1.5, 1001, 0, 5)], 9: [(4, 2.5, 1004, 1, 6)]}


def of_schema_1(folder: Path) -> None:
    """A store's folder, as schema 1 had a series of one metric whose points are in two runs of its tail."""
    points = [point for run in RUNS.values() for point in run]
    iters, values, times = (np.array(column) for column in list(zip(*points, strict=True))[:3])
    row = stats.of_groups(iters, values, times, np.zeros(1, np.intp))
    raw = np.dtype([("iter", "<i8"), ("value", "<f8"), ("timestamp", "<i8"), ("worker", "<u4"), ("received", "<i8")])
    conn = sqlite3.connect(folder / "events.db")
    conn.executescript((resources.path("migrations/sqlite/events") / "0001_initial.sql").read_text())
    conn.execute("PRAGMA user_version = 1")
    conn.execute("UPDATE state SET value = 2 WHERE name = 'next_series'")
    conn.execute("INSERT INTO owners VALUES (1, ?, ?, ?)", (OWNER.company, OWNER.id, OWNER.is_model))
    conn.executemany("INSERT INTO workers VALUES (?, ?)", [(0, "one"), (1, "two")])
    conn.execute("INSERT INTO series VALUES (1, 0, 'loss', 'train', 1)")
    conn.execute(
        "INSERT INTO scalars VALUES (1, 0, NULL, ?, ?, ?)",
        (len(points), np.array(list(RUNS), "<i8").tobytes(), row.tobytes()),
    )
    conn.executemany("INSERT INTO tail VALUES (?, ?)", [(id, np.array(run, raw).tobytes()) for id, run in RUNS.items()])
    conn.commit()
    conn.close()


async def points_of(store: EmbeddedEventStore) -> list[tuple[int, float, str]]:
    page = await store.scalar_points(SCALARS, PageQuery(100))
    return list(zip(page.iters.tolist(), page.values.tolist(), page.workers, strict=True))


@pytest.mark.parametrize("new", [[5], [2, 5], []])
async def test_tails_of_schema_1_are_read_and_go_on(tmp_path: Path, new: list[int]) -> None:
    of_schema_1(tmp_path)
    store = EmbeddedEventStore(tmp_path)
    await store.open()
    expected = [(0, 0.5, "one"), (1, 1.5, "one"), (4, 2.5, "two")]
    assert await points_of(store) == expected
    if new:
        await store.add(batch(scalars([float(n) for n in new], metric="loss", variant="train", iters=new)))
        await store.merge()
    found = await points_of(store)
    assert [point for point in found if point[0] not in new] == expected
    assert [iter for iter, *_ in found] == sorted([0, 1, 4, *new])
    assert await store.delete([OWNER]) == 3 + len(new)
    await store.close()
    with closing(sqlite3.connect(tmp_path / "events.db")) as connection:
        assert connection.execute("SELECT count(*) FROM tail_pages").fetchone() == (0,)


async def test_the_sizes_of_blocks_of_schema_2_are_known(tmp_path: Path) -> None:
    store = EmbeddedEventStore(tmp_path)
    await store.open()
    await store.add(batch(lines(["one", "two é"])))
    await store.close()
    conn = sqlite3.connect(tmp_path / "events.db")
    conn.executescript(
        "DROP INDEX log_sizes; ALTER TABLE log_blocks DROP COLUMN sizes; DROP TABLE damaged_chunks;"
        "DROP INDEX unsealed_chunks; ALTER TABLE chunk_index DROP COLUMN sealed;"
        + "".join(f"ALTER TABLE owners DROP COLUMN {name};" for name in MARKS)
        + "PRAGMA user_version = 2"
    )
    conn.close()
    await store.open()
    assert await store.log_sizes(OWNER) == {"worker": LogSize(0, 11)}
    await store.add(batch(lines(["three"], timestamps=[1])))
    await store.merge()
    await store.add(batch(lines(["four"], timestamps=[9])))
    assert await store.log_sizes(OWNER) == {"worker": LogSize(0, 22)}
    await store.close()
