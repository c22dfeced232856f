"""A disk that is full: nothing acknowledged is lost, reads go on, and so does everything once there is room."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.embedded import journal, log_merge, merge
from apiserver.stores.events.embedded.bounds import EmbeddedBounds
from apiserver.stores.events.embedded.database import Database
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.contract.event_stores import OWNER, batch, lines, scalars
from tests.stores.events.embedded.waiting import add_until_busy, eventually

pytestmark = pytest.mark.anyio

AT_ONCE_AGAIN = EmbeddedBounds(retry_seconds=[0.001])


async def test_a_full_disk_refuses_batches_and_loses_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(file: int, buffers: Sequence[bytes], at: int) -> int:
        os.pwrite(file, b"".join(buffers)[:20], at)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    store = EmbeddedEventStore(tmp_path, merge_points=10**9, merge_seconds=10**6)
    await store.open()
    await store.add(batch(scalars([1.0])))
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwritev", full)
        for _ in range(3):
            with pytest.raises(EventStoreBusy) as raised:
                await store.add(batch(scalars([2.0], iters=[1]), lines(["line"], digest=b"digest")))
            assert (raised.value.overloaded, raised.value.retry_after) == (False, 5)
        assert await store.events_count(OWNER) == 1
    await store.add(batch(scalars([2.0], iters=[1]), lines(["line"], digest=b"digest")))
    assert await store.events_count(OWNER) == 3
    assert [record.message.rpartition(" can")[2] for record in caplog.records] == [
        "not be written: No space left on device",
        " be written again",
    ]
    await store.close()
    await store.open()
    assert await store.events_count(OWNER) == 3
    await store.close()


async def test_a_failed_sync_keeps_nothing_of_its_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(file: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    store = EmbeddedEventStore(tmp_path, fsync=True, merge_points=10**9, merge_seconds=10**6)
    await store.open()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", fails)
        with pytest.raises(EventStoreBusy):
            await store.add(batch(scalars([2.0])))
    assert await store.events_count(OWNER) == 0
    await store.add(batch(scalars([1.0, 2.0])))
    assert await store.events_count(OWNER) == 2
    await store.close()


class Refusing:
    """A database that is full while `full` is set."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.full = True
        self.refused = 0
        real = log_merge.merge_logs

        def merge_logs(*arguments: object) -> None:
            if self.full:
                self.refused += 1
                raise sqlite3.OperationalError("database or disk is full")
            real(*arguments)  # type: ignore[arg-type]

        patch.setattr(merge, "merge_logs", merge_logs)


async def test_a_merge_that_fails_loses_nothing_and_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Refusing(monkeypatch)
    store = EmbeddedEventStore(tmp_path, merge_points=1, max_unmerged_bytes=5000, bounds=AT_ONCE_AGAIN)
    await store.open()
    await store.add(batch(scalars([1.0])))
    await eventually(lambda: database.refused > 2)
    sent, busy = await add_until_busy(store, 1)
    assert not busy.overloaded
    with pytest.raises(EventStoreBusy, match="merging does not work"):
        await store.check()
    assert await store.events_count(OWNER) == sent
    database.full = False
    await eventually(lambda: not journal.segments(tmp_path))
    await store.check()
    await store.add(batch(scalars([1.0], iters=[sent])))
    assert await store.events_count(OWNER) == sent + 1
    await store.close()


async def test_merging_that_fails_is_left_alone_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = Refusing(monkeypatch)
    store = EmbeddedEventStore(tmp_path, merge_points=1, bounds=EmbeddedBounds(retry_seconds=[3600]))
    await store.open()
    merger = store._parts.merger
    for n in range(20):
        await store.add(batch(scalars([1.0], iters=[n])))
        await eventually(lambda: database.refused > 0 and not merger._wake.is_set())
    await store.close()
    assert database.refused == 2  # at the first point, and when it was closed


async def test_a_store_closed_with_a_full_disk_keeps_its_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        Refusing(patch)
        store = EmbeddedEventStore(tmp_path, merge_points=1, bounds=AT_ONCE_AGAIN)
        await store.open()
        await store.add(batch(scalars([1.0, 2.0]), lines(["a"])))
        with pytest.raises(EventStoreBusy):
            await store.delete([OWNER])
        await store.close()
    store = EmbeddedEventStore(tmp_path)
    await store.open()
    assert await store.events_count(OWNER) == 3
    assert [owner async for owner in store.owners_to_restate()] == [OWNER]
    await store.close()


async def test_a_journal_that_cannot_be_deleted_is_merged_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(path: Path, missing_ok: bool = False) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    store = EmbeddedEventStore(tmp_path, merge_points=10**9, merge_seconds=10**6)
    await store.open()
    await store.add(batch(scalars([1.0])))
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", fails)
        await store.merge()
    assert len(journal.segments(tmp_path)) == 1
    await store.check()
    await store.close()
    store = EmbeddedEventStore(tmp_path)
    await store.open()
    assert await store.events_count(OWNER) == 1
    assert journal.segments(tmp_path) == []
    await store.close()


async def test_a_batch_whose_digest_cannot_be_looked_up_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(database: Database) -> sqlite3.Connection:
        raise sqlite3.OperationalError("unable to open database file")

    store = EmbeddedEventStore(tmp_path)
    await store.open()
    with monkeypatch.context() as patch:
        patch.setattr(Database, "reader", fails)
        with pytest.raises(EventStoreBusy, match="unable to open"):
            await store.add(batch(lines(["a"], digest=b"digest")))
    await store.add(batch(lines(["a"], digest=b"digest")))
    assert await store.events_count(OWNER) == 1
    await store.close()
