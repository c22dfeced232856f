"""login.*, through the whole server."""

from __future__ import annotations

import pytest

from tests.harness import Api

pytestmark = pytest.mark.anyio


async def test_anonymous_callers_learn_how_to_log_in(api: Api) -> None:
    modes = await api.call("login.supported_modes", auth=None)
    assert modes["authenticated"] is False
    assert modes["basic"] == {"enabled": True, "guest": {"enabled": False}}


async def test_callers_learn_that_they_are_logged_in(api: Api) -> None:
    assert (await api.call("login.supported_modes"))["authenticated"] is True


async def test_a_stale_cookie_is_no_error_on_the_login_page(api: Api) -> None:
    stale = {"cookie": "clearml_token_basic=stale"}
    assert (await api.call("login.supported_modes", auth=None, headers=stale))["authenticated"] is False


@pytest.mark.parametrize("cookie", [None, "clearml_token_basic=stale"])
async def test_logout_clears_the_cookie(api: Api, cookie: str | None) -> None:
    headers = {"cookie": cookie} if cookie else {}
    response = await api.raw("POST", "/login.logout", json={}, auth=None, headers=headers)

    assert response.status_code == 200
    assert response.headers["set-cookie"].startswith("clearml_token_basic=;")
    assert "Max-Age=0" in response.headers["set-cookie"]
