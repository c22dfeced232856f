"""Addresses that pages link to or show: wherever one comes in, none that runs a script is taken."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness import Api

pytestmark = pytest.mark.anyio

SCRIPTS = ("javascript:alert(1)", " JaVaScript:alert(1)", "java\tscript:x", "data:text/html,x", "vbscript:x")
STORES = ("s3://b/m", "hdfs://n/m", "wasb://c@a/m", "file:///m", "/mnt/m", "C:\\m", "http://h/m", "ali-oss://b/m", "m")


async def refused_field(api: Api, endpoint: str, request: dict[str, Any]) -> str:
    answer = await api.call(endpoint, request, expect=400)
    assert answer["meta"]["result_subcode"] == 12
    field: str = answer["meta"]["error_data"]["field"]
    return field


@pytest.mark.test
async def test_models_and_artifacts_lie_in_any_store_but_are_no_scripts(api: Api) -> None:
    task = (await api.call("tasks.create", {"name": "t", "type": "training"}))["id"]
    model = (await api.call("models.create", {"name": "m", "uri": "s3://b/m"}))["id"]

    def entrances(uri: str) -> list[tuple[str, dict[str, Any], str]]:
        artifacts = [{"key": "k", "type": "custom", "uri": uri}]
        return [
            ("models.create", {"name": "m", "uri": uri}, "uri"),
            ("models.edit", {"model": model, "uri": uri}, "uri"),
            ("models.update_for_task", {"task": task, "uri": uri}, "uri"),
            ("tasks.add_or_update_artifacts", {"task": task, "artifacts": artifacts}, "artifacts[0].uri"),
            ("tasks.edit", {"task": task, "execution": {"artifacts": artifacts}}, "execution.artifacts[0].uri"),
        ]

    for uri in STORES:
        for endpoint, request, _ in entrances(uri):
            await api.call(endpoint, request)
    for uri in SCRIPTS:
        for endpoint, request, field in entrances(uri):
            assert await refused_field(api, endpoint, request) == field


async def test_avatars_are_pictures(api: Api) -> None:
    me = (await api.call("users.get_current_user"))["user"]["id"]
    for avatar in ("https://h/me.png", "/files/me.png", ""):
        await api.call("users.update", {"user": me, "avatar": avatar})
    for avatar in (*SCRIPTS, "/api/v2.34/auth.edit_user?user=EVE&role=admin", "me.png"):
        assert await refused_field(api, "users.update", {"user": me, "avatar": avatar}) == "avatar"
        assert await refused_field(api, "auth.create_user", {"name": "new", "avatar": avatar}) == "avatar"
