"""Signing in at a real provider of OpenID Connect, in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from apiserver.rpc.auth import TOKEN_COOKIE
from apiserver.services.access.oidc.begun import COOKIE
from apiserver.settings.values import GroupRole
from tests.harness import ADMIN_KEY, ADMIN_SECRET, Served, free_ports, served
from tests.pages.browser import DESKTOP, Faults, KeptBrowser, opened_page, other_browser, require_pages
from tests.provider.running import CLIENT, SECRET, running_provider

pytestmark = pytest.mark.check

PEOPLE: dict[str, dict[str, Any]] = {
    "ada": {"preferred_username": "ada", "groups": ["people", "bosses"]},
    "grace": {"preferred_username": "Grace", "groups": ["people"]},
    "mallory": {"preferred_username": "mallory", "groups": ["strangers"]},
}


@dataclass(slots=True)
class Provider:
    """The provider, which can be stopped and started again. It remembers nobody then."""

    port: int
    redirect: str
    key: Path
    running: ExitStack

    def start(self) -> None:
        self.running.enter_context(running_provider(self.port, self.redirect, PEOPLE, self.key))

    def stop(self) -> None:
        self.running.close()


@pytest.fixture(scope="module")
def browser(kept_browser: KeptBrowser) -> Iterator[Browser]:
    """One in which the server and the provider have processes of their own, and no other page has been."""
    with other_browser(kept_browser.running()) as running:
        yield running


@pytest.fixture(scope="module")
def port() -> int:
    return free_ports(1)[0]


@pytest.fixture(scope="module")
def lab(port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server whose people sign in at the provider. It starts before the provider does."""
    require_pages()
    settings: dict[str, Any] = {
        "oidc_issuer": f"http://127.0.0.1:{port}",
        "oidc_client_id": CLIENT,
        "oidc_client_secret": SECRET,
        "oidc_name": "Lab ID",
        "oidc_groups": (GroupRole("bosses", "admin"), GroupRole("people")),
    }
    with served(tmp_path_factory.mktemp("lab") / "data", **settings) as running:
        yield running


@pytest.fixture(scope="module")
def provider(lab: Served, port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    key = tmp_path_factory.mktemp("provider") / "key.json"
    with ExitStack() as running:
        provider = Provider(port, f"{lab.api_url}/sign-in", key, running)
        provider.start()
        yield provider


@pytest.fixture
def visitor(browser: Browser, lab: Served, provider: Provider, faults: Faults) -> Iterator[Page]:
    with visiting(browser, lab, provider, faults) as page:
        yield page


def visiting(browser: Browser, lab: Served, provider: Provider, faults: Faults) -> Any:
    faults.allow(r"status of (401|403|503)")
    faults.allow(r"answer: 503")
    faults.allow(rf"foreign: http://127\.0\.0\.1:{provider.port}/")
    faults.allow(r"fonts\.googleapis\.com")  # the provider's own page wants them
    return opened_page(browser, lab, faults, key=None, **DESKTOP)


def leave(page: Page) -> None:
    """Go to the provider."""
    page.route("https://fonts.googleapis.com/**", lambda route: route.abort())
    page.get_by_role("button", name="Sign in with Lab ID").click()
    page.wait_for_url("**/interaction/**")


def sign_in(page: Page, name: str) -> None:
    """Sign in at the provider."""
    leave(page)
    page.get_by_placeholder("Enter any login").fill(name)
    page.get_by_placeholder("and password").fill("anything")
    page.get_by_role("button", name="Sign-in").click()
    page.get_by_role("button", name="Continue").click()


def test_somebody_signs_in_and_is_where_they_wanted_to_be(visitor: Page, lab: Served) -> None:
    visitor.goto("/projects/*?q=mine")
    sign_in(visitor, "ada")
    visitor.wait_for_url("**/projects/*?q=mine")
    expect(visitor.get_by_role("button", name="ada menu")).to_be_visible()
    assert visitor.evaluate("document.cookie") == ""
    cookies = {cookie["name"]: cookie for cookie in visitor.context.cookies()}
    cookie = cookies[TOKEN_COOKIE]
    assert COOKIE not in cookies
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Lax", "/")
    [user] = [user for user in lab.call("users.get_all_ex")["users"] if user["name"] == "ada"]
    assert user["role"] == "admin"


def test_who_signs_out_is_signed_out_at_the_provider(visitor: Page) -> None:
    visitor.goto("/sign-in")
    sign_in(visitor, "grace")
    visitor.get_by_role("button", name="Grace menu").click()
    visitor.get_by_role("menuitem", name="Sign out").click()
    visitor.get_by_role("button", name="Yes, sign me out").click()
    visitor.wait_for_url("**/sign-in")
    leave(visitor)
    expect(visitor.get_by_placeholder("Enter any login")).to_be_visible()


def test_who_does_not_go_on_at_the_provider_is_told_so(visitor: Page, lab: Served) -> None:
    visitor.goto("/sign-in")
    leave(visitor)
    visitor.get_by_role("link", name="Cancel").click()
    expect(visitor.get_by_role("alert")).to_contain_text("did not let you in, or you did not want to go on")
    assert visitor.url == f"{lab.api_url}/sign-in"


def test_who_goes_back_finds_the_page_as_it_was(visitor: Page) -> None:
    visitor.goto("/sign-in")
    leave(visitor)
    visitor.go_back()
    expect(visitor.get_by_role("button", name="Sign in with Lab ID")).to_be_enabled()


def test_who_is_in_no_group_is_told_so(visitor: Page) -> None:
    visitor.goto("/sign-in")
    sign_in(visitor, "mallory")
    expect(visitor.get_by_role("alert")).to_contain_text("you are in none of the groups that may use this server")


def test_a_link_with_the_code_of_somebody_else_signs_nobody_in(
    browser: Browser, visitor: Page, lab: Served, provider: Provider, faults: Faults
) -> None:
    faults.allow("ERR_FAILED")
    visitor.route("**/auth.finish_provider_login", lambda route: route.abort())  # the code is not used up
    visitor.goto("/sign-in")
    with visitor.expect_request(lambda request: "/sign-in?code=" in request.url) as sent_back:
        sign_in(visitor, "grace")
    with visiting(browser, lab, provider, faults) as victim:
        victim.goto(sent_back.value.url)
        expect(victim.get_by_role("alert")).to_contain_text("was not begun in this browser")
        assert urlsplit(victim.url).query == ""


def test_a_provider_with_new_keys_still_signs_people_in(visitor: Page, provider: Provider) -> None:
    visitor.goto("/sign-in")
    sign_in(visitor, "grace")
    visitor.get_by_role("button", name="Grace menu").wait_for()
    provider.stop()
    provider.key.unlink()
    provider.start()
    visitor.context.clear_cookies()
    signed_in = visitor.get_by_role("button", name="Grace menu")
    for _ in range(5):  # the server may have asked for the keys a moment ago, and asks again after five seconds
        visitor.goto("/sign-in")
        sign_in(visitor, "grace")
        expect(signed_in.or_(visitor.get_by_text("does not prove"))).to_be_visible()
        if signed_in.is_visible():
            return
        visitor.context.clear_cookies()
    pytest.fail("the new keys were not found")


def test_while_the_provider_is_down_others_sign_in(visitor: Page, provider: Provider) -> None:
    provider.stop()
    try:
        visitor.goto("/sign-in")
        visitor.get_by_role("button", name="Sign in with Lab ID").click()
        expect(visitor.get_by_role("alert").or_(visitor.get_by_text("ERR_CONNECTION_REFUSED"))).to_be_visible()
        visitor.goto("/sign-in")
        visitor.get_by_label("Name").fill(ADMIN_KEY)
        visitor.get_by_label("Password").fill(ADMIN_SECRET)
        visitor.get_by_role("button", name="Sign in", exact=True).click()
        expect(visitor.get_by_role("button", name="admin menu")).to_be_visible()
    finally:
        provider.start()
