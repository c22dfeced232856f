"""What retention tells, and goes on with, when something cannot be done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apiserver.events.model import EventType, Owner
from apiserver.events.queries import SeriesQuery
from apiserver.operating.retention import archive
from apiserver.operating.retention.bounds import RetentionBounds
from apiserver.operating.retention.run import MOST_FAILURES, Gone, RetentionError
from apiserver.stores.events.base import EventStoreBusy
from tests.contract.event_stores import batch, lines, sample
from tests.operating.retention.stores import DAY, IMAGES, LOGS, NOW, OWNER, Stores

pytestmark = pytest.mark.anyio

OLD = NOW - 91 * DAY


class Failing:
    """Deletes lines of no task in `owners`."""

    def __init__(self, stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
        self.owners: set[Owner] = set()
        self._delete_logs = stores.events.delete_logs
        monkeypatch.setattr(stores.events, "delete_logs", self.delete_logs)

    async def delete_logs(self, series: SeriesQuery, *how: Any) -> int:
        if series.owner in self.owners:
            raise EventStoreBusy("the disk is full")
        return await self._delete_logs(series, *how)


async def tasks(stores: Stores, number: int) -> list[Owner]:
    """Tasks with an old line each."""
    owners = [await stores.task(f"task {n:02}") for n in range(number)]
    await stores.events.add(batch(*(lines(["old"], timestamps=[OLD], owner=owner) for owner in owners)))
    return owners


@pytest.mark.test
async def test_tasks_that_always_fail_do_not_keep_others_from_going(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    owners, failing = await tasks(stores, 2 * MOST_FAILURES + 3), Failing(stores, monkeypatch)
    failing.owners = {owner for n, owner in enumerate(owners) if n % MOST_FAILURES and n < 2 * MOST_FAILURES}
    assert len(failing.owners) > MOST_FAILURES
    gone = await stores.run(LOGS)
    assert {Owner(one.company, one.task) for one in gone} == set(owners) - failing.owners
    assert stores.failures == [
        f"logs of task {owner.id}: the disk is full" for owner in owners if owner in failing.owners
    ]


async def test_a_run_is_given_up_when_nothing_can_be_deleted(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    owners, failing = await tasks(stores, MOST_FAILURES + 3), Failing(stores, monkeypatch)
    failing.owners = set(owners[1:])
    with pytest.raises(RetentionError, match=f"it failed {MOST_FAILURES} times in a row, at last: the disk is full"):
        await stores.run(LOGS)
    assert len(stores.failures) == MOST_FAILURES
    assert [await stores.count(EventType.LOG, owner) for owner in owners] == [0, *[1] * (MOST_FAILURES + 2)]


def archived(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*.parquet")}


@pytest.mark.test
async def test_what_was_deleted_is_told_though_the_archive_fails_afterwards(
    stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await tasks(stores, MOST_FAILURES + 1)

    def fails(*how: Any) -> None:
        raise OSError("the archive is away")

    with monkeypatch.context() as patch:
        patch.setattr(archive, "rename_each", fails)
        gone = await stores.run(LOGS, archive=tmp_path, moment="M")
    assert sum(one.events for one in gone) == len(stores.failures) == MOST_FAILURES + 1
    assert stores.failures[0] == "logs of task task 00: the archive is away"
    assert await stores.run(LOGS, archive=tmp_path, moment="N") == []
    assert stores.failures == []
    assert archived(tmp_path) == {"logs-M.parquet"}


async def test_what_was_deleted_is_told_before_a_run_is_cancelled(
    stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await tasks(stores, 1)

    class Ended(BaseException):
        """The server ends."""

    def ends(*how: Any) -> None:
        raise Ended

    told: list[Gone] = []
    monkeypatch.setattr(archive, "rename_each", ends)
    with pytest.raises(Ended):
        await stores.run(LOGS, archive=tmp_path, tell=told.append)
    assert [one.events for one in told] == [1]


async def test_a_part_that_was_deleted_is_told(stores: Stores, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Series by series: of three, one can be deleted, then the disk is full. The archive has each event once."""
    stores.bounds = RetentionBounds(series=1)
    await stores.task()
    images = [sample(n, type=EventType.IMAGE, variant=v, timestamp=NOW) for v in "abc" for n in range(5)]
    await stores.events.add(batch(*images))
    real, calls = stores.events.delete_samples, 0

    async def delete_samples(*how: Any) -> int:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise EventStoreBusy("the disk is full")
        return await real(*how)

    monkeypatch.setattr(stores.events, "delete_samples", delete_samples)
    (gone,) = await stores.run(IMAGES, archive=tmp_path, moment="M")
    assert gone.events == 3
    assert await stores.count(EventType.IMAGE, OWNER) == 12
    assert stores.failures == ["images of task task: only 3 were deleted: the disk is full"]
    (gone,) = await stores.run(IMAGES, archive=tmp_path, moment="N")
    assert (gone.events, stores.failures) == (6, [])
