"""What a run is: the tab Overview."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.harness import Served
from tests.pages.lab import Lab, add, scalars


def made(server: Served, lab: Lab, **fields: Any) -> str:
    """The address of a new run with some fields."""
    task = server.call("tasks.create", {"name": "made", "type": "training", "project": lab.project, **fields})["id"]
    return f"/projects/{lab.project}/tasks/{task}/overview"


def test_all_of_a_run_is_shown(page: Page, lab: Lab) -> None:
    page.goto(lab.at("resnet-50"))
    expect(page.get_by_role("heading", name="resnet-50", exact=True)).to_be_visible()
    for region, text in (
        ("Comment", "Trained with sgd."),
        ("Parameters", "batch_size"),
        ("Last metrics", "loss / validation"),
        ("Artifacts", "metrics"),
        ("Configuration", "depth: 50"),
        ("Script", "https://git.example.org/vision/detection.git"),
        ("Changes that are not committed", "+lr = 0.1"),
        ("Packages", "torch"),
        ("Times", "Active for"),
        ("About", "training"),
    ):
        expect(page.get_by_role("region", name=region, exact=True)).to_contain_text(text)
    expect(page).to_have_title("resnet-50 – Overview")


def test_an_artifact_of_our_file_server_is_downloaded(page: Page, lab: Lab) -> None:
    page.goto(lab.at("resnet-50"))
    with page.expect_download() as download:
        page.get_by_role("link", name="Download metrics").click()
    assert download.value.path().read_bytes() == b'{"recall": 0.85}'


@pytest.mark.check
def test_hostile_texts_are_only_text(page: Page, server: Served, lab: Lab) -> None:
    bad = '<img src=x onerror="alert(1)"><script>alert(2)</script>'
    parameters = {"Args": {"x": {"section": "Args", "name": "x", "value": bad}}}
    artifact = {"key": bad, "type": bad, "mode": "output", "uri": f"s3://{bad}", "hash": bad}
    page.goto(
        made(
            server,
            lab,
            **{"name": bad, "comment": bad, "tags": [bad], "hyperparams": parameters, "script": {"diff": bad}},
            configuration={"c": {"name": "c", "value": bad}},
            execution={"artifacts": [artifact]},
            runtime={"y": bad},
        )
    )
    expect(page.get_by_role("heading", name=bad)).to_be_visible()
    expect(page.get_by_role("region", name="Parameters")).to_contain_text(bad)
    assert page.locator("main img").count() == 0
    assert page.locator("a[href^='javascript:']").count() == 0


def test_the_page_of_a_run_follows_what_others_change(page: Page, server: Served, lab: Lab) -> None:
    task = server.call("tasks.create", {"name": "mine", "type": "training", "project": lab.project})["id"]
    page.goto(f"/projects/{lab.project}/tasks/{task}/overview")
    page.get_by_text("Live", exact=True).wait_for()
    server.call("tasks.started", {"task": task})
    expect(page.locator("[data-status=in_progress]")).to_be_visible()
    server.call("tasks.update", {"task": task, "name": "renamed", "comment": "Look.", "tags": ["best"]})
    expect(page.get_by_role("heading", name="renamed", exact=True)).to_be_visible()
    expect(page.get_by_role("region", name="Comment")).to_contain_text("Look.")
    expect(page.get_by_role("group", name="Tags")).to_contain_text("best")
    add(server, scalars(task, "loss", "train", [0.5] * 42, 1_700_000_000_000))
    expect(page.get_by_role("region", name="Times")).to_contain_text("Iteration41")
    server.call("tasks.completed", {"task": task})
    expect(page.locator("[data-status=completed]")).to_be_visible()
    expect(page.get_by_role("region", name="Times")).to_contain_text("Ended")


@pytest.mark.check
def test_the_overview_on_a_phone_does_not_scroll_sideways(phone: Page, lab: Lab) -> None:
    phone.goto(lab.at("resnet-50"))
    phone.get_by_role("region", name="Packages").wait_for()
    assert phone.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
