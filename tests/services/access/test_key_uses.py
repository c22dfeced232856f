"""When keys were last used: seen soon, and written seldom."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.stores.documents.base import DocumentStoreBusy
from tests.harness import Api, basic, bearer, new_user

pytestmark = pytest.mark.anyio


async def last_use(api: Api, key: str) -> tuple[str | None, str | None]:
    found = await api.backend.documents.find_one("credentials", {"key": key})
    assert found is not None
    return found["last_used"], found["last_used_from"]


@pytest.mark.own_api
async def test_calls_with_keys_and_tokens_are_noted_and_written_together(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, key = await new_user(api, "eve")
    token = (await api.call("auth.login", auth=key, headers={"x-clearml-worker": "laptop"}))["token"]
    api.client.cookies.clear()
    login, place = await last_use(api, key[0])
    assert place == "laptop"
    written, update_each = [], api.backend.documents.update_each

    async def noted(collection: str, updates: Any) -> list[int]:
        written.append((collection, len(updates)))
        return await update_each(collection, updates)

    monkeypatch.setattr(api.backend.documents, "update_each", noted)
    for _ in range(3):
        await api.call("users.get_current_user", auth=None, headers=bearer(token))
        await api.call("users.get_current_user")
        await api.call("auth.login", auth=key, headers={"x-clearml-worker": "laptop"})
        api.client.cookies.clear()
    assert await last_use(api, key[0]) == (login, place)
    await api.backend.key_uses.write()
    assert written == [("credentials", 2)]
    again, place = await last_use(api, key[0])
    assert again is not None
    assert login is not None
    assert again > login
    assert place == "laptop"
    used, place = await last_use(api, api.auth[0])
    assert used is not None
    assert place == "127.0.0.1"
    await api.backend.key_uses.write()
    assert len(written) == 1


@pytest.mark.own_api
async def test_what_could_not_be_written_is_written_later(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(collection: str, updates: Any) -> list[int]:
        raise DocumentStoreBusy("the disk is full")

    await api.call("users.get_current_user")
    with monkeypatch.context() as patched:
        patched.setattr(api.backend.documents, "update_each", refuse)
        with pytest.raises(DocumentStoreBusy):
            await api.backend.key_uses.write()
    assert (await last_use(api, api.auth[0]))[0] is None
    await api.backend.key_uses.write()
    assert (await last_use(api, api.auth[0]))[0] is not None


async def test_wrong_secrets_are_no_use(api: Api) -> None:
    for _ in range(2):
        await api.raw("POST", "/users.get_current_user", auth=None, headers={"authorization": basic(api.auth[0], "x")})
    await api.backend.key_uses.write()
    assert (await last_use(api, api.auth[0]))[0] is None
