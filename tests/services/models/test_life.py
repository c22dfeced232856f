"""Publishing, archiving and deleting models."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.harness import Api
from tests.services.models.conftest import Create

pytestmark = pytest.mark.anyio

Get = Callable[[str], Awaitable[dict[str, Any]]]
Links = Callable[[str, str], Awaitable[list[tuple[str, str]]]]


async def link(api: Api, task: str, model: str, kind: str, name: str = "m") -> None:
    await api.call("tasks.add_or_update_model", {"task": task, "model": model, "type": kind, "name": name})


async def run(api: Api, task: str) -> None:
    """Have the task run and come to its end."""
    await api.call("tasks.started", {"task": task})
    await api.call("tasks.stopped", {"task": task})


async def status(api: Api, task: str) -> str:
    found: str = (await api.call("tasks.get_by_id", {"task": task}))["task"]["status"]
    return found


# --- published ---------------------------------------------------------------------------------------


async def test_publishing_publishes_the_task_too(api: Api, model: Create, task: Create, get: Get) -> None:
    maker = await task()
    await run(api, maker)
    id = await model(task=maker)

    answer = await api.call("models.set_ready", {"model": id})

    assert answer["updated"] == 1
    assert (answer["published_task"]["id"], answer["published_task"]["data"]["updated"]) == (maker, 1)
    assert (await get(id))["ready"] is True
    assert await status(api, maker) == "published"


async def test_a_model_is_published_once(api: Api, model: Create, task: Create) -> None:
    maker = await task()
    await run(api, maker)
    id, draft = await model(task=maker, ready=True), await model()

    answer = await api.call("models.set_ready", {"model": id}, expect=400)

    assert answer["meta"]["result_subcode"] == 203
    assert await status(api, maker) == "stopped"
    many = await api.call("models.publish_many", {"ids": [id, draft]})
    assert many["succeeded"] == [{"id": draft, "updated": 1}]
    assert [(one["id"], one["error"]["codes"]) for one in many["failed"]] == [(id, [400, 203])]


async def test_a_model_that_is_made_without_a_word_of_it_is_published(api: Api, get: Get) -> None:
    id = (await api.call("models.create", {"name": "m", "uri": "u"}))["id"]
    assert (await get(id))["ready"] is True


async def test_publishing_may_leave_the_task_alone(api: Api, model: Create, task: Create, get: Get) -> None:
    maker = await task()
    await run(api, maker)
    id = await model(task=maker)
    assert await api.call("models.set_ready", {"model": id, "publish_task": False}) == {"updated": 1}
    assert (await get(id))["ready"] is True
    assert await status(api, maker) == "stopped"


async def test_a_task_that_still_runs_keeps_its_model_unpublished(
    api: Api, model: Create, task: Create, get: Get
) -> None:
    maker = await task()
    await api.call("tasks.started", {"task": maker})
    id = await model(task=maker)

    answer = await api.call("models.set_ready", {"model": id}, expect=400)

    assert answer["meta"]["result_subcode"] == 110
    assert (await get(id))["ready"] is False
    await api.call("models.set_ready", {"model": id, "force_publish_task": True})
    assert await status(api, maker) == "published"


async def test_many_are_published_each_by_itself(api: Api, model: Create, task: Create, get: Get) -> None:
    maker = await task()
    await api.call("tasks.started", {"task": maker})
    free, stuck = await model(), await model(task=maker)

    answer = await api.call("models.publish_many", {"ids": [free, stuck, "nothing", free]})

    assert answer["succeeded"] == [{"id": free, "updated": 1}]
    assert [(one["id"], one["error"]["codes"]) for one in answer["failed"]] == [
        (stuck, [400, 110]),
        ("nothing", [400, 201]),
    ]
    await api.call("models.publish_many", {"ids": [stuck], "publish_tasks": False})
    assert (await get(stuck))["ready"] is True
    assert await status(api, maker) == "in_progress"


# --- archived ----------------------------------------------------------------------------------------


async def test_models_are_archived_and_brought_back(api: Api, model: Create, get: Get) -> None:
    id = await model(system_tags=["x"])

    answer = await api.call("models.archive_many", {"ids": [id, "nothing"]})
    assert answer["succeeded"] == [{"id": id, "archived": True}]
    assert [one["id"] for one in answer["failed"]] == ["nothing"]
    await api.call("models.archive_many", {"ids": [id]})
    assert (await get(id))["system_tags"] == ["x", "archived"]

    answer = await api.call("models.unarchive_many", {"ids": [id]})
    assert answer["succeeded"] == [{"id": id, "unarchived": True}]
    assert (await get(id))["system_tags"] == ["x"]


# --- deleted -----------------------------------------------------------------------------------------


async def test_deleting_answers_the_files_place_and_unlinks(
    api: Api, model: Create, task: Create, links: Links
) -> None:
    maker, other = await task(), await model(name="other")
    id = await model(task=maker)
    await link(api, maker, other, "output", "other")
    await link(api, maker, id, "output")

    assert await api.call("models.delete", {"model": id}) == {"deleted": True, "url": "https://files/m.pkl"}

    await api.call("models.get_by_id", {"model": id}, expect=400)
    assert await links(maker, "output") == [("other", other)]


async def test_a_model_that_tasks_start_from_needs_force(api: Api, model: Create, task: Create, links: Links) -> None:
    user, id = await task(), await model()
    await link(api, user, id, "input")

    answer = await api.call("models.delete", {"model": id}, expect=400)

    assert answer["meta"]["result_subcode"] == 205
    assert await links(user, "input") == [("m", id)]
    await api.call("models.delete", {"model": id, "force": True})
    assert await links(user, "input") == [("m", f"__DELETED__{id}")]


async def test_a_model_of_a_published_task_needs_force(api: Api, model: Create, task: Create, links: Links) -> None:
    maker = await task()
    id = await model(task=maker)
    await link(api, maker, id, "output")
    await run(api, maker)
    await api.call("tasks.publish", {"task": maker})

    answer = await api.call("models.delete", {"model": id}, expect=400)

    assert answer["meta"]["result_subcode"] == 206
    assert (await api.call("models.delete", {"model": id, "force": True}))["deleted"] is True
    assert await links(maker, "output") == [("m", f"__DELETED__{id}")]


async def test_many_are_deleted_each_by_itself(api: Api, model: Create, task: Create) -> None:
    user, used, free = await task(), await model(), await model()
    await link(api, user, used, "input")

    answer = await api.call("models.delete_many", {"ids": [used, free, "nothing"]})

    assert answer["succeeded"] == [{"id": free, "deleted": True, "url": "https://files/m.pkl"}]
    assert [(one["id"], one["error"]["codes"]) for one in answer["failed"]] == [
        (used, [400, 205]),
        ("nothing", [400, 201]),
    ]


async def test_what_was_reported_for_a_model_is_deleted_with_it(api: Api, model: Create, get: Get) -> None:
    id, kept = await model(), await model()
    lines = [
        {"type": "training_stats_scalar", "task": one, "metric": "m", "variant": "v", "iter": 3, "value": 0.5}
        for one in (id, kept)
    ]
    body = "\n".join(json.dumps({**line, "model_event": True}) for line in lines)
    sent = await api.raw("POST", "/events.add_batch", content=body, headers={"content-type": "application/json-lines"})
    assert sent.status_code == 200, sent.text
    assert (await get(id))["last_iteration"] == 3

    await api.call("models.delete", {"model": id})

    company = api.company
    from apiserver.events.model import Owner

    assert await api.backend.events.series(Owner(company, id, is_model=True)) == []
    assert len(await api.backend.events.series(Owner(company, kept, is_model=True))) == 1
