"""What is typed into a search while the page begins to look for its first letters stays."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.viewer.lab import Lab

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
