"""The tree of projects, the latest runs, data sets, an empty server, and short addresses."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.harness import Served, served
from tests.pages.browser import DESKTOP, Faults, opened_page
from tests.pages.lab import Lab


def test_projects_are_a_tree_with_counts(page: Page, lab: Lab) -> None:
    page.goto("/projects")
    tree = page.get_by_role("treegrid", name="Projects")
    row = tree.get_by_role("row", name="Detection")
    expect(row).to_have_attribute("aria-level", "2")
    expect(row.get_by_role("gridcell").nth(2)).to_have_text("7")
    tree.get_by_role("button", name="Hide what lies in Vision").click()
    expect(row).to_have_count(0)
    page.reload()
    expect(tree.get_by_role("row", name="Vision")).to_have_attribute("aria-expanded", "false")
    page.get_by_role("searchbox", name="Search projects").fill("ablat")
    expect(tree.get_by_role("row", name="Ablation")).to_be_visible()
    expect(tree.get_by_role("row", name="Language")).to_have_count(0)


@pytest.mark.check
def test_a_project_is_chosen_by_keys(page: Page, lab: Lab) -> None:
    page.goto("/")
    page.get_by_role("treegrid", name="Projects").get_by_role("link", name="Language", exact=True).wait_for()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/projects/*")
    expect(page.get_by_role("grid", name="Runs")).to_be_visible()


@pytest.mark.check
def test_latest_runs_lead_to_their_pages(page: Page, lab: Lab) -> None:
    page.goto("/projects")
    latest = page.get_by_role("complementary", name="Latest runs")
    latest.get_by_role("link").first.click()
    page.wait_for_url("**/tasks/**")


@pytest.mark.check
def test_data_sets_and_pipelines_have_pages(page: Page, server: Served, lab: Lab) -> None:
    hidden = {"name": "Vision/.datasets/cats", "system_tags": ["hidden", "dataset"]}
    project = server.call("projects.create", hidden)["id"]
    version = {"name": "cats v1", "type": "data_processing", "project": project, "system_tags": ["dataset"]}
    task = server.call("tasks.create", version)["id"]
    page.goto("/projects")
    page.get_by_role("link", name="Data sets").click()
    page.get_by_role("link", name="cats", exact=True).click()
    page.get_by_role("link", name="cats v1").click()
    page.wait_for_url(f"**/tasks/{task}/**")
    page.goto("/pipelines")
    page.get_by_role("link", name="train nightly", exact=True).click()
    expect(page.get_by_role("grid", name="Runs").get_by_role("link", name="train nightly")).to_be_visible()


def test_an_empty_server_says_how_to_begin(browser: Browser, faults: Faults, tmp_path: Path) -> None:
    with (
        served(tmp_path / "data") as server,
        opened_page(browser, server, faults, key=(server.key, server.secret), **DESKTOP) as page,
    ):
        page.goto("/")
        expect(page.get_by_role("heading", name="Welcome")).to_be_visible()
        expect(page.get_by_text(f"api_server: {server.api_url}")).to_be_visible()
        server.call("tasks.create", {"name": "the first", "type": "training"})
        expect(page.get_by_role("link", name="the first")).to_be_visible(timeout=30_000)


def test_a_short_address_opens_what_it_stands_for(page: Page, server: Served, lab: Lab) -> None:
    address = f"/projects/{lab.project}?sort=name&group=status"
    with server.client() as client:
        short = client.post("/data/views", json={"address": address}).json()["short"]
    page.goto(short)
    page.wait_for_url(f"**{address}")
    expect(page.get_by_role("row", name="Status: completed")).to_be_visible()


@pytest.mark.check
def test_a_short_address_that_is_not_kept(page: Page, lab: Lab, faults: Faults) -> None:
    faults.allow(r"status of 404")
    page.goto("/s/nothing")
    expect(page.get_by_role("alert")).to_contain_text("There is no view")
