"""The tab Images of a run: pictures by iteration, the viewer, other media, and what cannot be shown."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.harness import Served
from tests.pages.browser import Faults, open_pages
from tests.pages.lab import Lab, add, png, upload
from tests.pages.media import image, run_with

HTML = """<!doctype html><title>t</title><h1>A report</h1><p id="said"></p><script>
const say = text => document.getElementById('said').append(text + ' ');
say('origin ' + origin);
try { document.cookie; say('cookie') } catch { say('no cookie') }
try { parent.document.title = 'hacked'; say('page') } catch { say('no page') }
try { top.location = 'http://evil.example'; say('top') } catch { say('no top') }
say(open('/projects') ? 'window' : 'no window');
parent.postMessage({ kind: 'ready' }, '*');
parent.postMessage('connect', '*');
fetch('/debug.ping').then(() => say('network'), () => say('no network'));
</script>"""
SVG = b"""<svg xmlns="http://www.w3.org/2000/svg" width="30" height="30" onload="document.title='hacked'">
<script>top.document.title='hacked'</script><circle cx="15" cy="15" r="9"/></svg>"""


def loaded(page: Page, name: str, width: int) -> None:
    """Wait until a picture is shown that has this width."""
    picture = page.get_by_role("img", name=name)
    picture.scroll_into_view_if_needed()
    page.wait_for_function("([image, width]) => image.naturalWidth === width", arg=[picture.element_handle(), width])


def test_the_newest_pictures_are_shown_and_the_slider_goes_back(page: Page, lab: Lab) -> None:
    page.goto(lab.at("resnet-50", "images"))
    loaded(page, "samples/input@300", 64)
    region = page.get_by_role("region", name="samples")
    region.get_by_role("slider").press("ArrowLeft")
    loaded(page, "samples/input@200", 64)
    page.wait_for_url(re.compile("at=samples(%40|@)200"))
    page.goto(lab.at("resnet-50", "images") + "?iter=150")
    loaded(page, "samples/prediction@100", 64)


def test_the_viewer_is_driven_by_keys_and_has_an_address(page: Page, lab: Lab) -> None:
    page.goto(lab.at("resnet-50", "images"))
    page.get_by_role("figure", name="samples/input@300").get_by_role("button").click()
    dialog = page.get_by_role("dialog", name="samples / input")
    expect(dialog.get_by_role("status")).to_have_text("iteration 300")
    page.keyboard.press("ArrowLeft")
    expect(dialog.get_by_role("status")).to_have_text("iteration 200")
    page.keyboard.press("ArrowDown")
    other = page.get_by_role("dialog", name="samples / prediction")
    expect(other.get_by_role("status")).to_have_text("iteration 200")
    page.keyboard.press("+")
    expect(other.get_by_title("Fit the window")).to_have_text("140 %")
    page.keyboard.press("0")
    expect(other.get_by_title("Fit the window")).to_have_text("100 %")
    page.wait_for_url(re.compile("view=samples/prediction(%40|@)200"))
    page.reload()
    expect(other).to_be_visible()
    page.keyboard.press("Escape")
    expect(other).not_to_be_visible()
    expect(page).not_to_have_url(re.compile("view="))


@pytest.mark.check
def test_iterations_are_shown_side_by_side(page: Page, lab: Lab) -> None:
    page.goto(lab.at("resnet-50", "images"))
    page.get_by_role("checkbox", name="Iterations side by side").check()
    strip = page.get_by_role("group", name="samples / input by iteration")
    expect(strip.get_by_role("figure")).to_have_text(["300", "200", "100"])


@pytest.mark.check
def test_pictures_that_come_while_one_looks_are_shown(page: Page, server: Served, lab: Lab) -> None:
    url = upload(server, "live/1.png", png(20, 20, (1, 2, 3)))
    task, address = run_with(server, lab, image("live", "a", url, 1))
    page.goto(f"{address}/images")
    loaded(page, "live/a@1", 20)
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    next_url = upload(server, "live/2.png", png(30, 20, (1, 2, 3)))
    add(server, [{**image("live", "a", next_url, 2), "task": task}])
    loaded(page, "live/a@2", 30)


@pytest.mark.check
def test_files_that_were_written_over_are_shown_at_their_last_iteration_only(
    page: Page, server: Served, lab: Lab
) -> None:
    urls = [upload(server, f"over/{n}.png", png(20, 20, (n, 2, 3))) for n in range(2)]
    _, address = run_with(server, lab, *(image("over", "a", urls[n % 2], n) for n in range(5)))
    page.goto(f"{address}/images?show=beside")
    strip = page.get_by_role("group", name="over / a by iteration")
    expect(strip.get_by_role("figure")).to_have_text(["4", "3"])


@pytest.mark.check
def test_what_cannot_be_shown_is_explained(page: Page, server: Served, lab: Lab, faults: Faults) -> None:
    faults.allow(r"status of 404")
    _, address = run_with(
        server,
        lab,
        image("far", "bucket", "s3://bucket/folder/picture.png"),
        image("far", "foreign", "https://foreign.example/picture.png"),
        image("far", "gone", f"{server.files_url}/no/picture.png"),
    )
    page.goto(f"{address}/images")
    bucket = page.get_by_role("figure", name="far/bucket@0")
    expect(bucket).to_contain_text("object store")
    expect(bucket).to_contain_text("s3://bucket/folder/picture.png")
    foreign = page.get_by_role("figure", name="far/foreign@0")
    expect(foreign.get_by_role("link")).to_have_attribute("href", "https://foreign.example/picture.png")
    expect(page.get_by_role("figure", name="far/gone@0")).to_contain_text("It is not on this server, or was deleted")


@pytest.mark.check
def test_html_runs_only_in_a_frame_that_reaches_nothing(page: Page, server: Served, lab: Lab, faults: Faults) -> None:
    faults.allow(r"policy|Content Security Policy|Unsafe attempt|Blocked opening|sandboxed")
    url = upload(server, "reports/page.html", HTML.encode())
    svg = upload(server, "reports/picture.svg", SVG)
    _, address = run_with(server, lab, image("media", "page", url), image("media", "svg", svg))
    page.goto(f"{address}/images")
    loaded(page, "media/svg@0", 30)
    page.get_by_role("button", name="Show the report").click()
    said = page.frame_locator("iframe[title='media / page']").locator("#said")
    expect(said).to_have_text("origin null no cookie no page no top no window no network ")
    expect(page).to_have_title("made – Images")
    assert open_pages(page) == [page]
    said.click()  # the keyboard is the report's now
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


@pytest.mark.check
def test_names_with_markup_are_text(page: Page, server: Served, lab: Lab) -> None:
    name = "<img src=x onerror=\"document.title='hacked'\">"
    url = upload(server, "names/a.png", png(20, 20, (1, 2, 3)))
    _, address = run_with(server, lab, image(name, name, url, 1), image("a/b@c", "d@e/f", url, 1))
    page.goto(f"{address}/images?q={name[:8]}")
    expect(page.get_by_role("heading", name=name)).to_be_visible()
    page.get_by_role("searchbox", name="Search images").fill("")
    page.get_by_role("figure", name="a/b@c/d@e/f@1").get_by_role("button").click()
    expect(page.get_by_role("dialog", name="a/b@c / d@e/f")).to_be_visible()
    expect(page).to_have_title("made – Images")


@pytest.mark.check
def test_it_works_on_a_phone(phone: Page, lab: Lab) -> None:
    phone.goto(lab.at("resnet-50", "images"))
    loaded(phone, "samples/input@300", 64)
    assert phone.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
