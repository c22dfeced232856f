"""The table of runs: order, filters, groups, columns, curves, selection and actions, views, live changes."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
from playwright.sync_api import Page, expect

from tests.harness import Served
from tests.pages.browser import go_back
from tests.pages.lab import Lab, add, scalars

MANY = 400


@pytest.fixture(scope="module")
def many(server: Served) -> str:
    """A project of 400 runs, with learning rates of 0 to 9, and tags."""
    project = str(server.call("projects.create", {"name": "Many"})["id"])
    with server.client() as client:
        for n in range(MANY):
            lr = {"section": "Args", "name": "lr", "value": str(n % 10), "type": "int"}
            tags = ["even"] if n % 2 == 0 else []
            task = _draft(f"run {n:04d}", project=project, hyperparams={"Args": {"lr": lr}}, tags=tags)
            client.post("/tasks.create", json=task).raise_for_status()
    return project


@pytest.fixture
def few(server: Served, lab: Lab) -> tuple[str, list[str]]:
    """A project of three drafts, and their ids."""
    project = str(server.call("projects.create", {"name": f"Few {uuid4()}"})["id"])
    drafts = [_draft(name, project=project) for name in ("one", "two", "three")]
    return project, [server.call("tasks.create", draft)["id"] for draft in drafts]


def _draft(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": "training", **more}


def shown(page: Page, count: int = 3) -> list[str]:
    """The names of the first runs that are seen."""
    links = page.get_by_role("grid").or_(page.get_by_role("treegrid")).get_by_role("link")
    return [text.strip() for text in links.all_inner_texts()[:count]]


@pytest.mark.check
def test_any_row_is_scrolled_to(page: Page, many: str) -> None:
    page.goto(f"/projects/{many}?sort=name")
    grid = page.get_by_role("grid", name="Runs")
    expect(grid.get_by_role("link", name="run 0000")).to_be_visible()
    expect(grid).to_have_attribute("aria-rowcount", str(MANY + 1))
    grid.evaluate("grid => grid.scrollTop = grid.scrollHeight / 2")
    expect(grid.get_by_role("link", name=f"run {MANY // 2:04d}")).to_be_visible()
    grid.focus()
    page.keyboard.press("End")
    last = grid.get_by_role("row", name=f"run {MANY - 1:04d}")
    expect(last).to_be_in_viewport()
    expect(last).to_have_attribute("aria-rowindex", str(MANY + 1))
    assert grid.get_by_role("row").count() < 150


@pytest.mark.check
def test_only_rows_that_come_into_sight_or_change_are_drawn(page: Page, many: str) -> None:
    page.goto(f"/projects/{many}?sort=name&cols=name,status")
    grid = page.get_by_role("grid", name="Runs")
    expect(grid.get_by_role("link", name="run 0020")).to_be_visible()
    row = grid.get_by_role("row", name="run 0020").element_handle()
    place = "row => row.getBoundingClientRect().top + row.closest('[role=grid]').scrollTop"
    before = row.evaluate(place)
    row.evaluate("""row => {
      row.drawn = 0;
      const watch = new MutationObserver(changes => row.drawn += changes.length);
      watch.observe(row, {subtree: true, childList: true, attributes: true});
    }""")
    grid.evaluate("grid => grid.scrollTop = 600")
    expect(grid.get_by_role("link", name="run 0050")).to_be_visible()
    page.get_by_role("checkbox", name="Select run 0021").click()
    expect(page.get_by_role("toolbar", name="What to do with the selected runs")).to_contain_text("1 selected")
    assert row.evaluate(place) == before
    assert row.evaluate("row => row.drawn") == 0
    page.get_by_role("checkbox", name="Select run 0020").click()
    expect(page.get_by_role("toolbar", name="What to do with the selected runs")).to_contain_text("2 selected")
    assert row.evaluate("row => row.drawn") > 0


@pytest.mark.check
def test_names_stay_in_sight_while_columns_are_scrolled(page: Page, many: str) -> None:
    page.set_viewport_size({"width": 800, "height": 600})
    page.goto(f"/projects/{many}?sort=name")
    grid = page.get_by_role("grid", name="Runs")
    name, head = grid.get_by_role("link", name="run 0003"), grid.get_by_role("columnheader", name="Name")
    before = name.bounding_box(), head.bounding_box()
    grid.evaluate("grid => grid.scrollLeft = 250")
    page.wait_for_function("grid => grid.hasAttribute('data-aside')", arg=grid.element_handle())
    assert (name.bounding_box(), head.bounding_box()) == before


@pytest.mark.longer
def test_no_cell_covers_the_line_below_its_row(page: Page, many: str) -> None:
    page.goto(f"/projects/{many}?sort=name")
    row = page.get_by_role("grid", name="Runs").get_by_role("row", name="run 0003")
    expect(row).to_be_visible()
    bottoms = "row => [row, ...row.children].map(one => one.getBoundingClientRect().bottom)"
    end, *ends = row.evaluate(bottoms)
    assert max(ends) <= end - 1


def test_a_click_sorts_and_the_address_says_it(page: Page, lab: Lab) -> None:
    page.goto(f"/projects/{lab.project}?cols=name,status,hyperparams.Args/lr,min:loss/train")
    grid = page.get_by_role("grid", name="Runs")
    expect(grid.get_by_role("link", name="vit-base")).to_be_visible()
    head = grid.get_by_role("columnheader", name="lr Args")
    head.get_by_role("button").first.click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    page.wait_for_url("**sort=hyperparams.Args/lr**")
    expect(grid.get_by_role("row").nth(1)).to_contain_text("vit-large")
    head.get_by_role("button").first.click()
    expect(grid.get_by_role("row").nth(1)).to_contain_text("broken")
    go_back(page)
    expect(grid.get_by_role("row").nth(1)).to_contain_text("vit-large")


def test_typed_filters(page: Page, lab: Lab) -> None:
    page.goto(f"/projects/{lab.project}?sub=0")
    grid = page.get_by_role("grid", name="Runs")
    expect(grid.get_by_role("link", name="broken")).to_be_visible()
    page.get_by_role("button", name="+ Filter").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Column").select_option("hyperparams.Args/lr")
    dialog.get_by_label("Number", exact=True).check()
    dialog.get_by_role("textbox", name="Number").fill("1e-2")
    dialog.get_by_role("button", name="Filter", exact=True).click()
    expect(grid.get_by_role("link", name="broken")).to_have_count(0)
    assert sorted(shown(page, 9)) == ["resnet-50 small lr", "vit-base", "vit-large"]
    page.get_by_role("button", name="+ Filter").click()
    dialog.get_by_label("Column").select_option("hyperparams.Args/optimizer")
    dialog.get_by_role("checkbox", name="sgd").check()
    dialog.get_by_role("button", name="Filter", exact=True).click()
    expect(grid.get_by_role("link", name="vit-base")).to_have_count(0)
    expect(page.get_by_role("status").filter(has_text="1 run")).to_be_visible()
    page.get_by_role("button", name="Remove the filter lr ≤ 0.01").click()
    expect(grid.get_by_role("link", name="running now")).to_be_visible()


def test_columns_are_chosen_and_a_curve_is_drawn(page: Page, lab: Lab) -> None:
    page.goto(f"/projects/{lab.project}")
    page.get_by_role("button", name="Columns", exact=True).click()
    dialog = page.get_by_role("dialog", name="Columns")
    dialog.get_by_role("searchbox").fill("loss/train")
    metric = dialog.get_by_role("group", name="loss/train", exact=True)
    metric.get_by_role("button", name="least", exact=True).click()
    metric.get_by_role("button", name="curve").click()
    dialog.get_by_role("button", name="Done").click()
    grid = page.get_by_role("grid", name="Runs")
    expect(grid.get_by_role("columnheader", name="loss/train least")).to_be_visible()
    curve = grid.get_by_role("img", name="loss/train of resnet-50", exact=True)
    expect(curve).to_be_visible()
    pixels = "it => it.getContext('2d').getImageData(0, 0, it.width, it.height).data.some((one) => one > 0)"
    assert curve.evaluate(pixels)


@pytest.mark.check
def test_metrics_and_variants_may_have_slashes(page: Page, server: Served, few: tuple[str, list[str]]) -> None:
    project, (one, two, _) = few
    add(server, scalars(one, "loss/train", "top1", [5.0, 7.0], 1_700_000_000_000))
    add(server, scalars(two, "loss", "train/top1", [2.0, 4.0], 1_700_000_000_000))
    page.goto(f"/projects/{project}?cols=name&sort=name")
    page.get_by_role("button", name="Columns", exact=True).click()
    dialog = page.get_by_role("dialog", name="Columns")
    metric = dialog.get_by_role("group", name="loss/train/top1", exact=True)
    metric.get_by_role("button", name="last", exact=True).click()
    metric.get_by_role("button", name="curve").click()
    dialog.get_by_role("button", name="Done").click()
    grid = page.get_by_role("grid", name="Runs")
    for name, last in (("one", 7), ("two", 4)):
        expect(grid.get_by_role("row", name=name).get_by_role("gridcell", name=str(last), exact=True)).to_be_visible()
        curve = grid.get_by_role("img", name=f"loss/train/top1 of {name}", exact=True)
        pixels = "it => it.getContext('2d').getImageData(0, 0, it.width, it.height).data.some((one) => one > 0)"
        page.wait_for_function(pixels, arg=curve.element_handle())
    page.get_by_role("button", name="+ Filter").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Column").select_option("last:loss/train/top1")
    dialog.get_by_role("textbox", name="Number").fill("5")
    dialog.get_by_role("button", name="Filter", exact=True).click()
    expect(grid.get_by_role("link", name="one")).to_have_count(0)
    expect(grid.get_by_role("link", name="two")).to_be_visible()


def test_usual_columns_have_metrics_and_parameters(page: Page, lab: Lab) -> None:
    page.goto(f"/projects/{lab.project}?sub=0")
    heads = page.get_by_role("grid", name="Runs").get_by_role("columnheader")
    expect(heads.filter(has_text="loss/train last")).to_be_visible()
    expect(heads.filter(has_text="lr Args")).to_be_visible()
    expect(heads.filter(has_text="monitor")).to_have_count(0)
    expect(page.get_by_role("row", name="vit-base")).to_contain_text("0.001")
    before = heads.all_inner_texts()
    page.reload()
    expect(heads.filter(has_text="loss/train last")).to_be_visible()
    assert heads.all_inner_texts() == before
    assert "cols" not in page.url
    page.goto(f"/projects/{lab.project}?sub=0&cols=name,status")
    expect(page.get_by_role("row", name="vit-base")).to_be_visible()
    assert heads.count() == 3


def test_many_runs_are_tagged_and_archived(page: Page, few: tuple[str, list[str]]) -> None:
    project, _ = few
    page.goto(f"/projects/{project}?sort=name")
    grid = page.get_by_role("grid", name="Runs")

    def select(*names: str) -> None:
        for name in names:
            page.get_by_role("checkbox", name=f"Select {name}", exact=True).click()

    select("one", "two")
    page.get_by_role("button", name="Tags", exact=True).last.click()
    page.get_by_label("Add").fill("best, new")
    page.get_by_role("button", name="Change the tags").click()
    expect(grid.get_by_role("row", name="Select one")).to_contain_text("best")
    select("one")
    page.get_by_role("button", name="Archive", exact=True).click()
    expect(grid.get_by_role("link", name="one")).to_have_count(0)
    expect(page.get_by_text("Archived 1 run")).to_be_visible()


@pytest.mark.check
def test_what_the_server_refuses_to_delete_is_named(page: Page, server: Served, few: tuple[str, list[str]]) -> None:
    project, ids = few
    model = server.call("models.create", {"name": "kept", "uri": "s3://a/b", "task": ids[1], "ready": True})["id"]
    page.goto(f"/projects/{project}?sort=name")
    page.get_by_role("checkbox", name="Select all runs that match").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("button", name="Delete 3 runs").click()
    dialog = page.get_by_role("dialog", name="Deleted 2 of 3 runs")
    expect(dialog.get_by_role("listitem")).to_contain_text("published models=1")
    expect(dialog.get_by_role("listitem").get_by_text("two", exact=True)).to_be_visible()
    dialog.get_by_role("button", name="Close").last.click()
    expect(page.get_by_role("checkbox", name="Select two", exact=True)).to_be_checked()
    assert server.call("models.get_by_id", {"model": model})


@pytest.mark.longer
def test_many_runs_are_counted_and_a_group_that_is_deleted_goes(page: Page, server: Served) -> None:
    project = str(server.call("projects.create", {"name": f"Groups {uuid4()}"})["id"])
    with server.client() as client:
        for n in range(210):
            task = _draft(f"run {n:04d}", project=project, tags=["old"] if n < 205 else ["new"])
            client.post("/tasks.create", json=task).raise_for_status()
    conditions = quote(json.dumps([["tags", "is", "old"]]))
    page.goto(f"/projects/{project}?sort=name&where={conditions}")
    page.get_by_role("checkbox", name="Select all runs that match").click()
    page.get_by_role("button", name="Remove the filter Tags is old").click()
    page.get_by_role("button", name="Group by").click()
    page.get_by_role("menuitemradio", name="Tags").click()
    table = page.get_by_role("treegrid", name="Runs")
    expect(table.get_by_role("row", name="Tags: old")).to_contain_text("205 runs")
    page.get_by_role("button", name="Delete", exact=True).click()
    dialog = page.get_by_role("dialog", name="Delete 205 runs?")
    expect(dialog.get_by_role("listitem").filter(has_text="and 200 more")).to_be_visible()
    dialog.get_by_role("button", name="Delete 205 runs").click()
    expect(page.get_by_text("Deleted 205 runs", exact=True)).to_be_visible()
    expect(table.get_by_role("row", name="Tags: old")).to_have_count(0)
    expect(table.get_by_role("row", name="Tags: new")).to_contain_text("5 runs")


@pytest.mark.check
def test_only_drafts_are_enqueued_and_only_active_runs_aborted(
    page: Page, server: Served, few: tuple[str, list[str]]
) -> None:
    project, ids = few
    queue = server.call("queues.create", {"name": f"queue {uuid4()}"})["id"]
    server.call("tasks.started", {"task": ids[0]})
    server.call("tasks.completed", {"task": ids[0], "force": True})
    page.goto(f"/projects/{project}?sort=name")
    page.get_by_role("checkbox", name="Select all runs that match").click()
    page.get_by_role("button", name="Enqueue", exact=True).click()
    dialog = page.get_by_role("dialog", name="Enqueue 3 runs")
    dialog.get_by_label("Queue").select_option(queue)
    expect(dialog.get_by_role("note")).to_contain_text("Left out: 1 run (1 completed). Only drafts and runs")
    dialog.get_by_role("button", name="Enqueue 2 runs").click()
    expect(page.get_by_text("Enqueued 2 runs", exact=True)).to_be_visible()
    page.get_by_role("checkbox", name="Select all runs that match").click()
    page.get_by_role("button", name="Abort", exact=True).click()
    dialog = page.get_by_role("dialog", name="Abort 2 of 3 runs?")
    expect(dialog.get_by_role("note")).to_contain_text("Left out: 1 run (1 completed)")
    dialog.get_by_role("button", name="Abort 2 runs").click()
    expect(page.get_by_text("Aborted 2 runs", exact=True)).to_be_visible()
    statuses = [one["status"] for one in server.call("tasks.get_all", {"id": ids})["tasks"]]
    assert sorted(statuses) == ["completed", "stopped", "stopped"]


def test_runs_are_compared(page: Page, lab: Lab) -> None:
    page.goto(f"/projects/{lab.project}?sub=0")
    for name in ("vit-base", "vit-large"):
        page.get_by_role("checkbox", name=f"Select {name}", exact=True).click()
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url("**/compare?**")
    expect(page.get_by_text("vit-large").first).to_be_visible()


@pytest.mark.check
def test_all_runs_that_match_are_compared(page: Page, lab: Lab) -> None:
    conditions = quote(json.dumps([["hyperparams.Args/optimizer", "is", "adamw"]]))
    page.goto(f"/projects/{lab.project}?sub=0&where={conditions}&group=hyperparams.Args/lr")
    page.get_by_role("link", name="Compare all").click()
    expect(page.get_by_role("heading", name="Compare 2 runs")).to_be_visible()
    expect(page.get_by_label("Group")).to_have_value("hyperparams.Args/lr")


def test_a_view_is_saved_and_opened(page: Page, lab: Lab) -> None:
    page.goto(f"/projects/{lab.project}?sort=name&group=status")
    page.get_by_role("button", name="Views", exact=True).click()
    page.get_by_role("menuitem", name="Save this view…").click()
    page.get_by_label("Name", exact=True).fill("by status")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Saved by status")).to_be_visible()
    page.goto(f"/projects/{lab.project}")
    page.get_by_role("button", name="Views", exact=True).click()
    page.get_by_role("menuitemradio", name="by status").click()
    page.wait_for_url("**group=status**")
    expect(page.get_by_role("row", name="Status: completed")).to_be_visible()


def test_rows_change_while_the_runs_do(page: Page, server: Served, few: tuple[str, list[str]]) -> None:
    project, ids = few
    page.goto(f"/projects/{project}?cols=name,status,last:loss/train&sort=name")
    grid = page.get_by_role("grid", name="Runs")
    row = grid.get_by_role("row", name="Select one")
    expect(row).to_contain_text("draft")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    server.call("tasks.started", {"task": ids[0]})
    expect(row).to_contain_text("running")
    add(server, scalars(ids[0], "loss", "train", [3.0, 0.125], 1_700_000_000_000))
    expect(row).to_contain_text("0.125")
    server.call("tasks.create", _draft("zebra", project=project))
    expect(grid.get_by_role("link", name="zebra")).to_be_visible()


def test_a_phone_shows_the_most_important_columns(phone: Page, lab: Lab) -> None:
    phone.goto(f"/projects/{lab.project}")
    grid = phone.get_by_role("grid", name="Runs")
    expect(grid.get_by_role("link", name="vit-base")).to_be_visible()
    assert grid.get_by_role("columnheader").count() == 4
