"""The page of settings: access keys with what they allow, and logins that are ended."""

from __future__ import annotations

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
