"""Runs that are told to stop: those that stop themselves, and those that are not heard of any more."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.common.times import from_now
from apiserver.services.tasks.stopping import end_silent
from apiserver.stores.documents.query import Update
from tests.harness import Api
from tests.services.tasks.calls import get, make

pytestmark = pytest.mark.anyio

CALLBACK = {"_abort_callback_timeout": 3600.0, "_abort_callback_completed": "", "_abort_poll_freq": 15.0}


async def run(api: Api, runtime: dict[str, Any] = CALLBACK) -> str:
    """A run that somebody started by hand, with runtime properties of the SDK."""
    task = await make(api, system_tags=["development"])
    await api.call("tasks.started", {"task": task})
    await api.call("tasks.edit", {"task": task, "runtime": runtime, "force": True})
    return task


async def silent(api: Api, task: str, minutes: float) -> str:
    """The run was not heard of for so many minutes; since when."""
    since = from_now(-60 * minutes)
    await api.backend.last_metrics.settle(api.company, ids=[task])
    await api.backend.documents.update("tasks", {"id": task}, Update(set={"last_update": since}))
    return since


async def stop(api: Api, task: str, **fields: Any) -> tuple[str, str]:
    """The status and its message after a call to stop."""
    await api.call("tasks.stop", {"task": task, **fields})
    found = await get(api, task)
    return found["status"], found["status_message"]


async def test_a_run_with_a_callback_stops_itself(api: Api) -> None:
    task = await run(api)
    assert await stop(api, task, status_reason="why", status_message="ours") == ("in_progress", "stopping")
    assert (await get(api, task))["status_reason"] == "why"
    model = (await api.call("models.create", {"name": "m", "uri": "file:///m", "task": task}))["id"]
    link = {"task": task, "name": "m", "model": model, "type": "output"}
    assert (await api.call("tasks.add_or_update_model", link))["updated"] == 1
    await api.call("tasks.stopped", {"task": task, "status_reason": "USER ABORTED"})
    stopped = await get(api, task)
    assert (stopped["status"], [one["model"] for one in stopped["models"]["output"]]) == ("stopped", [model])


async def test_a_second_call_or_force_stops_it_at_once(api: Api) -> None:
    task = await run(api)
    await stop(api, task)
    assert (await stop(api, task))[0] == "stopped"
    assert (await stop(api, await run(api), force=True))[0] == "stopped"


async def test_a_step_of_a_pipeline_stops_itself(api: Api) -> None:
    pipeline, step = await make(api, type="controller"), await run(api)
    await api.call("tasks.started", {"task": pipeline})
    await api.call("tasks.edit", {"task": step, "parent": pipeline, "force": True})
    assert (await stop(api, pipeline, include_pipeline_steps=True))[0] == "stopped"
    assert (await get(api, step))["status_message"] == "stopping"


@pytest.mark.parametrize(
    "runtime",
    [
        {},
        {"_abort_callback_timeout": -1.0},
        {**CALLBACK, "_abort_callback_completed": 1},
        {"_abort_callback_timeout": ["odd"]},
        {"_abort_callback_timeout": "nan"},
    ],
)
async def test_a_run_without_a_callback_is_stopped_at_once(api: Api, runtime: dict[str, Any]) -> None:
    assert (await stop(api, await run(api, runtime)))[0] == "stopped"


async def test_a_run_that_does_not_ping_is_stopped_at_once(api: Api) -> None:
    task = await run(api)
    await silent(api, task, 3)
    assert (await stop(api, task))[0] == "stopped"

    task = await run(api)
    await silent(api, task, 3)
    await api.call("tasks.ping", {"task": task})
    await api.backend.last_metrics.settle(api.company, ids=[task])
    assert await stop(api, task) == ("in_progress", "stopping")


@pytest.mark.parametrize(("callback", "minutes"), [(60.0, 12), (3600, 71), ("1e300", 1451), (0, 11)])
async def test_a_run_that_was_told_to_stop_and_falls_silent_is_stopped(api: Api, callback: Any, minutes: int) -> None:
    task = await run(api, {**CALLBACK, "_abort_callback_timeout": callback})
    if not callback:
        worker = Update(set={"last_worker": "host:0", "system_tags": []})
        await api.backend.documents.update("tasks", {"id": task}, worker)
    assert await stop(api, task) == ("in_progress", "stopping")
    await end_silent(api.backend.documents)
    await silent(api, task, minutes - 2)
    await end_silent(api.backend.documents)
    assert (await get(api, task))["status"] == "in_progress"

    heard = await silent(api, task, minutes)
    await end_silent(api.backend.documents)
    ended = await get(api, task)
    assert (ended["status"], ended["completed"]) == ("stopped", heard)
    assert "not heard of" in ended["status_message"]


async def test_a_silent_run_that_nobody_told_to_stop_goes_on(api: Api) -> None:
    task = await run(api)
    await silent(api, task, 1000)
    await end_silent(api.backend.documents)
    assert (await get(api, task))["status"] == "in_progress"
