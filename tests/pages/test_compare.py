"""Many runs side by side: their differences, results, brushes, groups; all of it in the address."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.harness import Served
from tests.longer import beyond
from tests.pages.browser import go_back
from tests.pages.lab import RUNS, Lab, add, png, scalars, upload

#: Runs of the large comparison, more than a page shows rows of a table; all of them in `make longer`.
MANY = [300, 1000]


def compare(lab: Lab, names: Sequence[str] = tuple(RUNS), **query: str) -> str:
    """The address of a comparison of these runs."""
    ids = ",".join(lab.tasks[name] for name in names)
    return f"/projects/{lab.project}/compare?{urlencode({'tasks': ids, **query})}"


def rows(table: Locator) -> list[list[str]]:
    """The texts of a table's cells."""
    return [[cell.strip() for cell in row.locator("th, td").all_inner_texts()] for row in table.locator("tr").all()]


def runs_shown(page: Page) -> list[str]:
    """The names of the runs in the table of results."""
    return [name.strip() for name in page.locator("tbody th[scope=row]").all_inner_texts()]


def test_curves_of_all_runs_lie_over_each_other(page: Page, lab: Lab) -> None:
    page.goto(compare(lab))
    chart = page.get_by_role("figure", name="loss · train")
    expect(chart).to_have_attribute("aria-label", re.compile(r"resnet-50.*vit-large"))
    page.get_by_role("checkbox", name="Show vit-large").click()
    expect(chart).not_to_have_attribute("aria-label", re.compile("vit-large"))


@pytest.mark.check
def test_a_group_is_one_curve(page: Page, lab: Lab) -> None:
    page.goto(compare(lab))
    page.get_by_label("Group").select_option(label="optimizer")
    chart = page.get_by_role("figure", name="loss · train")
    expect(chart).to_have_attribute("aria-label", re.compile("adamw, sgd|sgd, adamw"))
    expect(page.get_by_role("article", name="loss · train")).to_contain_text("faint behind")
    page.get_by_label("Band").select_option(label="median, quartiles")
    expect(page).to_have_url(re.compile("group=hyperparams.Args/optimizer&spread=quartiles"))


@pytest.mark.longer
def test_a_group_is_a_range_of_a_parameter(page: Page, server: Served) -> None:
    project = server.call("projects.create", {"name": "Rates", "description": ""})["id"]
    for n in range(1, 61):
        lr = {"section": "Args", "name": "lr", "value": str(n / 1000)}
        task = {"name": f"run {n}", "project": project, "type": "training", "hyperparams": {"Args": {"lr": lr}}}
        add(server, scalars(server.call("tasks.create", task)["id"], "loss", "train", [n, n / 2], 1_790_000_000_000))
    where = json.dumps({"conditions": [["project", "is", project]]})
    page.goto(f"/projects/{project}/compare?{urlencode({'where': where})}")
    page.get_by_label("Group").select_option(label="lr")
    chart = page.get_by_role("figure", name="loss · train")
    expect(chart).to_have_attribute("aria-label", re.compile("0.001 … 0.012.*0.049 … 0.06"))
    page.get_by_label("Ranges").select_option(label="3 ranges")
    expect(chart).to_have_attribute("aria-label", re.compile("0.001 … 0.02.*0.041 … 0.06"))
    expect(page).to_have_url(re.compile("group=hyperparams.Args/lr&bins=3"))
    page.get_by_label("Group").select_option(label="all together")
    expect(page.get_by_label("Ranges")).to_have_count(0)


@pytest.mark.check
def test_a_spike_of_one_run_is_seen_in_its_group_and_zoomed_to(page: Page, server: Served) -> None:
    project = server.call("projects.create", {"name": "Spikes", "description": ""})["id"]
    ids = []
    for name in ("flat", "spike"):
        made = server.call("tasks.create", {"name": name, "project": project, "type": "training"})
        ids.append(made["id"])
        values = [1.0] * 5000
        values[4000] = 9.0 if name == "spike" else 1.0
        add(server, scalars(ids[-1], "loss", "train", values, 1_790_000_000_000))
    query = {"tasks": ",".join(ids), "group": "*", "spread": "extremes"}
    page.goto(f"/projects/{project}/compare?{urlencode(query)}")
    chart = page.get_by_role("figure", name="loss · train")
    expect(chart).to_have_attribute("aria-label", re.compile("least 1, greatest 9[.]"))
    with page.expect_response(lambda answer: "group=" in answer.url and "from=" in answer.url) as zoomed:
        page.goto(f"/projects/{project}/compare?{urlencode({**query, 'x': '3990..4010'})}")
    content = zoomed.value.body()
    series = json.loads(content[4 : 4 + int.from_bytes(content[:4], "little")])["series"]
    assert [(one["rows"], one["x"]) for one in series] == [(25, [3988, 1])]  # x from there on, in steps of 1
    expect(chart).to_have_attribute("aria-label", re.compile("least 1, greatest 9[.]"))


def test_results_are_a_table_with_the_best_marked(page: Page, lab: Lab) -> None:
    page.goto(compare(lab, tab="table"))
    page.get_by_label("Metrics show their").select_option("min")
    page.get_by_role("button", name="loss/train", exact=True).click()
    table = page.get_by_role("grid")
    expect(table.locator("thead")).not_to_contain_text("epochs")  # it is the same in all runs
    order = runs_shown(page)
    assert len(order) == len(RUNS)
    assert order[-1] == "broken"
    best = table.locator("tbody tr").first.locator("[data-best]")
    expect(best.first).to_contain_text("Best:")
    page.get_by_role("button", name="loss/train", exact=False).first.click()
    assert runs_shown(page)[0] == "broken"
    page.get_by_label("also columns in which all are the same").check()
    expect(table.locator("thead")).to_contain_text("epochs")


def test_only_what_differs_is_shown(page: Page, lab: Lab) -> None:
    page.goto(compare(lab, ["resnet-50", "resnet-50 small lr"], tab="differences"))
    table = page.get_by_role("region", name="Differences")
    expect(table).to_contain_text("Commit")
    shown = {row[0]: row[1:] for row in rows(table)}
    assert shown["lr"] == ["0.1", "0.01"]
    assert shown["numpy"] == ["2.1.0", "2.1.1"]
    assert not {"optimizer", "torch", "Repository", "epochs"} & set(shown)
    page.get_by_label("also what is the same in all runs").check()
    expect(table).to_contain_text("optimizer")
    page.get_by_label("Find names and values").fill("numpy")
    expect(table).not_to_contain_text("Commit")


@pytest.mark.check
def test_a_brush_chooses_runs_on_all_tabs(page: Page, lab: Lab) -> None:
    page.goto(compare(lab, tab="parallel"))
    zone = page.locator('[data-axis="hyperparams.Args/lr"]')
    box = zone.bounding_box()
    assert box is not None
    middle = box["x"] + box["width"] / 2
    page.mouse.move(middle, box["y"] + 1)
    page.mouse.down()
    page.mouse.move(middle, box["y"] + box["height"] * 0.3, steps=4)
    page.mouse.up()
    expect(
        page.get_by_text("1 chosen by brushes")
    ).to_be_visible()  # of the learning rates 0.0003 to 10, one is so large
    page.get_by_role("tab", name="Table").click()
    expect(page.locator("tbody th[scope=row]")).to_have_text(["broken"])
    page.reload()
    expect(page.locator("tbody th[scope=row]")).to_have_text(["broken"])
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("tbody th[scope=row]")).to_have_count(len(RUNS))


@pytest.mark.longer
def test_brushes_and_runs_are_reached_by_keys(page: Page, lab: Lab) -> None:
    page.goto(compare(lab, tab="parallel"))
    slider = page.get_by_role("slider", name="Choose runs by optimizer")
    slider.press("ArrowDown")
    expect(slider).to_have_attribute("aria-valuetext", "adamw")
    expect(page.get_by_text("2 chosen by brushes")).to_be_visible()
    slider.press("Delete")
    expect(slider).to_have_attribute("aria-valuetext", "all runs")
    plot = page.get_by_role("group", name=re.compile("^Parallel coordinates"))
    plot.press("ArrowRight")
    name = plot.get_by_role("status").locator("b").inner_text()
    plot.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(name)


@pytest.mark.check
def test_a_rectangle_in_the_scatter_chooses_runs(page: Page, lab: Lab) -> None:
    page.goto(compare(lab, tab="scatter", across="hyperparams.Args/lr", up="max:accuracy/top 1"))
    plot = page.get_by_role("group", name="accuracy/top 1 over lr")
    box = plot.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + box["height"] * 0.4)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.99, box["y"] + box["height"] * 0.88, steps=4)
    page.mouse.up()
    expect(page.get_by_text("1 chosen by brushes")).to_be_visible()
    expect(page).to_have_url(re.compile("brush=.*brush="))


@pytest.mark.longer
def test_the_base_run_is_chosen_and_runs_come_and_go(page: Page, lab: Lab) -> None:
    page.goto(compare(lab, ["resnet-50", "vit-base"], tab="differences"))
    head = page.get_by_role("region", name="Differences").locator("thead th")
    expect(head.nth(1)).to_contain_text("resnet-50")
    page.get_by_role("button", name="More about vit-base").click()
    page.get_by_role("menuitem", name="Compare the others with this run").click()
    expect(head.nth(1)).to_contain_text("vit-base")
    page.get_by_label("Add a run by name or id").fill("vit-lar")
    page.get_by_role("button", name="vit-large").click()
    expect(head).to_have_count(4)
    page.get_by_role("button", name="More about vit-large").click()
    page.get_by_role("menuitem", name="Remove from the comparison").click()
    expect(head).to_have_count(3)
    go_back(page)
    expect(head).to_have_count(4)


@pytest.mark.check
def test_addresses_of_clearml_lead_here(page: Page, lab: Lab) -> None:
    ids = f"{lab.tasks['resnet-50']},{lab.tasks['vit-base']}"
    page.goto(f"/projects/{lab.project}/compare-experiments;ids={ids}/hyper-params/graph")
    expect(page.get_by_role("group", name=re.compile("^Parallel coordinates of 2 runs"))).to_be_visible()
    expect(page).to_have_url(re.compile(f"/compare\\?tasks={ids}&tab=parallel"))


@pytest.fixture(scope="module", params=beyond(MANY[:1], MANY))
def many(request: pytest.FixtureRequest, server: Served) -> list[str]:
    """The ids of many runs, each with a learning rate and a loss."""
    count: int = request.param
    project = server.call("projects.create", {"name": f"{count:,} runs", "description": ""})["id"]
    ids, events = [], []
    with server.client() as client:
        for n in range(count):
            lr = {"section": "Args", "name": "lr", "value": f"{10 ** (-5 + 4 * n / count):.4g}", "type": "float"}
            task = {"name": f"trial {n}", "project": project, "type": "training", "hyperparams": {"Args": {"lr": lr}}}
            ids.append(client.post("/tasks.create", json=task).json()["data"]["id"])
            events += scalars(ids[-1], "loss", "train", [2.0 + n / count, 1.0 + n / count], 1_790_000_000_000)
    add(server, events)
    return ids


@pytest.mark.check
def test_many_runs(page: Page, many: list[str]) -> None:
    page.goto(f"/projects/*/compare?tasks={','.join(many)}")
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Compare {len(many):,} runs")
    chart = page.get_by_role("figure", name="loss · train")
    expect(chart).to_have_attribute("aria-label", re.compile(f"all {len(many):,} runs"))
    page.get_by_role("tab", name="Table").click()
    grid = page.get_by_role("grid")
    expect(grid).to_have_attribute("aria-rowcount", str(len(many) + 1))
    assert grid.locator("tbody tr").count() < 100
    page.get_by_role("tab", name="Differences").click()
    expect(page.get_by_role("region", name="Differences")).to_contain_text("lr")
    page.get_by_role("tab", name="Parallel coordinates").click()
    slider = page.get_by_role("slider", name="Choose runs by lr")
    slider.press("ArrowUp")
    expect(page.get_by_text(re.compile(r"\d+ chosen by brushes"))).to_be_visible()


@pytest.fixture(scope="module")
def twin(server: Served, lab: Lab) -> str:
    """The id of a run with the same plots and images as the first one, but at the iterations 100 and 250."""
    made = {"name": "twin", "project": lab.projects["Language"], "type": "training"}
    task: str = server.call("tasks.create", made)["id"]
    figure = {"type": "table", "header": {"values": ["class"]}, "cells": {"values": [["cat"]]}}
    common = {"task": task, "timestamp": 1_790_000_000_000}
    for iteration in (100, 250):
        url = upload(server, f"twin/{iteration}.png", png(8, 8, (iteration, 0, 0)))
        image = {"type": "training_debug_image", "metric": "samples", "variant": "input", "url": url, "key": url}
        plot = {"type": "plot", "metric": "summary", "variant": "table", "plot_str": json.dumps({"data": [figure]})}
        add(server, [{**common, **image, "iter": iteration}, {**common, **plot, "iter": iteration}])
    return task


def test_plots_are_side_by_side_at_one_iteration(page: Page, lab: Lab, twin: str) -> None:
    page.goto(f"/projects/*/compare?tasks={lab.run},{twin}&tab=plots")
    first = page.get_by_role("article", name="summary / table of resnet-50")
    other = page.get_by_role("article", name="summary / table of twin")
    expect(first).to_contain_text("iteration 300")
    expect(other).to_contain_text("iteration 250")
    page.get_by_role("button", name="Iteration before").click()
    expect(first).to_contain_text("iteration 200")
    expect(other).to_contain_text("iteration 250")
    expect(page).to_have_url(re.compile("iter=250"))
    page.reload()
    expect(first).to_contain_text("iteration 200")
    page.get_by_role("button", name="Newest").click()
    expect(first).to_contain_text("iteration 300")
    expect(page.get_by_role("region", name="confusion")).to_contain_text("Without: twin")


@pytest.mark.check
def test_images_are_side_by_side_at_one_iteration(page: Page, lab: Lab, twin: str) -> None:
    page.goto(f"/projects/*/compare?tasks={lab.run},{twin}&tab=images&iter=220")
    first = page.get_by_role("figure", name="samples / input of resnet-50")
    other = page.get_by_role("figure", name="samples / input of twin")
    expect(first).to_contain_text("200")
    expect(other).to_contain_text("100")
    first.get_by_role("button").click()
    opened = page.get_by_role("dialog", name="samples / input of resnet-50")
    expect(opened).to_contain_text("iteration 200")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("dialog", name="samples / input of twin")).to_contain_text("iteration 100")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


@pytest.mark.check
def test_names_of_users_are_text(page: Page, server: Served, lab: Lab) -> None:
    name = "<img src=x onerror=alert(1)>"
    lr = {"section": "Args", "name": name, "value": name, "type": "str"}
    task = {"name": name, "project": lab.project, "type": "training", "hyperparams": {"Args": {name: lr}}}
    id = server.call("tasks.create", task)["id"]
    for tab in ("table", "differences", "parallel", "scatter"):
        page.goto(f"/projects/{lab.project}/compare?tasks={id},{lab.run}&tab={tab}")
        expect(page.get_by_role("link", name=name).first).to_be_visible()
        assert page.locator("img").count() == 0
