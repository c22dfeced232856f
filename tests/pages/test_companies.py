"""What a user of another company sees at addresses of this one: the same as at addresses of nothing."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from apiserver.services.access.credentials import create_user
from tests.harness import Served, running_api, served
from tests.longer import beyond
from tests.pages.browser import DESKTOP, Faults, opened_page, require_pages
from tests.pages.lab import Lab

pytestmark = pytest.mark.check

#: What only the company of the lab may read.
OURS = re.compile("resnet|vit-|Vision|Detection|Language|coco|nightly|Which model|Our view|tokenizer|adamw")
NOTHING = "0" * 32
TABS_OF_RUNS = ("", "/console", "/scalars", "/system", "/plots", "/images", "/output/log")
#: So many pages are shown at the same time.
TABS = 6


async def _stranger(data: Path) -> tuple[str, str]:
    """The access key of a user of another company."""
    async with running_api(data) as api:
        await api.backend.documents.insert("companies", [{"id": "other", "name": "Other"}])
        _, made = await create_user(api.backend.documents, "other", "Otto", "admin")
        return made.key, made.secret


@pytest.fixture(scope="module")
def stranger(
    tmp_path_factory: pytest.TempPathFactory, ports: Sequence[int], filled: tuple[Path, Lab]
) -> Iterator[tuple[Served, tuple[str, str]]]:
    """A server, and the key of somebody of another company."""
    require_pages()
    data = tmp_path_factory.mktemp("companies") / "data"
    shutil.copytree(filled[0], data)
    with ThreadPoolExecutor() as threads:  # this thread has the event loop of the browser
        key = threads.submit(lambda: asyncio.run(_stranger(data))).result()
    with served(data, ports=ports) as server:
        yield server, key


@pytest.fixture(scope="module")
def ours(filled: tuple[Path, Lab]) -> Lab:
    return filled[1]


@dataclass(frozen=True, slots=True)
class Visitor:
    """The stranger's browser."""

    page: Page
    server: Served
    faults: Faults

    def seen(self, *addresses: str) -> list[str]:
        """What pages say when they have nothing more to ask, without the ids that are in their addresses.

        Some are shown at the same time: each takes half a second until it is quiet.
        """
        texts = []
        for first in range(0, len(addresses), TABS):
            tabs = [self._opened(address) for address in addresses[first : first + TABS]]
            for tab in tabs:
                tab.get_by_role("button", name="Otto menu").wait_for()
                expect(tab.get_by_text("Loading…")).to_have_count(0)
                tab.wait_for_load_state("networkidle")
                texts.append(re.sub(r"[0-9a-f]{32}|'[\w-]{12}'", "ID", f"{tab.title()}\n{tab.inner_text('main')}"))
                tab.close()
        return texts

    def _opened(self, address: str) -> Page:
        tab = self.page.context.new_page()
        self.faults.watch(tab, self.server)
        tab.goto(address, wait_until="commit")
        return tab


@pytest.fixture
def visitor(browser: Browser, stranger: tuple[Served, tuple[str, str]], faults: Faults) -> Iterator[Visitor]:
    faults.allow(r"status of 40[04]")
    server, key = stranger
    with opened_page(browser, server, faults, key=key, **DESKTOP) as page:
        yield Visitor(page, server, faults)


@pytest.mark.parametrize("part", beyond(["some"], ["some", "others"]))
def test_pages_of_another_company_say_what_pages_of_nothing_say(
    visitor: Visitor, stranger: tuple[Served, tuple[str, str]], ours: Lab, part: str
) -> None:
    server, _ = stranger
    with server.client() as client:
        short = client.post("/data/views", json={"address": ours.at("resnet-50")}).json()["short"]
        view = {"address": "/projects", "name": "Our view", "project": ours.project, "shared": True}
        assert client.post("/data/views", json=view).status_code == 200
    project, run, other = ours.project, ours.run, ours.tasks["vit-base"]
    tabs = {ours.at("resnet-50") + tab: f"/projects/{NOTHING}/tasks/{NOTHING}{tab}" for tab in TABS_OF_RUNS}
    some = {
        **dict([*tabs.items()][:2]),
        f"/projects/{project}": f"/projects/{NOTHING}",
        f"/projects/{project}/models/{ours.models['resnet-50']}": f"/projects/{NOTHING}/models/{NOTHING}",
        f"/reports/{ours.tasks['report']}": f"/reports/{NOTHING}",
        short: "/s/AAAAAAAAAAAA",
    }
    others = {
        **dict([*tabs.items()][2:]),
        f"/projects/*/tasks/{run}": f"/projects/*/tasks/{NOTHING}",
        f"/projects/{project}/models": f"/projects/{NOTHING}/models",
        f"/projects/*/compare?tasks={run},{other}": f"/projects/*/compare?tasks={NOTHING},{'1' * 32}",
        f"/projects/{project}/compare-experiments;ids={run},{other}/scalars/graph": (
            f"/projects/{NOTHING}/compare-experiments;ids={NOTHING},{'1' * 32}/scalars/graph"
        ),
        f"/search?q={run}": f"/search?q={NOTHING}",
    }
    pairs = some if part == "some" else others
    texts = zip(pairs, visitor.seen(*pairs), visitor.seen(*pairs.values()), strict=True)
    for theirs, said, of_nothing in texts:
        assert said == of_nothing, theirs
        assert not OURS.search(said), theirs


@pytest.mark.parametrize(
    "address",
    beyond(
        ["/projects", "/projects/*", "/projects/*/models", "/reports"],
        [
            "/projects",
            "/projects/*",
            "/projects/*/models",
            "/reports",
            "/datasets",
            "/pipelines",
            "/settings",
            "/search",
        ],
    ),
)
@pytest.mark.usefixtures("ours")
def test_lists_have_nothing_of_another_company(visitor: Visitor, address: str) -> None:
    [said] = visitor.seen(address)
    assert not OURS.search(said)


@pytest.mark.usefixtures("ours")
def test_what_another_company_has_is_not_embedded_in_a_report(
    visitor: Visitor, stranger: tuple[Served, tuple[str, str]], ours: Lab
) -> None:
    server, (key, secret) = stranger
    kinds = ("plot&metrics=confusion", "scalar&metrics=loss", "sample&metrics=samples", "single")
    text = "\n\n".join(f'<iframe src="/widgets/?type={kind}&tasks={ours.run}"></iframe>' for kind in kinds)
    with server.client() as client:
        body = {"name": "Curious", "report": text}
        report = client.post("/reports.create", json=body, auth=(key, secret)).json()["data"]["id"]
    [said] = visitor.seen(f"/reports/{report}")
    assert "Curious" in said
    assert not OURS.search(said)
    visitor.page.goto(f"/reports/{report}")
    visitor.page.wait_for_load_state("networkidle")
    assert visitor.page.locator("main img").count() == 0
