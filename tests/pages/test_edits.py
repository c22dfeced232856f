"""Changing a run on its page: name, comment, tags, parameters, and what the menu of actions does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.harness import Served
from tests.pages.browser import DESKTOP, Faults, opened_page
from tests.pages.lab import Lab

Make = Callable[..., str]


@pytest.fixture
def make(server: Served, lab: Lab) -> Make:
    """Makes a run, a draft unless a status is given, and answers its id."""

    def make(status: str = "created", **fields: Any) -> str:
        task = server.call("tasks.create", {"name": "mine", "type": "training", "project": lab.project, **fields})["id"]
        if status != "created":
            server.call("tasks.started", {"task": task})
        if status not in ("created", "in_progress"):
            server.call(f"tasks.{status}", {"task": task})
        return str(task)

    return make


def show(page: Page, lab: Lab, task: str) -> None:
    page.goto(f"/projects/{lab.project}/tasks/{task}/overview")
    page.get_by_role("region", name="Parameters").wait_for()


def task_of(server: Served, task: str) -> dict[str, Any]:
    found: dict[str, Any] = server.call("tasks.get_by_id", {"task": task})["task"]
    return found


def choose(page: Page, action: str) -> None:
    page.get_by_role("button", name="Actions").click()
    page.get_by_role("menuitem", name=action, exact=True).click()


def parameters(**values: str) -> dict[str, Any]:
    return {"Args": {name: {"section": "Args", "name": name, "value": value} for name, value in values.items()}}


def test_name_comment_and_tags(page: Page, server: Served, lab: Lab, make: Make) -> None:
    task = make("completed", tags=["old"])
    show(page, lab, task)
    page.get_by_role("button", name="Change the name of the run").click()
    page.get_by_role("textbox", name="name of the run").fill("better")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="better")).to_be_visible()
    page.get_by_role("button", name="+ tag").click()
    page.get_by_role("combobox", name="New tag").fill("new")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Remove the tag old").click()
    expect(page.get_by_role("group", name="Tags")).not_to_contain_text("old")
    page.get_by_role("button", name="Add a comment").click()
    page.get_by_role("textbox", name="Comment").fill("It went well.")
    with page.expect_response(lambda answer: "It went well." in (answer.request.post_data or "")):
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("region", name="Comment")).to_contain_text("It went well.")
    page.reload()
    expect(page.get_by_role("heading", name="better")).to_be_visible()
    found = task_of(server, task)
    assert (found["name"], found["tags"], found["comment"]) == ("better", ["new"], "It went well.")


@pytest.mark.check
def test_tags_that_others_add_to_a_model_meanwhile_stay(
    page: Page, browser: Browser, server: Served, lab: Lab, faults: Faults
) -> None:
    new = {"name": "mine", "uri": "file:///m", "project": lab.project, "tags": ["old"]}
    model = server.call("models.create", new)["id"]
    address = f"/projects/{lab.project}/models/{model}"
    with opened_page(browser, server, faults, key=(server.key, server.secret), **DESKTOP) as other:
        for one in (page, other):
            one.goto(address)
            expect(one.get_by_role("group", name="Tags")).to_contain_text("old")
        for one, tag in ((page, "mine"), (other, "theirs")):
            one.get_by_role("button", name="+ tag").click()
            one.get_by_role("combobox", name="New tag").fill(tag)
            with one.expect_response("**/*.update_tags"):
                one.keyboard.press("Enter")
        with page.expect_response("**/*.update_tags"):
            page.get_by_role("button", name="Remove the tag old").click()
    assert server.call("models.get_by_id", {"model": model})["model"]["tags"] == ["mine", "theirs"]
    page.reload()
    for tag in ("mine", "theirs"):
        expect(page.get_by_role("group", name="Tags")).to_contain_text(tag)


@pytest.mark.check
def test_dialogs_begin_in_their_first_field_or_else_on_their_main_button(
    page: Page, server: Served, lab: Lab, make: Make
) -> None:
    task = make("completed")
    show(page, lab, task)
    dialog = page.get_by_role("dialog")
    choose(page, "Publish…")
    expect(dialog.get_by_role("button", name="Publish")).to_be_focused()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Actions").click()
    page.get_by_role("menuitem", name="Reset…").focus()
    page.keyboard.down("Enter")
    expect(dialog.get_by_role("button", name="Reset")).to_be_focused()
    page.keyboard.down("Enter")  # the key is held down
    page.keyboard.up("Enter")
    expect(dialog.get_by_role("button", name="Reset")).to_be_focused()
    page.keyboard.press("Escape")
    choose(page, "Clone…")
    expect(dialog.get_by_role("textbox", name="Name")).to_be_focused()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Clone of mine").wait_for()
    assert task_of(server, task)["status"] == "completed"


@pytest.mark.check
def test_the_focus_returns_to_the_button_that_opened_a_dialog_or_a_field(page: Page, lab: Lab, make: Make) -> None:
    show(page, lab, make("completed"))
    actions, dialog = page.get_by_role("button", name="Actions"), page.get_by_role("dialog")
    actions.focus()
    page.keyboard.press("Enter")
    page.get_by_role("menuitem", name="Clone…").press("Enter")
    expect(dialog.get_by_role("textbox", name="Name")).to_be_focused()
    page.keyboard.press("Escape")
    expect(actions).to_be_focused()
    rename = page.get_by_role("button", name="Change the name of the run")
    for key in ("Escape", "Enter"):
        rename.press("Enter")
        field = page.get_by_role("textbox", name="name of the run")
        field.fill("better")
        field.press(key)
        expect(rename).to_be_focused()
    page.goto(f"/projects/{lab.project}")
    columns = page.get_by_role("button", name="Columns")
    columns.press("Enter")
    dialog.wait_for()
    page.keyboard.press("Escape")
    expect(columns).to_be_focused()


@pytest.mark.check
def test_a_text_that_is_selected_beyond_a_dialog_does_not_close_it(page: Page, lab: Lab, make: Make) -> None:
    show(page, lab, make("completed"))
    choose(page, "Clone…")
    page.get_by_role("textbox", name="Name").hover()
    page.mouse.down()
    page.mouse.move(5, 5)
    page.mouse.up()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.mouse.click(5, 5)
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_clone_then_enqueue_then_dequeue(page: Page, server: Served, lab: Lab, make: Make) -> None:
    task = make("completed", hyperparams=parameters(lr="1"))
    show(page, lab, task)
    choose(page, "Clone…")
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("textbox", name="Name").fill("second try")
    dialog.get_by_role("button", name="Clone").click()
    page.get_by_role("heading", name="second try").wait_for()
    clone = page.url.rpartition("/tasks/")[2].partition("/")[0]
    assert task_of(server, clone)["parent"] == task
    choose(page, "Enqueue…")
    page.get_by_role("dialog").get_by_role("button", name="Enqueue").click()
    expect(page.get_by_text("queued", exact=True)).to_be_visible()
    choose(page, "Dequeue")
    expect(page.get_by_text("draft", exact=True)).to_be_visible()
    assert task_of(server, clone)["status"] == "created"


@pytest.mark.check
def test_the_server_takes_all_that_the_page_asks_of_a_run(
    page: Page, faults: Faults, server: Served, lab: Lab, make: Make
) -> None:
    faults.allow("status of 404")  # the page may ask why the stream of a run ended that is gone
    task = make(hyperparams=parameters(lr="0.1", old="x"))
    show(page, lab, task)
    region, dialog = page.get_by_role("region", name="Parameters"), page.get_by_role("dialog")
    region.get_by_role("button", name="Edit").click()
    region.get_by_role("textbox", name="Value of lr").fill("0.2")
    region.get_by_role("button", name="Remove old").click()
    region.get_by_role("button", name="Save").click()
    expect(region.get_by_role("rowheader")).to_have_text(["lr"])
    assert task_of(server, task)["hyperparams"]["Args"]["lr"]["value"] == "0.2"
    choose(page, "Move to a project…")
    dialog.get_by_role("combobox", name="Project").fill("Elsewhere/new")
    dialog.get_by_role("button", name="Move").click()
    expect(page.get_by_role("link", name="Elsewhere/new")).to_be_visible()
    server.call("tasks.started", {"task": task})
    expect(page.get_by_text("running", exact=True)).to_be_visible()
    choose(page, "Abort")
    expect(page.get_by_text("aborted", exact=True)).to_be_visible()
    choose(page, "Reset…")
    dialog.get_by_role("button", name="Reset").click()
    expect(page.get_by_text("draft", exact=True)).to_be_visible()
    server.call("tasks.started", {"task": task})
    server.call("tasks.completed", {"task": task})
    expect(page.get_by_text("completed", exact=True)).to_be_visible()
    choose(page, "Archive")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("archived", exact=True)).to_have_count(0)
    choose(page, "Publish…")
    dialog.get_by_role("button", name="Publish").click()
    expect(page.get_by_text("published", exact=True)).to_be_visible()
    gone = make()
    show(page, lab, gone)
    choose(page, "Delete…")
    dialog.get_by_role("button", name="Delete").click()
    page.wait_for_url(f"**/projects/{lab.project}")
    assert server.call("tasks.get_all", {"id": [gone]})["tasks"] == []
