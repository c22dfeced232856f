"""The console of a run: a log of many lines scrolled, searched and followed; hostile lines change and run nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from zlib import compressobj

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.harness import Served
from tests.pages.browser import PATIENCE, arrived, hold
from tests.pages.lab import Lab

#: So many rows are higher than the highest element: one pixel of the scroll bar is more than one of rows.
LINES = 460_000
START = 1_760_000_000_000
_AT_ONCE = 100_000
#: Milliseconds that a search in all of them may take: on Elasticsearch it takes most of a minute on a busy machine.
SEARCH_PATIENCE = 4 * PATIENCE


class Log:
    """A run with a log."""

    def __init__(self, server: Served, name: str) -> None:
        self._server = server
        self.task = str(server.call("tasks.create", {"name": name, "type": "training"})["id"])

    @property
    def address(self) -> str:
        return f"/projects/*/tasks/{self.task}/console"

    def add(self, messages: Sequence[str], start: int = START, step: int = 10, **more: Any) -> None:
        """Add a line for each message, the first one at `start`."""
        common = {"type": "log", "task": self.task, "worker": "w", **more}
        for first in range(0, len(messages), _AT_ONCE):
            some = enumerate(messages[first : first + _AT_ONCE], first)
            rows = [{**common, "timestamp": start + step * n, "msg": message} for n, message in some]
            body = "\n".join(map(json.dumps, rows)).encode()
            gzip = compressobj(1, wbits=31)
            headers = {"content-type": "application/json-lines", "content-encoding": "gzip"}
            with self._server.client() as client:
                content = gzip.compress(body) + gzip.flush()
                answer = client.post("/events.add_batch", content=content, headers=headers)
            assert answer.json()["data"]["errors"] == 0, answer.text


@pytest.fixture(scope="module")
def long_log(server: Served) -> Log:
    log = Log(server, "long log")
    log.add([f"step {n} done" for n in range(LINES)])
    return log


def line(page: Page, number: int) -> Locator:
    """The row of a line; the first line has number 1."""
    return page.locator(f'[role="log"] [data-line="{number}"]')


def part(page: Page, number: int, row: int) -> Locator:
    """Another row than the first one of a line; the second one has number 2."""
    return page.locator(f'[role="log"] [data-part="{number}.{row}"]')


def first_line(page: Page) -> int:
    """The number of the line at the top of the window, once its text is there and tells the same number."""
    number = page.wait_for_function(
        """() => {
            const list = document.querySelector('[role="log"]');
            const box = list?.getBoundingClientRect();
            const row = box && document.elementFromPoint(box.left + 200, box.top + 9)?.closest('[data-line]');
            const step = /step (\\d+) done/.exec(row?.textContent ?? '');
            return step && Number(step[1]) + 1 === Number(row.dataset.line) ? Number(row.dataset.line) : null;
        }"""
    )
    return int(number.json_value())


def opened(page: Page, address: str) -> Locator:
    page.goto(address)
    log = page.get_by_role("log", name="Console")
    log.locator("[data-line]").first.wait_for()
    return log


@pytest.mark.check
def test_a_long_log_begins_at_its_end_and_is_scrolled_freely(page: Page, long_log: Log) -> None:
    log = opened(page, long_log.address)
    expect(line(page, LINES)).to_be_in_viewport()
    expect(line(page, LINES)).to_contain_text(f"step {LINES - 1} done")
    log.evaluate("list => { list.scrollTop = list.scrollHeight / 2 }")
    page.wait_for_url("**line=*")
    middle = first_line(page)
    assert abs(middle - LINES / 2) < LINES / 100
    log.hover()
    page.mouse.wheel(0, 180)
    expect(line(page, middle)).not_to_be_in_viewport()
    assert first_line(page) == middle + 10
    log.focus()
    page.keyboard.press("Home")
    assert first_line(page) == 1
    page.keyboard.press("End")
    expect(line(page, LINES)).to_be_in_viewport()
    assert log.locator("[data-line]").count() < 150


@pytest.mark.check
def test_the_address_leads_back_to_the_line_at_the_top(page: Page, long_log: Log) -> None:
    opened(page, f"{long_log.address}?line=200001")
    assert first_line(page) == 200_001
    page.reload()
    assert first_line(page) == 200_001


@pytest.mark.check
def test_a_search_looks_through_the_whole_log(page: Page, long_log: Log) -> None:
    opened(page, long_log.address)
    page.get_by_label("Search in the log").fill("99999 done")
    page.get_by_text("4 hits", exact=True).wait_for(timeout=SEARCH_PATIENCE)
    page.keyboard.press("Enter")
    expect(line(page, 100_000)).to_be_in_viewport()
    expect(line(page, 100_000).locator("mark")).to_have_text("99999 done")
    page.get_by_text("1 of 4 hits").wait_for()
    page.keyboard.press("Shift+Enter")
    expect(line(page, 400_000)).to_be_in_viewport()
    marks = page.get_by_role("img", name="Where the 4 hits are")
    # The fourth one is where the page is now, which has another colour.
    assert _marked(marks) == pytest.approx([k * 100_000 / LINES for k in (1, 2, 3)], abs=0.01)
    page.get_by_role("button", name="Only hits").click()
    page.get_by_text(f"4 of {LINES:,} lines").wait_for()
    numbers = [one.get_attribute("data-line") for one in page.locator("[data-line]").all()]
    assert numbers == ["100000", "200000", "300000", "400000"]
    expect(line(page, 300_000)).to_contain_text("step 299999 done")
    page.wait_for_function("() => location.search.includes('only')")  # the address follows a moment later
    page.reload()
    page.get_by_text(f"4 of {LINES:,} lines").wait_for(timeout=SEARCH_PATIENCE)


@pytest.mark.longer
def test_a_wrong_expression_is_explained(page: Page, long_log: Log, faults: Any) -> None:
    faults.allow("status of 400")
    opened(page, f"{long_log.address}?q=(&regex=1")
    page.get_by_text("regex: ").wait_for()
    page.get_by_label("Search in the log").fill("step 7[0-9]{3} done$")
    page.get_by_text("1,000 hits", exact=True).wait_for(timeout=SEARCH_PATIENCE)


def test_new_lines_are_followed_only_at_the_end(page: Page, server: Served) -> None:
    log = Log(server, "growing")
    log.add([f"step {n} done" for n in range(500)])
    opened(page, log.address)
    expect(line(page, 500)).to_be_in_viewport()
    log.add(["after the end"], START + 10**6)
    expect(line(page, 501)).to_be_in_viewport()
    log.add([f"line {n} of many at once" for n in range(50)], START + 2 * 10**6)
    expect(line(page, 551)).to_be_in_viewport()
    page.keyboard.press("g")
    page.keyboard.press("g")
    assert first_line(page) == 1
    log.add(["one", "more"], START + 10**7)
    page.get_by_role("button", name="2 new lines").click()
    expect(line(page, 553)).to_be_in_viewport()
    expect(page.get_by_role("button", name="new lines")).to_have_count(0)


@pytest.mark.check
def test_late_lines_do_not_move_what_is_read(page: Page, server: Served) -> None:
    log = Log(server, "late lines")
    log.add([f"step {n} done" for n in range(500)])
    opened(page, f"{log.address}?line=301")
    assert first_line(page) == 301
    log.add(["late"] * 20, START + 5, step=0)
    expect(line(page, 321)).to_contain_text("step 300 done")
    top = page.locator('[role="log"]').bounding_box()
    row = line(page, 321).bounding_box()
    assert top
    assert row
    assert abs(row["y"] - top["y"]) < 3


def test_levels_and_workers_are_filtered_on_the_server(page: Page, server: Served) -> None:
    log = Log(server, "levels")
    for n in range(30):
        log.add([f"line {n}"], START + n, level=("info", "warning", "error")[n % 3], worker=("a", "b")[n % 2])
    opened(page, log.address)
    page.get_by_label("Levels").select_option("Errors")
    page.get_by_text("10 of 30 lines").wait_for()
    page.get_by_label("Workers").select_option("b")
    page.get_by_text("5 of 30 lines").wait_for()
    assert [one.get_attribute("data-line") for one in page.locator("[data-line]").all()] == [
        "6",
        "12",
        "18",
        "24",
        "30",
    ]
    log.add(["one more"], START + 100, level="error", worker="b")
    page.get_by_text("6 of 31 lines").wait_for()
    expect(line(page, 31)).to_contain_text("one more")


def test_a_hit_leads_to_its_row_in_a_long_line(page: Page, server: Served) -> None:
    log = Log(server, "hit in many rows")
    rows = [f"row {n} of many" for n in range(1, 3001)]
    log.add([*(f"step {n} done" for n in range(300)), "\n".join([*rows, "needle", *rows])])
    opened(page, f"{log.address}?line=1")
    page.get_by_label("Search in the log").fill("needle")
    page.get_by_text("1 hit", exact=True).wait_for()
    page.keyboard.press("Enter")
    expect(part(page, 301, 3001).locator("mark")).to_have_text("needle")
    expect(part(page, 301, 3001)).to_be_in_viewport()
    mark = page.get_by_label("The whole message").locator("mark")
    expect(mark).to_be_in_viewport()


@pytest.mark.check
def test_who_scrolls_on_is_not_led_back_to_a_hit_that_is_found_late(page: Page, server: Served) -> None:
    log = Log(server, "late hit")
    rows = [f"row {n}" for n in range(3000)]
    log.add([*(f"step {n} done" for n in range(300)), "\n".join([*rows, "needle", *rows])])
    window = opened(page, f"{log.address}?line=1")
    held = hold(page, "**/log.json?*longest=200000*")
    page.get_by_label("Search in the log").fill("needle")
    page.get_by_text("1 hit", exact=True).wait_for()
    page.keyboard.press("Enter")
    arrived(page, held, 2)  # one for the rows, and one for the message below them
    window.hover()
    page.mouse.wheel(0, -2000)
    expect(line(page, 301)).to_have_count(0)
    for one in held:
        one.continue_()
    expect(page.get_by_label("The whole message").locator("mark")).to_be_in_viewport()
    page.mouse.wheel(0, 2500)
    expect(line(page, 301).get_by_role("button", name="Fewer rows")).to_be_visible()


@pytest.mark.check
def test_chosen_lines_are_copied_whole(page: Page, server: Served) -> None:
    log = Log(server, "copied")
    long = "word " * 10_000 + "end"
    log.add(["first", long, "x" * 200_001])
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened(page, log.address)
    line(page, 1).click()
    line(page, 2).click(modifiers=["Shift"])
    page.keyboard.press("c")
    expect(page.get_by_text("Copied 2 lines", exact=True)).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == f"first\n{long}\n"
    line(page, 3).click(modifiers=["Shift"])
    page.keyboard.press("c")
    expect(page.get_by_text("Copied 3 lines; of long ones the first 200,000 characters")).to_be_visible()


@pytest.mark.check
def test_a_slow_expression_does_not_stop_the_page(page: Page, server: Served) -> None:
    log = Log(server, "slow expression")
    log.add(["a" * 200_000, "loss=3 " + "c" * 50_000 + " loss=4", *("a" * 2000 for _ in range(200))])
    opened(page, f"{log.address}?line=1&regex=1&q=a*a*b")
    line(page, 1).get_by_role("button", name="200,000 characters").click()
    page.get_by_text("Not all of this line was searched").first.wait_for()
    line(page, 1).get_by_role("button", name="Fewer rows").click()
    page.get_by_label("Search in the log").fill(r"loss=\d")
    expect(line(page, 2).locator("mark")).to_have_text("loss=3")
    line(page, 2).get_by_role("button", name="characters").click()
    expect(page.locator('[data-part^="2."] mark')).to_have_text("loss=4")
    page.get_by_label("Search in the log").fill("(a+)+b")
    expect(page.get_by_text("0 hits · not marked in their rows")).to_be_visible()


@pytest.mark.longer
def test_bars_between_other_lines_fold_and_are_unfolded(page: Page, server: Served) -> None:
    log = Log(server, "bars between lines")
    bars = [f"train: {n}%|{'█' * (n // 10)}| {n}/100 [00:01<00:09, 9.9it/s]" for n in range(101)]
    log.add([text for n in range(101) for text in (bars[n], f"step {n}")])
    opened(page, log.address)
    rows = page.locator("[data-line]")
    expect(line(page, 201)).to_contain_text("100/100")
    expect(rows.filter(has_text="train:")).to_have_count(1)
    line(page, 201).get_by_role("button", name="+100").click()
    expect(line(page, 199)).to_contain_text("99/100")
    expect(line(page, 201)).to_be_in_viewport()


@pytest.mark.longer
def test_progress_bars_are_no_errors(page: Page, server: Served) -> None:
    log = Log(server, "bars on stderr")
    bars = [f"\r{n}%|██| {n}/100 [00:01<00:09, 9.9it/s]" for n in range(50)]
    broken = "50%|██| 50/100 [00:01<00:09, 9.9it/s]CUDA out of memory"
    named = "Error: disk full 51%|██| 51/100 [00:01<00:09, 9.9it/s]"
    log.add(["real error", *bars, "\x1b[31m7%|█| 7/9 [00:01<00:09, 1it/s]\x1b[0m\n", broken, named], level="error")
    opened(page, log.address)
    page.get_by_label("Levels").select_option("Errors")
    page.get_by_text("3 of 54 lines").wait_for()
    expect(line(page, 1)).to_contain_text("real error")
    expect(line(page, 53)).to_contain_text("CUDA out of memory")
    expect(line(page, 54)).to_contain_text("disk full")
    expect(page.locator("[data-line]")).to_have_count(3)


@pytest.mark.check
def test_long_lines_are_read_sideways_or_wrapped(page: Page, server: Served) -> None:
    log = Log(server, "long lines")
    end = "the end of a long line"
    log.add([*("x" * 600 + f"{end} {n}" for n in range(100)), "a\nb\nc", "last"])
    console = opened(page, log.address)
    expect(line(page, 100)).to_contain_text(end)
    assert console.evaluate("list => list.scrollWidth > 2 * list.clientWidth")
    console.evaluate("list => { list.scrollLeft = list.scrollWidth }")
    assert _is_in_sight(page, f"{end} 99")
    page.get_by_role("button", name="What the console shows").click()
    page.get_by_role("menuitemradio", name="Wrap lines").click()
    expect(part(page, 101, 3)).to_contain_text("c")
    expect(line(page, 102)).to_be_in_viewport()
    assert _is_in_sight(page, f"{end} 99")
    assert console.evaluate("list => list.scrollWidth === list.clientWidth")
    expect(part(page, 100, 5)).to_have_count(0)
    page.set_viewport_size({"width": 700, "height": 900})
    expect(part(page, 100, 5)).to_have_count(1)
    assert console.evaluate("list => list.scrollWidth === list.clientWidth")
    page.reload()
    expect(part(page, 101, 3)).to_contain_text("c")
    expect(line(page, 102)).to_be_in_viewport()


@pytest.mark.check
def test_colours_of_terminals(page: Page, server: Served) -> None:
    log = Log(server, "colours")
    log.add(["\x1b[31mred\x1b[0m plain \x1b[38;2;1;2;3mown\x1b[0m", "\x1b[1mgoes on", "here\x1b[0m not here"])
    opened(page, log.address)
    expect(line(page, 1).locator("bdi")).to_have_text("red plain own")
    expect(line(page, 1).locator("bdi span").last).to_have_css("color", "rgb(1, 2, 3)")
    expect(line(page, 3).locator("bdi span")).to_have_text("here")
    expect(line(page, 3).locator("bdi span")).to_have_css("font-weight", "700")


@pytest.mark.check
def test_hostile_lines_run_and_change_nothing(page: Page, server: Served) -> None:
    log = Log(server, "hostile")
    hostile = [
        '<img src=x onerror="document.title=1"><script>alert(1)</script>',
        "javascript:alert(1)",
        "\u202egnirts a\u202c \u2066left",
        "nul \0 bell \x07",
        "\x1b]0;title\x07\x1b[2J\x1b[999999;1Hcleared",
        f"{chr(27)}[" * 50_000,
        "x" * 1_000_000,
        "a\nb\nc",
        "\U0001f600" * 3000,
        "",
    ]
    log.add(hostile)
    opened(page, log.address)
    expect(line(page, 1)).to_contain_text(hostile[0])
    expect(line(page, 4)).to_contain_text("nul ␀ bell ␇")
    expect(line(page, 5).locator("bdi")).to_have_text("cleared")
    expect(line(page, 7)).to_contain_text("1,000,000 characters")
    expect(part(page, 8, 3)).to_contain_text("c")
    rows = page.locator("[data-line], [data-part]")
    heights = rows.evaluate_all("rows => rows.map(row => row.offsetHeight)")
    assert set(heights) == {18}
    line(page, 7).click()
    detail = page.get_by_role("region", name="Line 7")
    expect(detail).to_contain_text("The first 200,000 of 1,000,000 characters")
    line(page, 7).get_by_role("button", name="1,000,000 characters").click()
    page.get_by_role("button", name="Last line").click()
    rows.filter(has_text="The first 200,000 of 1,000,000 characters").wait_for()
    with page.context.expect_page() as new:
        detail.get_by_role("link", name="The whole message").click()
    new.value.wait_for_function("() => document.body.innerText.trim() === 'x'.repeat(1e6)")
    line(page, 8).click()
    expect(page.get_by_label("The whole message")).to_have_text("a\nb\nc")
    assert page.title().startswith("hostile")


@pytest.mark.longer
def test_the_console_fits_on_a_phone(phone: Page, lab: Lab) -> None:
    phone.goto(f"{lab.at('resnet-50')}/console")
    log = phone.get_by_role("log", name="Console")
    expect(log.locator("[data-line]").last).to_be_visible()
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
    box = log.bounding_box()
    assert box
    assert box["height"] > 200


def _is_in_sight(page: Page, text: str) -> bool:
    """Whether the pixels of a text are inside the window of the log."""
    found: bool = page.wait_for_function(
        """text => {
            const list = document.querySelector('[role="log"]').getBoundingClientRect();
            const walker = document.createTreeWalker(document.querySelector('[role="log"]'), NodeFilter.SHOW_TEXT);
            for (let node; (node = walker.nextNode()); ) {
              const at = node.data.indexOf(text);
              if (at < 0) continue;
              const range = document.createRange();
              range.setStart(node, at); range.setEnd(node, at + text.length);
              for (const {left, right, top, bottom} of range.getClientRects())
                if (left >= list.left && right <= list.right && top >= list.top && bottom <= list.bottom) return true;
            }
            return false;
        }""",
        arg=text,
    ).json_value()
    return found


def _marked(marks: Locator) -> list[float]:
    """Where the marks lie in the strip, from 0 to 1, by its pixels."""
    found: list[float] = marks.evaluate(
        """canvas => {
            const colour = getComputedStyle(canvas).getPropertyValue('--warn');
            const probe = document.createElement('canvas').getContext('2d');
            probe.fillStyle = colour; probe.fillRect(0, 0, 1, 1);
            const wanted = probe.getImageData(0, 0, 1, 1).data.join();
            const {width, height} = canvas;
            const pixels = canvas.getContext('2d').getImageData(0, 0, width, height).data;
            const rows = [];
            for (let y = 0; y < height; y++) {
              const at = 4 * (y * width + (width >> 1));
              const is = pixels.slice(at, at + 4).join() === wanted;
              if (is && rows.at(-1)?.[1] !== y - 1) rows.push([y, y]);
              else if (is) rows.at(-1)[1] = y;
            }
            return rows.map(([y]) => y / height);
        }"""
    )
    return found
