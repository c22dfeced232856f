"""Changing a run on its page: name, comment, tags, parameters, and what the menu of actions does."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Request, Route, expect

from tests.harness import Served, wait_until
from tests.viewer.browser import DESKTOP, Faults, arrived, hold, opened_page, refuse
from tests.viewer.lab import Lab

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


def test_an_edit_that_is_refused_goes_back_and_says_why(
    page: Page, faults: Faults, server: Served, lab: Lab, make: Make
) -> None:
    faults.allow("status of 400")
    task = make()
    show(page, lab, task)
    page.route("**/tasks.update", lambda route: route.continue_(post_data={"task": task, "name": ""}))
    page.get_by_role("button", name="Change the name of the run").click()
    page.get_by_role("textbox", name="name of the run").fill("too late")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").filter(has_text="Not done.")).to_contain_text("name")
    expect(page.get_by_role("textbox", name="name of the run")).to_have_value("too late")
    page.get_by_role("textbox", name="name of the run").press("Escape")
    expect(page.get_by_role("heading", name="mine")).to_be_visible()


def test_an_edit_shows_on_while_others_change_the_run(page: Page, server: Served, lab: Lab, make: Make) -> None:
    task = make()
    show(page, lab, task)
    page.get_by_text("Live", exact=True).wait_for()
    held: list[Route] = []
    page.route("**/tasks.update", lambda route: held.append(route))
    page.get_by_role("button", name="Change the name of the run").click()
    page.get_by_role("textbox", name="name of the run").fill("better")
    with page.expect_request("**/tasks.update"):
        page.keyboard.press("Enter")
    server.call("tasks.update", {"task": task, "comment": "theirs"})
    expect(page.get_by_role("region", name="Comment")).to_contain_text("theirs")
    expect(page.get_by_role("heading", name="better")).to_be_visible()
    held[0].continue_()
    expect(page.get_by_role("heading", name="better")).to_be_visible()
    wait_until(lambda: task_of(server, task)["name"] == "better")


def test_edits_are_sent_one_after_another(page: Page, server: Served, lab: Lab, make: Make) -> None:
    task = make("completed", tags=["old"])
    show(page, lab, task)
    held: list[Route] = []
    page.route("**/tasks.update_tags", lambda route: route.continue_() if held else held.append(route))
    tags = page.get_by_role("group", name="Tags")
    page.get_by_role("button", name="+ tag").click()
    page.get_by_role("combobox", name="New tag").fill("new")
    with page.expect_request("**/tasks.update_tags"):
        page.keyboard.press("Enter")
    page.get_by_role("button", name="Remove the tag old").click()
    expect(tags).not_to_contain_text("old")
    assert task_of(server, task)["tags"] == ["old"]
    with page.expect_response(lambda answer: '"remove_tags":["old"]' in (answer.request.post_data or "")):
        held[0].continue_()
    assert task_of(server, task)["tags"] == ["new"]
    expect(tags).to_contain_text("new")
    expect(tags).not_to_contain_text("old")


def test_a_new_tag_is_sent_once_and_not_by_escape(
    page: Page, faults: Faults, server: Served, lab: Lab, make: Make
) -> None:
    faults.allow("status of 400")
    task = make("completed")
    show(page, lab, task)
    held = hold(page, "**/tasks.update_tags")
    field = page.get_by_role("combobox", name="New tag")
    for tag, key in (("forgotten", "Escape"), ("refused", "Enter")):
        page.get_by_role("button", name="+ tag").click()
        field.fill(tag)
        page.keyboard.press(key)
    refuse(arrived(page, held), "not this one")
    expect(field).to_have_value("refused")
    field.fill("good")
    field.press("Enter")
    arrived(page, held, 2).continue_()
    wait_until(lambda: task_of(server, task)["tags"] == ["good"])
    assert len(held) == 2


@pytest.mark.parametrize("service", ["tasks", "models"])
def test_tags_that_others_add_meanwhile_stay(
    page: Page, browser: Browser, server: Served, lab: Lab, make: Make, faults: Faults, service: str
) -> None:
    if service == "tasks":
        thing = make("completed", tags=["old"])
    else:
        new = {"name": "mine", "uri": "file:///m", "project": lab.project, "tags": ["old"]}
        thing = server.call("models.create", new)["id"]
    address = f"/projects/{lab.project}/{service}/{thing}"
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
    name = service.removesuffix("s")
    assert server.call(f"{service}.get_by_id", {name: thing})[name]["tags"] == ["mine", "theirs"]
    page.reload()
    for tag in ("mine", "theirs"):
        expect(page.get_by_role("group", name="Tags")).to_contain_text(tag)


@pytest.mark.parametrize(("key", "sent"), [("Enter", [{"name"}, {"comment"}]), ("Escape", [{"comment"}])])
def test_a_key_ends_the_change_of_a_name_once(
    page: Page, server: Served, lab: Lab, make: Make, key: str, sent: list[set[str]]
) -> None:
    task = make()
    show(page, lab, task)
    asked: list[Request] = []
    page.on("request", lambda request: asked.append(request))
    page.get_by_role("button", name="Change the name of the run").click()
    page.get_by_role("textbox", name="name of the run").fill("typed")
    page.keyboard.press(key)
    page.get_by_role("button", name="Add a comment").click()
    page.keyboard.type("later")
    with page.expect_response("**/tasks.update"):  # edits are sent one after another
        page.get_by_role("button", name="Save").click()
    wait_until(lambda: task_of(server, task)["comment"] == "later")
    expect(page.get_by_role("heading", name="typed" if key == "Enter" else "mine")).to_be_visible()
    edits = [json.loads(request.post_data or "") for request in asked if request.url.endswith("tasks.update")]
    assert [edit.keys() - {"task"} for edit in edits] == sent


def test_a_double_click_clones_once_and_closes_no_dialog(page: Page, server: Served, lab: Lab, make: Make) -> None:
    show(page, lab, make("completed"))
    held = hold(page, "**/tasks.clone")
    page.get_by_role("button", name="Actions").click()
    page.get_by_role("menuitem", name="Clone…", exact=True).dblclick()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("textbox", name="Name").fill("cloned once")
    dialog.get_by_role("button", name="Clone").evaluate("button => { button.click(); button.click(); }")
    arrived(page, held).continue_()
    page.get_by_role("heading", name="cloned once").wait_for()
    assert len(held) == 1


def test_a_clone_gets_no_blank_name(page: Page, server: Served, lab: Lab, make: Make) -> None:
    task = make("completed")
    show(page, lab, task)
    asked = hold(page, "**/tasks.clone")
    choose(page, "Clone…")
    dialog = page.get_by_role("dialog")
    name = dialog.get_by_role("textbox", name="Name")
    name.fill("  ")
    name.press("Enter")
    assert name.evaluate("field => field.validity.patternMismatch")
    name.fill(" cloned ")
    name.press("Enter")
    arrived(page, asked).continue_()
    page.get_by_role("heading", name="cloned").wait_for()
    assert [json.loads(route.request.post_data or "")["new_task_name"] for route in asked] == ["cloned"]


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


def test_parameters_of_a_draft(page: Page, server: Served, lab: Lab, make: Make) -> None:
    task = make(hyperparams=parameters(lr="0.1", old="x", seed="7"))
    show(page, lab, task)
    region = page.get_by_role("region", name="Parameters")
    region.get_by_role("button", name="Edit").click()
    region.get_by_role("textbox", name="Value of lr").fill("0.2")
    region.get_by_role("button", name="Remove old").click()
    region.get_by_role("button", name="Add a parameter").click()
    region.get_by_role("textbox", name="Name").last.fill("clip")
    region.get_by_role("textbox", name="Value of clip").fill("1")
    region.get_by_role("button", name="Save").click()
    expect(region.get_by_role("rowheader")).to_have_text(["clip", "lr", "seed"])
    stored = {name: one["value"] for name, one in task_of(server, task)["hyperparams"]["Args"].items()}
    assert stored == {"lr": "0.2", "seed": "7", "clip": "1"}


def test_parameters_of_a_run_that_has_begun_are_locked(page: Page, lab: Lab, make: Make) -> None:
    show(page, lab, make("completed", hyperparams=parameters(lr="1")))
    edit = page.get_by_role("region", name="Parameters").get_by_role("button", name="Edit")
    expect(edit).to_be_disabled()
    expect(edit).to_have_attribute(
        "title", "The run has begun: its parameters say what it ran with. Clone or reset it to change them."
    )


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


def test_abort_and_reset(page: Page, server: Served, lab: Lab, make: Make) -> None:
    task = make("in_progress")
    event = {"type": "training_stats_scalar", "task": task, "metric": "loss", "variant": "a", "value": 1}
    server.call("events.add", event)
    show(page, lab, task)
    choose(page, "Abort")
    expect(page.get_by_text("aborted", exact=True)).to_be_visible()
    choose(page, "Reset…")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("all scalars, plots, images and console lines")
    dialog.get_by_role("button", name="Reset").click()
    expect(page.get_by_text("draft", exact=True)).to_be_visible()
    assert task_of(server, task)["status"] == "created"


def test_publish_locks_a_run(page: Page, server: Served, lab: Lab, make: Make) -> None:
    task = make("completed")
    show(page, lab, task)
    choose(page, "Publish…")
    page.get_by_role("dialog").get_by_role("button", name="Publish").click()
    expect(page.get_by_text("published", exact=True)).to_be_visible()
    page.get_by_role("button", name="Actions").click()
    reset = page.get_by_role("menuitem", name="Reset…", exact=True)
    expect(reset).to_have_attribute("aria-disabled", "true")
    expect(reset).to_have_attribute("title", "It is published: clone it instead")
    reset.click(force=True)
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_move_to_another_project(page: Page, server: Served, lab: Lab, make: Make) -> None:
    task = make()
    show(page, lab, task)
    choose(page, "Move to a project…")
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("combobox", name="Project").fill("Elsewhere/new")
    dialog.get_by_role("button", name="Move").click()
    expect(page.get_by_role("link", name="Elsewhere/new")).to_be_visible()


def test_archive_restore_and_delete(page: Page, faults: Faults, server: Served, lab: Lab, make: Make) -> None:
    faults.allow("status of 404")  # the page may ask why the stream of a run ended that is gone
    task = make("completed")
    show(page, lab, task)
    choose(page, "Archive")
    expect(page.get_by_text("archived", exact=True)).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("archived", exact=True)).to_have_count(0)
    choose(page, "Archive")
    expect(page.get_by_text("archived", exact=True)).to_be_visible()
    choose(page, "Delete…")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("can't be brought back")
    dialog.get_by_role("button", name="Delete").click()
    page.wait_for_url(f"**/projects/{lab.project}")
    assert server.call("tasks.get_all", {"id": [task]})["tasks"] == []


def test_a_guest_sees_everything_and_is_offered_no_change(
    browser: Browser, faults: Faults, server: Served, lab: Lab, make: Make
) -> None:
    task = make(hyperparams=parameters(lr="1"), comment="Look at this.")
    with opened_page(browser, server, faults, key=(server.key, server.secret), **DESKTOP) as page:
        page.route("**/users.get_current_user", as_guest)
        show(page, lab, task)
        expect(page.get_by_role("region", name="Comment")).to_contain_text("Look at this.")
        for name in ("Actions", "Edit", "+ tag", "Change the name of the run"):
            expect(page.get_by_role("button", name=name)).to_have_count(0)


def as_guest(route: Any) -> None:
    """Says that who asks is a guest: what they may do is the server's to decide, what is offered the page's."""
    response = route.fetch()
    answer = response.json()
    answer["data"]["user"]["role"] = "guest"
    route.fulfill(response=response, json=answer)


def test_each_field_that_opens_has_the_focus(page: Page, lab: Lab, make: Make) -> None:
    show(page, lab, make("completed"))
    page.get_by_role("button", name="Change the name of the run").click()
    expect(page.get_by_role("textbox", name="name of the run")).to_be_focused()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Add a comment").click()
    expect(page.get_by_role("textbox", name="Comment")).to_be_focused()
    page.keyboard.type("good")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="+ tag").click()
    page.keyboard.type("tag 1000")
    page.keyboard.press("Enter")
    expect(page.get_by_role("group", name="Tags")).to_contain_text("tag 1000")
    page.get_by_role("button", name="+ tag").wait_for()  # the field has closed
    for _ in range(2):
        page.keyboard.press("/")
        expect(page.get_by_role("combobox", name="Search projects")).to_be_focused()
        page.keyboard.press("Escape")
