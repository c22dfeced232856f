"""A task has a bound of series: further ones are refused, those that it has go on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from apiserver.events.model import Owner, SeriesName
from apiserver.services.quotas.series_limit import SeriesLimit
from tests.contract.event_stores import batch, scalars
from tests.contract.plain_event_store import PlainEventStore
from tests.harness import Api, running_api

pytestmark = pytest.mark.anyio

MOST = 100
COMPANY = "d1e5c0a8f00d4e0ab1e0c0ffee000001"


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    async with running_api(tmp_path / "data", max_series_per_task=MOST) as api:
        yield api


async def new_task(api: Api) -> str:
    return str((await api.call("tasks.create", {"name": "a task", "type": "training"}))["id"])


async def add(api: Api, *events: dict[str, Any]) -> dict[str, Any]:
    answer = await api.raw("POST", "/events.add_batch", content="\n".join(map(json.dumps, events)))
    return dict(answer.json()["data"] or {"refused": answer.json()["meta"]["result_msg"]})


def points(task: str, first: int, stop: int, iter: int = 0) -> list[dict[str, Any]]:
    return [
        {"type": "training_stats_scalar", "task": task, "metric": "m", "variant": f"v{n}", "iter": iter, "value": n}
        for n in range(first, stop)
    ]


def images(task: str, first: int, stop: int) -> list[dict[str, Any]]:
    image = {"type": "training_debug_image", "task": task, "iter": 0, "url": "http://files/a.png"}
    return [{**image, "metric": f"i{n}", "variant": str(n)} for n in range(first, stop)]


def reason(task: str) -> str:
    return f"A task has at most {MOST} scalar series and metrics of plots, images and vectors: {task}"


async def variants(api: Api, task: str) -> set[str]:
    answer = await api.call("events.get_scalar_metrics_and_variants", {"task": task})
    return set(answer["metrics"]["m"])


async def test_further_series_are_refused_and_known_ones_go_on(api: Api) -> None:
    task, other = await new_task(api), await new_task(api)
    assert (await add(api, *points(task, 0, 80)))["added"] == 80
    answer = await add(api, *points(task, 70, 130), *points(other, 0, 5))
    assert (answer["added"], answer["errors_info"]) == (35, {reason(task): 30})
    assert (await add(api, *points(task, 0, 100, iter=1)))["added"] == 100
    assert await add(api, *points(task, 100, 102)) == {"refused": f"Events not added: {reason(task)}=2"}
    assert await variants(api, task) == {f"v{n}" for n in range(MOST)}
    await api.call("events.delete_for_task", {"task": task})
    assert (await add(api, *points(task, 100, 130)))["added"] == 30


async def test_metrics_of_samples_count_their_variants_do_not(api: Api) -> None:
    task = await new_task(api)
    assert (await add(api, *points(task, 0, 60), *images(task, 0, 30)))["added"] == 90
    answer = await add(api, *images(task, 25, 45), *points(task, 0, 1))
    assert (answer["added"], answer["errors_info"]) == (16, {reason(task): 5})
    assert (await add(api, *({**one, "metric": "i3"} for one in images(task, 0, 200))))["added"] == 200


async def test_batches_that_come_at_once_are_counted_one_after_the_other(api: Api) -> None:
    task = await new_task(api)
    await add(api, *points(task, 0, MOST - 1))
    await asyncio.gather(*(add(api, *points(task, 100 * n, 100 * n + 50)) for n in range(1, 6)))
    assert len(await variants(api, task)) == MOST


@pytest.mark.test
@pytest.mark.own_api
async def test_deleted_owners_are_forgotten(api: Api) -> None:
    """Tasks and models, by whatever they are deleted."""
    budgets = api.backend.series_limit._budget
    project = (await api.call("projects.create", {"name": "p"}))["id"]
    task = await new_task(api)
    model = {"task": task, "uri": "file:///model", "project": project, "ready": False}
    models = [(await api.call("models.create", {"name": f"m{n}", **model}))["id"] for n in range(3)]
    of_models = [{**one, "model_event": True} for id in models for one in points(id, 0, 5)]
    assert (await add(api, *points(task, 0, 5), *of_models))["added"] == 20
    assert len(budgets) == 4
    await api.call("models.delete", {"model": models[0], "force": True})
    assert len(budgets) == 3
    await api.call("tasks.delete", {"task": task, "force": True, "delete_output_models": True})
    assert budgets == {}


@pytest.mark.own_api
async def test_an_owner_that_is_deleted_while_its_events_come_is_forgotten(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its series are being counted when it is deleted."""
    task = await new_task(api)
    series = api.backend.events.series

    async def overtaken(*asked: Any) -> list[SeriesName]:
        monkeypatch.undo()
        await api.call("tasks.delete", {"task": task, "force": True})
        return await series(*asked)

    monkeypatch.setattr(api.backend.events, "series", overtaken)
    assert (await add(api, *points(task, 0, MOST + 1)))["added"] == MOST
    await api.backend.last_metrics.settle(COMPANY, ids=[task])
    assert await api.backend.events.events_count(Owner(COMPANY, task)) == 0
    assert api.backend.series_limit._budget == {}


def test_owners_are_forgotten_who_did_not_report_for_long() -> None:
    limit = SeriesLimit(PlainEventStore(), 3, owners=2)

    def spend(name: str, series: int) -> bool:
        """Whether a batch of so many series was within the owner's budget."""
        owner = Owner("company", name)
        return limit.spend(batch(*(scalars([1.0], variant=str(n), owner=owner) for n in range(series)))) == []

    assert [spend("a", 2), spend("b", 2), spend("a", 1), spend("c", 2)] == [True] * 4
    assert not spend("a", 1)  # it reported after "b" did, so that has made room
    assert spend("b", 2)
