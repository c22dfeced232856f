"""The page of settings: access keys with what they allow, and logins that are ended."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from playwright.sync_api import Page, expect

from tests.harness import ADMIN_KEY, Served


def test_a_key_is_made_with_a_scope_and_an_end(page: Page, server: Served) -> None:
    page.goto("/settings")
    page.get_by_label("Label of a new key").fill("nightly")
    page.get_by_label("It allows").select_option("Only reading")
    page.get_by_label("It ends").select_option("In 30 days")
    page.get_by_role("button", name="Make a key").click()
    page.get_by_role("dialog").get_by_text("only now").wait_for()
    page.keyboard.press("Escape")
    made = {key["label"]: key for key in server.call("auth.get_credentials")["credentials"]}["nightly"]
    assert made["scopes"] == ["read"]
    row = page.get_by_role("row").filter(has_text=made["access_key"])
    expect(row).to_contain_text("read, until ")
    expect(page.get_by_role("row").filter(has_text=ADMIN_KEY)).to_contain_text("everything")


def test_a_key_that_has_expired_says_so(page: Page, server: Served) -> None:
    made = server.call("auth.create_credentials", {"scopes": ["read"], "expiration_sec": 86_400})["credentials"]
    page.clock.set_fixed_time(datetime.now(UTC) + timedelta(days=2))
    page.goto("/settings")
    expect(page.get_by_role("row").filter(has_text=made["access_key"])).to_contain_text("read, expired on ")


def test_all_other_logins_are_ended(page: Page, server: Served) -> None:
    for _ in range(2):
        server.call("auth.login")
    page.goto("/settings")
    logins = page.locator("section").filter(has=page.get_by_role("heading", name="Logins"))
    expect(logins.get_by_role("row").nth(3)).to_be_visible()
    expect(logins.get_by_text("this one")).to_have_count(1)
    logins.get_by_role("button", name="End all others").click()
    expect(logins.get_by_role("row")).to_have_count(2)  # with the names of the columns
    expect(logins.get_by_text("this one")).to_have_count(1)
