"""The pages in Chromium: how soon curves are drawn, how smoothly a table scrolls, and what an open page keeps."""

from __future__ import annotations

import asyncio
import gzip
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import orjson

from apiserver.common import resources
from apiserver.events.model import Owner
from apiserver.rpc.auth import TOKEN_COOKIE
from apiserver.settings.settings import Settings
from benchmarks import lists
from benchmarks.browser import CHROMIUM, Traffic, fresh, heap_mb, launched, uplot_ms
from benchmarks.columns import Load, fill
from benchmarks.figures import AGAIN, EMPTY, HALF, PLAIN_LIST, QUARTER, THREE_QUARTERS, UPLOT
from benchmarks.listed import Company
from benchmarks.processes import timed_ms
from benchmarks.run import Run
from benchmarks.server import Running, running

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

#: All charts are in the window; one chart alone has 2,000 pixels; all charts that are followed are in the window.
_WINDOW, _WIDE, _LARGE = (1600, 1500), (2160, 1000), (3200, 2400)
_CHARTS, _CURVES = 20, 10
_FOLLOWED = 50
#: The points that each followed curve gets at once, twice a second.
_AT_ONCE = 10
#: The points of each run that is shown together with others.
_POINTS = 10_000
_GROUPS = 5
#: About how many buckets a curve has that is drawn in one of many charts, and alone on a page.
_BUCKETS, _MOST_BUCKETS = 300, 2000
#: Whether some charts in the window are drawn, all of them, and none waits for an answer.
DRAWN = """(least) => {
  const charts = [...document.querySelectorAll('[role=figure]')].filter((one) => {
    const place = one.getBoundingClientRect();
    return place.bottom > 0 && place.top < innerHeight;
  });
  return charts.length >= least && charts.every((one) => one.querySelector('canvas'))
    && !document.querySelector('[aria-busy=true]');
}"""
#: Whether the first chart waits for no answer.
_FIRST_DRAWN = "() => !document.querySelector('[role=figure]').closest('article').querySelector('[aria-busy=true]')"
#: Waits until all that was drawn is on the screen.
_SEEN = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
#: Goes to an address of the same server as a link does.
_GO = "(address) => { history.pushState(null, '', address); dispatchEvent(new PopStateEvent('popstate')); }"
#: Scrolls for some seconds, a little in each frame; how many frames there were in a second.
_SCROLL = """async (element, seconds) => {
  let frames = 0;
  const began = performance.now();
  while (performance.now() - began < seconds * 1000) {
    element.scrollTop += 120;
    await new Promise(requestAnimationFrame);
    frames++;
  }
  return frames / seconds;
}"""
_SCROLLED = """(grid) => [grid, ...grid.querySelectorAll('*')].find((one) => one.scrollHeight > one.clientHeight + 200)
  ?? grid.parentElement"""
_LIST = "<ul style='height: 900px; overflow: auto'>" + "<li style='height: 5000px'>row" * 100


def measure(run: Run) -> None:
    """The figures viewer.*"""
    if CHROMIUM is None:
        sys.stderr.write("there is no chromium, which shows the pages\n")
        return
    with running(run.folder) as server:
        shown, project = _filled(run, server)
        with launched() as browser:
            token = server.call("auth.login", {})["token"]
            pages = _Pages(run, browser, (server.server.api_url, TOKEN_COOKIE, token))
            pages.measure_curves(shown)
            pages.measure_runs(project)
            pages.measure_table()
            pages.measure_following(server)


def _filled(run: Run, server: Running) -> tuple[Owner, str]:
    """The run of many curves, and the project of many runs."""
    sizes = run.sizes
    server.stop()
    company = Company.of(Settings().company, max(10, sizes.viewed_tasks // 100))
    asyncio.run(lists.fill(server.server.data / "documents.db", company, sizes.viewed_tasks))
    server.start()
    shown = server.task("shown", server.call("projects.create", {"name": "curves"})["id"])
    project = server.call("projects.create", {"name": "many"})["id"]
    runs = []
    for number in range(max(sizes.viewed_runs)):
        made = server.task(f"run {number}", project)
        value = {"section": "Args", "name": "lr", "value": str(number % _GROUPS)}
        server.call("tasks.edit_hyper_params", {"task": made.id, "hyperparams": [value]})
        runs.append(made)
    server.stop()
    each = sizes.viewed_points * _CURVES
    loads = [Load(shown, each, _CURVES, 10_000, f"metric {n:02}", seed=n) for n in range(_CHARTS)]
    others = [Load(one, _POINTS, 1, _POINTS, seed=number) for number, one in enumerate(runs)]
    asyncio.run(fill(server.events, [*loads, *others]))
    server.start()
    return shown, project


@dataclass(frozen=True, slots=True)
class _Shown:
    """How long a page took each time, and what it loaded."""

    milliseconds: list[float] = field(default_factory=list)
    megabytes: list[float] = field(default_factory=list)

    @property
    def median_ms(self) -> float:
        return statistics.median(self.milliseconds)

    @property
    def median_mb(self) -> float:
        return statistics.median(self.megabytes)


@dataclass(frozen=True, slots=True)
class _Pages:
    """Pages of a server in which the admin is signed in."""

    run: Run
    browser: Browser
    cookie: tuple[str, str, str]

    def fresh(self, size: tuple[int, int] = _WINDOW) -> AbstractContextManager[Page]:
        return fresh(self.browser, size, self.cookie)

    @property
    def times(self) -> range:
        """Pages are shown so often; the median counts."""
        return range(max(1, self.run.sizes.runs // 4))

    def limits(self, charts: int, lines: int, points: int) -> dict[str, float]:
        """How long uPlot alone takes to draw as much."""
        found = [uplot_ms(self.browser, charts, lines, points) for _ in self.times]
        taken = [one for one in found if one is not None]
        return {UPLOT: statistics.median(taken)} if taken else {}

    def measure_curves(self, shown: Owner) -> None:
        table, run = self.run.table, f"/projects/*/tasks/{shown.id}"
        clicked, zoomed, opened, empty = _Shown(), list[tuple[float, float]](), [], []
        again, paths = _Shown(), set[str]()
        for _ in self.times:
            with self.fresh() as page:
                for shown_so in (clicked, again):
                    page.goto(f"{run}/overview")
                    page.get_by_role("tab", name="Scalars").wait_for()
                    traffic = Traffic(page)
                    click = page.get_by_role("tab", name="Scalars").click
                    shown_so.milliseconds.append(_until_drawn(page, click, _CHARTS))
                    shown_so.megabytes.append(traffic.megabytes)
                zoomed.append(_zoom_ms(page))
            with self.fresh() as page:
                empty.append(timed_ms(partial(page.goto, "/livez")))
            with self.fresh() as page:
                traffic = Traffic(page)
                opened.append(_until_drawn(page, partial(page.goto, f"{run}/scalars"), _CHARTS))
                paths |= traffic.paths
        drawn = self.limits(_CHARTS, _CURVES, _BUCKETS)
        files = [resources.path(f"viewer/dist{path}") for path in paths if path.startswith("/assets/")]
        table.put("viewer.size", sum(len(gzip.compress(file.read_bytes(), 9)) for file in files) / 1024)
        table.put("viewer.curves", clicked.median_ms, {AGAIN: again.median_ms, **drawn})
        table.put("viewer.curves.bytes", clicked.median_mb, {AGAIN: again.median_mb})
        table.put("viewer.opened", statistics.median(opened), {EMPTY: statistics.median(empty), **drawn})
        mine, all = (statistics.median(times) for times in zip(*zoomed, strict=True))
        table.put("viewer.zoom", mine)
        table.put("viewer.zoom.all", all, drawn)

    def measure_runs(self, project: str) -> None:
        few, all = self.run.sizes.viewed_runs
        with self.fresh() as page:
            answer = page.context.request.get(f"/data/projects/{project}/tasks.json?columns=id")
            owners = [row["id"] for row in answer.json()]
        alone = {"full": "m/v000000"}
        self._measure_compared("viewer.runs", project, owners[:few], alone, self.limits(1, few, _MOST_BUCKETS))
        grouped = {"group": "hyperparams.Args/lr"}
        self._measure_compared("viewer.groups", project, owners[:all], grouped, self.limits(1, 3 * _GROUPS, _BUCKETS))

    def _measure_compared(
        self, figure: str, project: str, runs: list[str], more: Mapping[str, str], limits: dict[str, float]
    ) -> None:
        address = f"/projects/{project}/compare?{urlencode({'tasks': ','.join(runs), **more})}"
        taken = []
        for _ in self.times:
            with self.fresh(_WIDE) as page:
                page.goto("/projects")
                page.get_by_role("row").nth(1).wait_for()
                page.evaluate(_SEEN)
                taken.append(_until_drawn(page, partial(page.evaluate, _GO, address), 1))
        self.run.table.put(figure, statistics.median(taken), limits)

    def measure_table(self) -> None:
        seconds = self.run.sizes.scrolled_seconds
        with self.fresh() as page:
            page.set_content(_LIST)
            plain = float(page.locator("ul").evaluate(_SCROLL, seconds))
        with self.fresh() as page:
            page.goto("/projects/*")
            page.get_by_role("grid").get_by_role("row").nth(5).wait_for()
            scrolled = page.get_by_role("grid").evaluate_handle(_SCROLLED).as_element()
            assert scrolled is not None
            self.run.table.put("viewer.table", float(scrolled.evaluate(_SCROLL, seconds)), {PLAIN_LIST: plain})

    def measure_following(self, server: Running) -> None:
        """A page that follows curves to which points are sent all the time: what it keeps after each quarter."""
        task, seconds, sent = server.task("followed"), self.run.sizes.followed_seconds, _points()
        server.call("tasks.started", {"task": task.id})
        _report(server, task, next(sent))
        with self.fresh(_LARGE) as page:
            session = page.context.new_cdp_session(page)
            session.send("HeapProfiler.enable")
            page.goto(f"/projects/*/tasks/{task.id}/scalars")
            page.wait_for_function(DRAWN, arg=_FOLLOWED)
            kept = []
            for _ in range(4):
                ended = time.monotonic() + seconds / 4
                while time.monotonic() < ended:
                    _report(server, task, next(sent))
                    page.wait_for_timeout(min(0.5, seconds / 4) * 1000)
                kept.append(heap_mb(session))
        *before, last = kept
        beside = dict(zip((QUARTER, HALF, THREE_QUARTERS), before, strict=True))
        self.run.table.put("viewer.memory", last, beside)


def _until_drawn(page: Page, begin: Callable[[], object], charts: int) -> float:
    """Milliseconds from beginning something until so many charts are drawn."""
    return timed_ms(lambda: (begin(), page.wait_for_function(DRAWN, arg=charts)))


def _zoom_ms(page: Page) -> tuple[float, float]:
    """Drag over a part of the first chart; the milliseconds until it shows that part in finer buckets, and all do."""
    place = page.get_by_role("figure").first.locator("canvas").first.bounding_box()
    assert place is not None
    middle = place["y"] + place["height"] / 2
    page.mouse.move(place["x"] + place["width"] * 0.4, middle)
    page.mouse.down()
    page.mouse.move(place["x"] + place["width"] * 0.6, middle, steps=5)
    began = time.perf_counter()
    with page.expect_response(lambda answer: "from=" in answer.url):
        page.mouse.up()
    page.wait_for_function(_FIRST_DRAWN)
    page.evaluate(_SEEN)
    first = time.perf_counter()
    page.wait_for_function(DRAWN, arg=_CHARTS)
    page.evaluate(_SEEN)
    return (first - began) * 1e3, (time.perf_counter() - began) * 1e3


def _points() -> Iterator[range]:
    """The iterations that each followed curve gets at once."""
    first = 0
    while True:
        yield range(first, first + _AT_ONCE)
        first += _AT_ONCE


def _report(server: Running, task: Owner, iterations: range) -> None:
    common = {"task": task.id, "type": "training_stats_scalar", "variant": "v"}
    events = (
        {**common, "iter": iteration, "metric": f"metric {n:02}", "value": n + iteration % 7}
        for iteration in iterations
        for n in range(_FOLLOWED)
    )
    server.connection.post("events.add_batch", b"\n".join(map(orjson.dumps, events)))
