"""The pages in a browser: they are shown, and what must not happen on a page fails the test."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.harness import Served
from tests.pages.browser import DESKTOP, PATIENCE, Faults, opened_page
from tests.pages.lab import Lab


def test_a_run_is_shown_at_the_address_that_the_sdk_prints(page: Page, lab: Lab) -> None:
    page.goto(f"/projects/{lab.project}/tasks/{lab.run}/output/log")
    page.get_by_role("heading", name="resnet-50").wait_for()


@pytest.mark.check
def test_the_page_that_the_sdk_prints_shows_its_run(page: Page, sdk_run: dict[str, str]) -> None:
    page.goto(sdk_run["page"])
    assert page.url.endswith(f"/projects/{sdk_run['project']}/tasks/{sdk_run['task']}/output/log")
    page.get_by_role("heading", name="run 1").wait_for()


def said(faults: Faults) -> str:
    """What a test would fail with."""
    try:
        faults.check()
    except AssertionError as error:
        return str(error)
    return ""


@pytest.mark.check
@pytest.mark.parametrize(
    ("script", "fault"),
    [
        ("fetch('http://127.0.0.1:9/x').catch(() => 0)", "policy: connect-src"),
        ("setTimeout('1')", "policy: "),
        ("document.body.innerHTML = '<b>'", "policy: require-trusted-types-for"),
        ("new Image().src = 'http://evil.example/x.png'", "policy: img-src"),
        ("setTimeout(() => { throw new Error('broken') })", "rror: broken"),
        ("console.error('wrong')", "console: wrong"),
    ],
)
def test_what_no_page_may_do_fails_its_test(browser: Browser, server: Served, script: str, fault: str) -> None:
    faults = Faults()
    with opened_page(browser, server, faults, key=(server.key, server.secret), **DESKTOP) as page:
        page.goto("/")
        page.locator("#page > *").first.wait_for()
        faults.check()
        page.evaluate(f"() => {{ try {{ {script} }} catch {{}} }}")
        for _ in range(PATIENCE // 20):
            if fault in said(faults):
                break
            page.wait_for_timeout(20)
    with pytest.raises(AssertionError, match=fault):
        faults.check()


@pytest.mark.check
def test_the_chosen_tab_is_in_sight_on_a_phone(phone: Page, lab: Lab) -> None:
    for tab in ("Console", "Overview"):
        phone.goto(f"{lab.at('resnet-50')}/{tab.lower()}")
        expect(phone.get_by_role("tab", name=tab)).to_be_in_viewport(ratio=0.99)


@pytest.mark.longer
def test_the_navigation_marks_the_part_that_a_page_belongs_to(page: Page, lab: Lab) -> None:
    marked = page.get_by_role("navigation", name="Main").locator("[aria-current]")
    menu = page.get_by_role("banner").get_by_role("button", name=" menu")
    parts = {
        "/projects": "Projects",
        f"/projects/{lab.project}": "Projects",
        lab.at("resnet-50"): "Projects",
        f"/projects/{lab.project}/models": "Models",
        "/reports": "Reports",
    }
    for address, part in parts.items():
        page.goto(address)
        expect(marked).to_have_text([part])
        expect(menu).not_to_have_attribute("aria-current", "true")
    for address in ("/settings", "/settings/usage", "/settings/audit"):
        page.goto(address)
        expect(menu).to_have_attribute("aria-current", "true")
        expect(marked).to_have_count(0)
    menu.click()
    expect(page.get_by_role("menu").locator("[aria-current]")).to_have_text(["Settings"])


@pytest.fixture(scope="module")
def giants(server: Served) -> list[str]:
    """Addresses of pages with names of 1,000 characters and more, without a place to break them."""
    project = server.call("projects.create", {"name": "p" * 1000, "description": ""})["id"]
    new = {"name": "n" * 2000, "type": "training", "project": project, "tags": ["t" * 2000]}
    task, other = (server.call("tasks.create", new)["id"] for _ in range(2))
    model = {"name": "m" * 1000, "uri": "file:///m", "project": project, "tags": ["t" * 1000]}
    model = server.call("models.create", model)["id"]
    compared = f"/projects/{project}/compare?tasks={task},{other}"
    return [
        *(f"/projects/{project}{rest}" for rest in ("", f"/tasks/{task}/overview", f"/models/{model}")),
        *(compared, f"{compared}&tab=differences", "/models", "/search?q=nnnn", "/settings"),
    ]


@pytest.mark.check
def test_names_of_any_length_leave_the_layout_as_it_is(page: Page, phone: Page, giants: list[str]) -> None:
    for one in (page, phone):
        width = one.evaluate("innerWidth")
        for address in giants:
            one.goto(address)
            one.locator("main h1, main h2, main [role=tab]").first.wait_for()
            one.wait_for_load_state("networkidle")
            assert one.evaluate("document.documentElement.scrollWidth") <= width, address
            for element in one.locator("main h1, [aria-label=Tags], nav[aria-label^=Where]").all():
                box = element.bounding_box()
                assert box is None or box["height"] < 100, address


@pytest.mark.check
@pytest.mark.parametrize("address", ["/models", "/settings"])
def test_the_rows_of_a_table_fit_on_a_phone(phone: Page, lab: Lab, address: str) -> None:
    phone.goto(address)
    table = phone.locator("table").first
    table.wait_for()
    for cell in table.locator("tbody th, tbody td").all():
        box = cell.bounding_box()
        assert box is None or box["x"] + box["width"] <= 390, cell.inner_text()
