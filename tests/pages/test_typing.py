"""What is typed into a search stays: while the page begins to look for it, and when the page is left at once."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.pages.browser import go_back
from tests.pages.lab import Lab

pytestmark = pytest.mark.check

#: One letter more comes when the page draws what it does for those before: the next frame after some rest is that one.
ONE_MORE = """field => {
    let typed = Infinity;
    field.addEventListener("input", () => (typed = performance.now()));
    const next = window.requestAnimationFrame.bind(window);
    window.requestAnimationFrame = (draw) => next((at) => {
        if (field.value.length === 4 && performance.now() > typed + 150) {
            field.value += "n";
            field.dispatchEvent(new Event("input", { bubbles: true }));
        }
        draw(at);
    });
}"""


@pytest.mark.parametrize(
    ("run", "label"), [("", "Search runs by name, comment or id"), ("resnet-50", "Search in the log")]
)
def test_a_letter_that_comes_while_the_page_begins_to_search_stays(page: Page, lab: Lab, run: str, label: str) -> None:
    page.goto(lab.at(run, "console") if run else f"/projects/{lab.project}")
    field = page.get_by_label(label)
    expect(field).to_be_visible()
    page.wait_for_load_state("networkidle")
    field.evaluate(ONE_MORE)
    field.press_sequentially("trai")
    expect(page).to_have_url(re.compile(r"q=train$"))
    expect(field).to_have_value("train")


def type_and(field: Locator, text: str, then: str) -> str:
    """Type a text, and do something at once, before any timer of the page: the query of the address afterwards."""
    script = """(field, text) => {
        field.value = text;
        field.dispatchEvent(new Event("input", { bubbles: true }));
        THEN;
        return location.search;
    }"""
    expect(field).to_be_visible()
    return str(field.evaluate(script.replace("THEN", then), text))


def test_what_is_typed_just_before_one_leaves_is_there_when_one_goes_back(page: Page, lab: Lab) -> None:
    page.goto("/")
    field = page.get_by_label("Search projects")
    type_and(field, "abc", 'location.assign("/models")')
    expect(page).to_have_url(re.compile("/models$"))
    go_back(page)
    expect(page).to_have_url(re.compile(r"/\?q=abc$"))
    expect(field).to_have_value("abc")
