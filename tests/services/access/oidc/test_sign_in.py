"""Signing in at a provider: as it should go, and every way in which it should not."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from aiohttp import web

from apiserver.operating.audit.reading import Wanted, read
from apiserver.rpc.auth import TOKEN_COOKIE
from apiserver.server.bounds import Bounds
from apiserver.services.access.attempts import OF_ADDRESS, OF_NAME
from apiserver.services.access.oidc import begun, provider
from apiserver.services.access.oidc.begun import COOKIE
from apiserver.services.access.oidc.provider import ProviderBounds
from tests.harness import Api, running_api, wait_until
from tests.services.access.conftest import FAILURES_STAY
from tests.services.access.oidc.conftest import OWN, Browser, settings_of
from tests.services.access.oidc.liar import (
    SECRET,
    Handler,
    Key,
    Liar,
    elsewhere,
    failing,
    hanging_up,
    hugely,
    slowly,
    with_a_page,
)

pytestmark = pytest.mark.anyio

CONFIGURATION = "/.well-known/openid-configuration"
PATHS = (CONFIGURATION, "/keys", "/token")


async def refused(browser: Browser, status: int = 401, **changed: Any) -> str:
    """The message with which the end of a sign-in is refused; nobody is signed in then."""
    answer = await browser.finish(**changed)
    assert (answer.status_code, TOKEN_COOKIE in answer.headers.get("set-cookie", "")) == (status, False)
    assert not await browser.is_signed_in()
    return str(answer.json()["meta"]["result_msg"])


# --- as it should go --------------------------------------------------------------------------------


async def test_somebody_signs_in_and_gets_the_cookie_of_every_sign_in(browser: Browser) -> None:
    answer = await browser.sign_in("/projects/*?q=mine")
    assert answer.json()["data"] == {"next": "/projects/*?q=mine"}
    [cookie] = [said for said in answer.headers.get_list("set-cookie") if said.startswith(TOKEN_COOKIE)]
    assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= set(cookie.split("; "))
    assert (await browser.user())["name"] == "ada"


async def test_the_audit_log_tells_who_signed_in_and_was_refused(browser: Browser, api: Api) -> None:
    await browser.sign_in()
    await browser.go()
    await browser.finish(code="a code of the test", state="forged")
    folder = api.backend.settings.data / "audit"

    def told() -> bool:
        found = [line for line in read(folder, Wanted()) if "provider_login" in str(line)]
        return [(line["code"], line["name"], line["key"]) for line in found] == [
            (401, "ada", "provider"),
            (200, "ada", "provider"),
        ]

    wait_until(told)
    assert "a code of the test" not in "".join(map(str, read(folder, Wanted())))


async def test_the_same_person_is_the_same_user_whatever_their_name_is_then(browser: Browser, other: Browser) -> None:
    await browser.sign_in()
    browser.liar.person |= {"preferred_username": "countess", "email": "countess@example.org"}
    await other.sign_in()
    assert (await other.user())["id"] == (await browser.user())["id"]


async def test_the_login_page_learns_what_the_provider_is_called(api: Api) -> None:
    modes = await api.call("login.supported_modes", auth=None)
    assert modes["provider"] == {"name": "Lab ID"}


async def test_without_a_provider_there_is_none(tmp_path: Path) -> None:
    async with running_api(tmp_path / "data") as api:
        assert (await api.call("login.supported_modes", auth=None))["provider"] == {}
        for endpoint, body in (("begin", {}), ("finish", {"state": "x", "code": "y"})):
            name = f"auth.{endpoint}_provider_login"
            assert (await api.call(name, body, auth=None, headers=OWN, expect=400))["meta"]["result_subcode"] == 12


async def test_the_cookie_of_a_beginning_goes_to_its_end_alone_and_tells_nothing(browser: Browser) -> None:
    answer = await browser.begin("/search")
    cookie = answer.headers["set-cookie"]
    assert cookie.endswith("; Path=/auth.finish_provider_login; HttpOnly; SameSite=Strict")
    asked = parse_qs(urlsplit(answer.json()["data"]["url"]).query)
    for told in ("state", "nonce", "code_challenge"):
        assert asked[told][0] not in cookie
    answer = await browser.ask("auth.begin_provider_login", {}, {"origin": "https://testserver"})
    assert answer.headers["set-cookie"].endswith("; Secure")
    assert parse_qs(urlsplit(answer.json()["data"]["url"]).query)["redirect_uri"] == ["https://testserver/sign-in"]


async def test_new_keys_of_the_provider_are_found(browser: Browser, other: Browser, api: Api) -> None:
    await browser.sign_in()
    browser.liar.keys = [Key("second"), *browser.liar.keys]
    browser.client.cookies.clear()
    await browser.go()
    assert "does not prove" in await refused(browser)  # five seconds have not passed since the last look
    _provider_of(api)._keys._clock = lambda: time.monotonic() + provider.PAUSE_SECONDS + 1
    assert (await other.sign_in()).status_code == 200
    assert other.liar.asked["/keys"] == 2


async def test_signing_out_here_leads_to_signing_out_there(browser: Browser) -> None:
    await browser.sign_in()
    answer = await browser.ask("login.logout", {})
    address = urlsplit(answer.json()["data"]["url"])
    asked = parse_qs(address.query)
    assert f"{address.scheme}://{address.netloc}{address.path}" == f"{browser.liar.issuer}/end"
    assert asked["post_logout_redirect_uri"] == ["http://testserver/sign-in"]
    claims = jwt.decode(asked["id_token_hint"][0], options={"verify_signature": False})
    assert claims["sub"] == "8f2a"
    assert not await browser.is_signed_in()


async def test_signing_out_works_while_the_provider_does_not(browser: Browser, api: Api) -> None:
    await browser.sign_in()
    _provider_of(api)._addresses._found = None
    browser.liar.answer[CONFIGURATION] = failing
    answer = await browser.ask("login.logout", {})
    assert (answer.status_code, answer.json()["data"]) == (200, {})
    assert not await browser.is_signed_in()


@pytest.mark.parametrize("settings", [{"oidc_session_seconds": 7200, "token_lifetime": 30 * 86400}])
async def test_a_session_ends_when_the_settings_say_and_is_not_renewed(browser: Browser, api: Api) -> None:
    await browser.sign_in()
    token = browser.client.cookies[TOKEN_COOKIE]
    assert 7100 < _seconds_of(token) <= 7200
    again = await api.call(
        "auth.login", {"expiration_sec": 86400}, auth=None, headers={"authorization": f"Bearer {token}"}
    )
    assert _seconds_of(again["token"]) <= 7200


# --- who asks, and from where -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [{}, {"origin": "http://evil.example"}, {"origin": "null"}, {**OWN, "sec-fetch-site": "cross-site"}],
)
async def test_only_pages_of_the_server_begin_and_finish(browser: Browser, headers: Mapping[str, str]) -> None:
    answer = await browser.ask("auth.begin_provider_login", {}, headers)
    assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)
    await browser.go()
    answer = await browser.ask("auth.finish_provider_login", browser.came_back, headers)
    assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)
    assert (await browser.finish()).status_code == 200


async def test_nobody_is_signed_in_by_what_somebody_else_began(browser: Browser, other: Browser) -> None:
    await browser.go()
    other.came_back = browser.came_back
    assert "not begun in this browser" in await refused(other)
    await other.go()
    other.came_back = browser.came_back
    assert "not begun in this browser" in await refused(other)
    assert other.liar.asked["/token"] == 0


async def test_a_code_and_a_state_work_once(browser: Browser, api: Api) -> None:
    await browser.go()
    cookie = _cookie_of(browser)
    assert (await browser.finish()).status_code == 200
    for forgets in (True, False):
        browser.client.cookies.clear()
        browser.liar.forgets_codes = forgets
        if not forgets:
            await browser.go()
            cookie = _cookie_of(browser)
            assert (await browser.finish()).status_code == 200
            browser.client.cookies.clear()
        assert "not begun in this browser" in await refused(browser)
        browser.client.cookies.set(COOKIE, cookie, path="/auth.finish_provider_login")
        assert ("finished before" if not forgets else "does not prove") in await refused(browser)


@pytest.mark.parametrize("change", ["forged", "old", "long", "empty", "other origin"])
async def test_a_cookie_that_this_server_did_not_just_make_counts_for_nothing(
    browser: Browser, api: Api, change: str
) -> None:
    secret = api.backend.settings.token_secret
    own = begun.begin("x" * 40 if change == "forged" else secret, "http://testserver", "/")
    if change == "other origin":
        own = begun.begin(secret, "http://elsewhere", "/")
    value = {"long": own.cookie() + "a" * 5000, "empty": "", "old": own.cookie(-1)}.get(change, own.cookie())
    browser.client.cookies.set(COOKIE, value, path="/auth.finish_provider_login")
    browser.came_back = {"code": "code", "state": own.state}
    assert "not begun in this browser" in await refused(browser)
    assert browser.liar.asked["/token"] == 0


async def test_no_other_token_of_the_server_is_such_a_cookie(browser: Browser, api: Api) -> None:
    token = (await api.call("auth.login"))["token"]
    browser.client.cookies.set(COOKIE, token, path="/auth.finish_provider_login")
    browser.came_back = {"code": "code", "state": "state"}
    assert "not begun in this browser" in await refused(browser)
    browser.client.cookies.clear()
    await browser.go()
    by_cookie = {"authorization": f"Bearer {_cookie_of(browser)}"}
    await api.call("users.get_current_user", auth=None, headers=by_cookie, expect=401)


async def test_callbacks_that_nobody_began_ask_nobody_and_count_for_nothing(browser: Browser, other: Browser) -> None:
    await browser.go()
    for _ in range(OF_ADDRESS.burst + 5):
        assert (await other.finish(code="code", state=secrets.token_hex(8))).status_code == 401
    assert (await browser.finish(state=secrets.token_hex(8))).status_code == 401
    assert browser.liar.asked["/token"] == 0
    assert (await browser.finish()).status_code == 200


@pytest.mark.bounds(FAILURES_STAY)
async def test_guesses_of_a_code_are_slowed_down_for_who_began_alone(browser: Browser, other: Browser) -> None:
    await browser.go()
    cookie, statuses = _cookie_of(browser), []
    for _ in range(OF_NAME.burst + 5):
        browser.client.cookies.set(COOKIE, cookie, path="/auth.finish_provider_login")
        statuses.append((await browser.finish(code=secrets.token_hex(8))).status_code)
    assert statuses == [401] * OF_NAME.burst + [429] * 5
    assert browser.liar.asked["/token"] == OF_NAME.burst
    assert (await other.sign_in()).status_code == 200


@pytest.mark.bounds(FAILURES_STAY)
async def test_where_somebody_has_signed_in_nobody_waits_for_what_others_did(browser: Browser, other: Browser) -> None:
    await browser.sign_in()
    for _ in range(OF_ADDRESS.burst + 5):
        await other.go()
        assert (await other.finish(code=secrets.token_hex(8))).status_code == 401
    assert (await browser.sign_in()).status_code == 200


@pytest.mark.test
@pytest.mark.bounds(FAILURES_STAY)
async def test_elsewhere_guesses_of_codes_are_slowed_down(other: Browser) -> None:
    statuses = []
    for _ in range(OF_ADDRESS.burst + 1):
        await other.go()
        statuses.append((await other.finish(code=secrets.token_hex(8))).status_code)
    assert statuses == [401] * OF_ADDRESS.burst + [429]


async def test_failures_of_the_provider_count_for_nobody(browser: Browser, other: Browser) -> None:
    browser.liar.answer["/token"] = failing
    for _ in range(OF_ADDRESS.burst + 5):
        assert (await browser.sign_in()).status_code == 503
    del browser.liar.answer["/token"]
    assert (await other.sign_in()).status_code == 200


async def test_beginning_a_thousand_times_asks_the_provider_once_and_keeps_nothing(browser: Browser, api: Api) -> None:
    before = await api.backend.documents.collections()
    for _ in range(200):
        assert (await browser.begin()).status_code == 200
    assert browser.liar.asked == {CONFIGURATION: 1}
    assert await api.backend.documents.collections() == before


# --- what the provider says -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claims", "header"),
    [
        ({"iss": "https://evil.example"}, {}),
        ({"aud": "another client"}, {}),
        ({"nonce": "another"}, {}),
        ({"nonce": None}, {}),
        ({"exp": 1}, {}),
        ({"at_hash": "AAAA"}, {}),
        ({}, {"kid": "unknown"}),
        ({}, {"alg": "HS256"}),
        ({}, {"alg": "none"}),
    ],
)
async def test_a_token_that_proves_nothing_signs_nobody_in(
    browser: Browser, claims: dict[str, Any], header: dict[str, Any]
) -> None:
    browser.liar.claims, browser.liar.header = claims, header
    if header.get("alg") == "HS256":
        browser.liar.signing = SECRET.encode().ljust(32)
    await browser.go()
    assert "does not prove who you are" in await refused(browser)
    browser.liar.claims, browser.liar.header, browser.liar.signing = {}, {}, None
    assert (await browser.sign_in()).status_code == 200


async def test_what_the_provider_refuses_is_said_in_words_of_ours(browser: Browser) -> None:
    for error, words in (("access_denied", "did not let you in"), ("<b>call 555</b>", "did not sign you in")):
        await browser.go()
        said = await refused(browser, code=None, error=error)
        assert words in said
        assert "555" not in said


async def test_another_provider_cannot_hand_over_its_code(browser: Browser) -> None:
    await browser.go()
    assert "does not prove" in await refused(browser, iss="https://evil.example")
    await browser.go()
    assert (await browser.finish(iss=browser.liar.issuer)).status_code == 200


async def test_a_provider_that_says_who_it_is_says_so_always(browser: Browser) -> None:
    browser.liar.said["authorization_response_iss_parameter_supported"] = True
    await browser.go()
    assert "does not prove" in await refused(browser)


async def test_userinfo_about_somebody_else_is_refused(browser: Browser) -> None:
    del browser.liar.person["preferred_username"], browser.liar.person["email"]
    browser.liar.userinfo = {"sub": "somebody else", "preferred_username": "eve"}
    await browser.go()
    assert "does not prove" in await refused(browser)


@pytest.mark.parametrize(
    "said",
    [
        {"issuer": "https://evil.example"},
        {"issuer": None},
        {"token_endpoint": "http://id.example.org/token"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"jwks_uri": None},
        {"token_endpoint": 5},
    ],
)
async def test_addresses_that_cannot_be_trusted_are_not_used(browser: Browser, said: dict[str, Any]) -> None:
    browser.liar.said = said
    answer = await browser.begin()
    assert (answer.status_code, "set-cookie" in answer.headers) == (503, False)
    assert "does not answer as it should" in answer.json()["meta"]["result_msg"]


# --- a provider that fails --------------------------------------------------------------------------


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("fault", [slowly, hugely, elsewhere, failing, with_a_page, hanging_up])
@pytest.mark.bounds(Bounds(provider=ProviderBounds(answer_seconds=0.3)))
async def test_a_provider_that_fails_is_said_in_words(browser: Browser, path: str, fault: Handler) -> None:
    browser.liar.answer[path] = fault
    answer = await browser.begin() if path == CONFIGURATION else await browser.sign_in()
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert "does not answer as it should" in answer.json()["meta"]["result_msg"]
    assert f"{path}/elsewhere" not in browser.liar.asked


@pytest.mark.bounds(Bounds(provider=ProviderBounds(patience_seconds=0.3)))
async def test_nobody_waits_longer_than_for_all_the_provider_may_take(browser: Browser) -> None:
    browser.liar.answer["/token"] = slowly
    assert (await browser.sign_in()).status_code == 503


@pytest.mark.bounds(Bounds(provider=ProviderBounds(waiting=1)))
async def test_while_too_many_codes_are_exchanged_others_are_told_to_come_back(
    browser: Browser, other: Browser
) -> None:
    asked, goes_on = asyncio.Event(), asyncio.Event()

    async def waiting(request: web.Request) -> web.StreamResponse:
        asked.set()
        await goes_on.wait()
        return web.Response(status=500)

    browser.liar.answer["/token"] = waiting
    await other.go()
    async with asyncio.TaskGroup() as both:
        first = both.create_task(browser.sign_in())
        await asked.wait()
        assert (await other.finish()).status_code == 429
        goes_on.set()
    assert first.result().status_code == 503
    del browser.liar.answer["/token"]
    assert (await other.sign_in()).status_code == 200


async def test_a_provider_that_is_down_is_asked_once_in_a_while_and_others_sign_in(browser: Browser, api: Api) -> None:
    browser.liar.answer[CONFIGURATION] = failing
    assert {(await browser.begin()).status_code for _ in range(50)} == {503}
    assert browser.liar.asked[CONFIGURATION] == 1
    await api.call("auth.login")
    _provider_of(api)._addresses._clock = lambda: time.monotonic() + provider.PAUSE_SECONDS + 1
    del browser.liar.answer[CONFIGURATION]
    assert (await browser.sign_in()).status_code == 200


async def test_a_server_starts_without_its_provider(tmp_path: Path, liar: Liar) -> None:
    settings = {**settings_of(liar), "oidc_issuer": "http://127.0.0.1:1"}
    async with running_api(tmp_path / "data", **settings) as api:
        await api.call("auth.login")
        await api.call("auth.begin_provider_login", auth=None, headers=OWN, expect=503)


async def test_no_secret_of_the_provider_is_in_the_log(browser: Browser, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    browser.liar.claims = {"aud": "another"}
    await browser.sign_in()
    browser.liar.answer["/token"] = failing
    await browser.sign_in()
    assert "nobody can sign in at the provider" in caplog.text
    assert SECRET not in caplog.text
    assert browser.came_back["code"] not in "".join(
        record.getMessage() for record in caplog.records if record.name.startswith("apiserver")
    )


def _cookie_of(browser: Browser) -> str:
    return next(cookie.value or "" for cookie in browser.client.cookies.jar if cookie.name == COOKIE)


def _provider_of(api: Api) -> provider.Provider:
    assert api.backend.provider is not None
    return api.backend.provider


def _seconds_of(token: str) -> float:
    """For how long a token was valid when it was made."""
    claims = jwt.decode(token, options={"verify_signature": False})
    return float(claims["exp"] - claims["iat"])
