"""users.*, through the whole server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.harness import Api, new_user

pytestmark = pytest.mark.anyio


async def test_current_user_has_the_shape_that_the_web_ui_reads(api: Api) -> None:
    answer = await api.call("users.get_current_user", {"get_supported_features": True})

    user = answer["user"]
    assert set(user) >= {"id", "name", "role", "created", "company"}
    assert user["company"] == {"id": api.company, "name": "default"}
    assert answer["settings"] == {"max_download_items": 50000}
    assert answer["getting_started"]["install"] == "pip install clearml"


async def test_preferences_and_secrets_are_not_shown_to_others(api: Api) -> None:
    await api.call("users.set_preferences", {"preferences": {"theme": "dark"}})
    admin = (await api.call("users.get_current_user"))["user"]["id"]

    for shown in (
        (await api.call("users.get_by_id", {"user": admin}))["user"],
        (await api.call("users.get_all"))["users"][0],
        (await api.call("users.get_all", {"only_fields": ["preferences", "name"]}))["users"][0],
    ):
        assert shown["name"] == "admin"
        assert "preferences" not in shown
    await api.call("tasks.create", {"name": "t", "type": "training"})
    request = {"only_fields": ["user.preferences", "user.name"]}
    [task] = (await api.call("tasks.get_all_ex", request))["tasks"]
    assert task["user"] == {"id": admin, "name": "admin"}


async def test_users_are_found(api: Api) -> None:
    eve, _ = await new_user(api, "eve")
    await new_user(api, "adam")

    async def names(**request: Any) -> list[str]:
        return [user["name"] for user in (await api.call("users.get_all", request))["users"]]

    assert await names() == ["adam", "admin", "eve"]
    assert await names(id=[], name=None) == ["adam", "admin", "eve"]
    assert await names(name="^a") == ["adam", "admin"]
    assert await names(id=[eve, "nobody"]) == ["eve"]
    assert await names(order_by=["-name"], page=0, page_size=2) == ["eve", "admin"]
    assert await names(page=2, page_size=2) == []
    assert (await api.call("users.get_all", {"id": [eve], "only_fields": ["id"]}))["users"] == [{"id": eve}]


async def test_users_are_found_by_where_they_are_active(api: Api) -> None:
    (eve, eves), (adam, adams), (idle, _) = [await new_user(api, name) for name in ("eve", "adam", "idle")]
    project = (await api.call("projects.create", {"name": "a", "description": ""}))["id"]
    below = (await api.call("projects.create", {"name": "a/b", "description": ""}))["id"]
    await api.call("tasks.create", {"name": "t", "type": "training", "project": below}, auth=eves)
    await api.call("models.create", {"name": "m", "uri": "u"}, auth=adams)

    async def found(**request: Any) -> list[str]:
        users = (await api.call("users.get_all_ex", {**request, "id": [eve, adam, idle]}))["users"]
        return [user["name"] for user in users]

    assert await found() == ["adam", "eve", "idle"]
    assert await found(active_in_projects=[]) == ["adam", "eve"]
    assert await found(active_in_projects=[project]) == await found(active_in_projects=[below]) == ["eve"]
    assert await found(active_in_projects=["nothing"]) == []
    admin = (await api.call("users.get_current_user"))["user"]["id"]
    makers = (await api.call("users.get_all_ex", {"active_in_projects": [project]}))["users"]
    assert {user["id"] for user in makers} == {admin, eve}


async def test_users_rename_themselves_and_admins_anybody(api: Api) -> None:
    eve, key = await new_user(api, "eve")
    admin = (await api.call("users.get_current_user"))["user"]["id"]

    changed = await api.call("users.update", {"user": eve, "name": "Eve", "given_name": "E."}, auth=key)
    assert changed == {"updated": 1, "fields": {"name": "Eve", "given_name": "E."}}
    assert (await api.call("users.get_current_user", auth=key))["user"]["name"] == "Eve"
    await api.call("users.update", {"user": admin, "name": "root"}, auth=key, expect=403)
    await api.call("users.update", {"user": eve, "name": "eve"})
    await api.call("users.update", {"user": eve, "name": "admin"}, expect=400)
    await api.call("users.update", {"user": "nobody", "name": "somebody"}, expect=400)


async def test_preferences_are_kept_by_dotted_name(api: Api) -> None:
    assert await api.call("users.get_preferences") == {"preferences": {}}

    await api.call("users.set_preferences", {"preferences": {"views.tasks.columns": ["a"], "views.dark": True}})
    answer = await api.call(
        "users.set_preferences",
        {"preferences": {"views.tasks.width--DOT--x": 3, "a$b": {"c.d": None}}, "return_updated": True},
    )

    kept = {
        "views": {"tasks": {"columns": ["a"], "width--DOT--x": 3}, "dark": True},
        "a$b": {"c.d": None},
    }
    assert answer == {"updated": 1, "fields": {"preferences": kept}}
    assert (await api.call("users.get_preferences"))["preferences"] == kept


async def test_a_preference_may_take_the_place_of_a_value(api: Api) -> None:
    await api.call("users.set_preferences", {"preferences": {"a": 1}})
    await api.call("users.set_preferences", {"preferences": {"a.b.c": 2}})
    assert (await api.call("users.get_preferences"))["preferences"] == {"a": {"b": {"c": 2}}}


async def test_changes_at_once_are_all_kept(api: Api) -> None:
    await asyncio.gather(*(api.call("users.set_preferences", {"preferences": {f"many.key{n}": n}}) for n in range(10)))
    kept = (await api.call("users.get_preferences"))["preferences"]
    assert kept == {"many": {f"key{n}": n for n in range(10)}}


@pytest.mark.parametrize("preferences", [{"a": "x" * 2**20}, {".".join("a" * 100): 1}])
async def test_preferences_have_limits(api: Api, preferences: dict[str, Any]) -> None:
    answer = await api.call("users.set_preferences", {"preferences": preferences}, expect=400)
    assert answer["meta"]["error_data"] == {"field": "preferences"}


async def test_preferences_are_each_users_own(api: Api) -> None:
    _, key = await new_user(api, "eve")
    await api.call("users.set_preferences", {"preferences": {"theme": "dark"}})
    assert await api.call("users.get_preferences", auth=key) == {"preferences": {}}


async def test_admins_add_users_with_an_id(api: Api) -> None:
    company = api.company
    request = {"id": "user-1", "company": company, "name": "Eve Adams", "given_name": "Eve", "avatar": "http://a/b.png"}
    assert await api.call("users.create", request) == {}
    user = (await api.call("users.get_by_id", {"user": "user-1"}))["user"]
    assert (user["name"], user["given_name"], user["avatar"], user["role"]) == (
        "Eve Adams",
        "Eve",
        "http://a/b.png",
        "user",
    )
    assert user["created_in_version"]
    for changed, subcode in (
        ({"id": "user-2"}, 801),
        ({"name": "Another"}, 302),
        ({"id": "user-3", "name": "Third", "company": "another"}, 12),
        ({"id": ""}, 12),
    ):
        answer = await api.call("users.create", {**request, **changed}, expect=400)
        assert answer["meta"]["result_subcode"] == subcode
    _, key = await new_user(api, "plain")
    await api.call("users.create", {**request, "id": "user-4", "name": "Fourth"}, auth=key, expect=403)


async def test_admins_delete_users_but_not_themselves(api: Api) -> None:
    eve, key = await new_user(api, "eve")
    task = (await api.call("tasks.create", {"name": "t", "type": "training"}, auth=key))["id"]
    await api.call("users.delete", {"user": eve}, auth=key, expect=403)

    assert await api.call("users.delete", {"user": eve}) == {}

    await api.call("users.get_by_id", {"user": eve}, expect=400)
    await api.call("auth.login", auth=key, expect=401)
    assert await api.backend.documents.count("credentials", {"user": eve}) == 0
    assert (await api.call("tasks.get_by_id", {"task": task}))["task"]["user"] == eve
    admin = (await api.call("users.get_current_user"))["user"]["id"]
    for user, subcode in ((admin, 12), (eve, 301)):
        answer = await api.call("users.delete", {"user": user}, expect=400)
        assert answer["meta"]["result_subcode"] == subcode
    await new_user(api, "eve")
