"""Documents follow their events: what is written together, what comes meanwhile, and what cannot be written."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.events.model import EventBatch, Owner, ScalarStats
from apiserver.events.queries import SeriesQuery
from apiserver.server.bounds import Bounds
from apiserver.services.events.last_metrics import LastMetricsBounds
from apiserver.stores.documents.base import InvalidDocument
from apiserver.stores.documents.query import Update
from apiserver.stores.events.base import EventStoreBusy
from tests.harness import Api
from tests.reading.any_events import looked_at
from tests.reading.events import lines, scalars
from tests.services.events.last_metrics.owners import add, before, new_task, seen, unstated

pytestmark = pytest.mark.anyio


@pytest.mark.own_api
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


@pytest.mark.test
@pytest.mark.bounds(Bounds(last_metrics=LastMetricsBounds(interval_seconds=3600)))
async def test_many_documents_are_written_with_one_transaction(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.mark.bounds(
    Bounds(last_metrics=LastMetricsBounds(interval_seconds=3600, longest_interval_seconds=3600, together=2))
)
async def test_between_groups_of_documents_requests_have_their_turn(api: Api) -> None:
    owners = [await new_task(api) for _ in range(5)]
    for owner in owners:
        await add(api, owner, (1, 0.5))
    pending = api.backend.last_metrics._pending
    writing = asyncio.create_task(api.backend.last_metrics._write_all(rest=1e9))
    async with asyncio.timeout(120):
        while len(pending) == 5:  # noqa: ASYNC110  # nothing tells when the first group is written
            await asyncio.sleep(0.001)
    assert len(pending) == 3
    assert [await seen(api, owner) for owner in owners] == [(1, {"v": 0.5})] * 5  # who asks for them does not wait
    assert not pending
    writing.cancel()


@pytest.mark.bounds(Bounds(last_metrics=LastMetricsBounds(interval_seconds=3600)))
async def test_an_owner_that_cannot_be_written_with_others_hinders_none(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
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


@pytest.mark.own_api
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


@pytest.mark.own_api
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


@pytest.mark.test
@given(batches=st.lists(st.lists(reported, min_size=1, max_size=6), min_size=1, max_size=4))
@looked_at
@pytest.mark.own_api
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


@pytest.mark.own_api
async def test_log_lines_bump_the_last_change(api: Api) -> None:
    owner = await new_task(api)
    earlier = (await api.call("tasks.get_by_id", {"task": owner.id}))["task"]["last_change"]
    batch = lines([1, 2], owner=owner)
    with api.backend.last_metrics.adding(batch):
        await api.backend.events.add(batch)
    assert (await api.call("tasks.get_by_id", {"task": owner.id}))["task"]["last_change"] > earlier


@pytest.mark.own_api
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
        await api.backend.last_metrics.settle(api.company)
        for owner in owners:
            assert await seen(api, owner) == (1, {"v": 0.5})
    assert await unstated(api) == owners  # and so will be made anew


@pytest.mark.bounds(Bounds(last_metrics=LastMetricsBounds(together=1)))
async def test_several_groups_are_written_at_once_where_engines_take_the_time(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(api.backend.events), "reads_in_parallel", True)
    owners = [await new_task(api) for _ in range(3)]
    read, reading = api.backend.events.scalar_stats_of_each, asyncio.Barrier(len(owners))

    async def read_together(queries: Sequence[SeriesQuery]) -> list[list[ScalarStats]]:
        await reading.wait()
        return await read(queries)

    monkeypatch.setattr(api.backend.events, "scalar_stats_of_each", read_together)
    for owner in owners:
        await add(api, owner, (1, 0.5))
    await api.backend.last_metrics.settle(api.company)
    assert [await seen(api, owner) for owner in owners] == [(1, {"v": 0.5})] * 3


@pytest.mark.own_api
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


@pytest.mark.bounds(Bounds(last_metrics=LastMetricsBounds(series_an_update=3)))
async def test_many_series_are_written_part_by_part(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
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
