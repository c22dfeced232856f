"""auth.*, through the whole server."""

from __future__ import annotations

import jwt
import pytest

from tests.harness import Api, bearer, new_user

pytestmark = pytest.mark.anyio


def claims(token: str) -> dict[str, object]:
    """What a client reads of a token, unverified as clients do."""
    read: dict[str, object] = jwt.decode(token, options={"verify_signature": False})
    return read


async def test_login_answers_a_token_that_logs_in(api: Api) -> None:
    token = (await api.call("auth.login"))["token"]

    again = await api.call("auth.login", auth=None, headers=bearer(token))
    user = (await api.call("users.get_current_user", auth=None, headers=bearer(token)))["user"]

    assert user["name"] == "admin"
    assert claims(again["token"])["identity"] == claims(token)["identity"]


async def test_login_as_the_sdk_does_it(api: Api) -> None:
    response = await api.raw("GET", "/auth.login?expiration_sec=7200")

    read = claims(response.json()["data"]["token"])
    assert isinstance(read["exp"], int)
    assert isinstance(read["iat"], int)
    assert read["exp"] - read["iat"] == 7200
    assert (read["api_version"], read["server_version"], read["feature_set"]) == ("2.34", "2.3.0", "basic")


@pytest.mark.parametrize(
    ("asked", "granted"), [(None, 30 * 86400), (60, 3600), (-5, 3600), (0, 3600), (2**62, 365 * 86400)]
)
async def test_tokens_live_an_hour_to_a_year(api: Api, asked: int | None, granted: int) -> None:
    read = claims((await api.call("auth.login", {"expiration_sec": asked}))["token"])

    assert isinstance(read["exp"], int)
    assert isinstance(read["iat"], int)
    assert read["exp"] - read["iat"] == granted


async def test_login_sets_the_cookie_of_the_web_ui(api: Api) -> None:
    response = await api.raw("POST", "/auth.login", json={})

    cookie = response.headers["set-cookie"]
    assert cookie.startswith(f"clearml_token_basic={response.json()['data']['token']};")
    for attribute in ("HttpOnly", "SameSite=Lax", "Path=/", f"Max-Age={30 * 86400}"):
        assert attribute in cookie
    by_cookie = {"cookie": cookie.partition(";")[0], "origin": "http://testserver"}
    assert (await api.call("users.get_current_user", auth=None, headers=by_cookie))["user"]["name"] == "admin"


async def test_login_needs_credentials(api: Api) -> None:
    answer = await api.call("auth.login", auth=None, expect=401)
    assert answer["meta"]["result_subcode"] == 20
    answer = await api.call("auth.login", auth=(api.auth[0], "wrong"), expect=401)
    assert answer["meta"]["result_subcode"] == 22


async def test_login_is_noted_on_the_key(api: Api) -> None:
    [before] = (await api.call("auth.get_credentials"))["credentials"]
    assert (before["access_key"], before["last_used"]) == (api.auth[0], None)

    await api.call("auth.login", headers={"x-clearml-worker": "laptop"})

    [after] = (await api.call("auth.get_credentials"))["credentials"]
    assert after["last_used"] > "2020"
    assert after["last_used_from"] == "laptop"


async def test_an_admin_may_log_in_as_another_user(api: Api) -> None:
    eve, _ = await new_user(api, "eve")

    token = (await api.call("auth.login", headers={"x-clearml-impersonate-as": eve}))["token"]

    user = (await api.call("users.get_current_user", auth=None, headers=bearer(token)))["user"]
    assert (user["name"], user["role"]) == ("eve", "user")
    unknown = await api.call("auth.login", headers={"x-clearml-impersonate-as": "nobody"}, expect=400)
    assert unknown["meta"]["result_subcode"] == 6


async def test_others_may_not_log_in_as_another_user(api: Api) -> None:
    eve, key = await new_user(api, "eve")
    admin = (await api.call("users.get_current_user"))["user"]["id"]

    await api.call("auth.login", headers={"x-clearml-impersonate-as": eve}, auth=key)
    await api.call("auth.login", headers={"x-clearml-impersonate-as": admin}, auth=key, expect=400)


async def test_a_new_login_shows_what_the_user_has_become(api: Api) -> None:
    eve, key = await new_user(api, "eve")
    token = (await api.call("auth.login", auth=key))["token"]

    await api.call("auth.edit_user", {"user": eve, "role": "admin"})
    renewed = (await api.call("auth.login", auth=None, headers=bearer(token)))["token"]
    await api.call("auth.create_user", {"name": "adam"}, auth=None, headers=bearer(renewed))

    await api.call("users.delete", {"user": eve})
    answer = await api.call("auth.login", auth=None, headers=bearer(token), expect=401)
    assert answer["meta"]["result_subcode"] == 30


async def test_keys_are_made_labelled_and_revoked(api: Api) -> None:
    made = (await api.call("auth.create_credentials", {"label": "laptop"}))["credentials"]
    key = (made["access_key"], made["secret_key"])
    assert made["label"] == "laptop"
    await api.call("auth.login", auth=key)

    assert await api.call("auth.edit_credentials", {"access_key": key[0], "label": "old laptop"}) == {"updated": 1}
    listed = {shown["access_key"]: shown for shown in (await api.call("auth.get_credentials"))["credentials"]}
    assert listed[key[0]]["label"] == "old laptop"
    assert key[1] not in str(listed)

    assert await api.call("auth.revoke_credentials", {"access_key": key[0]}) == {"revoked": 1}
    await api.call("auth.login", auth=key, expect=401)
    await api.call("auth.revoke_credentials", {"access_key": key[0]}, expect=400)


async def test_users_have_their_own_keys_only(api: Api) -> None:
    _, eve = await new_user(api, "eve")

    shown = (await api.call("auth.get_credentials", auth=eve))["credentials"]
    assert [key["access_key"] for key in shown] == [eve[0]]
    for action in ("edit_credentials", "revoke_credentials"):
        await api.call(f"auth.{action}", {"access_key": api.auth[0], "label": "mine"}, auth=eve, expect=400)
    await api.call("auth.login", auth=api.auth)


async def test_admins_add_users(api: Api) -> None:
    request = {"name": "eve", "given_name": "Eve", "email": "eve@example.com", "company": ""}
    eve = (await api.call("auth.create_user", request))["id"]

    user = (await api.call("users.get_by_id", {"user": eve}))["user"]
    assert (user["name"], user["given_name"], user["role"]) == ("eve", "Eve", "user")
    again = await api.call("auth.create_user", request, expect=400)
    assert "eve" in again["meta"]["result_msg"]
    other = await api.call("auth.create_user", {"name": "adam", "company": "another"}, expect=400)
    assert other["meta"]["error_data"] == {"field": "company"}


async def test_admins_change_roles_but_not_their_own(api: Api) -> None:
    eve, key = await new_user(api, "eve")
    await api.call("auth.create_user", {"name": "adam"}, auth=key, expect=403)

    assert await api.call("auth.edit_user", {"user": eve, "role": "admin"}) == {
        "updated": 1,
        "fields": {"role": "admin"},
    }

    await api.call("auth.create_user", {"name": "adam"}, auth=key)
    admin = (await api.call("users.get_current_user"))["user"]["id"]
    await api.call("auth.edit_user", {"user": admin, "role": "user"}, expect=400)
    await api.call("auth.edit_user", {"user": "nobody", "role": "user"}, expect=400)


async def test_a_token_ends_with_the_access_key_it_came_from(api: Api) -> None:
    made = (await api.call("auth.create_credentials"))["credentials"]
    key = (made["access_key"], made["secret_key"])
    token = (await api.call("auth.login", auth=key))["token"]
    renewed = (await api.call("auth.login", auth=None, headers=bearer(token)))["token"]
    await api.call("users.get_current_user", auth=None, headers=bearer(token))
    await api.call("auth.revoke_credentials", {"access_key": made["access_key"]})
    for ended in (token, renewed):
        headers = bearer(ended)
        answer = await api.call("users.get_current_user", auth=None, headers=headers, expect=401)
        assert answer["meta"]["result_subcode"] == 30


@pytest.mark.own_api
async def test_an_admin_acts_for_others_on_any_call(api: Api) -> None:
    eve, key = await new_user(api, "eve")
    as_eve = {"x-clearml-impersonate-as": eve}
    task = (await api.call("tasks.create", {"name": "t", "type": "training"}, headers=as_eve))["id"]
    assert (await api.call("tasks.get_by_id", {"task": task}))["task"]["user"] == eve
    assert (await api.call("users.get_current_user", headers=as_eve))["user"]["id"] == eve
    keys = (await api.call("auth.get_credentials", headers=as_eve))["credentials"]
    assert [shown["access_key"] for shown in keys] == [key[0]]
    await api.call("auth.create_user", {"name": "adam"}, headers=as_eve, expect=403)
    assert (await api.raw("PUT", "/files/x", content=b"1", headers=as_eve)).status_code == 200

    from apiserver.services.access import credentials

    foreign, _ = await credentials.create_user(api.backend.documents, "another company", "mallory")
    for headers, auth in (
        ({"x-clearml-impersonate-as": foreign["id"]}, api.auth),
        ({"x-clearml-impersonate-as": "nobody"}, api.auth),
        ({"x-clearml-impersonate-as": "nobody"}, key),
    ):
        answer = await api.call("tasks.get_all", headers=headers, auth=auth, expect=400)
        assert answer["meta"]["result_subcode"] == 6
        assert (await api.raw("GET", "/files/x", headers=headers, auth=auth)).status_code == 400


async def test_tokens_for_others_are_got_by_admins(api: Api) -> None:
    eve, key = await new_user(api, "eve")
    admin = (await api.call("users.get_current_user"))["user"]["id"]
    company = api.company
    token = (await api.call("auth.get_token_for_user", {"user": eve, "company": company, "expiration_sec": 7200}))[
        "token"
    ]
    assert (await api.call("users.get_current_user", auth=None, headers=bearer(token)))["user"]["id"] == eve
    assert (await api.call("auth.get_token_for_user", {"user": eve}, auth=key))["token"]
    await api.call("auth.get_token_for_user", {"user": admin}, auth=key, expect=403)
    for request in ({"user": "nobody"}, {"user": eve, "company": "another"}):
        answer = await api.call("auth.get_token_for_user", request, expect=400)
        assert answer["meta"]["result_subcode"] == 301


async def test_a_token_got_by_another_ends_with_that_ones_login(api: Api) -> None:
    eve, key = await new_user(api, "eve")
    first = (await api.call("auth.login", auth=key))["token"]
    got = await api.call("auth.get_token_for_user", {"user": eve}, auth=None, headers=bearer(first))
    await api.call("auth.logout", auth=None, headers=bearer(first))
    await api.call("users.get_current_user", auth=None, headers=bearer(got["token"]), expect=401)


@pytest.mark.own_api
async def test_tokens_are_validated(api: Api) -> None:
    from apiserver.services.access import credentials

    eve, key = await new_user(api, "eve")
    token = (await api.call("auth.login", auth=key))["token"]
    company = api.company
    assert await api.call("auth.validate_token", {"token": token}) == {"valid": True, "user": eve, "company": company}
    for bad in ("x", token + "x"):
        assert (await api.call("auth.validate_token", {"token": bad}))["valid"] is False
    _, made = await credentials.create_user(api.backend.documents, "another company", "mallory")
    answer = await api.call("auth.validate_token", {"token": token}, auth=(made.key, made.secret))
    assert answer == {"valid": False, "msg": "Invalid token (it is not of this company)"}
    await api.call("users.delete", {"user": eve})
    assert (await api.call("auth.validate_token", {"token": token}))["valid"] is False


async def test_what_a_role_has_become_counts_at_once(api: Api) -> None:
    eve, key = await new_user(api, "eve", "admin")
    token = (await api.call("auth.login", auth=key))["token"]
    await api.call("auth.create_user", {"name": "one"}, auth=None, headers=bearer(token))
    await api.call("auth.edit_user", {"user": eve, "role": "user"})
    await api.call("auth.create_user", {"name": "two"}, auth=None, headers=bearer(token), expect=403)


async def test_a_login_without_a_worker_is_noted_by_its_address(api: Api) -> None:
    await api.call("auth.login")
    [key] = (await api.call("auth.get_credentials"))["credentials"]
    assert key["last_used_from"] == "127.0.0.1"
