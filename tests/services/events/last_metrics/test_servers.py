"""Restarts, deletions and other servers: what was left is written, and what is gone is not told."""

from __future__ import annotations

import asyncio

import pytest

from apiserver.events.model import EventType, Owner, ScalarStats
from apiserver.events.queries import SeriesQuery
from apiserver.services.events.last_metrics import LastMetrics
from apiserver.stores.documents.query import Update
from apiserver.stores.events.base import EventStoreBusy
from tests.harness import Api
from tests.reading.events import lines, scalars
from tests.services.events.last_metrics.owners import add, new_task, seen, unstated

pytestmark = pytest.mark.anyio


@pytest.mark.own_api
async def test_events_that_arrive_after_their_task_was_deleted_are_deleted_too(api: Api) -> None:
    owner = await new_task(api)
    await api.call("tasks.delete", {"task": owner.id, "force": True})
    await add(api, owner, (1, 1.0))
    await api.backend.last_metrics.settle(owner.company)
    assert await api.backend.events.events_count(owner) == 0


@pytest.mark.own_api
async def test_a_reset_keeps_what_arrives_during_it_and_nothing_else(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = await new_task(api)
    await add(api, owner, (100, 1.0), variant="old")
    assert (await seen(api, owner))[0] == 100
    delete = api.backend.events.delete

    async def delete_then_add(owners: list[Owner], types: list[EventType] | None = None) -> int:
        deleted = await delete(owners, types)
        await add(api, owner, (3, 7.0), variant="new")
        return deleted

    monkeypatch.setattr(api.backend.events, "delete", delete_then_add)
    await api.call("tasks.reset", {"task": owner.id, "force": True})
    assert await seen(api, owner) == (3, {"new": 7.0})


@pytest.mark.own_api
async def test_a_restart_makes_documents_anew(api: Api) -> None:
    owner = await new_task(api)
    await add(api, owner, (4, 0.5))
    await api.backend.last_metrics.settle(owner.company)
    unset = Update(set={"last_metrics": {}, "last_iteration": 0})
    await api.backend.documents.update("tasks", {"id": owner.id}, unset)
    batch = scalars([(9, 0.25)], variant="w", owner=owner)
    await api.backend.events.add(batch)  # a crash came before anything was noted
    await api.backend.last_metrics.restate()
    assert await seen(api, owner) == (9, {"v": 0.5, "w": 0.25})


@pytest.mark.own_api
async def test_a_restart_leaves_events_whose_task_is_not_there(api: Api) -> None:
    owner = Owner(api.company, "lost")
    await api.backend.events.add(scalars([(9, 0.25)], owner=owner))
    await api.backend.last_metrics.restate()
    assert await api.backend.events.events_count(owner) == 1
    assert await unstated(api) == set()


@pytest.mark.own_api
async def test_stats_that_another_server_overtook_are_read_again(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = await new_task(api)
    read = api.backend.events.scalar_stats
    reads = 0

    async def read_and_be_overtaken(series: SeriesQuery) -> list[ScalarStats]:
        nonlocal reads
        reads += 1
        found = await read(series)
        if reads == 1:  # another server takes a later point, and writes the document
            await api.backend.events.add(scalars([(2, 9.0)], variant="v", owner=owner))
            other = LastMetrics(api.backend.events, api.backend.documents)
            await other.restate()
        return found

    monkeypatch.setattr(api.backend.events, "scalar_stats", read_and_be_overtaken)
    await add(api, owner, (1, 1.0))
    assert await seen(api, owner) == (2, {"v": 9.0})
    assert reads == 4  # the other's two, and again


@pytest.mark.own_api
async def test_a_reset_is_not_undone_by_stats_that_were_read_before_it(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = await new_task(api)
    other = LastMetrics(api.backend.events, api.backend.documents)
    batch = scalars([(1, 1.0)], variant="v", owner=owner)
    with other.adding(batch):
        await api.backend.events.add(batch)
    read = api.backend.events.scalar_stats

    async def read_before_a_reset(series: SeriesQuery) -> list[ScalarStats]:
        monkeypatch.setattr(api.backend.events, "scalar_stats", read)
        found = await read(series)
        await api.call("tasks.reset", {"task": owner.id, "force": True})
        return found

    monkeypatch.setattr(api.backend.events, "scalar_stats", read_before_a_reset)
    await other.close()
    assert await seen(api, owner) == (0, {})


@pytest.mark.own_api
async def test_what_other_servers_left_is_looked_for(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    restating = api.backend.last_metrics.restating
    restating.seconds = 0
    owner = await new_task(api)
    restated, done = api.backend.events.restated, asyncio.Event()

    async def say_so(owners: list[Owner]) -> None:
        await restated(owners)
        done.set()

    monkeypatch.setattr(api.backend.events, "restated", say_so)
    restating.start()
    await api.backend.events.add(scalars([(9, 0.25)], variant="w", owner=owner))  # by one that dies here
    await done.wait()
    await restating.close()
    assert await seen(api, owner) == (9, {"w": 0.25})


@pytest.mark.own_api
async def test_what_was_left_is_not_taken_for_written_with_what_came_later(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = sorted([await new_task(api), await new_task(api)])
    for owner in (first, second):
        await api.backend.events.add(scalars([(1, 0.5)], variant="left", owner=owner))
    read = api.backend.events.scalar_stats

    async def refuse_first(series: SeriesQuery) -> list[ScalarStats]:
        if series.owner == first:
            await add(api, second, (2, 0.25))
            await api.backend.last_metrics.settle(second.company, ids=[second.id])
            raise EventStoreBusy("one moment")
        return await read(series)

    monkeypatch.setattr(api.backend.events, "scalar_stats", refuse_first)
    await api.backend.last_metrics.restate()
    monkeypatch.setattr(api.backend.events, "scalar_stats", read)
    assert await seen(api, second) == (2, {"left": 0.5, "v": 0.25})
    assert await unstated(api) == {first}
    await api.backend.last_metrics.restate()
    assert await unstated(api) == set()


async def _with_lines(api: Api, owner: Owner) -> LastMetrics:
    """The last metrics of another server, which has just added lines of iterations 100 and 101."""
    other = LastMetrics(api.backend.events, api.backend.documents)
    batch = lines([100, 101], owner=owner)
    batch.logs[0].iters[:] = [100, 101]
    with other.adding(batch, {owner: None}):
        await api.backend.events.add(batch)
    return other


async def test_what_another_server_knows_of_events_before_a_reset_is_not_told_after_it(api: Api) -> None:
    owner = await new_task(api)
    other = await _with_lines(api, owner)
    await api.call("tasks.reset", {"task": owner.id, "force": True})
    await add(api, owner, (3, 7.0))
    await other.close()
    assert await seen(api, owner) == (3, {"v": 7.0})


@pytest.mark.test
@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.own_api
async def test_what_another_server_knows_of_deleted_events_is_not_told(
    api: Api, monkeypatch: pytest.MonkeyPatch, is_killed: bool
) -> None:
    owner = await new_task(api)
    other = await _with_lines(api, owner)
    delete = api.backend.events.delete

    async def delete_and_die(owners: list[Owner]) -> int:
        await delete(owners)
        raise asyncio.CancelledError

    if is_killed:
        monkeypatch.setattr(api.backend.events, "delete", delete_and_die)
        with pytest.raises(asyncio.CancelledError):
            await api.call("events.delete_for_task", {"task": owner.id})
    else:
        await api.call("events.delete_for_task", {"task": owner.id})
    await other.close()
    assert await seen(api, owner) == (0, {})
