"""Logins: seen, ended, and how long they can be renewed."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import jwt
import pytest

from apiserver import cli
from apiserver.cli.command import CommandError
from apiserver.common.times import from_now
from apiserver.services.access import identities
from apiserver.services.access.sessions import end_sessions, sessions_of
from apiserver.settings.settings import Settings
from apiserver.stores.documents.query import Update
from tests.harness import Api, bearer, new_user, running_api

pytestmark = pytest.mark.anyio


async def log_in(api: Api, auth: tuple[str, str], **headers: str) -> str:
    token = str((await api.call("auth.login", auth=auth, headers=headers))["token"])
    api.client.cookies.clear()
    return token


async def sessions(api: Api, user: str | None = None, **options: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await api.call("users.get_sessions", {"user": user}, **options))["sessions"]
    return found


async def test_logins_are_seen_and_ended_by_their_user(api: Api) -> None:
    eve, key = await new_user(api, "eve")
    first = await log_in(api, key, **{"user-agent": "Firefox"})
    second = await log_in(api, key, **{"x-clearml-worker": "laptop"})
    await api.call("auth.login", auth=None, headers=bearer(first))
    api.client.cookies.clear()
    await api.call("auth.get_token_for_user", {"user": eve}, auth=None, headers=bearer(first))

    seen = {item["agent"]: item for item in await sessions(api, auth=None, headers=bearer(first))}
    assert len(seen) == 2
    assert (seen["Firefox"]["current"], seen["Firefox"]["address"]) == (True, "127.0.0.1")
    [other] = [item for agent, item in seen.items() if agent != "Firefox"]
    assert (other["current"], other["worker"]) == (False, "laptop")
    assert other["created"] <= other["last_used"] < other["expires"]

    ended = await api.call("users.end_sessions", {"sessions": [other["id"], "x"]}, auth=None, headers=bearer(first))
    assert ended == {"ended": 1}
    await api.call("users.get_current_user", auth=None, headers=bearer(second), expect=401)
    await api.call("users.get_current_user", auth=None, headers=bearer(first))
    refused = await api.call("users.end_sessions", {"ids": []}, auth=None, headers=bearer(first), expect=400)
    assert refused["meta"]["error_data"] == {"field": "sessions"}
    assert await api.call("users.end_sessions", {"all": True}, auth=None, headers=bearer(first)) == {"ended": 1}
    await api.call("users.get_current_user", auth=None, headers=bearer(first), expect=401)
    assert await sessions(api, auth=key) == []


async def test_all_other_logins_are_ended_at_once(api: Api) -> None:
    _, key = await new_user(api, "eve")
    own, *others = [await log_in(api, key) for _ in range(3)]
    assert await api.call("users.end_sessions", {"others": True}, auth=None, headers=bearer(own)) == {"ended": 2}
    for token in others:
        await api.call("users.get_current_user", auth=None, headers=bearer(token), expect=401)
    [left] = await sessions(api, auth=None, headers=bearer(own))
    assert left["current"] is True


async def test_admins_see_and_end_the_logins_of_others(api: Api) -> None:
    eve, key = await new_user(api, "eve")
    _, adams = await new_user(api, "adam")
    token = await log_in(api, key)
    [seen] = await sessions(api, eve)
    for endpoint in ("users.get_sessions", "users.end_sessions"):
        await api.call(endpoint, {"user": eve}, auth=adams, expect=403)
        await api.call(endpoint, {"user": "nobody"}, expect=400)
    assert await api.call("users.end_sessions", {"sessions": [seen["id"]]}, auth=adams) == {"ended": 0}
    await api.call("users.get_current_user", auth=None, headers=bearer(token))
    assert await api.call("users.end_sessions", {"user": eve, "all": True}) == {"ended": 1}
    await api.call("users.get_current_user", auth=None, headers=bearer(token), expect=401)


@pytest.mark.own_api
async def test_many_logins_are_ended_at_once(api: Api) -> None:
    eve, key = await new_user(api, "eve")
    tokens = [await log_in(api, key) for _ in range(5)]
    [last, *_] = await sessions(api, auth=key)
    await api.backend.documents.insert("ended_sessions", [{"id": last["id"], "company": "c", "expires": "3000"}])
    documents, company = api.backend.documents, api.backend.settings.company
    assert await end_sessions(documents, await sessions_of(documents, company, eve), at_once=2) == 5
    for token in tokens:
        await api.call("users.get_current_user", auth=None, headers=bearer(token), expect=401)
    assert await api.backend.documents.count("sessions", {}) == 0


async def test_guests_see_their_own_login_alone(tmp_path: Path) -> None:
    async with running_api(tmp_path / "data", guest=True) as api:
        one, _ = [await log_in(api, ("guest", "guest")) for _ in range(2)]
        [seen] = await sessions(api, auth=None, headers=bearer(one))
        assert seen["current"]
        await api.call("users.end_sessions", auth=None, headers=bearer(one), expect=403)


@pytest.mark.own_api
async def test_what_has_ended_is_not_kept(api: Api) -> None:
    eve, key = await new_user(api, "eve")
    documents = api.backend.documents
    token = await log_in(api, key)
    await api.call("auth.logout", auth=None, headers=bearer(token))
    await log_in(api, key)
    await documents.update("sessions", {"user": eve}, Update(set={"expires": from_now(-1)}))
    assert await sessions(api, eve) == []
    await log_in(api, key)
    assert await documents.count("sessions", {"user": eve}) == 1
    await api.call("users.delete", {"user": eve})
    assert await documents.count("sessions", {}) == 0


@pytest.mark.own_api
async def test_that_a_login_is_used_is_noted_once_in_a_while(api: Api) -> None:
    eve, key = await new_user(api, "eve")
    token, documents = await log_in(api, key), api.backend.documents
    [before] = await documents.find("sessions", {"user": eve})
    identities.forget(documents)  # it would know the token for ten minutes
    await api.call("users.get_current_user", auth=None, headers=bearer(token))
    assert await documents.find("sessions", {"user": eve}) == [before]
    await documents.update("sessions", {"user": eve}, Update(set={"last_used": from_now(-3601)}))
    identities.forget(documents)
    await api.call("users.get_current_user", auth=None, headers=bearer(token))
    [after] = await documents.find("sessions", {"user": eve})
    assert after["last_used"] >= before["last_used"]


async def test_renewal_has_an_end(tmp_path: Path) -> None:
    async with running_api(tmp_path / "data", token_renewal_days=2, token_lifetime=86400) as api:
        eve, key = await new_user(api, "eve")
        login, auth = await api.backend.auth.authenticate(bearer(await log_in(api, key))), api.backend.auth

        async def renewed(days: float, expect: int = 200) -> None:
            """Renew a token of a login that was so many days ago."""
            logged_in = int(time.time() - days * 86400)
            token = auth.issue(replace(login, logged_in=logged_in), 3600)
            for endpoint in ("auth.get_token_for_user", "auth.login"):
                answer = await api.call(endpoint, {"user": eve}, auth=None, headers=bearer(token), expect=expect)
                api.client.cookies.clear()
                if expect == 200:
                    claims = claims_of(answer["token"])
                    assert claims["auth_time"] == logged_in
                    assert claims["exp"] < logged_in + 2.005 * 86400  # the clock goes on between two looks at it
                else:
                    assert answer["meta"]["result_subcode"] == 30
                    assert answer["meta"]["error_data"] == {"expired": True}

        await renewed(0.9)
        await renewed(1.8)
        await renewed(1.99)
        await renewed(2.01, expect=401)
        await log_in(api, key)

        year = (await api.call("auth.login", {"expiration_sec": 365 * 86400}, auth=key))["token"]
        api.client.cookies.clear()
        assert claims_of(year)["exp"] > time.time() + 364 * 86400
        old = auth.issue(replace(login, logged_in=int(time.time()) - 300 * 86400), 65 * 86400)
        await api.call("users.get_current_user", auth=None, headers=bearer(old))
        await api.call("auth.login", auth=None, headers=bearer(old), expect=401)


def claims_of(token: str) -> dict[str, Any]:
    """What a token says."""
    claims: dict[str, Any] = jwt.decode(token, options={"verify_signature": False})
    return claims


@pytest.mark.test
async def test_the_command_lists_and_ends_logins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data"
    async with running_api(data) as api:
        _, key = await new_user(api, "eve")
        tokens = [await log_in(api, key, **{"x-clearml-worker": f"host {n}\x1b"}) for n in range(2)]
        settings = Settings(data=data)

        def run(*arguments: str) -> list[str]:
            options = cli.command_line().parse_args(["user", "sessions", *arguments])
            options.command(settings, options)
            return capsys.readouterr().out.splitlines()

        from anyio.to_thread import run_sync

        lines = await run_sync(lambda: run("eve"))
        assert len(lines) == 2
        assert all(" eve: created " in line and "\x1b" not in line for line in lines)
        assert await run_sync(lambda: run()) == lines
        with pytest.raises(CommandError, match="no session x"):
            await run_sync(lambda: run("eve", "--end", "x"))
        assert await run_sync(lambda: run("--end", lines[0].split()[0])) == ["1 ended"]
        assert await run_sync(lambda: run("eve", "--end")) == ["1 ended"]
        assert await run_sync(lambda: run()) == []
        with pytest.raises(CommandError, match="no user 'adam'"):
            await run_sync(lambda: run("adam"))
        identities.forget(api.backend.documents)
        for token in tokens:
            await api.call("users.get_current_user", auth=None, headers=bearer(token), expect=401)
