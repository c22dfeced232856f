"""Making and changing models."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.harness import Api
from tests.services.models.conftest import Create

pytestmark = pytest.mark.anyio

Get = Callable[[str], Awaitable[dict[str, Any]]]


async def test_a_new_model_has_every_field_that_clients_read(api: Api, model: Create, get: Get) -> None:
    made = await get(await model())

    user = (await api.call("users.get_current_user"))["user"]
    assert (made["name"], made["uri"], made["user"]) == ("a model", "https://files/m.pkl", user["id"])
    assert (made["company"], made["ready"], made["comment"]) == (user["company"]["id"], False, "")
    assert [made[field] for field in ("design", "labels", "metadata", "last_metrics", "ui_cache")] == [{}] * 5
    assert [made[field] for field in ("tags", "system_tags")] == [[], []]
    assert made["created"] == made["last_update"] == made["last_change"]


async def test_create_keeps_what_is_given(api: Api, model: Create, task: Create, get: Get) -> None:
    project = (await api.call("projects.create", {"name": "p", "description": ""}))["id"]
    given = {
        "comment": "good",
        "tags": ["a"],
        "system_tags": ["s"],
        "framework": "PyTorch",
        "design": {"design": "layers: {}", "a.b": {"$c": 1}},
        "labels": {"cat.dog": 1, "$bird": 2, "": 3},
        "ready": True,
        "project": project,
        "task": await task(),
        "parent": await model(),
    }
    made = await get(await model(**given, metadata=[{"key": "a.b", "type": "int", "value": "1"}]))

    assert {key: made[key] for key in given} == given
    assert made["metadata"] == {"a.b": {"key": "a.b", "type": "int", "value": "1"}}


@pytest.mark.parametrize(("field", "subcode"), [("project", 401), ("task", 101), ("parent", 201)])
async def test_references_must_lead_somewhere(api: Api, model: Create, field: str, subcode: int) -> None:
    request = {"name": "m", "uri": "u", field: "nothing"}
    answer = await api.call("models.create", request, expect=400)
    assert answer["meta"]["result_subcode"] == subcode
    for action in ("edit", "update") if field != "parent" else ("edit",):
        request = {"model": await model(), field: "nothing"}
        answer = await api.call(f"models.{action}", request, expect=400)
        assert answer["meta"]["result_subcode"] == subcode


async def test_empty_references_are_none(model: Create, get: Get) -> None:
    made = await get(await model(project="", task="", parent=""))
    assert (made["project"], made["task"], made["parent"]) == (None, None, None)


async def test_edit_changes_what_is_given_and_no_more(api: Api, model: Create, get: Get) -> None:
    id = await model(tags=["a"], labels={"x": 1})
    before = await get(id)

    request = {"model": id, "uri": "file:///n", "labels": {"a.b": 2}, "ready": True, "comment": None}
    answer = await api.call("models.edit", request)

    assert answer["updated"] == 1
    assert answer["fields"]["labels"] == {"a.b": 2}
    after = await get(id)
    assert (after["uri"], after["labels"], after["ready"], after["tags"]) == ("file:///n", {"a.b": 2}, True, ["a"])
    assert after["last_update"] > before["last_update"]
    assert await api.call("models.edit", {"model": id}) == {"updated": 0, "fields": {}}


async def test_update_describes_and_does_not_move_the_file(api: Api, model: Create, get: Get) -> None:
    id = await model()
    await api.call("models.update", {"model": id, "name": "new", "uri": "elsewhere", "ui_cache": {"a.b": 1}})
    after = await get(id)
    assert (after["name"], after["uri"], after["ui_cache"]) == ("new", "https://files/m.pkl", {"a.b": 1})


@pytest.mark.parametrize("action", ["edit", "update"])
async def test_iterations_reach_the_task_and_never_fall(api: Api, model: Create, task: Create, action: str) -> None:
    id, maker = await model(), await task()
    for iteration, given in ((7, {"task": maker}), (3, {})):
        await api.call(f"models.{action}", {"model": id, "iteration": iteration, **given})
    assert (await api.call("tasks.get_by_id", {"task": maker}))["task"]["last_iteration"] == 7


async def test_models_move_to_a_project_by_name_or_id(api: Api, model: Create, get: Get) -> None:
    ids = [await model(), await model()]
    moved = await api.call("models.move", {"ids": ids, "project_name": "new/inner"})
    assert (moved["updated"], moved["project_name"]) == (2, "new/inner")
    assert [(await get(id))["project"] for id in ids] == [moved["project_id"]] * 2

    other = (await api.call("projects.create", {"name": "p", "description": ""}))["id"]
    await api.call("models.move", {"ids": ids[:1], "project": other})
    assert [(await get(id))["project"] for id in ids] == [other, moved["project_id"]]

    nowhere = await api.call("models.move", {"ids": ids[:1], "project": None})
    assert nowhere == {"updated": 1, "project_id": None, "project_name": None}
    assert [(await get(id))["project"] for id in ids] == [None, moved["project_id"]]


async def test_tags_are_added_and_taken(api: Api, model: Create, get: Get) -> None:
    ids = [await model(tags=["a", "b"]), await model()]
    change = {"ids": ids, "add_tags": ["c", "a"], "remove_tags": ["b"]}
    assert await api.call("models.update_tags", change) == {"updated": 2}
    assert [(await get(id))["tags"] for id in ids] == [["a", "c"], ["c", "a"]]
    assert await api.call("models.update_tags", {"ids": ids}) == {"updated": 0}


async def test_a_move_that_names_an_unknown_model_moves_none(api: Api, model: Create, get: Get) -> None:
    id = await model()
    answer = await api.call("models.move", {"ids": [id, "nothing"], "project_name": "new"}, expect=400)
    assert answer["meta"]["result_subcode"] == 201
    assert (await get(id))["project"] is None
    await api.call("models.move", {"ids": [id]}, expect=400)


async def test_metadata_is_given_as_a_list_or_by_keys(api: Api, model: Create, get: Get) -> None:
    item = {"key": "a.b", "type": "int", "value": "1"}
    for given in ([item], {"a.b": item}):
        id = await model(metadata=given)
        assert (await get(id))["metadata"] == {"a.b": item}
        for action in ("edit", "update"):
            await api.call(f"models.{action}", {"model": id, "metadata": []})
            assert (await get(id))["metadata"] == {}
            await api.call(f"models.{action}", {"model": id, "metadata": given})
            assert (await get(id))["metadata"] == {"a.b": item}


async def test_metadata_is_set_replaced_and_dropped(api: Api, model: Create, get: Get) -> None:
    id = await model(metadata=[{"key": "old", "value": "0"}])
    item = {"key": "a.b$c", "type": "int", "value": "7"}

    assert await api.call("models.add_or_update_metadata", {"model": id, "metadata": [item]}) == {"updated": 1}
    assert list((await get(id))["metadata"]) == ["old", "a.b$c"]

    await api.call("models.delete_metadata", {"model": id, "keys": ["old", "unknown"]})
    assert (await get(id))["metadata"] == {"a.b$c": item}

    replacing = {"model": id, "metadata": [{"key": "x", "value": "1"}], "replace_metadata": True}
    await api.call("models.add_or_update_metadata", replacing)
    assert list((await get(id))["metadata"]) == ["x"]
    await api.call("models.delete_metadata", {"model": id, "keys": []})
    await api.call("models.delete_metadata", {"model": "nothing", "keys": ["x"]}, expect=400)
