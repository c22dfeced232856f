"""Users, passwords and logins on MongoDB: of two servers that share them, and of one that starts again."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest

from apiserver.common.passwords import hash_password
from apiserver.server.bounds import Bounds
from apiserver.services.bounds import CallBounds
from apiserver.settings.values import FixedUser
from tests.harness import CHEAP, Api, bearer, running_api

pytestmark = pytest.mark.anyio

SECRET = "what signs the tokens of both servers of this test"
PASSWORD = "correct horse"


async def who(api: Api, token: str, expect: int = 200) -> str:
    answer = await api.call("users.get_current_user", auth=None, headers=bearer(token), expect=expect)
    return str(answer["user"]["name"]) if expect == 200 else ""


async def test_servers_share_users_and_the_ends_of_logins(tmp_path: Path, shared_engines: dict[str, Any]) -> None:
    slow = Bounds(calls=CallBounds(password_cost=CHEAP), clock=count(step=2).__next__)  # two seconds between two looks
    alice = FixedUser("alice", hash_password(PASSWORD, CHEAP), role="admin")
    shared: dict[str, Any] = {**shared_engines, "token_secret": SECRET, "users": (alice,), "guest": True}
    async with running_api(tmp_path / "a", slow, **shared) as one, running_api(tmp_path / "b", slow, **shared) as other:
        token = (await one.call("auth.login", auth=("alice", PASSWORD)))["token"]
        guest = (await other.call("auth.login", auth=("guest", "guest")))["token"]
        assert (await who(other, token), await who(one, guest)) == ("alice", "guest")
        eve = (await other.call("auth.create_user", {"name": "eve"}))["id"]
        as_eve = (await one.call("auth.login", headers={"x-clearml-impersonate-as": eve}))["token"]
        await one.call("users.set_preferences", {"preferences": {"a.b": 1}}, auth=None, headers=bearer(as_eve))
        assert await who(other, as_eve) == "eve"
        await one.call("auth.create_user", {"name": "eve"}, expect=400)

        await other.call("auth.logout", auth=None, headers=bearer(token))
        await who(one, token, expect=401)
        await other.call("users.delete", {"user": eve})
        await who(one, as_eve, expect=401)
        kept = (await one.call("auth.login", auth=("alice", PASSWORD)))["token"]
    async with running_api(tmp_path / "a", **{**shared, "users": (), "guest": False}) as one:
        for ended in (kept, guest):
            await who(one, ended, expect=401)
        assert [user["name"] for user in (await one.call("users.get_all"))["users"]] == ["admin"]
