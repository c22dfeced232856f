"""The page of the audit log: who did what, narrowed by user, action and time, for admins alone."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.harness import Served
from tests.pages.browser import DESKTOP, Faults, opened_page


def key_of(server: Served, user: str) -> tuple[str, str]:
    """A new access key of another user."""
    token = server.call("auth.get_token_for_user", {"user": user})["token"]
    headers = {"authorization": f"Bearer {token}"}
    answer = httpx.post(f"{server.api_url}/auth.create_credentials", json={}, headers=headers)
    made = answer.json()["data"]["credentials"]
    return made["access_key"], made["secret_key"]


@pytest.mark.check
def test_the_log_is_shown_narrowed_and_downloaded(page: Page, server: Served, tmp_path: Path) -> None:
    tasks = [server.call("tasks.create", {"name": f"run {n}", "type": "training"})["id"] for n in range(210)]
    for task in tasks:
        server.call("tasks.delete", {"task": task})
    page.goto("/settings")
    page.get_by_role("link", name="Audit log").click()
    expect(page).to_have_title("Audit log")
    rows = page.locator("tbody tr")
    expect(rows.first).to_be_visible()
    page.get_by_label("Action, or how it begins").fill("tasks.")
    expect(rows).to_have_count(200)
    expect(page).to_have_url(f"{server.api_url}/settings/audit?action=tasks.")
    newest = rows.first
    expect(newest).to_contain_text("tasks.delete")
    expect(newest).to_contain_text(f"task: {tasks[-1]}")
    expect(newest.get_by_role("cell").first).to_have_text(re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$"))
    expect(newest.get_by_role("rowheader")).to_have_text("admin")
    expect(newest.get_by_role("cell").nth(1)).to_have_text("127.0.0.1")
    expect(newest.get_by_role("cell").last).to_have_text("200")
    page.get_by_role("button", name="Show more").click()
    expect(rows).to_have_count(210)
    expect(page.get_by_role("button", name="Show more")).to_have_count(0)
    with page.expect_download() as downloading:
        page.get_by_role("link", name="CSV").click()
    downloading.value.save_as(tmp_path / "audit.csv")
    with open(tmp_path / "audit.csv", newline="") as file:
        found = list(csv.DictReader(file))
    assert [line["action"] for line in found] == ["tasks.delete"] * 210
    page.get_by_label("User, by name or id").fill("nobody")
    expect(page.get_by_text("No line is like that")).to_be_visible()
    expect(page).to_have_url(re.compile(r"user=nobody$"))  # it says so a moment later
    page.reload()
    expect(page.get_by_label("User, by name or id")).to_have_value("nobody")


@pytest.mark.check
def test_what_the_server_does_by_itself_is_said_to_be_done_by_it(page: Page) -> None:
    page.goto("/settings/audit?action=server.start")
    expect(page.locator("tbody tr").first.get_by_role("rowheader")).to_have_text("the server")


@pytest.mark.check
def test_who_is_no_admin_sees_nothing_of_it(browser: Browser, server: Served, faults: Faults) -> None:
    user = server.call("auth.create_user", {"name": "plain", "email": "plain", "company": "", "role": "user"})["id"]
    faults.allow(r"status of 403 .*/data/audit\.json")
    with opened_page(browser, server, faults, key=key_of(server, user), **DESKTOP) as page:
        page.goto("/settings")
        expect(page.get_by_role("link", name="Usage")).to_be_visible()
        expect(page.get_by_role("link", name="Audit log")).to_have_count(0)
        page.goto("/settings/audit")
        expect(page.get_by_role("alert")).to_be_visible()
        expect(page.locator("tbody tr")).to_have_count(0)
