"""Every page, dark and light, and what opens over it: axe finds no serious fault."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from apiserver.common.resources import path
from tests.longer import beyond
from tests.pages.browser import frames_pass
from tests.pages.lab import Lab

pytestmark = pytest.mark.check

_RUN = """
([rules]) => axe.run(document, {
  resultTypes: ["violations"],
  iframes: false,
  ...(rules && { runOnly: { type: "rule", values: rules } }),
}).then(({ violations }) => violations
  .filter(({ impact }) => impact === "serious" || impact === "critical")
  .flatMap(({ id, nodes }) => nodes.slice(0, 5).map(({ target, html, failureSummary }) =>
    [`${id}: ${target.join(" ")}`, html.slice(0, 200), ...failureSummary.split("\\n").slice(1, 3)].join("\\n    "))))
"""


def compared(lab: Lab, tab: str) -> str:
    """A comparison of three runs."""
    ids = ",".join(lab.tasks[name] for name in ("resnet-50", "vit-base", "broken"))
    return f"/projects/{lab.project}/compare?tasks={ids}&tab={tab}"


#: Pages by name: their addresses in the laboratory.
PAGES: dict[str, Callable[[Lab], str]] = {
    "projects": lambda lab: "/projects",
    "runs": lambda lab: f"/projects/{lab.project}",
    "all runs": lambda lab: "/projects/*",
    "overview": lambda lab: lab.at("resnet-50", "overview"),
    "overview of a draft": lambda lab: f"/projects/*/tasks/{lab.tasks['draft']}/overview",
    "scalars": lambda lab: lab.at("resnet-50", "scalars"),
    "system": lambda lab: lab.at("resnet-50", "system"),
    "plots": lambda lab: lab.at("resnet-50", "plots"),
    "images": lambda lab: lab.at("resnet-50", "images"),
    "console": lambda lab: lab.at("resnet-50", "console"),
    "compare": lambda lab: compared(lab, "curves"),
    "compare as a table": lambda lab: compared(lab, "table"),
    "differences": lambda lab: compared(lab, "differences"),
    "parallel coordinates": lambda lab: compared(lab, "parallel"),
    "scatter": lambda lab: compared(lab, "scatter"),
    "plots of many runs": lambda lab: compared(lab, "plots"),
    "images of many runs": lambda lab: compared(lab, "images"),
    "models": lambda lab: f"/projects/{lab.project}/models",
    "model": lambda lab: f"/projects/{lab.project}/models/{lab.models['resnet-50']}",
    "reports": lambda lab: "/reports",
    "report": lambda lab: f"/reports/{lab.projects['Vision']}/{lab.tasks['report']}",
    "data sets": lambda lab: "/datasets",
    "pipelines": lambda lab: "/pipelines",
    "search": lambda lab: "/search?q=resnet",
    "settings": lambda lab: "/settings",
    "usage": lambda lab: "/settings/usage",
    "audit log": lambda lab: "/settings/audit",
    "no page": lambda lab: "/projects/a/b/c",
}


@pytest.fixture(scope="module")
def axe() -> str:
    try:
        return Path(path("viewer/node_modules/axe-core/axe.min.js")).read_text()
    except FileNotFoundError:
        pytest.skip("axe is not installed: make viewer")


def faults_of(page: Page, axe: str) -> list[str]:
    """What axe finds in the theme of the page, and in the other one."""
    page.evaluate(f"() => {{ {axe} }}")
    found = page.evaluate(_RUN, [None])
    page.evaluate(
        "() => { const root = document.documentElement;"
        " root.dataset.theme = root.dataset.theme === 'dark' ? 'light' : 'dark'; }"
    )
    return [*found, *(f"other theme: {one}" for one in page.evaluate(_RUN, [["color-contrast"]]))]


def settle(page: Page) -> None:
    """Wait until the page has shown what it asked for."""
    page.locator("main").wait_for()
    page.wait_for_function("() => !/(Loading|Searching)…/.test(document.querySelector('main').textContent)")
    frames_pass(page)


#: These have the parts of other pages.
ALIKE = {
    *("all runs", "overview of a draft", "system", "images of many runs", "data sets", "usage", "no page"),
    *("model", "pipelines", "plots of many runs", "scatter", "audit log", "compare as a table"),
}


@pytest.mark.parametrize("name", beyond(PAGES.keys() - ALIKE, PAGES))
def test_a_page_has_no_serious_fault(page: Page, lab: Lab, axe: str, name: str) -> None:
    page.goto(PAGES[name](lab))
    settle(page)
    assert faults_of(page, axe) == []


@pytest.mark.parametrize(
    "open",
    [
        lambda page: page.keyboard.press("/"),
        lambda page: page.keyboard.press("?"),
        lambda page: page.get_by_role("button", name="Menu").click(),
        lambda page: page.get_by_role("button", name="Actions").click(),
        lambda page: (page.get_by_role("button", name="Actions").click(), page.keyboard.press("Enter")),
        lambda page: page.get_by_role("region", name="Comment").get_by_role("button", name="Edit").click(),
    ],
    ids=["search", "help", "menu", "actions", "dialog", "comment"],
)
def test_what_opens_over_a_page_has_no_serious_fault(page: Page, lab: Lab, axe: str, open: Any) -> None:
    page.goto(lab.at("resnet-50"))
    page.get_by_role("region", name="Parameters").wait_for()
    open(page)
    frames_pass(page)
    assert faults_of(page, axe) == []


@pytest.mark.parametrize("name", beyond(["runs", "console"], ["projects", "runs", "overview", "scalars", "console"]))
def test_a_page_on_a_phone_has_no_serious_fault(phone: Page, lab: Lab, axe: str, name: str) -> None:
    phone.goto(PAGES[name](lab))
    settle(phone)
    assert faults_of(phone, axe) == []


@pytest.mark.parametrize("name", ["compare as a table", "differences", "models", "search", "settings"])
def test_a_page_on_a_phone_does_not_scroll_sideways(phone: Page, lab: Lab, name: str) -> None:
    phone.goto(PAGES[name](lab))
    settle(phone)
    assert phone.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_the_sign_in_page_has_no_serious_fault(signed_out_page: Page, axe: str) -> None:
    signed_out_page.goto("/sign-in")
    signed_out_page.locator("#page > *").first.wait_for()
    assert faults_of(signed_out_page, axe) == []
