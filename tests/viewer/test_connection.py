"""What a page says when the server is gone, and when it is back."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.harness import served
from tests.viewer.browser import DESKTOP, Faults, opened_page, require_pages


def test_a_lost_connection_is_said_in_words_until_it_is_back(browser: Browser, faults: Faults, tmp_path: Path) -> None:
    require_pages()
    faults.allow("ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET")
    with served(tmp_path / "data") as server:
        project = server.call("projects.create", {"name": "p", "description": ""})["id"]
        task = server.call("tasks.create", {"name": "t", "type": "training", "project": project})["id"]
        with opened_page(browser, server, faults, key=(server.key, server.secret), **DESKTOP) as page:
            page.goto(f"/projects/{project}/tasks/{task}/overview")
            expect(page.get_by_text("Live", exact=True)).to_be_visible()
            server.kill()
            expect(page.get_by_text("Connection lost")).to_be_visible()
            expect(page.get_by_role("alert")).to_contain_text("Is the server running", timeout=15_000)
            expect(page.get_by_role("heading", name="t", exact=True)).to_be_visible()
            server.start()
            expect(page.get_by_text("Live", exact=True)).to_be_visible(timeout=30_000)
            expect(page.get_by_role("alert")).to_have_count(0)
