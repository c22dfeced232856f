"""What pages say and do when the connection is lost, when it is back, and when what they show is gone."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from apiserver.live.bounds import LiveBounds
from apiserver.rpc.auth import TOKEN_COOKIE
from apiserver.server.bounds import Bounds
from tests.harness import Served, bearer, served
from tests.longer import beyond
from tests.pages.browser import DESKTOP, PATIENCE, Faults, opened_page
from tests.pages.lab import Lab, add, fill, scalars

#: What a browser's console says of questions that find no server.
NO_SERVER = (
    "ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET|ERR_CONTENT_LENGTH_MISMATCH|"
    "ERR_SOCKET_NOT_CONNECTED"
)


@contextmanager
def away(server: Served, faults: Faults) -> Iterator[None]:
    """The server is away inside, and then runs again."""
    faults.allow(NO_SERVER)
    server.kill()
    try:
        yield
    finally:
        server.start()


@pytest.fixture(scope="module")
def talkative(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, Lab]]:
    """A server whose streams say every half second, and not every 15 s, that they go on, and look whether they may."""
    folder = tmp_path_factory.mktemp("talkative")
    with served(folder / "data", bounds=Bounds(live=LiveBounds(turn_seconds=0.5))) as server:
        yield server, fill(server)


@pytest.fixture
def told(browser: Browser, talkative: tuple[Served, Lab], faults: Faults) -> Iterator[Page]:
    """A page on the server `talkative`."""
    server, _ = talkative
    with opened_page(browser, server, faults, key=(server.key, server.secret), **DESKTOP) as page:
        yield page


def heard_by(page: Page) -> list[str]:
    """The names of all that the streams of a page say from now on."""
    said: list[str] = []
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.on("Network.eventSourceMessageReceived", lambda event: said.append(event["eventName"]))
    return said


def wait_for_sign(page: Page, said: list[str]) -> None:
    """Wait until a stream has said, since now, that it goes on."""
    said.clear()
    for _ in range(PATIENCE // 100):
        if said.count("alive") > 1:
            return
        page.wait_for_timeout(100)
    raise AssertionError("the stream is silent")


def made(server: Served, lab: Lab, status: str = "started") -> str:
    """A new run with a curve."""
    task = str(server.call("tasks.create", {"name": "mine", "type": "training", "project": lab.project})["id"])
    if status:
        server.call(f"tasks.{status}", {"task": task})
    add(server, scalars(task, "loss", "train", [3.0, 2.0, 1.0], 1_700_000_000_000))
    return task


def show(page: Page, lab: Lab, task: str, tab: str = "overview") -> None:
    page.goto(f"/projects/{lab.project}/tasks/{task}/{tab}")
    live(page)


def live(page: Page) -> None:
    expect(page.get_by_text("Live", exact=True)).to_be_visible(timeout=PATIENCE)


def test_a_lost_connection_is_said_in_words_until_it_is_back(
    page: Page, server: Served, lab: Lab, faults: Faults
) -> None:
    show(page, lab, lab.run)
    with away(server, faults):
        expect(page.get_by_text("Connection lost")).to_be_visible()
        expect(page.get_by_role("alert")).to_contain_text("Is the server running")
        expect(page.get_by_role("heading", name="resnet-50", exact=True)).to_be_visible()
    live(page)
    expect(page.get_by_role("alert")).to_have_count(0)


#: What each tab of a run shows.
TABS = {
    "Scalars": "[role=figure], canvas",
    "Plots": "section[aria-label=summary]",
    "Images": "img[alt='samples/input@300']",
    "Console": "[data-line='601']",
}


@pytest.mark.check
@pytest.mark.parametrize("tab", beyond(["Scalars", "Console"], TABS))
def test_a_tab_that_could_not_be_asked_for_comes_when_the_server_is_back(
    page: Page, server: Served, lab: Lab, faults: Faults, tab: str
) -> None:
    show(page, lab, lab.run)
    with away(server, faults):
        expect(page.get_by_text("Connection lost")).to_be_visible()
        page.get_by_role("tab", name=tab).click()
        failed = page.get_by_role("tabpanel").get_by_role("alert")
        expect(failed.first).to_contain_text("The server does not answer")
    expect(page.locator(TABS[tab]).first).to_be_visible(timeout=PATIENCE)
    expect(page.get_by_role("alert")).to_have_count(0)


@pytest.mark.check
def test_a_stream_that_falls_silent_is_lost(told: Page, talkative: tuple[Served, Lab]) -> None:
    (server, lab), page = talkative, told
    said = heard_by(page)
    page.clock.install()
    show(page, lab, lab.run)
    page.clock.run_for(30_000)
    wait_for_sign(page, said)
    page.clock.run_for(30_000)
    live(page)
    assert server.process is not None
    server.process.send_signal(signal.SIGSTOP)
    try:
        page.clock.run_for(45_000)
        expect(page.get_by_text("Connection lost")).to_be_visible()
    finally:
        server.process.send_signal(signal.SIGCONT)
    page.clock.resume()
    live(page)


@pytest.mark.longer
def test_the_table_comes_when_the_server_is_back(page: Page, server: Served, lab: Lab, faults: Faults) -> None:
    page.goto(f"/projects/{lab.project}")
    page.get_by_role("link", name="vit-large").wait_for()
    with away(server, faults):
        expect(page.get_by_text("Connection lost")).to_be_visible()
        page.get_by_role("searchbox").first.fill("vit")
        expect(page.get_by_role("alert").first).to_contain_text("The server does not answer")
    expect(page.get_by_role("link", name="vit-base")).to_be_visible(timeout=PATIENCE)
    expect(page.get_by_role("link", name="broken")).to_have_count(0)
    expect(page.get_by_role("alert")).to_have_count(0)


@pytest.mark.longer
def test_a_page_that_follows_nothing_comes_when_the_server_is_back(
    page: Page, server: Served, lab: Lab, faults: Faults
) -> None:
    page.goto("/models")
    page.get_by_role("link", name="resnet-50 weights").wait_for()
    with away(server, faults):
        page.get_by_role("searchbox").fill("resnet")
        expect(page.get_by_role("alert").first).to_contain_text("The server does not answer")
        expect(page.get_by_text("Connection lost")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0, timeout=PATIENCE)
    expect(page.get_by_role("link", name="resnet-50 weights")).to_be_visible()


@pytest.mark.check
def test_a_page_whose_script_could_not_be_loaded_comes_when_the_server_is_back(
    page: Page, server: Served, lab: Lab, faults: Faults
) -> None:
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.send("Network.setCacheDisabled", {"cacheDisabled": True})  # other tests have loaded the script
    page.goto("/projects")
    page.get_by_role("treegrid").wait_for()
    with away(server, faults):
        page.get_by_role("link", name="Models").first.click()
        expect(page.get_by_role("main").get_by_role("alert")).to_contain_text("The server does not answer")
    expect(page.get_by_role("link", name="resnet-50 weights")).to_be_visible(timeout=PATIENCE)


@pytest.mark.check
@pytest.mark.parametrize("tab", beyond(["scalars"], ["overview", "scalars", "system", "plots", "images", "console"]))
def test_a_run_that_is_deleted_while_it_is_looked_at(
    page: Page, server: Served, lab: Lab, faults: Faults, tab: str
) -> None:
    faults.allow("status of 40[04]")  # charts ask for points of the run, which there are no more
    task = made(server, lab, "")
    show(page, lab, task, tab)
    server.call("tasks.delete", {"task": task})
    expect(page.get_by_role("heading", name="This run was deleted")).to_be_visible()
    expect(page.get_by_role("link", name="All runs")).to_be_visible()
    expect(page.get_by_text("Live", exact=True)).to_have_count(0)
    expect(page.get_by_text("Connection lost")).to_have_count(0)


@pytest.mark.check
def test_a_run_that_is_deleted_while_the_server_is_lost(page: Page, server: Served, lab: Lab, faults: Faults) -> None:
    faults.allow("status of 40[04]|ERR_FAILED|ERR_INTERNET_DISCONNECTED")
    task = made(server, lab, "")
    show(page, lab, task)
    with away(server, faults):
        page.context.set_offline(True)
    server.call("tasks.delete", {"task": task})
    page.context.set_offline(False)
    expect(page.get_by_role("heading", name="This run was deleted")).to_be_visible(timeout=PATIENCE)
    expect(page.get_by_text("Connection lost")).to_have_count(0)


@pytest.mark.check
def test_a_server_that_stops_in_order_is_come_back_to(page: Page, server: Served, lab: Lab, faults: Faults) -> None:
    faults.allow(NO_SERVER + "|answer: 503|status of 503")
    show(page, lab, lab.run)
    server.stop()
    expect(page.get_by_text("Connection lost")).to_be_visible()
    server.start()
    live(page)


@pytest.mark.check
def test_a_page_whose_login_has_ended_asks_for_another(
    told: Page, talkative: tuple[Served, Lab], faults: Faults
) -> None:
    faults.allow("status of 401")
    server, lab = talkative
    show(told, lab, lab.run)
    (cookie,) = (one for one in told.context.cookies() if one["name"] == TOKEN_COOKIE)
    httpx.post(f"{server.api_url}/auth.logout", headers=bearer(cookie["value"])).raise_for_status()
    expect(told.get_by_role("heading", name="Sign in")).to_be_visible(timeout=PATIENCE)
    assert "/sign-in?next=" in told.url
