"""The tab Plots of a run: figures in a frame, tables, pictures, iterations."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, FrameLocator, Locator, Page, expect

from tests.clients.sdk import sdk_of
from tests.harness import Served
from tests.pages.browser import DESKTOP, PATIENCE, Faults, open_pages, opened_page
from tests.pages.lab import Lab, add, png, upload
from tests.pages.media import bars, plot, run_with


def figure(page: Page, name: str) -> Locator:
    return page.get_by_role("figure", name=name)


def drawn(page: Page, name: str) -> Locator:
    """The figure, when it has been drawn."""
    found = figure(page, name)
    found.scroll_into_view_if_needed()
    expect(found).to_have_attribute("data-state", "drawn", timeout=60_000)  # without a graphics card, 3D takes seconds
    return found


def frame(page: Page) -> FrameLocator:
    """The frame that draws all figures of the page."""
    return page.frame_locator("iframe[title=Figures]")


def pixel(page: Page, place: Locator, x: float = 0.5, y: float = 0.5) -> str:
    """The colour that is seen at a place, such as `200,40,40`; `x` and `y` are parts of its width and height."""
    box = place.bounding_box()
    assert box is not None
    at = {"x": box["x"] + box["width"] * x, "y": box["y"] + box["height"] * y, "width": 1, "height": 1}
    picture = page.screenshot(clip=at)  # type: ignore[arg-type]
    script = """async bytes => {
      const bitmap = await createImageBitmap(new Blob([new Uint8Array(bytes)]));
      const canvas = new OffscreenCanvas(1, 1).getContext('2d');
      canvas.drawImage(bitmap, 0, 0);
      return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).join();
    }"""
    return str(page.evaluate(script, list(picture)))


def test_each_kind_of_plot_is_shown_as_what_it_is(page: Page, lab: Lab) -> None:
    page.goto(lab.at("resnet-50", "plots"))
    drawn(page, "confusion / validation")
    expect(frame(page).get_by_text("confusion validation")).to_be_visible()
    drawn(page, "weights / layer 1")
    expect(frame(page).locator(".bars path")).to_have_count(3)
    table = page.get_by_role("region", name="summary / table").get_by_role("table")
    expect(table.get_by_role("row")).to_have_text(["classrecall", "cat0.9", "dog0.8"])
    table.get_by_role("button", name="recall").click()
    expect(table.get_by_role("cell").first).to_have_text("dog")


def test_the_slider_goes_over_the_iterations_and_the_address_keeps_it(page: Page, lab: Lab) -> None:
    page.goto(lab.at("resnet-50", "plots") + "?q=confusion")
    region = page.get_by_role("region", name="confusion", exact=True)
    card = page.get_by_role("article", name="confusion / validation")
    expect(card).to_contain_text("iteration 300")
    region.get_by_role("slider").press("ArrowLeft")
    expect(card).to_contain_text("iteration 200")
    region.get_by_role("button", name="Iteration before").click()
    expect(card).to_contain_text("iteration 100")
    expect(region.get_by_role("button", name="Iteration before")).to_be_disabled()
    region.get_by_role("slider").fill("250")  # there is none: the last one before is shown
    expect(card).to_contain_text("iteration 200")
    page.wait_for_url(re.compile("at=confusion%40250|at=confusion@250"))
    page.reload()
    expect(card).to_contain_text("iteration 200")
    region.get_by_role("button", name="Newest").click()
    expect(card).to_contain_text("iteration 300")
    drawn(page, "confusion / validation")


@pytest.mark.check
def test_one_iteration_of_all_metrics_is_in_the_address(page: Page, server: Served, lab: Lab) -> None:
    _, address = run_with(
        server, lab, *(plot("a", "x", bars(1), n) for n in (10, 20)), *(plot("b", v, bars(2), 20) for v in "xy")
    )
    page.goto(f"{address}/plots?iter=10")
    expect(page.get_by_role("article", name="a / x")).to_contain_text("iteration 10")
    expect(page.get_by_role("article", name="b / y")).to_contain_text("iteration 20")  # its first
    page.get_by_role("button", name="Iteration 10").click()
    expect(page.get_by_role("article", name="a / x")).to_contain_text("iteration 20")


@pytest.mark.longer
def test_variants_that_are_older_than_others_are_shown_too(page: Page, server: Served, lab: Lab) -> None:
    _, address = run_with(server, lab, plot("a", "final", bars(1), 10), plot("a", "each", bars(2), 20))
    page.goto(f"{address}/plots")
    expect(page.get_by_role("article", name="a / each")).to_contain_text("iteration 20")
    expect(page.get_by_role("article", name="a / final")).to_contain_text("iteration 10")
    page.goto(f"{address}/plots?iter=20")
    expect(page.get_by_text("No plot at this iteration: final")).to_be_visible()


@pytest.mark.check
def test_the_large_bundle_is_loaded_for_a_figure_that_needs_it(page: Page, server: Served, lab: Lab) -> None:
    loaded: list[str] = []
    page.on("request", lambda request: loaded.append(request.url))
    deep = {"data": [{"type": "scatter3d", "x": [1, 2], "y": [1, 2], "z": [1, 2]}], "layout": {}}
    _, address = run_with(server, lab, plot("flat", "bars", bars(1)), plot("deep", "points", deep))
    page.goto(f"{address}/plots?q=flat")
    drawn(page, "flat / bars")
    assert any("plotly-cartesian" in url for url in loaded)
    assert not any("plotly-strict" in url for url in loaded)
    page.get_by_role("searchbox", name="Search plots").fill("deep")
    drawn(page, "deep / points")
    assert any("plotly-strict" in url for url in loaded)


@pytest.mark.longer
def test_figures_follow_the_theme_unless_they_have_colours_of_their_own(
    browser: Browser, server: Served, lab: Lab, faults: Faults
) -> None:
    own = bars(1, paper_bgcolor="#ffeedd")
    _, address = run_with(server, lab, plot("plain", "bars", bars(1)), plot("own", "bars", own))
    with opened_page(browser, server, faults, key=(server.key, server.secret), **DESKTOP, color_scheme="dark") as page:
        page.goto(f"{address}/plots")
        assert pixel(page, drawn(page, "own / bars"), 0.99, 0.99) == "255,238,221"
        plain = drawn(page, "plain / bars")
        assert pixel(page, plain, 0.99, 0.99) == "17,20,26"
        page.emulate_media(color_scheme="light")
        expect(page.locator(":root")).to_have_attribute("data-theme", "light")
        _until(lambda: pixel(page, plain, 0.99, 0.99) == "255,255,255", page)


@pytest.mark.longer
def test_figures_off_the_screen_are_given_up(page: Page, server: Served, lab: Lab) -> None:
    _, address = run_with(server, lab, *(plot(f"metric {n:02}", "bars", bars(n)) for n in range(40)))
    page.goto(f"{address}/plots")
    drawn(page, "metric 00 / bars")
    first = frame(page).locator(".js-plotly-plot")
    expect(page.locator("section[aria-label^='metric']")).to_have_count(40)
    assert first.count() < 20
    page.get_by_role("region", name="metric 39").scroll_into_view_if_needed()
    drawn(page, "metric 39 / bars")
    expect(figure(page, "metric 00 / bars")).to_have_attribute("data-state", "waiting")
    assert frame(page).locator(".js-plotly-plot").count() < 20
    drawn(page, "metric 00 / bars")
    assert page.locator("iframe[title=Figures]").count() == 1


@pytest.mark.check
def test_a_figure_can_be_used_with_the_mouse(page: Page, lab: Lab) -> None:
    page.goto(lab.at("resnet-50", "plots") + "?q=weights")
    box = drawn(page, "weights / layer 1").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(frame(page).locator(".hovertext").first).to_be_visible()


@pytest.mark.check
def test_escape_gives_the_keyboard_back_to_the_page(page: Page, lab: Lab) -> None:
    page.goto(lab.at("resnet-50", "plots") + "?q=weights")
    box = drawn(page, "weights / layer 1").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 10, box["y"] + 10)  # where curves are dragged, Plotly keeps the focus where it was
    page.wait_for_function("() => document.activeElement.title === 'Figures'")
    page.keyboard.press("Escape")
    page.wait_for_function("() => document.activeElement === document.body")
    page.keyboard.press("1")
    expect(page.get_by_role("tab", name="Overview")).to_have_attribute("aria-selected", "true")


@pytest.mark.check
def test_a_figure_is_saved_as_picture_and_as_json(page: Page, lab: Lab) -> None:
    page.goto(lab.at("resnet-50", "plots") + "?q=weights")
    drawn(page, "weights / layer 1")
    card = page.get_by_role("article", name="weights / layer 1")
    with page.expect_download() as download:
        card.get_by_role("button", name="PNG").click()
    assert download.value.suggested_filename == "weights _ layer 1.png"
    assert download.value.path().read_bytes().startswith(b"\x89PNG")
    with page.expect_download() as download:
        card.get_by_role("button", name="JSON").click()
    assert json.loads(download.value.path().read_text())["data"][0]["y"] == [5, 9, 4]


@pytest.mark.check
def test_pictures_of_the_file_server_are_shown_alone_and_in_figures(page: Page, server: Served, lab: Lab) -> None:
    url = upload(server, "plots/orange.png", png(64, 48, (230, 120, 40)))
    source = {"source": url, "xref": "x", "yref": "y", "sizex": 64, "sizey": 48, "x": 0, "y": 48, "layer": "below"}
    alone = {"data": [], "layout": {"images": [source], "title": "p"}}
    inside = {"data": [{"type": "scatter", "x": [0, 64], "y": [0, 48]}], "layout": {"images": [source]}}
    _, address = run_with(server, lab, plot("alone", "picture", alone), plot("inside", "picture", inside))
    page.goto(f"{address}/plots")
    picture = page.get_by_role("img", name="alone / picture")
    expect(picture).to_be_visible()
    page.wait_for_function("image => image.complete && image.naturalWidth === 64", arg=picture.element_handle())
    picture.click()
    expect(page.get_by_role("dialog", name="alone / picture").get_by_role("img")).to_be_visible()
    page.keyboard.press("Escape")
    drawn(page, "inside / picture")
    expect(frame(page).locator("image")).to_have_attribute("href", re.compile("^(data:image/png|blob:)"))


@pytest.mark.check
def test_plots_that_come_while_one_looks_are_shown(page: Page, server: Served, lab: Lab) -> None:
    task, address = run_with(server, lab, plot("live", "bars", bars(1), 1))
    page.goto(f"{address}/plots")
    drawn(page, "live / bars")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    add(
        server,
        [{**plot("live", "bars", bars(1, 2), 2), "task": task}, {**plot("new", "bars", bars(3), 2), "task": task}],
    )
    expect(page.get_by_role("article", name="live / bars")).to_contain_text("iteration 2")
    drawn(page, "new / bars")


@pytest.mark.check
def test_hostile_plots_change_nothing_and_run_nothing(page: Page, server: Served, lab: Lab, faults: Faults) -> None:
    faults.allow(r"policy|Content Security Policy|javascript:")  # in the frame: what it forbids
    script = "<img src=x onerror=\"parent.document.title='hacked'\"><script>top.location='http://evil.example'</script>"
    link = '<a href="javascript:parent.document.title=\'hacked\'">link</a><a href="/projects" target="_top">top</a>'
    svg = "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' onload=\"top.document.title='hacked'\"/>"
    texts = {"title": {"text": script}, "annotations": [{"text": link, "x": 0, "y": 1}]}
    _, address = run_with(
        server,
        lab,
        plot("texts", script, bars(1, **texts, xaxis={"title": script})),
        plot("svg", "x", bars(1, images=[{"source": svg}, {"source": "javascript:alert(1)"}])),
        plot("huge", "x", bars(1, width=1e9, height=1e9, margin={"l": 1e9}, font={"size": 1e9})),
        plot(
            "proto", "x", '{"__proto__": {"hacked": 1}, "data": [{"__proto__": {"hacked": 1}, "y": [1]}], "layout": {}}'
        ),
        plot("nonsense", "x", {"data": [{"type": "nothing"}, 7], "layout": {"xaxis": 7}}),
        plot("text", "x", script),
        plot("table", "x", {"data": [{"type": "table", "cells": {"values": [[script], [link]]}}]}),
        plot(
            "pictures", "x", {"data": [], "layout": {"images": [{"source": svg}, {"source": "http://evil.example/x"}]}}
        ),
    )
    faults.allow(r"status of 404")  # evil.example is no host of ours
    page.goto(f"{address}/plots")
    for name in ("svg / x", "huge / x", "proto / x"):
        drawn(page, name)
    drawn(page, f"texts / {script}")
    expect(page.get_by_role("article", name="text / x")).to_contain_text("<img src=x")
    expect(page.get_by_role("cell").first).to_contain_text("<script>")
    box = figure(page, "huge / x").bounding_box()
    assert box is not None
    assert box["height"] <= 1400
    for text in ("link", "top"):
        for place in frame(page).get_by_text(text, exact=True).all():
            place.click(force=True)
    expect(page).to_have_title("made – Plots")
    assert page.evaluate("({}).hacked") is None
    assert page.url.endswith("/plots")
    assert open_pages(page) == [page]


@pytest.mark.check
def test_the_frame_reaches_nothing_but_its_figures(page: Page, lab: Lab, faults: Faults) -> None:
    faults.allow(r"policy|Content Security Policy|Unsafe attempt|sandboxed|Blocked")
    page.goto(lab.at("resnet-50", "plots") + "?q=weights")
    drawn(page, "weights / layer 1")
    inside = next(one for one in page.frames if one.url.endswith("/frame.html"))
    tries = {
        "origin": "origin",
        "cookie": "(() => { try { return document.cookie } catch { return 'none' } })()",
        "storage": "(() => { try { localStorage; return 'some' } catch { return 'none' } })()",
        "page": "(() => { try { return parent.document.title } catch { return 'none' } })()",
        "network": "fetch('/debug.ping').then(() => 'some', () => 'none')",
        "eval": "(() => { try { return eval('1') } catch { return 'none' } })()",
        "top": "(() => { try { top.location = '/projects'; return 'went' } catch { return 'none' } })()",
        "window": "String(open('/projects'))",
    }
    assert {name: inside.evaluate(code) for name, code in tries.items() if name != "eval"} == {
        **dict.fromkeys(("cookie", "storage", "page", "network", "top"), "none"),
        "origin": "null",
        "window": "null",
    }
    # Messages that no figure sent are not heard: the figure stays drawn, and no file is saved.
    inside.evaluate(
        "for (const kind of ['ready', 'failed', 'png']) parent.postMessage({kind, id: 1, reason: 'x'}, '*')"
    )
    expect(figure(page, "weights / layer 1")).to_have_attribute("data-state", "drawn")


@pytest.mark.longer
def test_a_frame_that_was_left_is_replaced(page: Page, lab: Lab, faults: Faults) -> None:
    faults.allow(r"policy|Content Security Policy|ERR_BLOCKED")
    page.goto(lab.at("resnet-50", "plots") + "?q=weights")
    drawn(page, "weights / layer 1")
    inside = next(one for one in page.frames if one.url.endswith("/frame.html"))
    inside.evaluate("setTimeout(() => { location.href = 'data:text/html,gone' })")
    expect(frame(page).locator(".bars path")).to_have_count(3)
    drawn(page, "weights / layer 1")


@pytest.mark.check
def test_all_kinds_of_the_sdk_are_shown(page: Page, server: Served, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    task = sdk_of(server, home).run("figures.py")["task"]
    page.goto(f"/projects/*/tasks/{task}/output/metrics/plots")
    for name in ("confusion / matrix", "histogram / layer", "scatter / 2d", "scatter / 3d", "surface / hill"):
        drawn(page, name)
    drawn(page, "violin / plotly")
    expect(page.get_by_role("region", name="table / rows").get_by_role("row")).to_have_count(3)
    page.get_by_role("img", name="matplotlib / ").scroll_into_view_if_needed()
    page.wait_for_function("() => [...document.images].some(image => image.naturalWidth === 80)")
    page.goto(f"/projects/*/tasks/{task}/images")
    page.wait_for_function("() => [...document.images].some(image => image.naturalWidth === 80)")
    sound = page.locator("audio")
    sound.scroll_into_view_if_needed()
    page.wait_for_function("sound => sound.duration > 0.9", arg=sound.element_handle())
    page.get_by_role("button", name="Show the report").click()
    expect(page.frame_locator("iframe[title^=pages]").get_by_text("its script ran")).to_be_visible()


def _until(holds: Any, page: Page) -> None:
    for _ in range(PATIENCE // 50):
        if holds():
            return
        page.wait_for_timeout(50)  # Playwright says only meanwhile what has happened
    pytest.fail("it never came true")
