"""Every page on Elasticsearch and MongoDB shows what it shows on the embedded stores.

`make longer` runs all tests of pages on them.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.engines.fixtures import own_engines
from tests.harness import Served, served
from tests.pages.browser import DESKTOP, Faults, opened_page, require_pages
from tests.pages.lab import Lab, fill

pytestmark = pytest.mark.check


@pytest.fixture(scope="module")
def on_engines(
    elasticsearch_url: str, mongodb_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Served, Lab]]:
    require_pages()
    folder = tmp_path_factory.mktemp("viewer-engines") / "data"
    with own_engines(elasticsearch_url, mongodb_url) as engines, served(folder, **engines) as running:
        yield running, fill(running)


@pytest.fixture
def shown(browser: Browser, on_engines: tuple[Served, Lab], faults: Faults) -> Iterator[Page]:
    server, _ = on_engines
    with opened_page(browser, server, faults, key=(server.key, server.secret), **DESKTOP) as opened:
        yield opened


@pytest.fixture
def lab(on_engines: tuple[Served, Lab]) -> Lab:
    return on_engines[1]


def test_projects_and_the_table(shown: Page, lab: Lab) -> None:
    shown.goto("/projects")
    expect(shown.get_by_text("Detection", exact=True).first).to_be_visible()
    shown.goto(f"/projects/{lab.project}?sort=-name")
    names = shown.get_by_role("grid").get_by_role("row").filter(has_text="resnet-50")
    expect(names.first).to_be_visible()
    expect(shown.get_by_role("grid").get_by_text("vit-large")).to_be_visible()


def test_an_overview(shown: Page, lab: Lab) -> None:
    shown.goto(lab.at("resnet-50"))
    expect(shown.get_by_role("heading", name="resnet-50")).to_be_visible()
    expect(shown.get_by_text("batch_size")).to_be_visible()
    expect(shown.get_by_text("0.0420261").or_(shown.get_by_text("top 1")).first).to_be_visible()


def test_curves_with_their_extremes_follow_the_run(shown: Page, on_engines: tuple[Served, Lab]) -> None:
    server, lab = on_engines
    shown.goto(lab.at("resnet-50", "scalars"))
    chart = shown.get_by_role("figure", name="loss")
    expect(chart).to_be_visible()
    card = shown.locator("article, section, div").filter(has=chart).filter(has_text="points, all extremes shown").last
    expect(card).to_contain_text("2,200 points")
    common = {"task": lab.run, "type": "training_stats_scalar", "metric": "loss", "variant": "train"}
    server.call("events.add", {**common, "iter": 2500, "value": 0.5})
    expect(card).to_contain_text("2,201 points")


@pytest.mark.longer
def test_plots_and_images(shown: Page, lab: Lab) -> None:
    shown.goto(lab.at("resnet-50", "plots"))
    expect(shown.get_by_text("recall")).to_be_visible()
    shown.goto(lab.at("resnet-50", "images"))
    expect(shown.locator("img").first).to_be_visible()


def test_the_console_and_its_search(shown: Page, lab: Lab) -> None:
    shown.goto(lab.at("resnet-50", "console"))
    expect(shown.get_by_role("log")).to_contain_text("step")
    shown.goto(lab.at("resnet-50", "console") + "?q=worker+lost")
    expect(shown.get_by_text("worker lost").first).to_be_visible()


@pytest.mark.longer
def test_runs_beside_each_other(shown: Page, lab: Lab) -> None:
    tasks = ",".join([lab.tasks["resnet-50"], lab.tasks["vit-base"]])
    shown.goto(f"/projects/{lab.project}/compare?tasks={tasks}")
    expect(shown.get_by_role("figure").first).to_be_visible()
    shown.get_by_role("tab", name="Differences").click()
    expect(shown.get_by_text("optimizer").first).to_be_visible()
