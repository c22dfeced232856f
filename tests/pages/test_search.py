"""Search over everything: the palette and the page; the pages of models."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.harness import Served
from tests.pages.lab import Lab


def test_the_palette_finds_and_opens_by_keys_alone(page: Page, lab: Lab) -> None:
    page.goto(lab.at("vit-base"))
    page.get_by_role("heading", name="vit-base").wait_for()
    page.keyboard.press("/")
    dialog = page.get_by_role("dialog", name="Search")
    dialog.get_by_role("combobox").wait_for()
    page.keyboard.type("resnet-50")
    first = dialog.get_by_role("option", selected=True)
    models = dialog.get_by_role("group", name="Models").get_by_role("option")
    expect(models).to_contain_text(["resnet-50 weights"])
    expect(dialog.get_by_role("group", name="Runs").get_by_role("option")).to_have_count(2)
    expect(dialog.locator("[data-waiting]")).to_have_count(0)  # else a later answer would begin with its first again
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(first).to_contain_text("resnet-50 weights")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="resnet-50 weights").wait_for()
    assert page.url.endswith(f"/models/{lab.models['resnet-50']}")
    expect(dialog).to_have_count(0)


@pytest.mark.check
def test_parameters_and_metrics_lead_to_tables_of_runs(page: Page, lab: Lab) -> None:
    page.goto("/search?q=optimizer%3Dsgd")
    found = page.get_by_role("group", name="Parameters and metrics").get_by_role("option")
    expect(found).to_have_count(1)
    found.click()
    grid = page.get_by_role("grid", name="Runs")
    expect(page.get_by_role("button", name="optimizer is sgd", exact=True)).to_be_visible()
    expect(grid.get_by_role("columnheader", name="optimizer")).to_be_visible()
    expect(grid.get_by_role("row").nth(1)).to_contain_text("sgd")
    expect(grid).not_to_contain_text("adamw")
    page.goto("/search?q=loss")
    expect(found.first).to_contain_text("loss/train")
    found.first.click()
    expect(grid.get_by_role("columnheader", name="loss/train")).to_have_attribute("aria-sort", "descending")


@pytest.mark.check
def test_columns_of_all_projects_are_offered(page: Page, lab: Lab) -> None:
    page.goto("/projects/*")
    page.get_by_role("button", name="Columns", exact=True).click()
    dialog = page.get_by_role("dialog", name="Columns")
    expect(dialog.get_by_role("heading", name="Parameters")).to_be_visible()
    expect(dialog.get_by_role("checkbox", name="optimizer")).to_be_visible()


def test_the_models_of_a_project(page: Page, lab: Lab) -> None:
    page.goto(f"/projects/{lab.project}/models")
    page.get_by_role("link", name="resnet-50 weights").click()
    expect(page.get_by_role("region", name="Labels")).to_contain_text("dog")
    expect(page.get_by_role("region", name="About")).to_contain_text("PyTorch")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download resnet-50 weights").click()
    assert download.value.path().read_bytes() == b"weights"
    page.get_by_role("region", name="About").get_by_role("link", name="resnet-50").click()
    page.get_by_role("heading", name="resnet-50", exact=True).wait_for()


@pytest.mark.check
def test_a_model_is_renamed_and_published(page: Page, server: Served, lab: Lab) -> None:
    made = server.call("models.create", {"name": "m", "uri": "s3://b/m", "project": lab.project, "ready": False})["id"]
    page.goto(f"/projects/{lab.project}/models/{made}")
    page.get_by_role("button", name="Change the name of the model").click()
    page.get_by_role("textbox", name="name of the model").fill("renamed")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="renamed")).to_be_visible()
    page.get_by_role("button", name="Actions").click()
    page.get_by_role("menuitem", name="Publish").click()
    page.get_by_role("dialog").get_by_role("button", name="Publish").click()
    expect(page.get_by_text("published", exact=True)).to_be_visible()
    model = server.call("models.get_by_id", {"model": made})["model"]
    assert (model["name"], model["ready"]) == ("renamed", True)
