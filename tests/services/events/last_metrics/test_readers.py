"""What readers see, and what they wait for."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from apiserver.server.bounds import Bounds
from apiserver.services.events.last_metrics import LastMetricsBounds
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.harness import Api
from tests.services.events.last_metrics.owners import add, before, new_task, seen, unstated

pytestmark = pytest.mark.anyio


async def test_readers_see_what_was_acknowledged(api: Api) -> None:
    owner = await new_task(api)
    for iter in range(3):
        await add(api, owner, (iter, iter / 2))
        assert await seen(api, owner) == (iter, {"v": iter / 2})
    assert await unstated(api) == set()


async def test_a_document_may_be_asked_for_twice(api: Api) -> None:
    """The same id twice in a request must not wait for itself, nor keep others waiting."""
    owners = [await new_task(api) for _ in range(2)]
    for owner in owners:
        await add(api, owner, (7, 1.0))
    async with asyncio.timeout(120):
        found = (await api.call("tasks.get_all", {"id": [owner.id for owner in owners * 2]}))["tasks"]
    assert [one["last_iteration"] for one in found] == [7, 7]


@pytest.mark.bounds(Bounds(last_metrics=LastMetricsBounds(interval_seconds=3600)))
async def test_asking_for_some_documents_leaves_the_others_coalesced(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []

    async def note(collection: str, filter: dict[str, Any], *_: Any) -> None:
        written.append(filter["id"])

    one, other = await new_task(api), await new_task(api)
    before(api, monkeypatch, "update", note)
    for iter in range(1, 4):
        await add(api, one, (iter, 1.0))
        await add(api, other, (iter, 2.0))
        assert await seen(api, one) == (iter, {"v": 1.0})
        (task,) = (await api.call("tasks.get_all", {"id": [one.id]}))["tasks"]
        assert task["last_iteration"] == iter
    await api.call("models.get_all")
    assert written == [one.id] * 3
    tasks = (await api.call("tasks.get_all"))["tasks"]
    assert [task["last_iteration"] for task in tasks] == [3, 3]
    assert written == [one.id] * 3 + [other.id]


@pytest.mark.bounds(Bounds(last_metrics=LastMetricsBounds(interval_seconds=3600)))
async def test_who_asks_only_for_a_status_has_no_document_written(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []

    async def note(collection: str, filter: dict[str, Any], *_: Any) -> None:
        written.append(filter["id"])

    owner = await new_task(api)
    before(api, monkeypatch, "update", note)
    await add(api, owner, (1, 1.0))
    poll: dict[str, Any] = {"id": [owner.id], "only_fields": ["status", "status_message"], "search_hidden": True}
    (task,) = (await api.call("tasks.get_all", poll))["tasks"]
    assert (task["id"], task["status"]) == (owner.id, "created")
    assert not written
    others: list[dict[str, Any]] = [
        {"only_fields": ["last_metrics.x"]},
        {"order_by": ["-last_update"]},
        {"last_iteration": [1, 1]},
    ]
    for asked in others:
        await add(api, owner, (1, 1.0))
        assert len((await api.call("tasks.get_all", poll | asked))["tasks"]) == 1
        assert written == [owner.id]
        written.clear()


@pytest.mark.bounds(Bounds(last_metrics=LastMetricsBounds(interval_seconds=0)))
async def test_a_reader_waits_for_the_document_it_asks_for_alone(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    slow, quick = await new_task(api), await new_task(api)
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def wait(collection: str, filter: dict[str, Any], *_: Any) -> None:
        if filter["id"] == slow.id:
            begun.set()
            await go_on.wait()

    before(api, monkeypatch, "update", wait)
    await add(api, slow, (1, 1.0))
    await begun.wait()
    await add(api, quick, (2, 2.0))
    assert await seen(api, quick) == (2, {"v": 2.0})
    reader = asyncio.create_task(seen(api, slow))
    await seen(api, quick)
    assert not reader.done()
    go_on.set()
    assert await reader == (1, {"v": 1.0})


@pytest.mark.test
@pytest.mark.bounds(Bounds(last_metrics=LastMetricsBounds(patience_seconds=0.01)))
async def test_readers_wait_for_an_engine_that_does_not_answer_only_so_long(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many wait, for one task or for all, and for labels."""
    tasks = [await new_task(api) for _ in range(5)]
    go_on = asyncio.Event()
    real = EmbeddedEventStore.scalar_stats, EmbeddedEventStore.scalar_stats_of_each

    async def stats(store: EmbeddedEventStore, *arguments: Any) -> Any:
        await go_on.wait()
        return await real[0](store, *arguments)

    async def stats_of_each(store: EmbeddedEventStore, *arguments: Any) -> Any:
        await go_on.wait()
        return await real[1](store, *arguments)

    monkeypatch.setattr(EmbeddedEventStore, "scalar_stats", stats)
    monkeypatch.setattr(EmbeddedEventStore, "scalar_stats_of_each", stats_of_each)
    for task in tasks:
        await add(api, task, (1, 1.0))
    told = await asyncio.gather(*(seen(api, task) for task in tasks * 20))
    assert told == [(0, {})] * 100
    assert len((await api.call("tasks.get_all"))["tasks"]) == 5
    await api.backend.last_metrics.settle_labels(tasks[0])
    go_on.set()
    await api.backend.last_metrics.close()  # it writes them, however long that takes
    assert await asyncio.gather(*(seen(api, task) for task in tasks)) == [(1, {"v": 1.0})] * 5
    assert await unstated(api) == set()
