"""The company: its users, and the tags that are in use."""

from __future__ import annotations

import pytest

from tests.harness import Api, new_user

pytestmark = pytest.mark.anyio


async def test_tags_are_those_of_tasks_and_models(api: Api) -> None:
    task = {"name": "t", "type": "training", "tags": ["b", "a"], "system_tags": ["archived"]}
    await api.call("tasks.create", task)
    await api.call("models.create", {"name": "m", "uri": "file:///m", "tags": ["c", "a"], "system_tags": ["x"]})

    assert await api.call("organization.get_tags") == {"tags": ["a", "b", "c"]}
    both = await api.call("organization.get_tags", {"include_system": True})
    assert both == {"tags": ["a", "b", "c"], "system_tags": ["archived", "x"]}
    current = {"filter": {"system_tags": ["-archived"]}, "include_system": True}
    assert await api.call("organization.get_tags", current) == {"tags": ["a", "c"], "system_tags": ["x"]}
    assert await api.call("organization.get_tags", {"filter": {"tags": ["b"]}}) == {"tags": ["a", "b"]}


async def test_there_is_one_company_with_all_its_users(api: Api) -> None:
    eve, _ = await new_user(api, "eve")
    adam, _ = await new_user(api, "adam")
    admin = (await api.call("users.get_current_user"))["user"]["id"]

    [company] = (await api.call("organization.get_user_companies"))["companies"]

    assert (company["id"], company["name"]) == (api.company, "default")
    named = [(adam, "adam"), (admin, "admin"), (eve, "eve")]
    assert company["owners"] == [{"id": id, "name": name, "avatar": None} for id, name in named]
    assert company["allocated"] == 3
