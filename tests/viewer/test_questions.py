"""Questions that take long: they are answered, whatever else changes or fails meanwhile."""

from __future__ import annotations

from playwright.sync_api import Page, Request, expect

from tests.harness import Served
from tests.viewer.browser import Faults, arrived, hold
from tests.viewer.lab import Lab, plot


def test_a_question_under_way_is_answered_though_more_changes_come(page: Page, server: Served, lab: Lab) -> None:
    task = server.call("tasks.create", {"name": "mine", "type": "training", "project": lab.project})["id"]
    plot(server, task, "first")
    page.goto(f"/projects/{lab.project}/tasks/{task}/plots")
    panel = page.get_by_role("tabpanel")
    expect(panel.get_by_role("heading", name="first")).to_be_visible()
    page.get_by_text("Live", exact=True).wait_for()
    given_up: list[Request] = []
    page.on("requestfailed", lambda request: given_up.append(request))
    held = hold(page, "**/events.get_multi_task_metrics")
    plot(server, task, "second")
    answer = arrived(page, held).fetch()
    plot(server, task, "third")
    server.call("tasks.update", {"task": task, "name": "renamed"})
    expect(page.get_by_role("heading", name="renamed")).to_be_visible()  # so the page has heard of the third plot
    held[0].fulfill(response=answer)
    expect(panel.get_by_role("heading", name="second")).to_be_visible()
    arrived(page, held, 2).continue_()
    expect(panel.get_by_role("heading", name="third")).to_be_visible()
    assert [request.url for request in given_up if "get_multi_task_metrics" in request.url] == []


def test_a_question_that_finds_no_server_gives_up_no_other(page: Page, server: Served, faults: Faults) -> None:
    faults.allow("ERR_FAILED")
    held = hold(page, "**/auth.get_credentials")
    failed = hold(page, "**/users.get_sessions")
    page.goto("/settings")
    answer = arrived(page, held)
    arrived(page, failed).abort()
    arrived(page, failed, 2).continue_()  # everything is asked once more
    expect(page.get_by_text("this one")).to_be_visible()
    answer.continue_()
    expect(page.get_by_role("row").filter(has_text=server.key)).to_be_visible()
