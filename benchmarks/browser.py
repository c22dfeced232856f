"""Chromium, which shows pages to be measured: what they load, when they are drawn, what they keep.

It needs Chromium, which Playwright drives. Each page is shown by a context of its own, whose cache is empty.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tests.clients.chromium import CHROMIUM

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, CDPSession, Page

__all__ = ["CHROMIUM", "Traffic", "drawn_seconds", "fresh", "heap_mb", "launched", "uplot_ms"]

PATIENCE_MS = 180_000
#: Seconds for which a picture has to stay the same.
_QUIET = 3
_UPLOT = Path(__file__).parents[1] / "viewer/node_modules/uplot/dist"
#: Draws random lines by uPlot alone; the milliseconds until the browser goes on to the next frame.
_DRAW = """async ([charts, lines, points]) => {
  const x = Float64Array.from({length: points}, (_, n) => n);
  const column = () => Float64Array.from({length: points}, Math.random);
  const all = Array.from({length: charts}, () => [x, ...Array.from({length: lines}, column)]);
  const series = [{}, ...Array.from({length: lines}, () => ({stroke: "black"}))];
  const began = performance.now();
  for (const data of all) new uPlot({width: 380, height: 210, scales: {x: {time: false}}, series}, data, document.body);
  await new Promise(requestAnimationFrame);
  await new Promise(requestAnimationFrame);
  return performance.now() - began;
}"""


@contextmanager
def launched() -> Iterator[Browser]:
    """A browser as that of the tests, without a window."""
    from playwright.sync_api import sync_playwright

    from tests.pages.browser import ARGUMENTS

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@contextmanager
def fresh(browser: Browser, size: tuple[int, int], cookie: tuple[str, str, str] | None = None) -> Iterator[Page]:
    """A page in a context with an empty cache. `cookie`: an address, and the name and value of a cookie there."""
    options: dict[str, Any] = {"viewport": {"width": size[0], "height": size[1]}}
    if cookie is not None:
        options["base_url"] = cookie[0]
    context: BrowserContext = browser.new_context(**options)
    context.set_default_timeout(PATIENCE_MS)
    if cookie is not None:
        context.add_cookies([{"url": cookie[0], "name": cookie[1], "value": cookie[2]}])
    yield context.new_page()
    context.close()


class Traffic:
    """What a page loads from now on, as it comes over the wire."""

    def __init__(self, page: Page) -> None:
        self.bytes = 0.0
        self.paths: set[str] = set()
        session = page.context.new_cdp_session(page)
        session.send("Network.enable")
        session.on("Network.requestWillBeSent", lambda event: self.paths.add(urlsplit(event["request"]["url"]).path))
        session.on("Network.loadingFinished", self._finished)

    @property
    def megabytes(self) -> float:
        return self.bytes / 1e6

    def _finished(self, event: dict[str, Any]) -> None:
        self.bytes += event["encodedDataLength"]


def drawn_seconds(page: Page, address: str, drawn: str, *, by_picture: bool = False) -> float:
    """Seconds from going to an address until `drawn`, an expression, is true.

    `by_picture`: then wait until the picture of the page changes for the last time, and take that moment. It is for
    pages that draw where no expression can see it.
    """
    session, frames = page.context.new_cdp_session(page), list[dict[str, Any]]()
    session.on("Page.screencastFrame", lambda frame: frames.append(frame))  # sets attributes of it
    if by_picture:
        session.send("Page.startScreencast", {"format": "jpeg", "quality": 30, "maxWidth": 400, "maxHeight": 600})
    began = time.time()
    page.goto(address, wait_until="commit")
    page.wait_for_function(f"() => {drawn}", polling=50)
    seen = last = time.time()
    while by_picture and time.time() - last < _QUIET:
        page.wait_for_timeout(50)
        while frames:
            frame = frames.pop(0)
            last = max(last, frame["metadata"]["timestamp"])
            session.send("Page.screencastFrameAck", {"sessionId": frame["sessionId"]})
    session.detach()
    return max(seen, last) - began


def heap_mb(session: CDPSession) -> float:
    """The memory of the page's objects, documents and arrays that are still in use."""
    for _ in range(3):
        session.send("HeapProfiler.collectGarbage")
    used = session.send("Runtime.getHeapUsage")
    return float(sum(used.get(name, 0) for name in ("usedSize", "embedderHeapUsedSize", "backingStorageSize"))) / 2**20


def uplot_ms(browser: Browser, charts: int, lines: int, points: int) -> float | None:
    """How long uPlot takes to draw lines of so many points each; None if the pages' packages are not there."""
    script, style = _UPLOT / "uPlot.iife.min.js", _UPLOT / "uPlot.min.css"
    if not script.exists():
        return None
    with fresh(browser, (1600, 1500)) as page:
        page.set_content(f"<style>{style.read_text()}</style><body></body>")
        page.add_script_tag(content=script.read_text())
        page.evaluate(_DRAW, [1, 1, 10])
        return float(page.evaluate(_DRAW, [charts, lines, points]))
