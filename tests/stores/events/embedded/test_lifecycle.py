"""Opening, closing and owning the folder."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apiserver.events.queries import PageQuery
from apiserver.stores.events.base import EventStoreBusy, EventStoreError
from apiserver.stores.events.embedded import deletion, journal, logs
from apiserver.stores.events.embedded import store as store_module
from apiserver.stores.events.embedded.bounds import BOUNDS, EmbeddedBounds
from apiserver.stores.events.embedded.database import Database
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from apiserver.stores.reserve import Reserve
from tests.contract.event_stores import LOGS, OWNER, SCALARS, batch, lines, messages, scalars
from tests.stores.events.embedded.waiting import add_until_busy, eventually

pytestmark = pytest.mark.anyio


def unmerged(folder: Path, **bounds: Any) -> EmbeddedEventStore:
    """A store that merges only when told to, or at its close."""
    return EmbeddedEventStore(folder, merge_points=10**9, merge_seconds=10**6, bounds=EmbeddedBounds(**bounds))


async def test_opening_and_closing_twice_does_nothing(tmp_path: Path) -> None:
    store = unmerged(tmp_path / "a" / "b")
    await store.open()
    await store.open()
    await store.add(batch(scalars([1.0])))
    await store.close()
    await store.close()
    with pytest.raises(EventStoreError, match="not open"):
        await store.events_count(OWNER)
    await store.open()
    assert await store.events_count(OWNER) == 1
    await store.close()


async def test_a_folder_has_one_owner(tmp_path: Path) -> None:
    first, second = unmerged(tmp_path), unmerged(tmp_path)
    await first.open()
    with pytest.raises(EventStoreError, match=f"{tmp_path} is in use by the process {os.getpid()}"):
        await second.open()
    await first.close()
    await second.open()
    await second.close()


async def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EventStoreError, match=str(tmp_path / "file")):
        await unmerged(tmp_path / "file" / "events").open()


async def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    store = unmerged(tmp_path)
    await store.open()
    await store.close()
    conn = sqlite3.connect(tmp_path / "events.db")
    conn.execute("PRAGMA user_version = 9999")
    conn.close()
    for _ in range(2):  # a refused folder is left free
        with pytest.raises(EventStoreError, match="schema 9999"):
            await unmerged(tmp_path).open()


async def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "events.db").write_bytes(b"something else" * 1000)
    with pytest.raises(EventStoreError, match=str(tmp_path)):
        await unmerged(tmp_path).open()


async def test_closing_merges_everything(tmp_path: Path) -> None:
    store = unmerged(tmp_path)
    await store.open()
    await store.add(batch(scalars([1.0]), lines(["a"])))
    assert len(journal.segments(tmp_path)) == 1
    await store.close()
    assert journal.segments(tmp_path) == []


async def test_a_segment_that_was_merged_is_not_read_again(tmp_path: Path) -> None:
    """As after a crash between the commit of a merge and the deletion of its segment."""
    store = unmerged(tmp_path)
    await store.open()
    await store.add(batch(lines(["once"])))
    ((_, path),) = journal.segments(tmp_path)
    content = path.read_bytes()
    await store.close()
    path.write_bytes(content)
    await store.open()
    assert await messages(store) == ["once"]
    await store.close()
    assert journal.segments(tmp_path) == []


@pytest.mark.parametrize(
    "how", [{"merge_points": 10}, {"merge_seconds": 0.01}, {"merge_bytes": 99}, {"max_unmerged_bytes": 199}]
)
async def test_merging_begins_by_points_time_or_size(tmp_path: Path, how: dict[str, Any]) -> None:
    store = EmbeddedEventStore(tmp_path, **{"merge_points": 10**9, "merge_seconds": 10**6, **how})
    await store.open()
    await store.add(batch(scalars([1.0] * 20)))
    await eventually(lambda: not journal.segments(tmp_path))
    assert await store.events_count(OWNER) == 20
    await store.close()


async def test_events_are_taken_while_a_merge_or_a_deletion_commits(tmp_path: Path) -> None:
    store = unmerged(tmp_path)
    await store.open()
    parts, commits = store._parts, list[tuple[bool, bool]]()

    def note(statement: str) -> None:
        if statement == "COMMIT":
            commits.append((parts.unmerged.lock.locked(), parts.unmerged.entrance.locked()))

    parts.database.writer.set_trace_callback(note)
    await store.add(batch(scalars([1.0])))
    await store.merge()
    assert await store.delete([OWNER]) == 1
    await store.close()
    assert commits.count((False, True)) == 2  # adding needs the first lock, and reading both
    assert {*commits} <= {(False, True), (False, False)}  # the store may commit work of its own in between


async def test_too_much_that_is_not_merged_is_refused(tmp_path: Path) -> None:
    store = EmbeddedEventStore(tmp_path, merge_points=10**9, merge_seconds=10**6, max_unmerged_bytes=1000)
    await store.open()
    with store._parts.merger._working:  # as if a merge took long
        sent, busy = await add_until_busy(store)
    assert busy.overloaded
    assert sent > 20
    await store.merge()
    await store.add(batch(scalars([1.0], iters=[sent])))
    assert await store.events_count(OWNER) == sent + 1
    await store.close()


async def test_the_order_of_lines_goes_on_after_a_restart(tmp_path: Path) -> None:
    for n in range(3):
        store = unmerged(tmp_path)
        await store.open()
        await store.add(batch(lines([f"{n}a", f"{n}b"], timestamps=[0, 0])))
        await store.close()
    await store.open()
    assert await messages(store) == ["0a", "0b", "1a", "1b", "2a", "2b"]
    await store.close()


async def test_deleting_gives_all_room_back_while_the_disk_is_short_of_it(tmp_path: Path) -> None:
    reserve = Reserve(tmp_path / "reserve", 2**20)
    store = EmbeddedEventStore(tmp_path / "events", merge_points=10**9, merge_seconds=10**6, reserve=reserve)
    await store.open()
    assert reserve.held()
    for variant in range(5):
        await store.add(batch(scalars([n * 0.1 for n in range(10_000)], variant=str(variant))))
    await store.merge()
    database = tmp_path / "events" / "events.db"
    full = database.stat().st_size
    assert full < 4096 * BOUNDS.free_pages
    (tmp_path / "reserve").unlink()  # as when the disk is full
    await store.delete([OWNER])
    await eventually(lambda: database.stat().st_size < full / 2)
    await store.close()


@pytest.mark.test
async def test_deleting_gives_room_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = unmerged(tmp_path, free_pages=10)
    await store.open()
    for variant in range(20):
        await store.add(batch(scalars([n * 0.1 for n in range(10_000)], variant=str(variant))))
    await store.add(batch(scalars([1.0], owner=OWNER._replace(id="kept"))))
    await store.close()
    database = tmp_path / "events.db"
    full = database.stat().st_size
    steps, shrink = [], Database.shrink

    def counted(self: Database, pages: int) -> None:
        steps.append(pages)
        shrink(self, pages)

    monkeypatch.setattr(Database, "shrink", counted)
    await store.open()
    assert await store.delete([OWNER]) == 200_000
    await eventually(lambda: database.stat().st_size < full / 5)
    assert 0 < len(steps) < 5, "each step gives back hundreds of pages, not one"
    assert await store.events_count(OWNER._replace(id="kept")) == 1
    await store.close()


@pytest.mark.test
async def test_a_merge_that_is_due_goes_before_room_that_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is shrunk for hours would keep events in memory, until no more are taken."""
    bounds = EmbeddedBounds(shrink_pages=1, free_pages=10)
    store = EmbeddedEventStore(tmp_path, merge_points=50_000, merge_seconds=10**6, bounds=bounds)
    await store.open()
    for variant in range(20):
        await store.add(batch(scalars([n * 0.1 for n in range(10_000)], variant=str(variant))))
    await store.merge()
    merges: list[float] = []
    added, shrink = threading.Event(), Database.shrink

    def waiting(self: Database, pages: int) -> None:
        if len(merges) < 2:
            merges.append(store.gauges()["merges"])
            assert added.wait(120)
        shrink(self, pages)

    monkeypatch.setattr(Database, "shrink", waiting)
    await store.delete([OWNER])
    await eventually(lambda: bool(merges))
    await store.add(batch(scalars([1.0] * 50_000, owner=OWNER._replace(id="kept"))))
    added.set()
    await eventually(lambda: len(merges) > 1)
    assert merges[1] == merges[0] + 1
    await store.close()


@pytest.mark.test
async def test_the_log_stays_short_though_reads_overlap(tmp_path: Path) -> None:
    limit = 200_000
    store = unmerged(tmp_path, log_bytes=limit)
    await store.open()
    log = tmp_path / "events.db-wal"
    done = False

    async def read() -> None:
        while not done:
            await store.scalar_points(SCALARS, PageQuery(10_000))

    reads = [asyncio.create_task(read()) for _ in range(3)]
    for n in range(5):
        iters = range(n * 20_000, (n + 1) * 20_000)
        await store.add(batch(scalars([i * 0.1 for i in iters], iters=iters)))
        await store.merge()
    await eventually(lambda: log.stat().st_size <= limit)
    await store.delete([OWNER])
    await eventually(lambda: log.stat().st_size <= limit)
    done = True
    await asyncio.gather(*reads)
    await store.close()


async def test_the_log_is_shortened_when_the_reader_that_stayed_is_gone(tmp_path: Path) -> None:
    store = unmerged(tmp_path, log_bytes=100_000, readers_leave_seconds=0.001, long_log_seconds=0.01)
    await store.open()
    log = tmp_path / "events.db-wal"
    with closing(sqlite3.connect(tmp_path / "events.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM owners").fetchone() == (0,)
        await store.add(batch(scalars([i * 0.1 for i in range(50_000)])))
        await store.merge()
        assert log.stat().st_size > 100_000
        assert await store.events_count(OWNER) == 50_000
    await store.delete_logs(LOGS, None)
    await eventually(lambda: log.stat().st_size <= 100_000)
    await store.close()


async def test_a_check_waits_for_no_read_and_a_read_for_no_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = unmerged(tmp_path)
    await store.open()
    with pytest.MonkeyPatch.context() as patch:
        go_on, under_way = threading.Event(), threading.Semaphore(0)

        def wait(*arguments: Any) -> int:
            under_way.release()
            go_on.wait()
            return 0

        patch.setattr(deletion, "delete_owner", wait)
        deletes = [asyncio.create_task(store.delete([OWNER])) for _ in range(20)]
        await eventually(lambda: under_way.acquire(blocking=False))
        assert await store.events_count(OWNER) == 0
        patch.setattr(logs, "count", wait)
        reads = [asyncio.create_task(store.log_count(LOGS)) for _ in range(20)]
        await eventually(lambda: under_way.acquire(blocking=False))
        await store.check()
        go_on.set()
        await asyncio.gather(*reads, *deletes)
    monkeypatch.setattr(store_module, "free_bytes", lambda folder: 0)
    with pytest.raises(EventStoreBusy, match="no room"):
        await store.check()
    await store.close()
    with pytest.raises(EventStoreError, match="not open"):
        await store.check()


@pytest.mark.test
async def test_room_that_a_deletion_gives_back_does_not_stay_in_the_log(tmp_path: Path) -> None:
    def size() -> int:
        return sum(entry.stat().st_size for entry in os.scandir(tmp_path))

    store = unmerged(tmp_path)
    await store.open()
    random = np.random.default_rng(0)
    for variant in range(8):
        await store.add(batch(scalars(random.normal(size=200_000).tolist(), variant=str(variant))))
    await store.merge()
    before = size()
    await store.delete([OWNER])
    await eventually(lambda: size() < before * 0.6)
    await store.close()


async def test_an_owner_whose_lines_are_known_already_is_not_restated_for_them(tmp_path: Path) -> None:
    store, other = unmerged(tmp_path), OWNER._replace(id="other")
    await store.open()
    await store.add(batch(lines(["a"], digest=b"1")))
    await store.restated([OWNER])
    await store.add(batch(lines(["a"], digest=b"1"), scalars([1.0], owner=other)))
    assert [owner async for owner in store.owners_to_restate()] == [other]
    await store.close()
