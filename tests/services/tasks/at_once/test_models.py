"""Calls that publish a model while its task is deleted or emptied."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from apiserver.common.times import from_now
from apiserver.services.documents import holds
from apiserver.services.models.deletions import DELETING
from apiserver.services.tasks import cleanup
from apiserver.stores.documents.query import Update
from apiserver.stores.events.base import EventStoreBusy
from tests.harness import Api
from tests.services.tasks.at_once.steps import Step, events, status
from tests.services.tasks.calls import get, make, put, refused

pytestmark = pytest.mark.anyio


@pytest.fixture
async def draft(api: Api, archived: str) -> str:
    """A draft model of the task, with an event."""
    made = await api.call("models.update_for_task", {"task": archived, "uri": "http://localhost:8081/w.bin"})
    event = {"type": "plot", "model_event": True, "task": made["id"], "metric": "m", "variant": "v", "plot_str": "{}"}
    await api.call("events.add", {**event, "iter": 0})
    model: str = made["id"]
    return model


async def model_of(api: Api, model: str) -> dict[str, Any]:
    found: dict[str, Any] = (await api.call("models.get_by_id", {"model": model}))["model"]
    return found


#: The calls that publish a model, with their requests.
PUBLISHING: dict[str, Callable[[str], dict[str, Any]]] = {
    "models.set_ready": lambda model: {"model": model, "publish_task": False},
    "models.edit": lambda model: {"model": model, "ready": True},
    "models.update": lambda model: {"model": model, "ready": True},
}
#: The calls that delete the draft models of a task.
EMPTYING: dict[str, dict[str, Any]] = {
    "tasks.delete": {"force": True, "delete_output_models": True},
    "tasks.reset": {"force": True, "delete_output_models": True},
}


@pytest.mark.test
@pytest.mark.parametrize("publish", PUBLISHING)
@pytest.mark.parametrize("empty", EMPTYING)
async def test_a_model_that_is_published_just_before_its_task_goes_stays_with_its_events(
    api: Api, archived: str, draft: str, monkeypatch: pytest.MonkeyPatch, empty: str, publish: str
) -> None:
    """The deletion found it as a draft. It deletes nothing then, and keeps the model the next time."""
    looked = Step(cleanup, "event_urls", monkeypatch)
    async with looked.stops(status(api, empty, {"task": archived, **EMPTYING[empty]})) as emptying:
        await api.call(publish, PUBLISHING[publish](draft))
    assert await emptying == 503
    assert await events(api, archived) == 1
    assert await status(api, empty, {"task": archived, **EMPTYING[empty]}) == 200
    found = await model_of(api, draft)
    assert (found["ready"], found["task"]["id"] if isinstance(found["task"], dict) else found["task"]) == (
        True,
        f"__DELETED__{archived}" if empty == "tasks.delete" else archived,
    )
    assert (await api.call("events.get_task_plots", {"task": draft, "model_events": True}))["total"] == 1


@pytest.mark.test
@pytest.mark.parametrize("publish", PUBLISHING)
@pytest.mark.parametrize("empty", EMPTYING)
async def test_a_model_that_is_being_deleted_is_not_published(
    api: Api, archived: str, draft: str, monkeypatch: pytest.MonkeyPatch, empty: str, publish: str
) -> None:
    emptied = Step(api.backend.events, "delete", monkeypatch)
    async with emptied.stops(api.call(empty, {"task": archived, **EMPTYING[empty]})) as emptying:
        assert "being_deleted_until" not in await model_of(api, draft)
        assert await status(api, publish, PUBLISHING[publish](draft)) == 503
    assert (await emptying)["deleted_models"] == 1
    assert await refused(api, publish, PUBLISHING[publish](draft)) == (400, 201)


@pytest.mark.test
@pytest.mark.parametrize("publish", PUBLISHING)
@pytest.mark.parametrize("empty", EMPTYING)
async def test_a_model_that_is_published_once_its_hold_has_ended_is_not_deleted(
    api: Api, archived: str, draft: str, monkeypatch: pytest.MonkeyPatch, empty: str, publish: str
) -> None:
    """A deletion takes longer than it may hold the model. Then somebody else may publish it, and keeps it."""
    emptied = Step(api.backend.events, "delete", monkeypatch)
    async with emptied.stops(status(api, empty, {"task": archived, **EMPTYING[empty]})) as emptying:
        with monkeypatch.context() as later:
            later.setattr(holds, "utc_now", lambda: from_now(DELETING.seconds + 1))
            await api.call(publish, PUBLISHING[publish](draft))
    await emptying
    assert (await model_of(api, draft))["ready"] is True


@pytest.mark.test
async def test_a_task_that_is_published_does_not_publish_a_model_that_is_being_deleted(
    api: Api, archived: str, draft: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model is in the list of another task."""
    other = await make(api)
    await api.call("tasks.add_or_update_model", {"task": other, "type": "output", "name": "m", "model": draft})
    await put(api, other, "completed")
    emptied = Step(api.backend.events, "delete", monkeypatch)
    async with emptied.stops(api.call("tasks.delete", {"task": archived, **EMPTYING["tasks.delete"]})) as deleting:
        await api.call("tasks.publish", {"task": other})
    assert (await deleting)["deleted_models"] == 1
    assert await refused(api, "models.get_by_id", {"model": draft}) == (400, 201)


@pytest.mark.test
async def test_a_deletion_of_models_that_fails_or_dies_holds_nobody_up(
    api: Api, archived: str, draft: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: Any) -> int:
        raise EventStoreBusy("no", overloaded=False)

    with monkeypatch.context() as patch:
        patch.setattr(api.backend.events, "delete", fail)
        assert await status(api, "tasks.delete", {"task": archived, **EMPTYING["tasks.delete"]}) == 503
    await api.call("models.edit", {"model": draft, "comment": "changed"})
    for seconds, expected in ((30, 503), (-1, 200), (3600, 200)):
        held = Update(set={"being_deleted_until": from_now(seconds)})
        await api.backend.documents.update("models", {"id": draft}, held)
        assert await status(api, "models.edit", {"model": draft, "comment": f"in {seconds}"}) == expected
    await api.call("models.set_ready", {"model": draft, "publish_task": False})


@pytest.mark.test
@pytest.mark.parametrize("empty", EMPTYING)
async def test_a_task_whose_model_is_published_just_before_it_is_emptied_is_not_without_force(
    api: Api, archived: str, draft: str, monkeypatch: pytest.MonkeyPatch, empty: str
) -> None:
    """The call has found no published model yet, and finds no draft any more."""
    looked = Step(cleanup, "_removable_models", monkeypatch)
    async with looked.stops(refused(api, empty, {"task": archived, "delete_output_models": True})) as emptying:
        await api.call("models.set_ready", PUBLISHING["models.set_ready"](draft))
    assert await emptying == (400, 123)
    assert (await get(api, archived))["status"] == "completed"
    assert await events(api, archived) == 1


async def test_of_two_calls_one_publishes_a_model(api: Api, draft: str, monkeypatch: pytest.MonkeyPatch) -> None:
    request = PUBLISHING["models.set_ready"](draft)
    writing = Step(api.backend.documents, "update", monkeypatch)
    async with writing.stops(refused(api, "models.set_ready", request)) as first:
        await api.call("models.set_ready", request)
    assert await first == (400, 203)


@pytest.mark.test
@pytest.mark.parametrize("made_by", ["models.create", "models.edit", "models.update_for_task"])
@pytest.mark.parametrize("is_late", [False, True])
async def test_a_model_that_is_made_while_its_task_is_deleted_names_a_deleted_task(
    api: Api, archived: str, monkeypatch: pytest.MonkeyPatch, made_by: str, is_late: bool
) -> None:
    """It is written while the task is emptied, or (`is_late`) when the task is gone already."""
    model = (await api.call("models.create", {"name": "m", "uri": "u"}))["id"]
    requests: dict[str, dict[str, Any]] = {
        "models.create": {"name": "made", "uri": "u", "task": archived},
        "models.edit": {"model": model, "name": "made", "task": archived},
        "models.update_for_task": {"task": archived, "name": "made", "uri": "u"},
    }
    documents = api.backend.documents
    writing = Step(documents, "update" if made_by == "models.edit" else "insert", monkeypatch)
    making = asyncio.create_task(status(api, made_by, requests[made_by]))
    await writing.reached.wait()
    if is_late:
        await api.call("tasks.delete", {"task": archived})
        writing.go_on.set()
        await making
    else:
        marked = Step(cleanup, "leave_queues", monkeypatch)
        async with marked.stops(api.call("tasks.delete", {"task": archived})) as deleting:
            writing.go_on.set()
            await making
        assert (await deleting)["updated_models"] == 1
    [found] = await documents.find("models", {"name": "made"})
    assert found["task"] == f"__DELETED__{archived}"
