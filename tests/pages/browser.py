"""Pages in Debian's Chromium, by Playwright. Whatever a page does that no page of ours may do fails its test."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    Response,
    Route,
    expect,
    sync_playwright,
)

from apiserver.common.resources import path
from apiserver.rpc.auth import TOKEN_COOKIE
from tests.clients.chromium import CHROMIUM
from tests.harness import Served

DESKTOP: dict[str, Any] = {"viewport": {"width": 1400, "height": 900}}
PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 2,
    "is_mobile": True,
    "has_touch": True,
}
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-proxy-server"]
#: Says what a policy forbade, where the console would say it only in some cases.
_TELL_OF_VIOLATIONS = """
addEventListener('securitypolicyviolation', event => console.error(
  `policy: ${event.effectiveDirective} forbids ${event.blockedURI} ${event.sample}`))
"""
_WITHOUT_NETWORK = ("data:", "blob:", "about:")
#: Milliseconds that anything of a page is waited for: a busy machine takes long.
PATIENCE = 120_000
expect.set_options(timeout=PATIENCE)
#: Contexts that no test uses, with their options, the one that was used last at the end. The pages of a context are
#: shown by one process: to start another one, which has to compile the pages' scripts, takes more time than most tests.
_IDLE: WeakKeyDictionary[Browser, list[tuple[dict[str, Any], BrowserContext]]] = WeakKeyDictionary()
_MOST_IDLE = 4


class Faults:
    """What pages of a test did wrong: errors, answers of 500 and more, what a policy forbade, foreign hosts asked."""

    def __init__(self) -> None:
        self._found: list[str] = []
        self._allowed: list[re.Pattern[str]] = []

    def allow(self, pattern: str) -> None:
        """Faults in which this is found are what the test is about."""
        self._allowed.append(re.compile(pattern))

    def add(self, fault: str) -> None:
        self._found.append(fault)

    def check(self) -> None:
        """AssertionError if there are any others."""
        wrong = [one for one in self._found if not any(allowed.search(one) for allowed in self._allowed)]
        assert not wrong, "\n".join(wrong)

    def watch(self, page: Page, server: Served) -> None:
        """Note from now on what the page does wrong."""
        own = {urlsplit(url).netloc for url in (server.api_url, server.files_url)}

        def console(message: ConsoleMessage) -> None:
            if message.type == "error":
                self.add(f"console: {message.text} ({message.location['url']})")

        def requested(request: Request) -> None:
            if not request.url.startswith(_WITHOUT_NETWORK) and urlsplit(request.url).netloc not in own:
                self.add(f"foreign: {request.url}")

        def answered(response: Response) -> None:
            if response.status >= 500:
                self.add(f"answer: {response.status} {response.url}")

        page.add_init_script(_TELL_OF_VIOLATIONS)
        page.on("console", console)
        page.on("pageerror", lambda error: self.add(f"error: {error.message}\n{error.stack}"))
        page.on("request", requested)
        page.on("response", answered)


class KeptBrowser:
    """A plugin of pytest: one browser without a window for all modules.

    It ends before a test that has no browser, because no asynchronous test can run in the same process while there is
    one.
    """

    def __init__(self) -> None:
        self._browser: Browser | None = None
        self._ending = ExitStack()

    def running(self) -> Browser:
        """The browser. The test is skipped if there is none."""
        if self._browser is None:
            if CHROMIUM is None:
                pytest.skip("there is no chromium: apt-get install chromium")
            playwright = self._ending.enter_context(sync_playwright())
            self._browser = playwright.chromium.launch(
                executable_path=CHROMIUM, args=[*ARGUMENTS, "--process-per-site"]
            )
            self._ending.callback(self._browser.close)
        return self._browser

    def end(self) -> None:
        """End the browser, if there is one."""
        self._browser = None
        self._ending.close()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Function) -> None:
        if "kept_browser" not in item.fixturenames:
            self.end()


@contextmanager
def other_browser(browser: Browser, *, keeping: bool = False) -> Iterator[Browser]:
    """Another browser. In it, each page and each frame of a stranger has a process of its own, as in people's browsers.

    keeping: it keeps pages that are left, and goes back to them as they were, as people's browsers do, too.
    """
    unwanted = ["--disable-back-forward-cache"] if keeping else []
    other = browser.browser_type.launch(executable_path=CHROMIUM, args=ARGUMENTS, ignore_default_args=unwanted)
    yield other
    other.close()


@contextmanager
def opened_page(
    browser: Browser, server: Served, faults: Faults, *, key: tuple[str, str] | None, **options: Any
) -> Iterator[Page]:
    """A page with cookies of its own, signed in with an access key and its secret, or not at all.

    `options` are those of a Playwright context, such as DESKTOP, PHONE or `color_scheme="dark"`. Addresses may be given
    without the host: `page.goto("/projects")`. What the page does wrong is noted in `faults`.
    """
    options["base_url"] = server.api_url
    idle = _IDLE.setdefault(browser, [])
    fitting = [one for one in idle if one[0] == options]
    context = fitting[0][1] if fitting else _made(browser, options)
    if fitting:
        idle.remove(fitting[0])
    if key is not None:
        context.add_cookies([{"name": TOKEN_COOKIE, "value": token_of(server, key), "url": server.api_url}])
    page = context.new_page()
    faults.watch(page, server)
    yield page
    _empty(context, server)
    idle.append((options, context))
    if len(idle) > _MOST_IDLE:
        idle.pop(0)[1].close()


def _made(browser: Browser, options: dict[str, Any]) -> BrowserContext:
    """A new context. Its first page shows nothing, and keeps the process in which the browser shows all the others."""
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE)
    context.new_page().goto("/livez")
    return context


def _empty(context: BrowserContext, server: Served) -> None:
    """Close all pages but the first, and forget cookies, permissions, and what pages of the server stored."""
    first, *others = context.pages
    for page in others:
        page.close()
    session = context.new_cdp_session(first)
    session.send("Storage.clearDataForOrigin", {"origin": server.api_url, "storageTypes": "all"})
    session.detach()
    context.clear_cookies()
    context.clear_permissions()
    context.set_offline(False)


def hold(page: Page, pattern: str) -> list[Route]:
    """Hold back what the page asks from now on by addresses of a pattern, such as "**/tasks.update": these requests."""
    held: list[Route] = []
    page.route(pattern, lambda route: held.append(route))
    return held


def arrived(page: Page, held: list[Route], count: int = 1) -> Route:
    """Wait until so many of the requests that `hold` holds back have arrived, and return the last of these."""
    for _ in range(PATIENCE // 20):
        if len(held) >= count:
            return held[count - 1]
        page.wait_for_timeout(20)  # Playwright says only meanwhile what has arrived
    raise AssertionError(f"{len(held)} requests have arrived, not {count}")


def frames_pass(page: Page) -> None:
    """Wait until nothing of the page has moved or changed for ten frames, so that what was asked for is shown."""
    page.evaluate(_FRAMES)


#: Whatever goes on for ever, as a sign that something loads does, is not waited for; nor are changes beyond 600 frames.
_FRAMES = """async () => {
    let changed = false;
    const watching = new MutationObserver(() => (changed = true));
    watching.observe(document, { attributes: true, characterData: true, childList: true, subtree: true });
    const ends = (one) => Number.isFinite(one.effect?.getComputedTiming().endTime) && one.playState === "running";
    for (let all = 0, still = 0; still < 10 && all < 600; all++, still++) {
        await new Promise(requestAnimationFrame);
        if (changed || document.getAnimations().some(ends)) still = -1;
        changed = false;
    }
    watching.disconnect();
}"""


def refuse(route: Route, reason: str) -> None:
    """Answer a request as the server does that refuses a change."""
    meta = {"result_code": 400, "result_subcode": 12, "result_msg": reason}
    route.fulfill(status=400, json={"meta": meta, "data": {}})


def go_back(page: Page) -> None:
    """Go back to where the page was before.

    `Page.go_back` asks the browser's main process for the address before. That process may not have heard yet of the
    one that the page has just gone to: then it goes back two steps. What the page asks comes behind what it has told.
    Another document is loaded first, and it goes back only when this call has its answer: a document that is left ends
    the calls to it.
    """
    page.wait_for_load_state()
    page.evaluate("() => { setTimeout(() => history.back()) }")


def open_pages(page: Page) -> list[Page]:
    """All pages of the browser that a page belongs to, also those that it opened by itself."""
    return page.context.pages[1:]


def token_of(server: Served, key: tuple[str, str]) -> str:
    """A token for the cookie, by an access key and its secret."""
    with server.client() as client:
        return str(client.post("/auth.login", auth=key).json()["data"]["token"])


def require_pages() -> None:
    """Skip the test if the pages were not built."""
    try:
        path("viewer/dist/index.html")
    except FileNotFoundError:
        pytest.skip("the pages were not built: make viewer")
