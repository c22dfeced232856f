"""What a page loads stays small; what draws figures comes only with the first figure."""

from __future__ import annotations

import gzip
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page

from apiserver.common.resources import path
from tests.pages.lab import Lab

pytestmark = pytest.mark.check

#: Bytes of the scripts and styles that one page loads, gzipped.
MOST = 121 * 1024


@pytest.mark.parametrize("kind", ["projects", "runs", "run", "compare"])
def test_what_a_page_loads_is_small(page: Page, lab: Lab, kind: str) -> None:
    project, (first, second, *_) = lab.project, [*lab.tasks.values()]
    addresses = {
        "projects": "/projects",
        "runs": f"/projects/{project}",
        "run": f"/projects/{project}/tasks/{first}/scalars",
        "compare": f"/projects/{project}/compare?tasks={first},{second}",
    }
    loaded: set[str] = set()
    page.on("request", lambda request: loaded.add(urlsplit(request.url).path))
    page.goto(addresses[kind])
    page.wait_for_load_state("networkidle")
    files = [path(f"viewer/dist{one}") for one in loaded if one.startswith("/assets/")]
    assert len(files) >= 3
    assert sum(len(gzip.compress(file.read_bytes(), 9)) for file in files) <= MOST
