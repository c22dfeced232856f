"""Saying which model a task has made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.harness import Api
from tests.services.models.conftest import Create

pytestmark = pytest.mark.anyio

Get = Callable[[str], Awaitable[dict[str, Any]]]
Links = Callable[[str, str], Awaitable[list[tuple[str, str]]]]


async def test_the_first_uri_makes_a_model(api: Api, task: Create, get: Get, links: Links) -> None:
    maker = await task(name="trains")

    answer = await api.call("models.update_for_task", {"task": maker, "uri": "file:///1", "tags": ["a"]})

    assert answer["created"] is True
    made = await get(answer["id"])
    assert (made["name"], made["uri"], made["task"], made["tags"]) == ("trains", "file:///1", maker, ["a"])
    assert await links(maker, "output") == [("trains", answer["id"])]


async def test_the_model_has_the_tasks_framework(api: Api, task: Create, get: Get) -> None:
    maker = await task(execution={"framework": "PyTorch"})
    answer = await api.call("models.update_for_task", {"task": maker, "uri": "file:///1"})
    assert (await get(answer["id"]))["framework"] == "PyTorch"
    assert (await api.call("models.get_frameworks")) == {"frameworks": ["PyTorch"]}


async def test_the_next_uri_changes_it(api: Api, task: Create, get: Get, links: Links) -> None:
    maker = await task()
    first = await api.call("models.update_for_task", {"task": maker, "uri": "file:///1"})

    request = {"task": maker, "uri": "file:///2", "name": "best", "iteration": 9}
    answer = await api.call("models.update_for_task", request)

    assert (answer["id"], answer["created"], answer["updated"]) == (first["id"], False, 1)
    assert answer["fields"]["uri"] == "file:///2"
    assert (await get(first["id"]))["uri"] == "file:///2"
    assert await links(maker, "output") == [("best", first["id"])]
    assert (await api.call("tasks.get_by_id", {"task": maker}))["task"]["last_iteration"] == 9


async def test_an_existing_model_is_linked(api: Api, model: Create, task: Create, links: Links) -> None:
    maker, id = await task(), await model()
    for _ in range(2):
        answer = await api.call("models.update_for_task", {"task": maker, "override_model_id": id})
        assert (answer["id"], answer["created"], answer["updated"]) == (id, False, 1)
    assert await links(maker, "output") == [("a model", id)]


async def test_one_of_uri_and_model_is_needed(api: Api, model: Create, task: Create) -> None:
    maker, id = await task(), await model()
    for request in ({}, {"uri": "file:///1", "override_model_id": id}):
        answer = await api.call("models.update_for_task", {"task": maker, **request}, expect=400)
        assert answer["meta"]["result_subcode"] == 12


async def test_unknown_tasks_and_models_are_errors(api: Api, task: Create) -> None:
    unknown_task = await api.call("models.update_for_task", {"task": "nothing", "uri": "u"}, expect=400)
    request = {"task": await task(), "override_model_id": "nothing"}
    unknown_model = await api.call("models.update_for_task", request, expect=400)
    assert unknown_task["meta"]["result_subcode"] == 101
    assert unknown_model["meta"]["result_subcode"] == 201


async def test_published_tasks_stay_as_they_are(api: Api, task: Create, links: Links) -> None:
    maker = await task()
    await api.call("tasks.started", {"task": maker})
    await api.call("tasks.stopped", {"task": maker})
    await api.call("tasks.publish", {"task": maker})

    answer = await api.call("models.update_for_task", {"task": maker, "uri": "file:///1"}, expect=400)

    assert answer["meta"]["result_subcode"] == 110
    assert await links(maker, "output") == []
    assert await api.call("models.get_all") == {"models": []}
