"""storage.*, through the whole server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.harness import Api, new_user, running_api

pytestmark = pytest.mark.anyio

AWS = {"key": "k", "secret": "hush", "region": "r", "buckets": [{"bucket": "b", "secret": "hush", "token": "hush"}]}
GOOGLE = {"project": "p", "credentials_json": '{"a": "hush"}', "buckets": []}
AZURE = {"containers": [{"account_name": "n", "account_key": "hush"}]}
BUCKET = {"multipart": True, "secure": True, "verify": True, "use_credentials_chain": False}


async def settings(api: Api, **options: Any) -> dict[str, Any]:
    found: dict[str, Any] = (await api.call("storage.get_settings", **options))["settings"]
    return found


async def test_settings_are_kept(tmp_path: Path) -> None:
    async with running_api(tmp_path / "data") as api:
        before = await settings(api)
        assert before["last_update"] is None
        assert (before["aws"]["buckets"], before["google"]["buckets"], before["azure"]) == ([], [], {"containers": []})
        assert await api.call("storage.set_settings", {"aws": AWS, "azure": AZURE}) == {"updated": 1}
    async with running_api(tmp_path / "data") as api:
        found = await settings(api)
        bucket = {**BUCKET, "bucket": "b", "secret": "hush", "token": "hush"}
        aws = {**AWS, "token": "", "use_credentials_chain": False, "buckets": [bucket]}
        assert (found["aws"], found["google"], found["azure"]) == (aws, before["google"], AZURE)
        assert found["last_update"] > "2020"


async def test_a_kind_is_set_and_reset_as_a_whole(api: Api) -> None:
    assert await api.call("storage.reset_settings", {"keys": ["aws"]}) == {"updated": 0}
    await api.call("storage.set_settings", {"aws": AWS})
    await api.call("storage.set_settings", {"google": GOOGLE, "aws": {"key": "other"}})
    found = await settings(api)
    assert (found["aws"]["key"], found["aws"]["secret"], found["aws"]["buckets"]) == ("other", "", [])
    assert found["google"] == GOOGLE
    assert await api.call("storage.reset_settings", {"keys": ["google"]}) == {"updated": 1}
    assert await api.call("storage.reset_settings") == {"updated": 0}
    found = await settings(api)
    assert (found["aws"]["key"], found["google"]["project"]) == ("other", None)


async def test_secrets_are_for_admins(api: Api) -> None:
    await api.call("storage.set_settings", {"aws": AWS, "google": GOOGLE, "azure": AZURE})
    _, eve = await new_user(api, "eve")
    found = await settings(api, auth=eve)
    assert "hush" not in str(found)
    assert (found["aws"]["key"], found["azure"]["containers"][0]["account_name"]) == ("k", "n")
    assert found["aws"]["buckets"][0]["bucket"] == "b"
    await api.call("storage.set_settings", {"aws": {}}, auth=eve, expect=403)
    await api.call("storage.reset_settings", {"keys": ["aws"]}, auth=eve, expect=403)
    assert (await settings(api))["aws"]["secret"] == "hush"


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        ({}, None),
        ({"aws": None}, None),
        ({"google": {"credentials_json": "{"}}, "google.credentials_json"),
        ({"google": {"buckets": [{}, {"credentials_json": "x"}]}}, "google.buckets[1].credentials_json"),
        ({"azure": {"containers": [{"account_name": "n"}]}}, "azure.containers[0].account_key"),
    ],
)
async def test_bad_settings_are_refused(api: Api, request_: dict[str, Any], field: str | None) -> None:
    answer = await api.call("storage.set_settings", request_, expect=400)
    assert answer["meta"]["result_subcode"] == 12
    assert answer["meta"]["error_data"] == ({"field": field} if field else {})
