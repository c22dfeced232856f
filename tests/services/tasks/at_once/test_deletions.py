"""Calls that delete a task while others publish it, start it, or delete it, too."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from apiserver.common.times import from_now
from apiserver.server.bounds import Bounds
from apiserver.services.bounds import CallBounds
from apiserver.services.documents import holds
from apiserver.services.tasks import cleanup
from apiserver.services.tasks.task_documents import BEING_QUEUED, BEING_RESET
from apiserver.stores.documents.query import Update
from apiserver.stores.events.base import EventStoreBusy
from tests.harness import Api
from tests.services.tasks.at_once.steps import Step, events, hold, status
from tests.services.tasks.calls import get, make, refused, report

pytestmark = pytest.mark.anyio


@pytest.mark.test
@pytest.mark.parametrize("force", [False, True])
async def test_a_task_that_is_being_deleted_is_not_published(
    api: Api, archived: str, monkeypatch: pytest.MonkeyPatch, force: bool
) -> None:
    emptied = Step(api.backend.events, "delete", monkeypatch)
    async with emptied.stops(api.call("tasks.delete", {"task": archived, "force": force})) as deleting:
        assert await status(api, "tasks.publish", {"task": archived}) == 503
    assert (await deleting)["deleted"] is True
    assert await refused(api, "tasks.publish", {"task": archived}) == (400, 101)


async def test_a_task_that_was_published_meanwhile_keeps_its_events(
    api: Api, archived: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = Step(cleanup, "_check_unpublished", monkeypatch)
    async with looked.stops(status(api, "tasks.delete", {"task": archived})) as deleting:
        await api.call("tasks.unarchive_many", {"ids": [archived]})
        await api.call("tasks.publish", {"task": archived})
    assert await deleting == 400
    assert (await get(api, archived))["status"] == "published"
    assert await events(api, archived) == 1


async def test_a_deletion_that_took_too_long_does_not_delete_what_was_published_then(
    api: Api, archived: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    emptied = Step(api.backend.events, "delete", monkeypatch)
    async with emptied.stops(status(api, "tasks.delete", {"task": archived})) as deleting:
        await api.backend.documents.update("tasks", {"id": archived}, Update(set={BEING_RESET: from_now(-1)}))
        await api.call("tasks.publish", {"task": archived})
    assert await deleting == 503
    assert (await get(api, archived))["status"] == "published"


async def test_a_deletion_that_fails_holds_nobody_up(api: Api, archived: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: Any) -> int:
        raise EventStoreBusy("no", overloaded=False)

    with monkeypatch.context() as patch:
        patch.setattr(api.backend.events, "delete", fail)
        assert await status(api, "tasks.delete", {"task": archived}) == 503
    await api.call("tasks.publish", {"task": archived})


@pytest.mark.test
async def test_a_server_that_died_while_it_deleted_a_task_holds_nobody_up_for_long(api: Api) -> None:
    project = (await api.call("projects.create", {"name": "p"}))["id"]
    tasks = [await make(api, project=project) for _ in range(3)]
    for task in tasks:
        await hold(api, BEING_RESET, task, 30)
    assert await status(api, "tasks.delete", {"task": tasks[0]}) == 503
    assert await status(api, "tasks.delete", {"task": tasks[0], "force": True}) == 200
    for seconds in (-1, 3600):  # its time has passed, or it is of a server whose clock was wrong
        await hold(api, BEING_RESET, tasks[1], seconds)
        await hold(api, BEING_QUEUED, tasks[1], seconds)
        await api.call("tasks.enqueue", {"task": tasks[1], "queue_name": "q"})
        await api.call("tasks.dequeue", {"task": tasks[1]})
    assert await status(api, "tasks.delete", {"task": tasks[1]}) == 200
    answer = await api.call("projects.delete", {"project": project, "delete_contents": True, "force": True})
    assert answer["deleted_tasks"] == 1


@pytest.mark.bounds(Bounds(calls=CallBounds(queue_turn_seconds=60)))
async def test_two_calls_delete_a_task(api: Api, archived: str, monkeypatch: pytest.MonkeyPatch) -> None:
    emptied = Step(api.backend.events, "delete", monkeypatch)
    async with emptied.stops(status(api, "tasks.delete", {"task": archived})) as first:
        second = asyncio.create_task(status(api, "tasks.delete", {"task": archived, "force": True}))
    assert await first == 200
    assert await second == 400  # it waited, and there is no such task any more


async def test_a_controller_that_is_started_while_its_steps_are_deleted_keeps_its_events(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller = await make(api, type="controller")
    step = await make(api, parent=controller)
    emptied = Step(api.backend.events, "delete", monkeypatch)
    request = {"task": controller, "include_pipeline_steps": True}
    async with emptied.stops(status(api, "tasks.delete", request)) as deleting:  # the events of the step
        await hold(api, BEING_RESET, controller, -1)
        await api.call("tasks.started", {"task": controller})
        await report(api, controller)
    assert await deleting == 503
    assert await status(api, "tasks.get_by_id", {"task": step}) == 400
    assert (await get(api, controller))["status"] == "in_progress"
    assert await events(api, controller) == 1


@pytest.mark.test
@pytest.mark.parametrize("call", ["tasks.delete", "tasks.reset"])
async def test_a_run_that_starts_when_a_call_took_too_long_keeps_its_events(
    api: Api, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    task = await make(api)
    looked = Step(cleanup, "event_urls", monkeypatch)
    async with looked.stops(status(api, call, {"task": task})) as emptying:
        await hold(api, BEING_RESET, task, -1)
        await api.call("tasks.started", {"task": task})
        await report(api, task)
    assert await emptying == 503
    assert (await get(api, task))["status"] == "in_progress"
    assert await events(api, task) == 1


async def test_a_controller_is_held_anew_after_each_step(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    controller = await make(api, type="controller")
    for _ in range(2):
        await make(api, parent=controller)
    delete, ends = api.backend.events.delete, []

    async def noted(*arguments: Any) -> int:
        found = await api.backend.documents.find_one("tasks", {"id": controller})
        ends.append((found or {})[BEING_RESET])
        return await delete(*arguments)

    monkeypatch.setattr(api.backend.events, "delete", noted)
    moments = itertools.count()
    monkeypatch.setattr(holds.Hold, "until", lambda hold: from_now(hold.seconds - 10 + next(moments)))
    await api.call("tasks.delete", {"task": controller, "include_pipeline_steps": True})
    assert len(ends) == 3
    assert ends == sorted(set(ends))
