"""Logging in by name and password; users, guest and login page that the settings name."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from apiserver.common import passwords
from apiserver.common.passwords import hash_password
from apiserver.services.access import credentials, password_login
from apiserver.services.access.fixed_users import WEB_UI, ensure_fixed_users
from apiserver.services.access.password_login import set_password
from apiserver.settings.settings import SettingsError
from apiserver.settings.values import FixedUser
from tests.harness import ADMIN_KEY, CHEAP, Api, bearer, running_api
from tests.services.access.conftest import FAILURES_STAY

pytestmark = [pytest.mark.anyio, pytest.mark.own_api]

PASSWORD = "correct horse"
OTHER = "battery staple"


@pytest.fixture
async def alice(api: Api) -> str:
    """The id of a user with a password."""
    return await with_password(api, "alice")


async def with_password(api: Api, name: str) -> str:
    user = await credentials.add_user(api.backend.documents, api.company, name)
    await set_password(api.backend.documents, user, hash_password(PASSWORD, CHEAP))
    return str(user["id"])


async def log_in(api: Api, name: str, password: str, *, expect: int = 200, **options: Any) -> dict[str, Any]:
    """What auth.login answers, to a client without a cookie."""
    api.client.cookies.clear()
    answer = await api.call("auth.login", auth=(name, password), expect=expect, **options)
    api.client.cookies.clear()
    return answer


async def who(api: Api, token: str, *, expect: int = 200) -> dict[str, Any]:
    answer = await api.call("users.get_current_user", auth=None, headers=bearer(token), expect=expect)
    return dict(answer["user"]) if expect == 200 else answer


async def test_a_password_gets_a_token_and_a_cookie(api: Api, alice: str) -> None:
    response = await api.raw("POST", "/auth.login", auth=("alice", PASSWORD))
    assert response.status_code == 200
    assert "HttpOnly; SameSite=Lax" in response.headers["set-cookie"]
    user = await who(api, response.json()["data"]["token"])
    assert (user["id"], user["name"], user["role"]) == (alice, "alice", "user")
    assert (await api.call("auth.get_credentials", auth=None, headers=bearer(response.json()["data"]["token"]))) == {
        "credentials": []
    }


async def test_a_password_is_good_for_nothing_else(api: Api, alice: str) -> None:
    for path in ("/users.get_current_user", "/tasks.get_all"):
        assert (await api.raw("POST", path, auth=("alice", PASSWORD))).status_code == 401
    modes = await api.call("login.supported_modes", auth=("alice", PASSWORD))
    assert modes["authenticated"] is False
    assert (await api.raw("GET", "/files/x", auth=("alice", PASSWORD))).status_code == 401


async def test_whatever_is_wrong_the_answer_is_the_same(api: Api, alice: str) -> None:
    await credentials.add_user(api.backend.documents, api.company, "without")
    await credentials.add_user(api.backend.documents, "another company", "foreign")
    pairs = [
        ("alice", OTHER),
        ("alice", ""),
        ("alice", PASSWORD + " "),
        ("Alice", PASSWORD),
        ("nobody", PASSWORD),
        ("without", PASSWORD),
        ("foreign", PASSWORD),
        ("x" * 300, PASSWORD),
        ("guest", "guest"),
        (WEB_UI.key, WEB_UI.secret),
    ]
    answers = [(await log_in(api, *pair, expect=401))["meta"] for pair in pairs]
    assert {(meta["result_subcode"], meta["result_msg"]) for meta in answers} == {
        (22, "Unauthorized (invalid credentials)")
    }


async def test_whatever_is_wrong_a_slow_hash_is_compared(api: Api, alice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []

    def matches(password: str, hashed: str) -> bool:
        compared.append(hashed)
        return passwords.matches(password, hashed)

    monkeypatch.setattr(password_login, "matches", matches)
    for name in ("alice", "nobody", "guest", WEB_UI.key):
        await log_in(api, name, OTHER, expect=401)
    assert len(compared) == 3  # but for what can only be an access key
    assert all(hashed.startswith("scrypt$16$8$3$") for hashed in compared)


async def test_other_calls_go_on_while_a_password_is_compared(
    api: Api, alice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()
    monkeypatch.setattr(password_login, "matches", lambda password, hashed: go_on.wait(120))
    login = asyncio.create_task(log_in(api, "alice", PASSWORD))
    await api.call("users.get_current_user")
    assert not login.done()
    go_on.set()
    assert (await login)["token"]


@pytest.mark.bounds(FAILURES_STAY)
async def test_who_guesses_has_to_wait(api: Api, alice: str) -> None:
    for _ in range(10):
        await log_in(api, "alice", OTHER, expect=401)
    for password in (OTHER, PASSWORD):
        response = await api.raw("POST", "/auth.login", auth=("alice", password))
        assert response.status_code == 429
        assert 25 <= int(response.headers["retry-after"]) <= 30
    await with_password(api, "bob")
    await log_in(api, "bob", PASSWORD)
    await api.call("auth.login")


@pytest.mark.bounds(FAILURES_STAY)
async def test_guesses_keep_out_nobody_who_logged_in_before(api: Api, alice: str) -> None:
    await log_in(api, "alice", PASSWORD)
    for _ in range(10):
        await log_in(api, "alice", OTHER, expect=401)
    await log_in(api, "alice", OTHER, expect=429)
    await log_in(api, "alice", PASSWORD)
    for _ in range(10):
        await log_in(api, "alice", OTHER, expect=401)
    user = await api.backend.documents.find_one("users", {"id": alice})
    assert user is not None
    await set_password(api.backend.documents, user, hash_password("another one", CHEAP))
    for password in (PASSWORD, "another one"):
        await log_in(api, "alice", password, expect=429)


@pytest.mark.bounds(FAILURES_STAY)
async def test_who_guesses_the_secret_of_a_key_has_to_wait(api: Api) -> None:
    made = (await api.call("auth.create_credentials"))["credentials"]
    key = (made["access_key"], made["secret_key"])
    for guess in range(10):
        await api.call("users.get_current_user", auth=(key[0], f"guess {guess}"), expect=401)
    for path in ("/users.get_current_user", "/auth.login", "/files/x", "/v1/training_projects/p/jobs/j/metrics"):
        refused = await api.raw("GET", path, auth=(key[0], "guess"))
        assert refused.status_code == 429
        assert 25 <= int(refused.headers["retry-after"]) <= 30
    await api.call("users.get_current_user", auth=key)  # which nobody can guess
    for _ in range(20):
        await api.call("users.get_current_user", auth=("REVOKED0REVOKED0REVOKED0", "x"), expect=401)


async def test_a_secret_that_was_chosen_is_not_even_told_to_who_guesses(tmp_path: Path) -> None:
    for known in (False, True):
        async with running_api(tmp_path / "data", FAILURES_STAY) as api:
            if known:
                await api.call("users.get_current_user")
            for guess in range(10):
                await api.call("users.get_current_user", auth=(ADMIN_KEY, f"guess {guess}"), expect=401)
            await api.call("users.get_current_user", auth=(ADMIN_KEY, "guess"), expect=429)
            await api.call("users.get_current_user", expect=200 if known else 429)


async def test_with_another_password_the_old_ones_tokens_end(api: Api, alice: str) -> None:
    old = (await log_in(api, "alice", PASSWORD))["token"]
    renewed = (await api.call("auth.login", auth=None, headers=bearer(old)))["token"]
    api.client.cookies.clear()
    user = await api.backend.documents.find_one("users", {"id": alice})
    assert user is not None
    await set_password(api.backend.documents, user, hash_password(OTHER, CHEAP))
    for token in (old, renewed):
        await who(api, token, expect=401)
    await log_in(api, "alice", PASSWORD, expect=401)
    assert (await who(api, (await log_in(api, "alice", OTHER))["token"]))["id"] == alice
    assert await api.backend.documents.count("passwords", {}) == 1


async def test_a_deleted_users_password_goes_too(api: Api, alice: str) -> None:
    token = (await log_in(api, "alice", PASSWORD))["token"]
    await api.call("users.delete", {"user": alice})
    await who(api, token, expect=401)
    await log_in(api, "alice", PASSWORD, expect=401)
    assert await api.backend.documents.count("passwords", {}) == 0


async def test_an_admin_with_a_password_acts_for_users(api: Api, alice: str) -> None:
    await api.call("auth.edit_user", {"user": alice, "role": "admin"})
    bob = (await api.call("auth.create_user", {"name": "bob"}))["id"]
    token = (await log_in(api, "alice", PASSWORD, headers={"x-clearml-impersonate-as": bob}))["token"]
    assert (await who(api, token))["name"] == "bob"
    answer = await log_in(api, "alice", PASSWORD, headers={"x-clearml-impersonate-as": "nobody"}, expect=400)
    assert answer["meta"]["result_subcode"] == 6


# --- by the settings --------------------------------------------------------------------------------


def fixed(name: str, **fields: str) -> FixedUser:
    return FixedUser(**{"name": name, "password": hash_password(PASSWORD, CHEAP), **fields})


@pytest.mark.test
async def test_users_are_what_the_settings_say(tmp_path: Path) -> None:
    users = (fixed("alice", role="admin", given_name="Alice"), fixed("bob"))
    async with running_api(tmp_path / "data", users=users) as api:
        first = await who(api, (await log_in(api, "alice", PASSWORD))["token"])
        assert (first["role"], first["given_name"]) == ("admin", "Alice")
        bobs = (await log_in(api, "bob", PASSWORD))["token"]
        key = (await api.call("auth.create_credentials", auth=None, headers=bearer(bobs)))["credentials"]
    async with running_api(tmp_path / "data", users=(fixed("alice", given_name="Alicia"),)) as api:
        again = await who(api, (await log_in(api, "alice", PASSWORD))["token"])
        assert (again["id"], again["role"], again["given_name"]) == (first["id"], "user", "Alicia")
        await log_in(api, "bob", PASSWORD, expect=401)
        await who(api, bobs, expect=401)
        await log_in(api, key["access_key"], key["secret_key"], expect=401)
    async with running_api(tmp_path / "data", users=users) as api:
        bob = await who(api, (await log_in(api, "bob", PASSWORD))["token"])
        await who(api, bobs, expect=401)  # of the password that bob had before
    assert bob["name"] == "bob"


async def test_who_the_settings_name_keeps_the_name(tmp_path: Path) -> None:
    users = (FixedUser("alice", hash_password(PASSWORD, CHEAP)),)
    async with running_api(tmp_path, users=users) as api:
        headers = bearer((await log_in(api, "alice", PASSWORD))["token"])
        alice = (await api.call("users.get_current_user", auth=None, headers=headers))["user"]["id"]
        await api.call("users.update", {"user": alice, "name": "eve"}, auth=None, headers=headers, expect=403)
        await api.call("users.update", {"user": alice, "name": "alice", "given_name": "A."}, auth=None, headers=headers)
        await credentials.update_user(api.backend.documents, api.company, alice, {"name": "eve"})
    async with running_api(tmp_path, users=users) as api:
        assert (await who(api, (await log_in(api, "alice", PASSWORD))["token"]))["id"] == alice


async def test_what_has_not_changed_is_not_written(tmp_path: Path) -> None:
    users = (fixed("alice"),)
    async with running_api(tmp_path / "data", users=users, guest=True, login="simple") as api:
        token = (await log_in(api, "alice", PASSWORD))["token"]
        before = await everything(api)
    async with running_api(tmp_path / "data", users=users, guest=True, login="simple") as api:
        assert await everything(api) == before
        assert (await who(api, token))["name"] == "alice"


async def test_servers_that_start_at_once_make_one_user_with_one_password(api: Api) -> None:
    documents, settings = api.backend.documents, replace(api.backend.settings, users=(fixed("alice"),), guest=True)
    await asyncio.gather(*(ensure_fixed_users(documents, settings) for _ in range(8)))
    assert await documents.count("passwords", {}) == await documents.count("users", {"name": "alice"}) == 1
    token = (await log_in(api, "alice", PASSWORD))["token"]
    await ensure_fixed_users(documents, settings)
    assert (await who(api, token))["name"] == "alice"


async def everything(api: Api) -> dict[str, Any]:
    documents = api.backend.documents
    names = ("users", "passwords", "credentials")
    return {name: sorted(await documents.find(name, {}), key=lambda item: str(item["id"])) for name in names}


async def test_a_name_that_somebody_else_has_stops_the_start(tmp_path: Path) -> None:
    async with running_api(tmp_path / "data") as api:
        eve = (await api.call("auth.create_user", {"name": "eve"}))["id"]
        await api.call("users.update", {"user": eve, "name": "alice"}, headers={"x-clearml-impersonate-as": eve})
    with pytest.raises(SettingsError, match=f'there is a user alice already.* id = "{eve}"'):
        async with running_api(tmp_path / "data", users=(fixed("alice", role="admin"),)):
            raise AssertionError
    with pytest.raises(SettingsError, match="no user with the id nobody"):
        async with running_api(tmp_path / "data", users=(fixed("bob", id="nobody"),)):
            raise AssertionError
    async with running_api(tmp_path / "data") as api:
        assert (await api.call("users.get_by_id", {"user": eve}))["user"]["role"] == "user"


@pytest.mark.test
async def test_who_was_there_before_only_loses_the_password(tmp_path: Path) -> None:
    async with running_api(tmp_path / "data") as api:
        alice = await with_password(api, "alice")
    for id in (alice, ""):  # without it from then on, as they are the settings' by now
        async with running_api(tmp_path / "data", users=(fixed("alice", id=id),)) as api:
            assert (await who(api, (await log_in(api, "alice", PASSWORD))["token"]))["id"] == alice
    async with running_api(tmp_path / "data") as api:
        assert (await api.call("users.get_by_id", {"user": alice}))["user"]["name"] == "alice"
        await log_in(api, "alice", PASSWORD, expect=401)


@pytest.mark.test
async def test_guests_only_read(tmp_path: Path) -> None:
    async with running_api(tmp_path / "data", guest=True) as api:
        modes = (await api.call("login.supported_modes", auth=None))["basic"]
        assert modes == {
            "enabled": True,
            "guest": {"enabled": True, "name": "Guest", "username": "guest", "password": "guest"},
        }
        await log_in(api, "guest", "wrong", expect=401)
        token = (await log_in(api, "guest", "guest"))["token"]
        assert (await who(api, token))["role"] == "guest"
        [company] = (await api.call("organization.get_user_companies"))["companies"]
        assert [owner["name"] for owner in company["owners"]] == ["admin"]
        headers = bearer(token)
        await api.call("tasks.get_all_ex", auth=None, headers=headers)
        await api.call("projects.get_all_ex", auth=None, headers=headers)
        for endpoint, request in (
            ("tasks.create", {"name": "t", "type": "training"}),
            ("auth.create_credentials", {}),
            ("users.set_preferences", {"preferences": {"a": 1}}),
            ("queues.get_next_task", {"queue": "q"}),
            ("auth.create_user", {"name": "x"}),
            ("server.config", {}),
        ):
            answer = await api.call(endpoint, request, auth=None, headers=headers, expect=403)
            assert answer["meta"]["result_subcode"] == 20
        assert (await api.raw("PUT", "/files/x", content=b"1", auth=None, headers=headers)).status_code == 403
        assert (await api.raw("GET", "/files/x", auth=None, headers=headers)).status_code == 404
        guest = (await who(api, token))["id"]
        await api.call("auth.edit_user", {"user": guest, "role": "admin"}, expect=400)
        await api.call("auth.logout", auth=None, headers=headers)
        await who(api, token, expect=401)
        token = (await log_in(api, "guest", "guest"))["token"]
    async with running_api(tmp_path / "data") as api:
        await who(api, token, expect=401)
        await log_in(api, "guest", "guest", expect=401)


async def test_where_a_name_is_enough_the_web_ui_logs_users_in(tmp_path: Path) -> None:
    key = (WEB_UI.key, WEB_UI.secret)
    async with running_api(tmp_path / "data", login="simple") as api:
        assert (await api.call("login.supported_modes", auth=None))["basic"]["enabled"] is False
        new = {"name": "Eve Online", "email": "x@test.ai", "company": "of another build", "given_name": "Eve"}
        eve = (await api.call("auth.create_user", new, auth=key))["id"]
        shown = (await api.call("users.get_all", auth=key))["users"]
        assert {user["name"] for user in shown} == {"admin", "Eve Online"}

        token = (await log_in(api, *key, headers={"X-Clearml-Impersonate-As": eve}))["token"]
        assert ((await who(api, token))["id"], (await who(api, token))["role"]) == (eve, "user")

        admin = next(user["id"] for user in shown if user["name"] == "admin")
        answer = await log_in(api, *key, headers={"X-Clearml-Impersonate-As": admin}, expect=400)
        assert answer["meta"]["result_subcode"] == 6
        await api.call("auth.create_user", {"name": "root", "role": "admin"}, auth=key, expect=403)
        for endpoint, request in (
            ("tasks.get_all", {}),
            ("users.delete", {"user": eve}),
            ("auth.create_credentials", {}),
        ):
            await api.call(endpoint, request, auth=key, expect=403)
        assert (await api.raw("GET", "/files/x", auth=key)).status_code == 403
        metrics = await api.raw("GET", "/v1/training_projects/p/jobs/j/metrics", auth=key)
        assert metrics.status_code == 403
    async with running_api(tmp_path / "data") as api:
        await log_in(api, *key, expect=401)
        await who(api, token, expect=401)
