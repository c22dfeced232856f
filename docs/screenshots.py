"""Takes pictures of every page, dark and light: `python -m docs.screenshots`.

They go to `docs/pictures`, as `run-scalars-dark.png`. The pages must have been built, and Chromium be installed.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from apiserver.rpc.auth import TOKEN_COOKIE
from docs.lab import Lab
from docs.palette import with_palette
from tests import ending
from tests.harness import Served, served

PICTURES = Path(__file__).with_name("pictures")
#: Bytes. Larger pictures make the repository slow to fetch.
LARGEST = 150_000

Ids = Mapping[str, str]

_RUN = "/projects/{project}/tasks/{run}"
_COLUMNS = "name,status,hyperparams.Args/optimizer,hyperparams.Args/lr,min:loss/validation,max:accuracy/top 1"
#: The pages by the names of their pictures. What is in braces are ids of the laboratory.
PAGES: dict[str, str] = {
    "projects": "/projects",
    "runs": f"/projects/{{project}}?cols={_COLUMNS}&curve=loss/validation&sort=min:loss/validation",
    "run-overview": f"{_RUN}/overview",
    "run-scalars": "/projects/{project}/tasks/{second}/scalars",
    "run-system": f"{_RUN}/system",
    "run-plots": f"{_RUN}/plots",
    "run-images": f"{_RUN}/images",
    "run-console": f"{_RUN}/console",
    "compare": "/projects/{project}/compare?tasks={sweep}&tab=parallel",
    "compare-curves": "/projects/{project}/compare?tasks={sweep}&group=hyperparams.Args/optimizer",
    "compare-differences": "/projects/{project}/compare?tasks={compared}&tab=differences",
    "models": "/models?q=adamw",
    "model": "/projects/{project}/models/{model}",
    "report": "/reports/{report}",
    "search": "/search?q=resnet",
    "settings": "/settings",
    "usage": "/settings/usage",
}
#: Pages that are also shown as a phone shows them.
ON_A_PHONE = ("run-overview", "run-scalars")

_WIDE: dict[str, Any] = {"viewport": {"width": 1200, "height": 720}}
_PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 780}, "is_mobile": True, "has_touch": True}


def main() -> None:
    wanted = sys.argv[1:] or list(PAGES)
    PICTURES.mkdir(exist_ok=True)
    with laboratory() as (server, ids), running_browser() as browser:
        for dark in (False, True):
            theme = "dark" if dark else "light"
            for name in wanted:
                take(browser, server, PAGES[name].format(**ids), f"{name}-{theme}", _WIDE, dark=dark)
        for name in set(wanted) & set(ON_A_PHONE):
            take(browser, server, PAGES[name].format(**ids), f"{name}-phone", _PHONE, dark=False)


@contextmanager
def laboratory() -> Iterator[tuple[Served, Ids]]:
    """A server with runs that look like real ones, and their ids."""
    with TemporaryDirectory() as folder, served(Path(folder) / "data") as server, server.client() as client:
        ids = Lab(client, server.files_url).fill()
        compared = ",".join(ids[name] for name in ("run", "second", "third"))
        yield server, {**ids, "compared": compared}


@contextmanager
def running_browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        raise SystemExit("there is no chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--no-proxy-server", "--disable-gpu", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        yield browser
        browser.close()


def take(browser: Browser, server: Served, address: str, name: str, size: dict[str, Any], *, dark: bool) -> None:
    """Write one picture; SystemExit if it is too large."""
    context = browser.new_context(base_url=server.api_url, color_scheme="dark" if dark else "light", **size)
    with server.client() as client:
        token = client.post("/auth.login").json()["data"]["token"]
    context.add_cookies([{"name": TOKEN_COOKIE, "value": token, "url": server.api_url}])
    page = context.new_page()
    page.goto(address)
    settle(page)
    taken = page.screenshot()
    page.goto("about:blank")
    content = with_palette(taken, page)
    context.close()
    if len(content) > LARGEST:
        raise SystemExit(f"{name}.png has {len(content):,} bytes, more than {LARGEST:,}")
    (PICTURES / f"{name}.png").write_bytes(content)
    sys.stdout.write(f"{name}.png: {len(content):,} bytes\n")


def settle(page: Page) -> None:
    """Wait until the page has shown all that it asked for, and nothing has moved for a moment."""
    page.locator("main h1, main h2, main article, main table").first.wait_for()
    page.wait_for_function("() => !/(Loading|Searching)…/.test(document.querySelector('main').textContent)")
    page.wait_for_timeout(1500)


if __name__ == "__main__":
    sys.exit(ending.run(main))
