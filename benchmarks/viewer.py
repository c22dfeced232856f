"""The pages in Chromium: how soon curves are drawn, how smoothly a table scrolls, and what an open page keeps.

It needs Chromium, which Playwright drives; without it, this section does nothing.
"""

from __future__ import annotations

import asyncio
import gzip
import shutil
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from apiserver import resources
from apiserver.events.model import Owner
from apiserver.rpc.auth import TOKEN_COOKIE
from apiserver.settings import Settings
from benchmarks import lists
from benchmarks.columns import Load, fill
from benchmarks.listed import Company
from benchmarks.run import Run
from benchmarks.server import Running, running

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, CDPSession, Page

_CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
_WINDOW: Any = {"width": 1600, "height": 1000}
_CHARTS, _CURVES = 20, 10
_FOLLOWED = 50
#: The points of each run that is shown together with others.
_POINTS = 10_000
_GROUPS = 5
_PATIENCE_MS = 60_000

#: Whether all charts in the window are drawn, and none waits for an answer.
_DRAWN = """() => {
  const charts = [...document.querySelectorAll('[role=figure]')].filter((one) => {
    const place = one.getBoundingClientRect();
    return place.bottom > 0 && place.top < innerHeight;
  });
  return charts.length > 0 && charts.every((one) => one.querySelector('canvas'))
    && !document.querySelector('[aria-busy=true]');
}"""
#: Scrolls for three seconds, a little in each frame; how many frames there were in a second.
_SCROLL = """async (element) => {
  let frames = 0;
  const began = performance.now();
  while (performance.now() - began < 3000) {
    element.scrollTop += 120;
    await new Promise(requestAnimationFrame);
    frames++;
  }
  return frames / 3;
}"""


def measure(run: Run) -> None:
    """The figures viewer.*"""
    if _CHROMIUM is None:
        sys.stderr.write("there is no chromium, which shows the pages\n")
        return
    with running(run.folder) as server:
        shown, project = _filled(run, server)
        with _browser(server) as context:
            _measure_curves(run, context, shown)
            _measure_runs(run, context, project)
            _measure_following(run, context, server)
            _measure_table(run, context)


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
    loads = [Load(shown, each, _CURVES, 10_000, f"metric {n:02}") for n in range(_CHARTS)]
    asyncio.run(fill(server.events, [*loads, *(Load(one, _POINTS, 1, _POINTS) for one in runs)]))
    server.start()
    return shown, project


@contextmanager
def _browser(server: Running) -> Iterator[BrowserContext]:
    """A browser in which the admin is signed in."""
    from playwright.sync_api import sync_playwright

    url = server.server.api_url
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=["--no-sandbox"])
        context = browser.new_context(viewport=_WINDOW, base_url=url)
        token = server.call("auth.login", {})["token"]
        context.add_cookies([{"name": TOKEN_COOKIE, "value": token, "url": url}])
        context.set_default_timeout(_PATIENCE_MS)
        yield context
        browser.close()


def _measure_curves(run: Run, context: BrowserContext, shown: Owner) -> None:
    page = context.new_page()
    loaded: set[str] = set()
    page.on("request", lambda request: loaded.add(urlsplit(request.url).path))
    taken, sizes, zoomed = [], [], []
    for _ in range(max(1, run.sizes.runs // 4)):
        page.goto(f"/projects/*/tasks/{shown.id}/overview")
        page.get_by_role("tab", name="Scalars").wait_for()
        session = context.new_cdp_session(page)
        received = _count_bytes(session)
        began = time.perf_counter()
        page.get_by_role("tab", name="Scalars").click()
        page.wait_for_function(_DRAWN)
        taken.append((time.perf_counter() - began) * 1e3)
        sizes.append(sum(received) / 1e6)
        zoomed.append(_zoom_ms(page))
        session.detach()
    files = [resources.path(f"viewer/dist{path}") for path in loaded if path.startswith("/assets/")]
    run.table.put("viewer.size", sum(len(gzip.compress(file.read_bytes(), 9)) for file in files) / 1024)
    run.table.put("viewer.curves", statistics.median(taken))
    run.table.put("viewer.curves.bytes", statistics.median(sizes))
    run.table.put("viewer.zoom", statistics.median(zoomed))
    page.close()


def _zoom_ms(page: Page) -> float:
    """Drag over a part of the first chart; the milliseconds until all charts show that part in finer buckets."""
    place = page.get_by_role("figure").first.locator("canvas").first.bounding_box()
    assert place is not None
    middle = place["y"] + place["height"] / 2
    page.mouse.move(place["x"] + place["width"] * 0.4, middle)
    page.mouse.down()
    page.mouse.move(place["x"] + place["width"] * 0.6, middle, steps=5)
    began = time.perf_counter()
    with page.expect_response(lambda answer: "from=" in answer.url):
        page.mouse.up()
    page.wait_for_function(_DRAWN)
    return (time.perf_counter() - began) * 1e3


def _count_bytes(session: CDPSession) -> list[float]:
    """The sizes of all answers from now on, as they come over the wire."""
    sizes: list[float] = []
    session.send("Network.enable")
    session.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    return sizes


def _measure_runs(run: Run, context: BrowserContext, project: str) -> None:
    few, all = run.sizes.viewed_runs
    owners = _run_ids(context, project)
    asked = {
        "viewer.runs": (few, {}),
        "viewer.groups": (all, {"group": "hyperparams.Args/lr"}),
    }
    for figure, (count, more) in asked.items():
        taken = []
        for _ in range(max(1, run.sizes.runs // 4)):
            page = context.new_page()
            page.goto("/projects")
            page.get_by_role("main").wait_for()
            address = f"/projects/{project}/compare?{urlencode({'tasks': ','.join(owners[:count]), **more})}"
            began = time.perf_counter()
            page.goto(address)
            page.wait_for_function(_DRAWN)
            taken.append((time.perf_counter() - began) * 1e3)
            page.close()
        run.table.put(figure, statistics.median(taken))


def _run_ids(context: BrowserContext, project: str) -> list[str]:
    answer = context.request.get(f"/data/projects/{project}/tasks.json?columns=id")
    return [row["id"] for row in answer.json()]


def _measure_following(run: Run, context: BrowserContext, server: Running) -> None:
    """A page that follows curves to which points are sent all the time: what it keeps more than after a while."""
    task = server.task("followed")
    page = context.new_page()
    session = context.new_cdp_session(page)
    session.send("HeapProfiler.enable")
    server.call("tasks.started", {"task": task.id})
    _report(server, task, 0)
    page.goto(f"/projects/*/tasks/{task.id}/scalars")
    page.wait_for_function(_DRAWN)
    seconds = run.sizes.followed_seconds
    _report_for(server, task, 1, seconds / 4)
    before = _heap_mb(session)
    _report_for(server, task, 10**6, seconds)
    run.table.put("viewer.memory", max(0.0, _heap_mb(session) - before))
    page.close()


def _report_for(server: Running, task: Owner, first: int, seconds: float) -> None:
    ended, number = time.monotonic() + seconds, first
    while time.monotonic() < ended:
        _report(server, task, number)
        number += 1
        time.sleep(0.5)


def _report(server: Running, task: Owner, iteration: int) -> None:
    common = {"task": task.id, "type": "training_stats_scalar", "variant": "v", "iter": iteration}
    events = [{**common, "metric": f"metric {n:02}", "value": n + iteration % 7} for n in range(_FOLLOWED)]
    for event in events:
        server.call("events.add", event)


def _heap_mb(session: CDPSession) -> float:
    """The memory of the page's objects that are still in use."""
    for _ in range(3):
        session.send("HeapProfiler.collectGarbage")
    return float(session.send("Runtime.getHeapUsage")["usedSize"]) / 2**20


def _measure_table(run: Run, context: BrowserContext) -> None:
    page = context.new_page()
    page.goto("/projects/*")
    page.get_by_role("grid").get_by_role("row").nth(5).wait_for()
    scrolled = page.get_by_role("grid").evaluate_handle(
        """(grid) => [grid, ...grid.querySelectorAll('*')].find((one) => one.scrollHeight > one.clientHeight + 200)
             ?? grid.parentElement"""
    )
    run.table.put("viewer.table", float(page.evaluate(_SCROLL, scrolled)))
    page.close()
