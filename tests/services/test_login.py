"""login.*, through the whole server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness import Api, bearer, running_api

pytestmark = pytest.mark.anyio


async def test_anonymous_callers_learn_how_to_log_in(api: Api) -> None:
    modes = await api.call("login.supported_modes", auth=None)
    assert modes["authenticated"] is False
    assert modes["basic"] == {"enabled": True, "guest": {"enabled": False}}
    assert await api.call("auth.fixed_users_mode", auth=None) == {**modes["basic"], "server_errors": {}}


async def test_callers_learn_that_they_are_logged_in(api: Api) -> None:
    assert (await api.call("login.supported_modes"))["authenticated"] is True


async def test_a_stale_cookie_is_no_error_on_the_login_page(api: Api) -> None:
    stale = {"cookie": "clearml_token_basic=stale"}
    assert (await api.call("login.supported_modes", auth=None, headers=stale))["authenticated"] is False


@pytest.mark.parametrize("cookie", [None, "clearml_token_basic=stale"])
async def test_logout_clears_the_cookie(api: Api, cookie: str | None) -> None:
    headers = {"cookie": cookie, "origin": "http://testserver"} if cookie else {}
    response = await api.raw("POST", "/login.logout", json={}, auth=None, headers=headers)

    assert response.status_code == 200
    assert response.headers["set-cookie"].startswith("clearml_token_basic=;")
    assert "Max-Age=0" in response.headers["set-cookie"]


@pytest.mark.parametrize("action", ["login.logout", "auth.logout"])
async def test_logout_ends_the_login(api: Api, action: str) -> None:
    token, other = [(await api.call("auth.login"))["token"] for _ in range(2)]
    api.client.cookies.clear()
    renewed = (await api.call("auth.login", auth=None, headers=bearer(token)))["token"]
    for one in (token, renewed, other):
        await api.call("users.get_current_user", auth=None, headers=bearer(one))

    assert await api.call(action, auth=None, headers=bearer(token)) == {}

    for ended in (token, renewed):
        answer = await api.call("users.get_current_user", auth=None, headers=bearer(ended), expect=401)
        assert answer["meta"]["result_subcode"] == 30
        assert (await api.call("auth.validate_token", {"token": ended}))["valid"] is False
    await api.call("users.get_current_user", auth=None, headers=bearer(other))
    await api.call("users.get_current_user")


@pytest.mark.own_api
async def test_the_logins_of_long_ago_are_forgotten(api: Api) -> None:
    documents = api.backend.documents
    await documents.insert("ended_sessions", [{"id": "old", "company": "c", "expires": "2020"}])
    for _ in range(2):
        token = (await api.call("auth.login"))["token"]
        await api.call("auth.logout", auth=None, headers=bearer(token))
    kept = await documents.find("ended_sessions", {})
    assert len(kept) == 2
    assert all(session["id"] != "old" for session in kept)


async def test_no_other_page_logs_anybody_out(api: Api) -> None:
    token = (await api.call("auth.login"))["token"]
    api.client.cookies.clear()
    for headers in ({"origin": "http://evil"}, {}):
        cookie = {"cookie": f"clearml_token_basic={token}", **headers}
        for action in ("login.logout", "auth.logout"):
            response = await api.raw("POST", f"/{action}", json={}, auth=None, headers=cookie)
            assert response.status_code == 403
            assert "set-cookie" not in response.headers
    await api.call("users.get_current_user", auth=None, headers=bearer(token))


FORM = {"content-type": "application/x-www-form-urlencoded", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("GET", {}),
        ("GET", {"sec-fetch-site": "none", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}),
        ("POST", {"origin": "http://evil"}),
        ("POST", {"origin": "null"}),
        ("POST", {"sec-fetch-site": "cross-site"}),
        ("POST", {"origin": "http://testserver", "sec-fetch-site": "same-origin", **FORM}),
    ],
)
async def test_no_link_and_no_other_page_gives_a_browser_a_cookie_or_takes_it_away(
    api: Api, method: str, headers: dict[str, str]
) -> None:
    login = await api.raw(method, "/auth.login", headers=headers)
    assert login.json()["data"]["token"]
    logout = await api.raw(method, "/login.logout", headers=headers, auth=None)
    assert "set-cookie" not in {*login.headers, *logout.headers}


@pytest.mark.parametrize(
    ("headers", "secure"),
    [
        ({}, False),
        ({"x-forwarded-proto": "https"}, True),
        ({"origin": "https://testserver"}, True),
        ({"origin": "http://testserver"}, False),
    ],
)
async def test_a_cookie_that_came_by_tls_goes_by_tls_only(api: Api, headers: dict[str, str], secure: bool) -> None:
    response = await api.raw("POST", "/auth.login", json={}, headers=headers)
    assert ("; Secure" in response.headers["set-cookie"]) is secure


async def test_a_cookie_of_a_server_that_speaks_tls_goes_by_tls_only(tmp_path: Path) -> None:
    async with running_api(tmp_path / "data", tls_cert="a.pem", tls_key="a.key") as api:
        response = await api.raw("POST", "/auth.login", json={})
    assert response.headers["set-cookie"].endswith("; Secure")
