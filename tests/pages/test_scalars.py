"""The curves of a run in a browser: nothing is hidden, and what one sees is in the address."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, Request, expect

from tests.harness import Served, wait_until
from tests.pages.browser import Faults, go_back
from tests.pages.lab import add, scalars

START = 1_700_000_000_000
SPIKE_AT, SPIKE = 123_456, 9.0
HOSTILE = "<img src=x onerror=document.title='run'>"


@dataclass(frozen=True)
class Runs:
    """Runs by what they are about."""

    project: str
    tasks: dict[str, str]

    def at(self, name: str, query: str = "", tab: str = "scalars") -> str:
        return f"/projects/{self.project}/tasks/{self.tasks[name]}/{tab}{query}"


@pytest.fixture(scope="module")
def runs(server: Served) -> Runs:
    project = server.call("projects.create", {"name": "curves", "description": ""})["id"]
    made = Runs(project, {name: _task(server, project, name) for name in ("spike", "several", "many", "wide")})
    noise = [0.1 + 0.01 * math.sin(7 * step) for step in range(300_000)]
    noise[SPIKE_AT] = SPIKE
    for first in range(0, len(noise), 50_000):
        part = scalars(made.tasks["spike"], "loss", "train", noise[first : first + 50_000], START)
        for event in part:
            event["iter"] += first
            event["timestamp"] += 1000 * first
        add(server, part)
    several = made.tasks["several"]
    falling = [2 / (1 + step / 50) for step in range(500)]
    for metric in ("train/loss", "train/accuracy", "val/loss"):
        for variant in ("a", "b"):
            add(server, scalars(several, metric, variant, falling, START))
    add(server, scalars(several, HOSTILE, HOSTILE, falling[:50], START))
    add(server, scalars(several, "*", "a/b*?&=#%", falling[:50], START))
    gaps = [1.0, 2.0, math.nan, 3.0, math.inf, -math.inf, 4.0, 5.0]
    add(server, scalars(several, "gaps", "v", gaps, START))
    for number in range(2):
        add(server, scalars(several, ":monitor:gpu", f"gpu_{number}_utilization", falling, START))
    add(server, scalars(several, ":monitor:machine", "cpu_usage", falling, START))
    add(server, [{**scalars(several, "Summary", "best", [0.93], START)[0], "iter": -(2**31)}])
    for block in range(5):
        layers = range(1000 * block, 1000 * block + 1000)
        add(
            server,
            [point for n in layers for point in scalars(made.tasks["many"], _layer(n), "norm", [1, 2, n], START)],
        )
    add(
        server, [point for n in range(100) for point in scalars(made.tasks["wide"], "wide", f"v{n}", [n, n + 1], START)]
    )
    return made


def _layer(number: int) -> str:
    return f"layer{number // 500}/weight{number % 500}"


def _task(server: Served, project: str, name: str) -> str:
    return str(server.call("tasks.create", {"name": name, "type": "training", "project": project})["id"])


def _figure(page: Page, title: str) -> Locator:
    return page.get_by_role("figure", name=_beginning(f"{title}: "))


def _beginning(text: str) -> re.Pattern[str]:
    """Playwright writes the expression between slashes."""
    return re.compile("^" + re.escape(text).replace("/", "\\/"))


def _lines(figure: Locator) -> dict[str, float]:
    """Where the coloured pixels of a chart are, as parts of its width and height: axes and grid have no colour."""
    found: dict[str, float] = figure.locator("canvas").first.evaluate(
        """canvas => {
          const {width, height} = canvas;
          const {data} = canvas.getContext('2d').getImageData(0, 0, width, height);
          let [top, bottom, left, right, at] = [height, 0, width, 0, 0];
          for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) {
            const [red, green, blue, alpha] = data.subarray(4 * (y * width + x), 4 * (y * width + x) + 4);
            if (alpha < 60 || Math.max(red, green, blue) - Math.min(red, green, blue) < 60) continue;
            if (y < top) [top, at] = [y, x];
            bottom = Math.max(bottom, y); left = Math.min(left, x); right = Math.max(right, x);
          }
          return {top: top / height, bottom: bottom / height, left: left / width, right: right / width, at: at / width};
        }"""
    )
    return found


def _drag(page: Page, figure: Locator, start: float, stop: float) -> None:
    """Drag over a part of the area of the lines."""
    box = figure.locator(".u-over").bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + start * box["width"], middle)
    page.mouse.down()
    page.mouse.move(box["x"] + stop * box["width"], middle, steps=4)
    page.mouse.up()


def _metrics(address: str) -> list[str]:
    return parse_qs(urlsplit(address).query)["metric"]


def _query(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


@pytest.mark.check
def test_a_spike_of_one_point_in_300_000_is_seen_at_once(page: Page, runs: Runs) -> None:
    page.goto(runs.at("spike"))
    page.get_by_text("300,000 points, all extremes shown").wait_for()

    def seen() -> bool:
        """Whether the spike reaches nearly to the upper edge, at its place, and the rest lies below."""
        page.wait_for_timeout(20)  # the text may come before the lines are drawn
        lines = _lines(_figure(page, "loss"))
        at = (lines["at"] - lines["left"]) / (lines["right"] - lines["left"] or 1)
        return lines["top"] < 0.15 and lines["bottom"] > 0.75 and abs(at - SPIKE_AT / 300_000) < 0.01

    wait_until(seen)


@pytest.mark.check
def test_the_first_and_the_last_point_have_whole_dots(page: Page, server: Served) -> None:
    task = server.call("tasks.create", {"name": "three points", "type": "training"})["id"]
    add(server, scalars(task, "loss", "train", [1.0, 1.0, 1.0], 1_760_000_000_000))
    page.goto(f"/projects/*/tasks/{task}/scalars")
    widths = page.wait_for_function(
        """() => {
          const canvas = document.querySelector('[role="figure"] canvas, figure canvas');
          if (!canvas) return null;
          const {width, height} = canvas;
          const {data} = canvas.getContext('2d').getImageData(0, 0, width, height);
          const isColoured = at => data[at + 3] > 128 && Math.max(data[at], data[at + 1], data[at + 2])
            - Math.min(data[at], data[at + 1], data[at + 2]) > 60;
          const widths = [];
          let last = -2;
          for (let x = 0; x < width; x++) {
            let rows = 0;
            for (let y = 0; y < height; y++) rows += isColoured(4 * (y * width + x));
            if (rows < 3) continue; // the line alone
            if (last === x - 1) widths[widths.length - 1]++;
            else widths.push(1);
            last = x;
          }
          return widths.length === 3 ? widths : null;
        }"""
    ).json_value()
    assert min(widths) >= max(widths) - 1, widths


@pytest.mark.check
def test_each_chart_is_drawn_once(page: Page, runs: Runs) -> None:
    page.add_init_script(
        """window.drawings = new Map();
        const { clearRect } = CanvasRenderingContext2D.prototype;
        CanvasRenderingContext2D.prototype.clearRect = function (...all) {
          drawings.set(this.canvas, (drawings.get(this.canvas) ?? 0) + 1);
          return clearRect.apply(this, all);
        };"""
    )
    page.goto(runs.at("several"))
    expect(_figure(page, "train/loss")).to_be_visible()
    expect(page.locator("[aria-busy=true]")).to_have_count(0)
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert set(page.evaluate("[...drawings.values()]")) == {1}


def test_zooming_leads_down_to_single_points_and_back(page: Page, runs: Runs) -> None:
    page.goto(runs.at("spike"))
    figure = _figure(page, "loss")
    figure.wait_for()
    with page.expect_request(lambda request: "from=" in request.url) as asked:
        _drag(page, figure, 0.4, 0.42)
    finer = parse_qs(urlsplit(asked.value.url).query)
    assert 115_000 < int(finer["from"][0]) < int(finer["to"][0]) < 130_000
    expect(page).to_have_url(re.compile(r"[?&]x=\d"))
    _figure(page, "loss").locator(".u-over").dblclick()
    page.get_by_text("300,000 points, all extremes shown").wait_for()
    expect(page).not_to_have_url(re.compile(r"[?&]x="))

    page.goto(runs.at("spike", f"?x={SPIKE_AT - 5}..{SPIKE_AT + 5}"))
    page.get_by_text("11 points, all extremes shown").wait_for()
    _figure(page, "loss").locator(".u-over").hover()
    expect(page.get_by_role("status").filter(has_text=f"iteration {SPIKE_AT:,}")).to_contain_text("9")


@pytest.mark.check
def test_the_chart_that_is_zoomed_asks_first_and_the_others_follow(page: Page, runs: Runs) -> None:
    asked: list[list[str]] = []

    def note(request: Request) -> None:
        if "from=" in request.url:
            asked.append(_metrics(request.url))

    page.on("request", note)
    page.goto(runs.at("several"))
    figure = _figure(page, "val/loss")
    figure.wait_for()
    expect(page.locator("[aria-busy=true]")).to_have_count(0)
    with page.expect_response(lambda answer: "from=" in answer.url and "train/loss" in _metrics(answer.url)):
        _drag(page, figure, 0.4, 0.6)
    assert asked[0] == ["val/loss"]
    assert "val/loss" not in asked[1]


@pytest.mark.longer
def test_after_all_of_x_was_shown_no_chart_is_first(page: Page, runs: Runs) -> None:
    page.goto(runs.at("several"))
    figure = _figure(page, "val/loss")
    figure.wait_for()
    _drag(page, figure, 0.4, 0.6)
    expect(page).to_have_url(re.compile(r"[?&]x="))
    expect(page.locator("[aria-busy=true]")).to_have_count(0)
    page.get_by_role("button", name="Show all of x").click()
    expect(page).not_to_have_url(re.compile(r"[?&]x="))
    with page.expect_request(lambda request: "from=" in request.url) as asked:
        go_back(page)
    assert {"train/loss", "val/loss"} <= set(_metrics(asked.value.url))


@pytest.mark.check
def test_keys_and_the_wheel_zoom_too(page: Page, runs: Runs) -> None:
    page.goto(runs.at("spike"))
    figure = _figure(page, "loss")
    figure.focus()
    page.keyboard.press("+")
    expect(page).to_have_url(re.compile(r"[?&]x="))
    before = _query(page)["x"]
    figure.locator(".u-over").hover()
    page.mouse.wheel(0, -100)
    expect(page).not_to_have_url(re.compile(re.escape(before[0])))
    page.keyboard.press("0")
    expect(page).not_to_have_url(re.compile(r"[?&]x="))
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("status").filter(has_text="iteration")).to_contain_text("train")


@pytest.mark.check
def test_a_click_on_a_spike_leads_to_what_else_happened(page: Page, runs: Runs) -> None:
    figure = _figure(page, "loss")
    offer = page.get_by_role("dialog", name="What happened then")

    def spike_is_hit() -> bool:
        """Click where the spike is, on a new page; the chart may just have become larger, or have got its lines."""
        page.goto(runs.at("spike", f"?x={SPIKE_AT - 3000}..{SPIKE_AT + 3000}"))
        page.get_by_text(re.compile(r"^[56],\d+ points")).wait_for()
        box = figure.locator(".u-over").bounding_box()
        assert box is not None
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 0.06 * box["height"])
        try:
            expect(offer).to_contain_text(f"9 at iteration {SPIKE_AT:,}", timeout=2000)
        except AssertionError:
            return False
        return True

    wait_until(spike_is_hit)
    time = START + 1000 * SPIKE_AT
    for name, tab, parameter in (
        ("Console", "console", f"time={time}"),
        ("Images", "images", f"iter={SPIKE_AT}"),
        ("Plots", "plots", f"iter={SPIKE_AT}"),
        ("Load", "system", f"at={time}"),
    ):
        address = offer.get_by_role("link", name=name).get_attribute("href")
        assert address is not None
        assert address.endswith(f"/{tab}?{parameter}")


def test_smoothing_and_the_axis_are_asked_from_the_server(page: Page, runs: Runs) -> None:
    page.goto(runs.at("several", "?find=train/loss"))
    _figure(page, "train/loss").wait_for()
    with page.expect_request(re.compile(r"smooth=ema%3A0\.6")):
        page.get_by_label("Smoothing").select_option("Exponential")
    with page.expect_request(re.compile(r"axis=relative")):
        page.get_by_label("Horizontal axis").select_option("Time since start")
    with page.expect_request(re.compile(r"smooth=derivative")):
        page.get_by_label("Smoothing").select_option("Derivative")
    with page.expect_request(re.compile(r"metric=val%2Floss&variant=b")):
        page.get_by_label("Horizontal axis").select_option("val/loss/b")
    expect(page).to_have_url(re.compile("axis=curve:"))


@pytest.mark.check
def test_the_address_brings_the_view_back(page: Page, runs: Runs) -> None:
    page.goto(runs.at("several", "?find=loss&smooth=ema:0.9&log=y&axis=relative&trim=1&x=1000..90000"))
    expect(page.get_by_role("figure")).to_have_count(2)
    expect(page.get_by_label("Find charts by name")).to_have_value("loss")
    expect(page.get_by_label("Smoothing")).to_have_value("ema")
    for name in ("log y", "without outliers"):
        expect(page.get_by_role("button", name=name)).to_have_attribute("aria-pressed", "true")
    page.get_by_text("180 points, all extremes shown").first.wait_for()


@pytest.mark.check
def test_a_loss_that_explodes_is_drawn_on_a_log_axis(page: Page, server: Served, runs: Runs) -> None:
    task = _task(server, runs.project, "exploded")
    # This axis begins at 0.0099, where uPlot's own numbers never end.
    add(server, scalars(task, "loss", "train", [0.0187, 1.5e5], START))
    add(server, scalars(task, "huge", "train", [1, 1e300], START))
    page.goto(f"/projects/{runs.project}/tasks/{task}/scalars?log=y")
    expect(page.get_by_text("2 points, all extremes shown")).to_have_count(2)
    expect(_figure(page, "huge")).to_have_attribute("aria-label", re.compile(r"1e[+]?300"))
    page.get_by_role("button", name="log y").click()
    expect(page.get_by_role("button", name="log y")).to_have_attribute("aria-pressed", "false")


@pytest.mark.check
def test_names_are_found_by_a_regular_expression(page: Page, runs: Runs) -> None:
    page.goto(runs.at("several"))
    page.get_by_label("Find charts by name").fill("^val|accuracy/b$")
    expect(page.get_by_role("figure")).to_have_count(2)
    _figure(page, "train/accuracy").wait_for()
    expect(_figure(page, "train/accuracy")).to_have_attribute("aria-label", re.compile("^train/accuracy: b[.]"))
    expect(page).to_have_url(re.compile("find="))


@pytest.mark.check
def test_a_pin_survives(page: Page, runs: Runs) -> None:
    page.goto(runs.at("several"))
    page.get_by_role("button", name="Menu of val/loss").click()
    page.get_by_role("menuitem", name="Pin").click()
    expect(page.locator("details").first).to_contain_text("Pinned")
    page.goto(runs.at("several"))
    expect(page.locator("details").first).to_contain_text("Pinned")
    expect(page.locator("details").first.get_by_role("figure")).to_have_attribute("aria-label", re.compile("^val/loss"))
    expect(page).to_have_url(re.compile("pin=val/loss"))


@pytest.mark.check
def test_the_crosshair_is_shared(page: Page, runs: Runs) -> None:
    page.goto(runs.at("several", "?find=loss"))
    expect(page.get_by_role("figure")).to_have_count(2)
    box = _figure(page, "train/loss").locator(".u-over").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 4, box["y"] + box["height"] / 2)
    page.get_by_role("status").filter(has_text=re.compile(r"iteration 12\d")).wait_for()
    crosshair = _figure(page, "val/loss").locator(".u-cursor-x")
    here = _figure(page, "val/loss").locator(".u-over").bounding_box()
    there = crosshair.bounding_box()
    assert here is not None
    assert there is not None
    assert there["x"] - here["x"] == pytest.approx(box["width"] / 4, abs=2)


def test_charts_appear_and_grow_while_the_run_reports(page: Page, server: Served, runs: Runs) -> None:
    task = _task(server, runs.project, "growing")
    page.goto(f"/projects/{runs.project}/tasks/{task}/scalars")
    page.get_by_text("There are no scalars yet").wait_for()
    page.get_by_text("Live", exact=True).wait_for()
    add(server, scalars(task, "loss", "train", [1.0] * 10, START))
    page.get_by_text("10 points, all extremes shown").wait_for()
    add(server, scalars(task, "loss", "train", [2.0] * 25, START))
    page.get_by_text("25 points, all extremes shown").wait_for()
    add(server, scalars(task, "accuracy", "train", [2.0] * 7, START))
    page.get_by_text("7 points, all extremes shown", exact=True).wait_for()


@pytest.mark.check
def test_of_5000_series_only_those_on_screen_exist(page: Page, runs: Runs) -> None:
    page.goto(runs.at("many"))
    page.get_by_role("figure").first.wait_for()
    assert page.locator("canvas").count() < 40
    page.get_by_label("Find charts by name").fill("layer9/weight499")
    _figure(page, "layer9/weight499").wait_for()
    expect(page.get_by_role("figure")).to_have_count(1)


@pytest.mark.check
def test_a_chart_of_many_variants_shows_some_and_says_so(page: Page, runs: Runs) -> None:
    page.goto(runs.at("wide"))
    page.get_by_text("40 points, all extremes shown").wait_for()
    page.get_by_text("of 100").wait_for()
    page.get_by_role("button", name="Menu of wide").click()
    page.get_by_role("menuitem", name="Show more lines").click()
    page.get_by_text("80 points, all extremes shown").wait_for()


@pytest.mark.check
def test_nan_and_infinities_leave_gaps_and_are_counted(page: Page, runs: Runs) -> None:
    page.goto(runs.at("several", "?find=gaps"))
    page.get_by_text("8 points, all extremes shown, 3 are NaN or infinite").wait_for()
    label = _figure(page, "gaps").get_attribute("aria-label")
    assert label is not None
    assert "least 1, greatest 5" in label


@pytest.mark.check
def test_hostile_names_are_text(page: Page, runs: Runs) -> None:
    page.goto(runs.at("several"))
    page.get_by_role("heading", name=HOSTILE).wait_for()
    expect(page.get_by_role("figure", name=_beginning("*: a/b"))).to_have_count(1)
    page.get_by_role("figure", name=re.compile("^<img")).locator(".u-over").hover()
    assert page.locator("main img").count() == 0
    assert page.title() != "run"


@pytest.mark.check
def test_single_values_are_shown(page: Page, runs: Runs) -> None:
    page.goto(runs.at("several"))
    expect(page.get_by_label("Single values")).to_contain_text("0.93")
    expect(page.get_by_role("heading", name="Summary")).to_have_count(0)


def test_machines_have_a_tab_of_their_own_with_a_moment_marked(page: Page, runs: Runs) -> None:
    page.goto(runs.at("several", f"?at={START + 100_000}", tab="system"))
    gpu = page.get_by_role("figure", name=_beginning("gpu/utilization: gpu_0_utilization, gpu_1_utilization"))
    gpu.wait_for()
    expect(page.get_by_label("Horizontal axis")).to_have_value('"timestamp"')
    expect(page.get_by_role("figure")).to_have_count(2)


@pytest.mark.check
@pytest.mark.parametrize(("item", "ending"), [("Picture (PNG)", "png"), ("Picture (SVG)", "svg")])
def test_a_chart_is_saved_as_a_picture(page: Page, runs: Runs, item: str, ending: str) -> None:
    page.goto(runs.at("spike"))
    page.get_by_text("300,000 points").wait_for()
    page.get_by_role("button", name="Menu of loss").click()
    with page.expect_download() as saved:
        page.get_by_role("menuitem", name=item).click()
    assert saved.value.suggested_filename == f"loss.{ending}"
    content = saved.value.path().read_bytes()
    assert content.startswith(b"\x89PNG" if ending == "png" else b"<svg ")
    assert ending == "png" or b">train</text>" in content


@pytest.mark.check
def test_one_chart_fills_the_page(page: Page, runs: Runs) -> None:
    page.goto(runs.at("several", "?full=val/loss"))
    whole = page.get_by_role("dialog", name="One chart")
    box = whole.get_by_role("figure").bounding_box()
    assert box is not None
    assert box["height"] > 600
    page.keyboard.press("Escape")
    expect(whole).to_have_count(0)
    expect(page).not_to_have_url(re.compile(r"[?&]full="))


@pytest.mark.check
def test_leaving_the_page_leaves_nothing_behind(page: Page, runs: Runs) -> None:
    def nodes() -> Any:
        session.send("HeapProfiler.collectGarbage")
        return {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}["Nodes"]

    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    page.goto(runs.at("several", tab="overview"))
    tab = page.get_by_role("tab", name="Scalars")
    before, shown = nodes(), 0
    for _ in range(6):
        tab.click()
        _figure(page, "train/loss").wait_for()
        shown = max(shown, nodes())
        page.get_by_role("tab", name="Overview").click()
        expect(page.get_by_role("figure")).to_have_count(0)
    # What a page has just left may be in use, once: not once for each visit.
    wait_until(lambda: nodes() <= before + 2 * (shown - before))


@pytest.mark.check
def test_a_file_that_the_server_cannot_make_says_why(page: Page, runs: Runs, faults: Faults) -> None:
    faults.allow("status of 406")
    words = "This server cannot make .parquet"
    answer = {"error": {"message": words}}
    page.route("**/scalars.parquet**", lambda route: route.fulfill(status=406, json=answer))
    page.goto(runs.at("spike"))
    page.get_by_role("button", name="Menu of loss").click()
    page.get_by_role("menuitem", name="Parquet").click()
    expect(page.get_by_text(words)).to_be_visible()


@pytest.mark.check
def test_an_invalid_expression_is_called_so(page: Page, runs: Runs) -> None:
    page.goto(runs.at("spike", "?find=(a"))
    expect(page.get_by_text("(a is not a valid expression")).to_be_visible()


@pytest.mark.longer
def test_the_wheel_alone_says_which_key_zooms(page: Page, runs: Runs) -> None:
    page.goto(runs.at("spike"))
    page.get_by_role("figure", name="loss").hover()
    page.mouse.wheel(0, 10)
    hint = page.get_by_text("Ctrl + wheel zooms")
    expect(hint).to_be_visible()
    expect(hint).to_be_hidden()
