"""What a run is: the tab Overview."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.harness import Served
from tests.viewer.lab import Lab, add, scalars


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


@pytest.mark.check
def test_parameters_are_searched(page: Page, lab: Lab) -> None:
    page.goto(lab.at("resnet-50"))
    region = page.get_by_role("region", name="Parameters")
    region.get_by_role("searchbox").fill("BATCH")
    expect(region.get_by_role("rowheader")).to_have_text(["batch_size"])


def test_an_artifact_of_our_file_server_is_downloaded(page: Page, lab: Lab) -> None:
    page.goto(lab.at("resnet-50"))
    with page.expect_download() as download:
        page.get_by_role("link", name="Download metrics").click()
    assert download.value.path().read_bytes() == b'{"recall": 0.85}'


@pytest.mark.check
def test_a_file_in_an_object_store_is_explained(page: Page, server: Served, lab: Lab) -> None:
    artifact = {"key": "index", "type": "custom", "mode": "output", "uri": "s3://data/index.parquet"}
    page.goto(made(server, lab, execution={"artifacts": [artifact]}))
    expect(page.get_by_title("It lies in Amazon S3")).to_contain_text("s3://data/index.parquet")


@pytest.mark.check
def test_a_diff_of_megabytes_is_folded_and_bounded(page: Page, server: Served, lab: Lab) -> None:
    diff = "diff --git a/x b/x\n@@ -1 +1 @@\n" + "".join(f"+line {n} {'x' * 60}\n" for n in range(40_000))
    page.goto(made(server, lab, script={"diff": diff}))
    region = page.get_by_role("region", name="Changes that are not committed")
    expect(region.locator("[data-kind]")).to_have_count(16)
    region.get_by_role("button", name="Show all 40,002 lines").click()
    expect(region.locator("[data-kind=added]")).to_have_count(3998)
    expect(region).to_contain_text("The first 4,000 of 40,002 lines")


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


@pytest.mark.check
def test_the_metrics_follow_a_run(page: Page, server: Served, lab: Lab) -> None:
    task = server.call("tasks.create", {"name": "live", "type": "training", "project": lab.project})["id"]
    server.call("tasks.started", {"task": task})
    point = {"type": "training_stats_scalar", "task": task, "metric": "loss", "variant": "train"}
    with server.client() as client:
        client.post("/events.add", json={**point, "iter": 1, "value": 0.75})
        page.goto(f"/projects/{lab.project}/tasks/{task}/overview")
        expect(page.get_by_role("region", name="Last metrics")).to_contain_text("0.75")
        page.get_by_text("Live", exact=True).wait_for()
        client.post("/events.add", json={**point, "iter": 2, "value": 0.25})
        expect(page.get_by_role("region", name="Last metrics")).to_contain_text("0.25")


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
def test_what_others_change_leaves_alone_what_is_being_written(page: Page, server: Served, lab: Lab) -> None:
    parameters = {"Args": {name: {"section": "Args", "name": name, "value": "1"} for name in ("lr", "seed")}}
    fields = {"name": "mine", "type": "training", "project": lab.project, "hyperparams": parameters}
    task = server.call("tasks.create", fields)["id"]
    page.goto(f"/projects/{lab.project}/tasks/{task}/overview")
    page.get_by_text("Live", exact=True).wait_for()
    page.get_by_role("button", name="Add a comment").click()
    page.get_by_role("textbox", name="Comment").fill("half a sen")
    region = page.get_by_role("region", name="Parameters")
    region.get_by_role("button", name="Edit").click()
    region.get_by_role("textbox", name="Value of lr").fill("2")
    added = [{"section": "Args", "name": "clip", "value": "5"}]
    server.call("tasks.edit_hyper_params", {"task": task, "hyperparams": added})
    server.call("tasks.update", {"task": task, "name": "renamed", "comment": "theirs"})
    expect(page.get_by_role("heading", name="renamed", exact=True)).to_be_visible()
    expect(region.get_by_role("heading")).to_contain_text("3")
    expect(page.get_by_role("textbox", name="Comment")).to_have_value("half a sen")
    expect(region.get_by_role("textbox", name="Value of lr")).to_have_value("2")
    region.get_by_role("button", name="Save").click()
    expect(region.get_by_role("row").filter(has_text="lr")).to_contain_text("2")
    expect(region.get_by_role("rowheader")).to_have_text(["clip", "lr", "seed"])


@pytest.mark.check
def test_parent_and_children_lead_to_each_other(page: Page, lab: Lab) -> None:
    page.goto(f"/projects/*/tasks/{lab.tasks['step']}/overview")
    page.get_by_role("link", name="train nightly", exact=True).click()
    page.get_by_role("heading", name="train nightly", exact=True).wait_for()
    page.get_by_role("region", name="Children").get_by_role("link", name="step").click()
    page.get_by_role("heading", name="step", exact=True).wait_for()


@pytest.mark.check
def test_the_overview_on_a_phone_does_not_scroll_sideways(phone: Page, lab: Lab) -> None:
    phone.goto(lab.at("resnet-50"))
    phone.get_by_role("region", name="Packages").wait_for()
    assert phone.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
