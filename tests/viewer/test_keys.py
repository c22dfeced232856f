"""The keyboard, the help that lists its keys, the focus after going somewhere, and the menu."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.viewer.lab import Lab


def test_keys_go_to_tabs_and_pages(page: Page, lab: Lab) -> None:
    page.goto(lab.at("resnet-50"))
    page.get_by_role("heading", name="resnet-50", exact=True).wait_for()
    page.keyboard.press("2")
    expect(page.get_by_role("tab", name="Scalars")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("g")
    page.keyboard.press("p")
    page.wait_for_url("**/projects")


def test_help_lists_the_keys_of_the_page(page: Page, lab: Lab) -> None:
    page.goto(lab.at("resnet-50"))
    page.get_by_role("heading", name="resnet-50", exact=True).wait_for()
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard")
    expect(dialog.get_by_text("Go to a tab")).to_be_visible()
    page.keyboard.press("2")
    expect(page.get_by_role("tab", name="Overview")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    page.keyboard.press("2")
    page.keyboard.press("?")
    expect(dialog.get_by_text("Move the crosshair of the focused chart")).to_be_visible()


def test_keys_belong_to_who_types(page: Page, lab: Lab) -> None:
    page.goto(lab.at("resnet-50"))
    field = page.get_by_role("searchbox", name="Search parameters")
    field.press_sequentially("2?gp/")
    expect(field).to_have_value("2?gp/")
    expect(page.get_by_role("tab", name="Overview")).to_have_attribute("aria-selected", "true")


def test_the_focus_is_on_the_heading_of_the_new_page(page: Page, lab: Lab) -> None:
    page.goto(f"/projects/*/tasks/{lab.tasks['step']}/overview")
    page.get_by_role("link", name="train nightly", exact=True).click()
    expect(page.get_by_role("heading", name="train nightly", exact=True)).to_be_focused()


def test_the_menu_is_used_with_keys_alone(page: Page, lab: Lab) -> None:
    page.goto(lab.at("resnet-50"))
    menu = page.get_by_role("button", name="Menu")
    menu.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("d")
    expect(page.get_by_role("menuitemradio", name="Dark")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(menu).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    expect(page.get_by_role("menu")).to_have_count(0)
    expect(menu).to_be_focused()
