"""Signing in on the page, with a password, a key, a link or a name alone, and signing out."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from apiserver.common.passwords import hash_password
from apiserver.settings.values import FixedUser
from tests.harness import ADMIN_KEY, ADMIN_SECRET, Served, served, wait_until
from tests.pages.browser import DESKTOP, Faults, opened_page, other_browser, require_pages
from tests.pages.lab import Lab


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with a user who has a password, and guests."""
    require_pages()
    users = (FixedUser("Zoë", hash_password("pässwörd")),)
    with served(tmp_path_factory.mktemp("people") / "data", users=users, guest=True) as running:
        yield running


@pytest.fixture
def visitor(browser: Browser, people: Served, faults: Faults) -> Iterator[Page]:
    """A page on the server `people`, without a cookie."""
    faults.allow(r"status of (401|429)")
    with opened_page(browser, people, faults, key=None, **DESKTOP) as opened:
        yield opened


def sign_in(page: Page, name: str, password: str) -> None:
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in", exact=True).click()


def test_the_link_of_the_sdk_leads_to_the_run_by_way_of_the_sign_in_page(signed_out_page: Page, lab: Lab) -> None:
    address = f"/projects/{lab.project}/tasks/{lab.run}/output/log"
    signed_out_page.goto(address)
    sign_in(signed_out_page, ADMIN_KEY, ADMIN_SECRET)
    signed_out_page.wait_for_url(f"**{address}")
    signed_out_page.get_by_role("heading", name="resnet-50").wait_for()


def test_a_name_and_a_password_sign_in_and_no_script_reads_the_cookie(visitor: Page) -> None:
    visitor.goto("/")
    sign_in(visitor, "Zoë", "pässwörd")
    expect(visitor.get_by_role("button", name="Menu")).to_contain_text("Zoë")
    assert visitor.evaluate("document.cookie") == ""
    [cookie] = visitor.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Lax", "/")


@pytest.mark.check
def test_a_wrong_password_is_said_in_words(visitor: Page) -> None:
    visitor.goto("/sign-in")
    sign_in(visitor, "Zoë", "wrong")
    expect(visitor.get_by_role("alert")).to_contain_text("No user has this name and password")
    expect(visitor.get_by_label("Name")).to_have_value("Zoë")
    expect(visitor.get_by_label("Password")).to_have_value("")


@pytest.mark.check
def test_a_link_signs_in_once_and_leaves_no_secret_in_the_address(visitor: Page, people: Served) -> None:
    link = _link(people)
    visitor.goto(f"/sign-in?next=/search#link={link}")
    visitor.wait_for_url("**/search")
    expect(visitor.get_by_role("button", name="Menu")).to_contain_text("admin")
    visitor.context.clear_cookies()
    visitor.goto(f"/sign-in#link={link}")
    expect(visitor.get_by_role("alert")).to_contain_text("has been used, or is older than ten minutes")
    assert "#" not in visitor.url


@pytest.mark.check
def test_too_many_attempts_say_when_to_try_again(browser: Browser, faults: Faults, tmp_path: Path) -> None:
    """On a server of its own: whoever signs in from this machine is to wait after it."""
    faults.allow(r"status of (401|429)")
    with (
        served(tmp_path / "data") as server,
        opened_page(browser, server, faults, key=None, **DESKTOP) as page,
    ):
        own = {"origin": server.api_url}
        for _ in range(10):
            answer = httpx.post(f"{server.api_url}/auth.login_by_link", json={"link": "guess"}, headers=own)
            assert answer.status_code in (401, 429)
        page.goto("/sign-in#link=guess")
        expect(page.get_by_role("alert")).to_contain_text("Too many attempts have failed. Try again in")
        expect(page.get_by_role("button", name="Sign in", exact=True)).to_be_disabled()


@pytest.mark.check
def test_guests_look_around_without_a_name(visitor: Page) -> None:
    visitor.goto("/sign-in")
    visitor.get_by_role("button", name="Look around as a guest").click()
    expect(visitor.get_by_role("button", name="Menu")).to_contain_text("guest")


def test_signing_out_ends_the_sign_in_and_not_only_the_cookie(visitor: Page, people: Served) -> None:
    visitor.goto("/sign-in")
    sign_in(visitor, ADMIN_KEY, ADMIN_SECRET)
    visitor.get_by_role("button", name="Menu").wait_for()
    [cookie] = visitor.context.cookies()
    visitor.get_by_role("button", name="Menu").click()
    visitor.get_by_role("menuitem", name="Sign out").click()
    visitor.wait_for_url("**/sign-in")
    visitor.get_by_label("Name").wait_for()
    assert visitor.context.cookies() == []
    own = {"cookie": f"{cookie['name']}={cookie['value']}", "origin": people.api_url}
    assert httpx.post(f"{people.api_url}/users.get_current_user", json={}, headers=own).status_code == 401


#: The page notes that it has heard of another tab, after it has done what it does then.
NOTE_HEARD = 'addEventListener("storage", event => (window.heard = event.newValue ?? "nobody"))'


@pytest.mark.check
def test_signing_out_ends_the_pages_in_other_tabs(visitor: Page, people: Served) -> None:
    visitor.goto("/sign-in")
    sign_in(visitor, ADMIN_KEY, ADMIN_SECRET)
    visitor.get_by_role("button", name="admin menu").wait_for()
    other = visitor.context.new_page()
    other.goto("/projects/*?q=mine")
    other.get_by_role("button", name="admin menu").wait_for()
    other.evaluate(NOTE_HEARD)
    visitor.get_by_role("button", name="admin menu").click()
    visitor.get_by_role("menuitem", name="Sign out").click()
    other.get_by_label("Password").fill("pässw")
    expect(other.get_by_role("button", name="admin menu")).to_have_count(0)
    visitor.get_by_label("Password").wait_for()
    wait_until(lambda: other.evaluate("window.heard") == "nobody")  # so it was not loaded anew: what is typed stays
    expect(other.get_by_label("Password")).to_have_value("pässw")
    sign_in(other, "Zoë", "pässwörd")
    other.wait_for_url("**/projects/*?q=mine")
    expect(other.get_by_role("button", name="Zoë menu")).to_be_visible()
    loaded(visitor, "Zoë menu")  # this tab goes on by itself


@pytest.mark.check
def test_pages_in_other_tabs_become_those_of_who_signs_in(visitor: Page, people: Served) -> None:
    visitor.goto("/sign-in")
    sign_in(visitor, ADMIN_KEY, ADMIN_SECRET)
    visitor.get_by_role("button", name="admin menu").wait_for()
    other = visitor.context.new_page()
    other.goto("/settings")
    other.get_by_role("button", name="admin menu").wait_for()
    visitor.goto(f"/sign-in#link={_link(people)}")  # the same user: nothing that is being written is lost
    visitor.wait_for_url(f"{people.api_url}/")
    visitor.goto("/sign-in")
    expect(other.get_by_role("button", name="admin menu")).to_be_visible()
    visitor.get_by_role("button", name="Look around as a guest").click()
    loaded(other, "guest menu")
    loaded(visitor, "guest menu")


def loaded(page: Page, menu: str) -> None:
    """Wait until a page that loads itself anew is there. Chromium does not close a page that has just begun to load."""
    expect(page.get_by_role("button", name=menu)).to_be_visible()
    page.wait_for_load_state()


@pytest.mark.check
def test_a_page_that_the_browser_kept_is_not_shown_after_signing_out(
    browser: Browser, people: Served, faults: Faults
) -> None:
    faults.allow(r"status of 401")
    with (
        other_browser(browser, keeping=True) as keeping,
        opened_page(keeping, people, faults, key=(ADMIN_KEY, ADMIN_SECRET), **DESKTOP) as page,
    ):
        page.goto("/settings")
        page.get_by_role("button", name="admin menu").click()
        page.get_by_role("menuitem", name="Sign out").click()
        page.wait_for_url("**/sign-in")
        page.get_by_label("Password").wait_for()
        page.go_back()
        expect(page.get_by_label("Password")).to_be_visible()
        expect(page.get_by_role("button", name="admin menu")).to_have_count(0)


@pytest.mark.check
def test_asking_for_the_address_of_a_link_does_not_use_it_up(visitor: Page, people: Served) -> None:
    link = _link(people)
    for method in ("HEAD", "GET"):  # as a chat program does, which also sends what is behind the "#"
        for address in (f"/sign-in#link={link}", f"/sign-in%23link={link}", f"/sign-in?link={link}"):
            httpx.request(method, people.api_url + address, headers={"accept": "text/html"})
    visitor.goto(f"/sign-in#link={link}")
    expect(visitor.get_by_role("button", name="Menu")).to_contain_text("admin")


@pytest.mark.check
def test_data_and_live_changes_are_there_with_the_cookie_alone(page: Page, lab: Lab) -> None:
    page.goto("/search")
    page.get_by_role("button", name="Menu").wait_for()
    assert page.evaluate("fetch('/data/projects.json').then(answer => answer.status)") == 200
    opened = """task => new Promise((resolve, reject) => {
        const events = new EventSource(`/data/tasks/${task}/live`);
        events.onopen = () => { events.close(); resolve('open'); };
        events.onerror = () => reject(new Error('refused'));
    })"""
    assert page.evaluate(opened, lab.run) == "open"


@pytest.mark.check
def test_where_a_name_is_enough_no_password_is_asked_for(
    browser: Browser, faults: Faults, tmp_path_factory: pytest.TempPathFactory
) -> None:
    faults.allow(r"status of 401")
    with (
        served(tmp_path_factory.mktemp("open") / "data", login="simple") as server,
        opened_page(browser, server, faults, key=None, **DESKTOP) as page,
    ):
        for _ in ("a new name", "the same again"):
            page.goto("/sign-in")
            page.get_by_label("Name").fill("Grace")
            expect(page.get_by_label("Password")).to_have_count(0)
            page.get_by_role("button", name="Sign in", exact=True).click()
            expect(page.get_by_role("button", name="Menu")).to_contain_text("Grace")
            page.context.clear_cookies()
        assert [user["name"] for user in server.call("users.get_all")["users"]].count("Grace") == 1


@pytest.mark.check
def test_whom_a_proxy_has_signed_in_sees_no_sign_in_page(
    browser: Browser, faults: Faults, tmp_path_factory: pytest.TempPathFactory
) -> None:
    settings: dict[str, Any] = {
        "trusted_proxies": "127.0.0.1",
        "proxy_user_header": "Remote-User",
        "proxy_sign_out": "/search?out=1",
    }
    by_proxy: dict[str, Any] = {"extra_http_headers": {"Remote-User": "ada"}}
    with (
        served(tmp_path_factory.mktemp("proxied") / "data", **settings) as server,
        opened_page(browser, server, faults, key=None, **by_proxy, **DESKTOP) as page,
    ):
        page.goto("/settings")
        page.get_by_role("button", name="ada menu").click()
        page.get_by_role("menuitem", name="Sign out").click()
        page.wait_for_url("**/search?out=1")


def _link(server: Served) -> str:
    """The secret of a new link, as the command prints it."""
    command = [sys.executable, "-m", "apiserver", "link", "--data", str(server.data)]
    said = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    return said.strip().partition("#link=")[2]
