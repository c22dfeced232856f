"""The page of what is kept: by type and project, and the tasks of a project, with their quotas."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from apiserver.settings.values import Quota
from tests.harness import Served, served
from tests.pages.browser import Faults, go_back, require_pages


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    require_pages()
    quotas = (Quota("project", bytes=20_000), Quota("task", series=4), Quota("company", bytes=100_000))
    with served(tmp_path_factory.mktemp("usage") / "data", quotas=quotas) as running:
        yield running


def task_with(server: Served, project: str, name: str, lines: int, series: int) -> str:
    task = str(server.call("tasks.create", {"name": name, "type": "training", "project": project})["id"])
    noise = random.Random(0)  # it can't be compressed much
    events = [{"type": "log", "task": task, "msg": noise.randbytes(500).hex(), "timestamp": n} for n in range(lines)]
    point = {"type": "training_stats_scalar", "task": task, "metric": "m", "iter": 0, "value": 1}
    events += [{**point, "variant": f"v{n}"} for n in range(series)]
    with server.client() as client:
        answer = client.post("/events.add_batch", content="\n".join(map(json.dumps, events)))
        assert answer.status_code == 200, answer.text
    return task


def test_usage_is_shown_from_projects_down_to_runs(page: Page, server: Served) -> None:
    large, small = (server.call("projects.create", {"name": name})["id"] for name in ("large", "small"))
    little = task_with(server, small, "little", lines=1, series=1)
    task_with(server, large, "less", lines=10, series=1)
    most = task_with(server, large, "most", lines=35, series=4)
    with server.client() as client:
        answer = client.put(f"/files/small/little.{little}/artifacts/a.bin", content=random.Random(1).randbytes(3000))
        assert answer.status_code == 200, answer.text
    server.stop()  # it remembers for a minute what there was
    server.start()
    page.goto("/settings")
    page.get_by_role("link", name="Usage").click()
    expect(page).to_have_title("Usage")
    types = page.get_by_role("region", name="By type").get_by_role("row")
    expect(types.nth(1)).to_contain_text("logs")  # the most bytes
    expect(types.nth(2)).to_contain_text("files")
    expect(types.nth(3)).to_contain_text("scalars")
    projects = page.get_by_role("region", name="By project").get_by_role("row")
    expect(projects.nth(1)).to_contain_text("large")
    expect(projects.nth(1)).to_contain_text("of 20 kB")
    expect(projects.nth(1)).to_contain_text("used up")
    expect(projects.nth(2)).to_contain_text("small")
    quotas = page.get_by_role("region", name="Fullest quotas").get_by_role("row")
    expect(quotas.nth(1)).to_contain_text(re.compile(r"large\s*project\s*1\d\d % of 20 kB, used up"))
    expect(quotas.nth(2)).to_contain_text(re.compile(r"most\s*task\s*100 % of 4 series, used up"))
    expect(quotas.filter(has_text="The company")).to_contain_text(re.compile(r"[1-9]\d % of 100 kB$"))
    expect(page.get_by_role("link", name="Runs of large")).to_have_attribute("href", f"/projects/{large}")
    page.get_by_role("region", name="By project").get_by_role("link", name="large", exact=True).click()
    tasks = page.get_by_role("region", name="In large").get_by_role("row")
    expect(tasks).to_have_count(3)
    expect(tasks.nth(1)).to_contain_text("most")
    expect(tasks.nth(1)).to_contain_text("100 % of 4 series")
    expect(tasks.nth(2)).to_contain_text("less")
    expect(quotas.nth(1)).to_contain_text("large")  # whatever project is shown
    expect(tasks.nth(1).get_by_role("cell").nth(3)).to_have_text("4")  # the log is no series
    page.reload()
    page.get_by_role("region", name="In large").get_by_role("link", name="most").click()
    expect(page).to_have_url(f"{server.api_url}/projects/{large}/tasks/{most}/overview")
    go_back(page)
    page.get_by_role("link", name="All projects").click()
    expect(projects.nth(2)).to_contain_text("small")
    page.set_viewport_size({"width": 390, "height": 780})
    whole = quotas.nth(1).get_by_text("used up").bounding_box()  # is read on a phone without scrolling sideways
    assert whole is not None
    assert whole["x"] + whole["width"] <= 390


@pytest.mark.check
def test_a_project_that_is_not_there_is_said_and_breaks_nothing(page: Page, server: Served, faults: Faults) -> None:
    faults.allow(r"status of 404 .*project=nope")
    page.goto("/settings/usage?project=nope")
    expect(page.get_by_role("main")).to_contain_text("There is no project 'nope'")
    page.get_by_role("link", name="All projects").click()
    expect(page.get_by_role("heading", name="Usage")).to_be_visible()
