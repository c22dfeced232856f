"""Fixtures for pages in a browser: `page`, `signed_out_page` and `phone`, on `server`, which has the runs of `lab`.

A page is new in each test. Its test fails if the page logs an error, asks another host, gets an answer of 500 or more,
or does what its policy forbids; `faults.allow("…")` names what a test expects of these. The tests of a module
share server and runs, so a test that changes runs makes its own. All modules share the browser. To it, their servers
are one, as they have the same ports one after another: it has compiled the pages' scripts.

Some forty tests show that the pages work as they come, each a path of its users: signing in, the table of runs, a run
with each of its tabs, comparisons, reports, settings, search, a phone, a lost server. All others have the mark
`check`: what only a real browser has (layout, canvas, frames, policies, the focus, its history, several tabs), and what
the server does with all that pages ask. What a page does with answers that are late, refused or missing, and with keys,
drafts and dialogs, is tested without a browser (`viewer/test/pages`), in a hundredth of the time.

The server has the embedded stores. With VIEWER_STORES=engines in the environment, it is on Elasticsearch and MongoDB.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.clients.sdk import sdk_of
from tests.engines.fixtures import own_engines
from tests.harness import Served, kept_ports, served
from tests.pages.browser import DESKTOP, PHONE, Faults, KeptBrowser, opened_page, require_pages
from tests.pages.lab import Lab, fill

ON_ENGINES = os.environ.get("VIEWER_STORES") == "engines"


@pytest.fixture(scope="session")
def ports() -> Sequence[int]:
    return kept_ports(2)


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory, ports: Sequence[int]) -> tuple[Path, Lab]:
    """The data folder of a server that has the runs of `lab`: to copy it takes less time than to post them again."""
    data = tmp_path_factory.mktemp("lab") / "data"
    with served(data, ports=ports) as server:
        lab = fill(server)
    return data, lab


@pytest.fixture(scope="module")
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, ports: Sequence[int]
) -> Iterator[Served]:
    require_pages()
    data = tmp_path_factory.mktemp("viewer") / "data"
    with ExitStack() as stack:
        engines: dict[str, Any] = {}
        if ON_ENGINES:
            urls = [request.getfixturevalue(name) for name in ("elasticsearch_url", "mongodb_url")]
            engines = stack.enter_context(own_engines(*urls))
        elif _uses_lab(request):
            shutil.copytree(request.getfixturevalue("filled")[0], data)
        yield stack.enter_context(served(data, ports=ports, **engines))


def _uses_lab(request: pytest.FixtureRequest) -> bool:
    """Whether a test of this module has the runs of `lab`."""
    items = (item for item in request.session.items if isinstance(item, pytest.Function))
    return any(item.module is request.module and "lab" in item.fixturenames for item in items)


@pytest.fixture(scope="module")
def lab(request: pytest.FixtureRequest, server: Served) -> Lab:
    lab: Lab = fill(server) if ON_ENGINES else request.getfixturevalue("filled")[1]
    return lab


@pytest.fixture(scope="module")
def sdk_run(server: Served, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A run of the real SDK: the ids `task`, `project` and `model`, and the address `page` that the SDK prints.

    It takes some ten seconds.
    """
    made: dict[str, str] = sdk_of(server, tmp_path_factory.mktemp("home")).run("browsed.py", "1")
    return made


@pytest.fixture(scope="session")
def kept_browser(pytestconfig: pytest.Config) -> Iterator[KeptBrowser]:
    kept = KeptBrowser()
    pytestconfig.pluginmanager.register(kept)
    yield kept
    pytestconfig.pluginmanager.unregister(kept)
    kept.end()


@pytest.fixture
def browser(kept_browser: KeptBrowser) -> Browser:
    return kept_browser.running()


@pytest.fixture
def faults() -> Iterator[Faults]:
    found = Faults()
    yield found
    found.check()


@pytest.fixture
def page(browser: Browser, server: Served, faults: Faults) -> Iterator[Page]:
    with opened_page(browser, server, faults, key=(server.key, server.secret), **DESKTOP) as opened:
        yield opened


@pytest.fixture
def phone(browser: Browser, server: Served, faults: Faults) -> Iterator[Page]:
    with opened_page(browser, server, faults, key=(server.key, server.secret), **PHONE) as opened:
        yield opened


@pytest.fixture
def signed_out_page(browser: Browser, server: Served, faults: Faults) -> Iterator[Page]:
    faults.allow(r"status of 401")  # the page asks who is signed in
    with opened_page(browser, server, faults, key=None, **DESKTOP) as opened:
        yield opened
