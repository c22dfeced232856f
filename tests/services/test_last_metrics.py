"""Documents follow their events: exactly, whatever happens at the same time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.events.model import EventBatch, EventType, Owner, ScalarStats
from apiserver.events.queries import SeriesQuery
from apiserver.services import last_metrics
from apiserver.services.last_metrics import LastMetrics
from apiserver.stores.documents.base import InvalidDocument
from apiserver.stores.documents.query import Update
from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.aggregation.any_events import looked_at
from tests.aggregation.events import lines, scalars
from tests.harness import PATIENCE, Api

pytestmark = pytest.mark.anyio


async def new_task(api: Api) -> Owner:
    created = await api.call("tasks.create", {"name": "a task", "type": "training"})
    return Owner(api.backend.settings.company, created["id"])


async def add(api: Api, owner: Owner, *points: tuple[int, float], variant: str = "v") -> None:
    batch = scalars(points, variant=variant, owner=owner)
    with api.backend.last_metrics.adding(batch):
        await api.backend.events.add(batch)


async def seen(api: Api, owner: Owner) -> tuple[int, dict[str, float]]:
    """The last iteration, and the last value of each variant."""
    task = (await api.call("tasks.get_by_id", {"task": owner.id}))["task"]
    last = [one for variants in task["last_metrics"].values() for one in variants.values()]
    return task["last_iteration"], {one["variant"]: one["value"] for one in last}


async def unstated(api: Api) -> set[Owner]:
    return {owner async for owner in api.backend.events.owners_to_restate()}


def before(api: Api, monkeypatch: pytest.MonkeyPatch, what: str, do: Callable[..., Any]) -> None:
    """Run `do` with its arguments each time before a method of the documents is called."""
    method = getattr(api.backend.documents, what)

    async def first(*arguments: Any, **named: Any) -> Any:
        await do(*arguments)
        return await method(*arguments, **named)

    monkeypatch.setattr(api.backend.documents, what, first)


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
    async with asyncio.timeout(30):
        found = (await api.call("tasks.get_all", {"id": [owner.id for owner in owners * 2]}))["tasks"]
    assert [one["last_iteration"] for one in found] == [7, 7]


async def test_asking_for_some_documents_leaves_the_others_coalesced(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []

    async def note(collection: str, filter: dict[str, Any], *_: Any) -> None:
        written.append(filter["id"])

    monkeypatch.setattr(last_metrics, "INTERVAL", 3600)
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


async def test_who_asks_only_for_a_status_has_no_document_written(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []

    async def note(collection: str, filter: dict[str, Any], *_: Any) -> None:
        written.append(filter["id"])

    monkeypatch.setattr(last_metrics, "INTERVAL", 3600)
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


async def test_a_reader_waits_for_the_document_it_asks_for_alone(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    slow, quick = await new_task(api), await new_task(api)
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def wait(collection: str, filter: dict[str, Any], *_: Any) -> None:
        if filter["id"] == slow.id:
            begun.set()
            await go_on.wait()

    monkeypatch.setattr(last_metrics, "INTERVAL", 0)
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


async def test_an_owner_that_cannot_be_written_hinders_no_other(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    bad, good = await new_task(api), await new_task(api)
    broken = True

    async def fail(collection: str, filter: dict[str, Any], *_: Any) -> None:
        if broken and filter.get("id") == bad.id:
            raise RuntimeError("injected")

    before(api, monkeypatch, "update", fail)
    await add(api, bad, (1, 1.0))
    await add(api, good, (2, 2.0))
    assert await seen(api, good) == (2, {"v": 2.0})
    assert await seen(api, bad) == (0, {})
    assert await unstated(api) == {bad}
    broken = False
    assert await seen(api, bad) == (1, {"v": 1.0})
    assert await unstated(api) == set()


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
    monkeypatch.setattr(last_metrics, "PATIENCE", 0.01)
    for task in tasks:
        await add(api, task, (1, 1.0))
    told = await asyncio.gather(*(seen(api, task) for task in tasks * 20))
    assert told == [(0, {})] * 100
    assert len((await api.call("tasks.get_all"))["tasks"]) == 5
    await api.backend.last_metrics.settle_labels(tasks[0])
    go_on.set()
    monkeypatch.setattr(last_metrics, "PATIENCE", PATIENCE)
    assert await asyncio.gather(*(seen(api, task) for task in tasks)) == [(1, {"v": 1.0})] * 5
    assert await unstated(api) == set()


async def test_many_documents_are_written_with_one_transaction(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_metrics, "INTERVAL", 3600)
    tasks = [await new_task(api) for _ in range(5)]
    deleted, late, *others = tasks
    groups: list[list[str]] = []

    async def note(collection: str, updates: list[tuple[dict[str, Any], Update]]) -> None:
        groups.append([filter["id"] for filter, _ in updates])

    await api.call("tasks.delete", {"task": deleted.id, "force": True})
    before(api, monkeypatch, "update_each", note)
    for iter, owner in enumerate(tasks):
        await add(api, owner, (iter, iter / 2))
    api.backend.last_metrics._pending[late].resets.add("a reset since")
    api.backend.last_metrics.heard_of(others[0])
    api.backend.last_metrics.heard_of(quiet := await new_task(api))
    await api.call("tasks.get_all")
    assert [sorted(group) for group in groups] == [sorted(owner.id for owner in (*others, quiet))]
    for iter, owner in enumerate(tasks[1:], start=1):
        assert await seen(api, owner) == (iter, {"v": iter / 2})
    assert await api.backend.events.events_count(deleted) == 0
    assert await unstated(api) == set()


async def test_between_groups_of_documents_requests_have_their_turn(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_metrics, "INTERVAL", 3600)
    monkeypatch.setattr(last_metrics, "LONGEST_INTERVAL", 3600)
    monkeypatch.setattr(last_metrics, "_TOGETHER", 2)
    owners = [await new_task(api) for _ in range(5)]
    for owner in owners:
        await add(api, owner, (1, 0.5))
    pending = api.backend.last_metrics._pending
    writing = asyncio.create_task(api.backend.last_metrics._write_all(rest=1e9))
    async with asyncio.timeout(30):
        while len(pending) == 5:  # noqa: ASYNC110  # nothing tells when the first group is written
            await asyncio.sleep(0.001)
    assert len(pending) == 3
    assert [await seen(api, owner) for owner in owners] == [(1, {"v": 0.5})] * 5  # who asks for them does not wait
    assert not pending
    writing.cancel()


async def test_an_owner_that_cannot_be_written_with_others_hinders_none(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(last_metrics, "INTERVAL", 3600)
    bad, good = await new_task(api), await new_task(api)

    async def fail(collection: str, what: Any, *_: Any) -> None:
        if bad.id in str(what):
            raise RuntimeError("injected")

    with monkeypatch.context() as broken:
        before(api, broken, "update_each", fail)
        before(api, broken, "update", fail)
        await add(api, bad, (1, 1.0))
        await add(api, good, (2, 2.0))
        await api.call("tasks.get_all")
        assert await seen(api, good) == (2, {"v": 2.0})
        assert await unstated(api) == {bad}
    assert await seen(api, bad) == (1, {"v": 1.0})
    assert await unstated(api) == set()


async def test_a_batch_that_was_refused_is_not_told_of(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    async def busy(batch: EventBatch) -> None:
        raise EventStoreBusy("full")

    owner = await new_task(api)
    await add(api, owner, (1, 1.0))
    with monkeypatch.context() as patch:
        patch.setattr(api.backend.events, "add", busy)
        with pytest.raises(EventStoreBusy):
            await add(api, owner, (7, 7.0))
    assert await seen(api, owner) == (1, {"v": 1.0})
    assert await unstated(api) == set()


async def test_what_is_added_while_a_document_is_written_is_not_taken_for_written(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = await new_task(api)
    added = False

    async def add_more(collection: str, filter: dict[str, Any], *_: Any) -> None:
        nonlocal added
        if filter.get("id") == owner.id and not added:
            added = True
            await add(api, owner, (5, 5.0))

    before(api, monkeypatch, "update", add_more)
    await add(api, owner, (1, 1.0))
    await api.backend.last_metrics.settle(owner.company)
    assert added
    assert await unstated(api) == {owner}
    assert await seen(api, owner) == (5, {"v": 5.0})


async def test_events_that_arrive_after_their_task_was_deleted_are_deleted_too(api: Api) -> None:
    owner = await new_task(api)
    await api.call("tasks.delete", {"task": owner.id, "force": True})
    await add(api, owner, (1, 1.0))
    await api.backend.last_metrics.settle(owner.company)
    assert await api.backend.events.events_count(owner) == 0


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


#: Metrics and variants, and whether their iterations say how far the task has come.
SERIES = {
    ("loss", "train"): True,
    (":monitor:machine", "cpu_usage"): False,
    (":monitor:gpu", "gpu_0_utilization"): False,
    (":monitor:machine:rank1", "cpu_usage"): False,
    (":monitor:gpu_0_utilization", "rank 1"): False,
    (":monitor:mine", "cpu_usage"): True,
}
CONTENTS: dict[str, dict[str, Any]] = {
    "training_stats_scalar": {"value": 1.0},
    "training_stats_vector": {"values": [1.0]},
    "plot": {"plot_str": "{}"},
    "training_debug_image": {"key": "k", "url": "http://files/i.png"},
}
reported = st.tuples(
    st.sampled_from(list(CONTENTS)),
    st.sampled_from(list(SERIES)),
    st.integers(1, 1_000_000),
)


@given(batches=st.lists(st.lists(reported, min_size=1, max_size=6), min_size=1, max_size=4))
@looked_at
async def test_what_monitors_report_does_not_move_the_last_iteration(
    api: Api, batches: list[list[tuple[str, tuple[str, str], int]]]
) -> None:
    owner = await new_task(api)
    expected = max((iter for batch in batches for _, name, iter in batch if SERIES[name]), default=0)
    for batch in batches:
        events = [
            {"type": type, "task": owner.id, "metric": metric, "variant": variant, "iter": iter} | CONTENTS[type]
            for type, (metric, variant), iter in batch
        ]
        await api.raw("POST", "/v2.23/events.add_batch", content="\n".join(map(json.dumps, events)))
    reached, values = await seen(api, owner)
    assert reached == expected
    assert set(values) == {name[1] for batch in batches for type, name, _ in batch if "scalar" in type}

    late = scalars([(2_000_000, 1.0)], metric=":monitor:gpu", variant="gpu_0_utilization", owner=owner)
    await api.backend.documents.update("tasks", {"id": owner.id}, Update(set={"last_iteration": 0}))
    await api.backend.events.add(late)  # a crash came before anything was noted
    await api.backend.last_metrics.restate()
    assert (await seen(api, owner))[0] == expected


async def test_a_restart_leaves_events_whose_task_is_not_there(api: Api) -> None:
    owner = Owner(api.backend.settings.company, "lost")
    await api.backend.events.add(scalars([(9, 0.25)], owner=owner))
    await api.backend.last_metrics.restate()
    assert await api.backend.events.events_count(owner) == 1
    assert await unstated(api) == set()


async def test_log_lines_bump_the_last_change(api: Api) -> None:
    owner = await new_task(api)
    earlier = (await api.call("tasks.get_by_id", {"task": owner.id}))["task"]["last_change"]
    batch = lines([1, 2], owner=owner)
    with api.backend.last_metrics.adding(batch):
        await api.backend.events.add(batch)
    assert (await api.call("tasks.get_by_id", {"task": owner.id}))["task"]["last_change"] > earlier


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


async def test_an_engine_that_cannot_note_what_is_written_hinders_nobody(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    owners = {await new_task(api), await new_task(api)}

    async def busy(_: list[Owner]) -> None:
        raise EventStoreBusy("one moment")

    with monkeypatch.context() as patch:
        patch.setattr(api.backend.events, "restated", busy)
        for owner in owners:
            await add(api, owner, (1, 0.5))
        await api.backend.last_metrics.settle(api.backend.settings.company)
        for owner in owners:
            assert await seen(api, owner) == (1, {"v": 0.5})
    assert await unstated(api) == owners  # and so will be made anew


async def test_several_groups_are_written_at_once_where_engines_take_the_time(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(api.backend.events), "reads_in_parallel", True)
    monkeypatch.setattr(last_metrics, "_TOGETHER", 1)
    owners = [await new_task(api) for _ in range(3)]
    read, reading = api.backend.events.scalar_stats_of_each, asyncio.Barrier(len(owners))

    async def read_together(queries: Sequence[SeriesQuery]) -> list[list[ScalarStats]]:
        await reading.wait()
        return await read(queries)

    monkeypatch.setattr(api.backend.events, "scalar_stats_of_each", read_together)
    for owner in owners:
        await add(api, owner, (1, 0.5))
    await api.backend.last_metrics.settle(api.backend.settings.company)
    assert [await seen(api, owner) for owner in owners] == [(1, {"v": 0.5})] * 3


async def test_what_another_server_knows_of_events_before_a_reset_is_not_told_after_it(api: Api) -> None:
    owner = await new_task(api)
    other = LastMetrics(api.backend.events, api.backend.documents)
    batch = lines([100, 101], owner=owner)
    batch.logs[0].iters[:] = [100, 101]
    with other.adding(batch, {owner: None}):
        await api.backend.events.add(batch)
    await api.call("tasks.reset", {"task": owner.id, "force": True})
    await add(api, owner, (3, 7.0))
    await other.close()
    assert await seen(api, owner) == (3, {"v": 7.0})


@pytest.mark.parametrize("is_killed", [False, True])
async def test_what_another_server_knows_of_deleted_events_is_not_told(
    api: Api, monkeypatch: pytest.MonkeyPatch, is_killed: bool
) -> None:
    owner = await new_task(api)
    other = LastMetrics(api.backend.events, api.backend.documents)
    batch = lines([100, 101], owner=owner)
    batch.logs[0].iters[:] = [100, 101]
    with other.adding(batch, {owner: None}):
        await api.backend.events.add(batch)
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


async def test_a_document_that_cannot_grow_is_given_up(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = await new_task(api)

    async def too_large(collection: str, filter: dict[str, Any], *_: Any) -> None:
        if filter.get("id") == owner.id:
            raise InvalidDocument("a document is larger than the engine keeps")

    with monkeypatch.context() as patch:
        before(api, patch, "update", too_large)
        await add(api, owner, (1, 1.0))
        assert await seen(api, owner) == (0, {})
        assert await unstated(api) == set()
    await add(api, owner, (2, 2.0))
    assert await seen(api, owner) == (2, {"v": 2.0})


async def test_many_series_are_written_part_by_part(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_metrics, "SERIES_AN_UPDATE", 3)
    owner = await new_task(api)
    updates: list[Any] = []

    async def note(*given: Any) -> None:
        updates.append(given)

    before(api, monkeypatch, "update", note)
    common = {"task": owner.id, "iter": 4, "metric": "m"}
    scalar = {**common, "type": "training_stats_scalar", "value": 0.5, "x_axis_label": "epochs"}
    image = {**common, "type": "training_debug_image", "variant": "v", "url": "http://files/a.png"}
    events = [{**scalar, "variant": f"v{n}"} for n in range(10)] + [{**image, "metric": f"i{n}"} for n in range(5)]
    await api.raw("POST", "/events.add_batch", content="\n".join(map(json.dumps, events)))
    task = (await api.call("tasks.get_by_id", {"task": owner.id}))["task"]
    (series,) = task["last_metrics"].values()
    assert {one["variant"]: one["x_axis_label"] for one in series.values()} == {f"v{n}": "epochs" for n in range(10)}
    assert {one["metric"] for one in task["metric_stats"].values()} == {f"i{n}" for n in range(5)}
    assert task["last_iteration"] == 4
    assert max(len(update.set) for _, _, update in updates) < 50
