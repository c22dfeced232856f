"""Answers that come late: after a dialog was closed, a page was left, or somebody has begun to type something else."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.harness import Served
from tests.viewer.browser import Faults, arrived, go_back, hold, refuse
from tests.viewer.lab import Lab, plot


@pytest.fixture
def task(server: Served, lab: Lab) -> str:
    """A draft of its own."""
    hyperparams = {"Args": {"lr": {"section": "Args", "name": "lr", "value": "1"}}}
    body = {"name": "mine", "type": "training", "project": lab.project, "hyperparams": hyperparams}
    return str(server.call("tasks.create", body)["id"])


@pytest.fixture
def run(page: Page, lab: Lab, task: str) -> Page:
    """The page of `task`."""
    page.goto(f"/projects/{lab.project}/tasks/{task}/overview")
    page.get_by_role("region", name="Parameters").wait_for()
    page.get_by_text("Live", exact=True).wait_for()
    return page


def choose(page: Page, action: str) -> None:
    page.get_by_role("button", name="Actions").click()
    page.get_by_role("menuitem", name=action, exact=True).click()


def test_the_answer_to_a_dialog_that_was_closed_closes_no_other_one_and_leads_nowhere(run: Page, task: str) -> None:
    held = hold(run, "**/tasks.clone")
    choose(run, "Clone…")
    run.get_by_role("dialog").get_by_role("button", name="Clone").click()
    answer = arrived(run, held)
    run.keyboard.press("Escape")
    choose(run, "Move to a project…")
    run.get_by_role("combobox", name="Project").fill("Somewhere")
    answer.continue_()
    expect(run.get_by_role("status").filter(has_text="The clone is a draft")).to_be_visible()
    expect(run.get_by_role("combobox", name="Project")).to_have_value("Somewhere")
    assert task in run.url


def test_a_name_that_is_refused_late_comes_back_and_leaves_the_focus_where_it_is(run: Page, faults: Faults) -> None:
    faults.allow("status of 400")
    held = hold(run, "**/tasks.update")
    run.get_by_role("button", name="Change the name of the run").click()
    run.keyboard.type(" too")
    run.keyboard.press("Enter")
    answer = arrived(run, held)
    run.get_by_role("button", name="Add a comment").click()
    run.keyboard.type("a com")
    refuse(answer, "this name is not good")
    expect(run.get_by_role("status").filter(has_text="Not done. this name is not good")).to_be_visible()
    expect(run.get_by_role("textbox", name="name of the run")).to_have_value("mine too")
    run.keyboard.type("ment")
    expect(run.get_by_role("textbox", name="Comment")).to_have_value("a comment")


def test_one_edit_that_is_refused_leaves_the_others_as_they_are(run: Page, faults: Faults) -> None:
    faults.allow("status of 400")
    held = hold(run, "**/tasks.update")
    run.get_by_role("button", name="Change the name of the run").click()
    run.keyboard.type(" too")
    run.keyboard.press("Enter")
    answer = arrived(run, held)
    run.get_by_role("button", name="Add a comment").click()
    run.keyboard.type("a comment")
    run.get_by_role("button", name="Save").click()
    refuse(answer, "this name is not good")
    arrived(run, held, 2)
    expect(run.get_by_role("textbox", name="name of the run")).to_be_visible()
    expect(run.get_by_role("region", name="Comment")).to_contain_text("a comment")
    held[1].continue_()


@pytest.mark.parametrize("newer", ["", "a newer draft"])
def test_a_comment_that_is_refused_comes_back_but_not_over_a_newer_draft(run: Page, faults: Faults, newer: str) -> None:
    faults.allow("status of 400")
    held = hold(run, "**/tasks.update")
    field = run.get_by_role("textbox", name="Comment")
    run.get_by_role("button", name="Add a comment").click()
    field.fill("the first")
    run.get_by_role("button", name="Save").click()
    answer = arrived(run, held)
    if newer:
        run.get_by_role("region", name="Comment").get_by_role("button", name="Edit").click()
        field.fill(newer)
    refuse(answer, "not now")
    expect(run.get_by_role("status").filter(has_text="Not done. not now")).to_be_visible()
    expect(field).to_have_value(newer or "the first")


def test_parameters_that_are_saved_late_do_not_end_another_change_of_them(run: Page) -> None:
    held = hold(run, "**/tasks.edit_hyper_params")
    region = run.get_by_role("region", name="Parameters")
    region.get_by_role("button", name="Edit").click()
    region.get_by_role("textbox", name="Value of lr").fill("2")
    region.get_by_role("button", name="Save").click()
    answer = arrived(run, held)
    region.get_by_role("button", name="Cancel").click()
    region.get_by_role("button", name="Edit").click()
    region.get_by_role("textbox", name="Value of lr").fill("3")
    answer.continue_()
    expect(run.get_by_role("status").filter(has_text="The parameters are saved")).to_be_visible()
    expect(region.get_by_role("textbox", name="Value of lr")).to_have_value("3")


def test_a_key_is_made_once_by_a_double_click_and_the_next_label_stays(page: Page) -> None:
    page.goto("/settings")
    held = hold(page, "**/auth.create_credentials")
    label = page.get_by_label("Label of a new key")
    label.fill("only one")
    page.get_by_role("button", name="Make a key").dblclick()
    answer = arrived(page, held)
    label.fill("the next")
    answer.continue_()
    page.get_by_role("dialog").get_by_text("only now").wait_for()
    page.keyboard.press("Escape")
    expect(label).to_have_value("the next")
    assert len(held) == 1


def test_the_second_click_of_a_double_one_does_not_close_the_dialog_with_the_secret(page: Page) -> None:
    page.goto("/settings")
    button = page.get_by_role("button", name="Make a key")
    box = button.bounding_box()
    assert box is not None
    at = (box["x"] + 5, box["y"] + 5)
    page.mouse.click(*at)
    page.get_by_role("dialog").get_by_text("only now").wait_for()
    page.mouse.move(*at)
    page.mouse.down(click_count=2)
    page.mouse.up(click_count=2)
    expect(page.get_by_role("dialog")).to_be_visible()


def test_a_heading_that_comes_late_leaves_the_focus_where_it_was_put_meanwhile(page: Page, lab: Lab) -> None:
    page.goto(f"/projects/{lab.project}")
    held = hold(page, "**/tasks.get_all_ex")
    page.get_by_role("link", name="vit-large").click()
    answer = arrived(page, held)
    search = page.get_by_role("button", name="Search (key: /)")
    search.focus()
    answer.continue_()
    page.get_by_role("heading", name="vit-large").wait_for()
    expect(search).to_be_focused()


def test_a_step_to_another_plot_changes_no_address_of_another_tab(run: Page, server: Served, task: str) -> None:
    for iteration in (1, 2):
        plot(server, task, "table", iteration)
    run.get_by_role("tab", name="Plots").click()
    held = hold(run, "**/events.next_plot_sample")
    run.get_by_role("button", name="Iteration before").click()
    answer = arrived(run, held)
    run.get_by_role("tab", name="System").click()
    with run.expect_response("**/events.next_plot_sample"):
        answer.continue_()
    run.get_by_role("tab", name="Console").click()
    expect(run).to_have_url(re.compile("/console$"))
    go_back(run)
    expect(run).to_have_url(re.compile("/system$"))


def test_a_sign_out_that_fails_says_so(page: Page, faults: Faults) -> None:
    faults.allow("ERR_FAILED")
    page.route("**/login.logout", lambda route: route.abort())
    page.goto("/settings")
    page.get_by_role("button", name="admin menu").click()
    page.get_by_role("menuitem", name="Sign out").click()
    expect(page.get_by_role("status").filter(has_text="Not done. The server does not answer")).to_be_visible()
