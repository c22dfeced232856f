"""The web UI's calls, as a browser sends them, on what the SDK logged."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.sdk import sdk_of
from tests.clients.web_ui import serving
from tests.clients.web_ui.browser import Browser
from tests.clients.web_ui.screens import SCREENS, Ask, Logged, Screen
from tests.clients.web_ui.serving import ORIGIN
from tests.clients.web_ui.shapes import misfit
from tests.harness import Served, basic

server = serving.server


@pytest.fixture(scope="module")
def logged(server: Served, tmp_path_factory: pytest.TempPathFactory) -> Logged:
    sdk = sdk_of(server, tmp_path_factory.mktemp("home"))
    started = [sdk.start("browsed.py", str(number)) for number in range(2)]
    runs = [sdk.finish(run) for run in started]
    return Logged([run["task"] for run in runs], [run["model"] for run in runs], runs[0]["project"])


@pytest.fixture(scope="module")
def browser(server: Served, logged: Logged) -> Iterator[Browser]:
    with Browser(server.api_url, ORIGIN) as browser:
        browser.call("auth.login", headers={"Authorization": basic()})
        yield browser


@pytest.fixture(scope="module")
def draft(browser: Browser, logged: Logged) -> str:
    """A clone of the first run in a queue, both made as the UI makes them."""
    clone = {"task": logged.tasks[0], "new_task_project": logged.project, "new_task_comment": ""}
    made: str = browser.call("tasks.clone", {**clone, "new_task_name": "Clone of run 0"})["id"]
    [queue] = browser.call("queues.get_all_ex", {"only_fields": ["id", "name", "display_name"]})["queues"]
    body = {"ids": [made], "queue": queue["id"], "validate_tasks": True, "verify_watched_queue": True}
    assert browser.call("tasks.enqueue_many", body)["succeeded"][0]["id"] == made
    return made


@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.__name__)
def test_a_screen_finds_what_it_needs(browser: Browser, logged: Logged, draft: str, screen: Screen) -> None:
    for ask in screen(logged):
        _ask(browser, ask)


def test_nobody_is_let_in_without_a_cookie(server: Served) -> None:
    with Browser(server.api_url, ORIGIN) as browser:
        modes = browser.call("login.supported_modes", {})
        assert misfit(modes, {"authenticated": False, "basic": {"enabled": bool, "guest": dict}}) is None
        assert browser.send("users.get_current_user", {}).status_code == 401
        assert browser.send("auth.login", headers={"Authorization": basic(secret="wrong")}).status_code == 401
        assert browser.cookies() == {}


def test_a_login_is_a_cookie_until_the_logout(server: Served) -> None:
    with Browser(server.api_url, ORIGIN) as browser:
        browser.call("auth.login", headers={"Authorization": basic()})
        assert list(browser.cookies()) == ["clearml_token_basic"]
        assert browser.call("users.get_current_user", {})["user"]["name"]
        browser.call("login.logout", {})
        assert browser.cookies() == {}
        assert browser.send("users.get_current_user", {}).status_code == 401


def test_the_api_may_be_called_from_the_origin_of_the_ui(server: Served) -> None:
    headers = ("content-type", "authorization", "x-clearml-impersonate-as", "access-control-allow-credentials")
    with Browser(server.api_url, ORIGIN) as browser, Browser(server.api_url, "http://other.example") as stranger:
        allowed = browser.preflight("tasks.get_all_ex", *headers).headers
        assert allowed["Access-Control-Allow-Origin"] == ORIGIN
        assert allowed["Access-Control-Allow-Credentials"] == "true"
        assert set(headers) <= set(allowed["Access-Control-Allow-Headers"].lower().split(", "))
        assert "Access-Control-Allow-Origin" not in stranger.preflight("tasks.get_all_ex", *headers).headers


def test_a_draft_goes_its_way_through_the_dialogs(browser: Browser, logged: Logged, draft: str) -> None:
    ids = {"ids": [draft]}
    assert _status(browser, draft) == "queued"
    browser.call("tasks.dequeue_many", ids)
    assert _status(browser, draft) == "created"
    browser.call("tasks.archive_many", ids)
    assert browser.call("tasks.unarchive_many", ids)["succeeded"][0]["id"] == draft
    browser.call("tasks.archive_many", ids)
    asked = {**ids, "delete_external_artifacts": True, "delete_output_models": True, "return_file_urls": True}
    gone = browser.call("tasks.delete_many", {**asked, "force": True})["succeeded"]
    assert misfit(gone, [{"id": draft, "deleted": True, "urls": dict}]) is None


def _status(browser: Browser, task: str) -> str:
    [found] = browser.call("tasks.get_by_id_ex", {"id": [task], "only_fields": ["status"]})["tasks"]
    status: str = found["status"]
    return status


def _ask(browser: Browser, ask: Ask, **scroll: str) -> None:
    answer = browser.call(ask.endpoint, {**ask.body, **scroll})
    wrong = misfit(answer, ask.shape)
    assert wrong is None, f"{ask.endpoint} {ask.body}: {wrong}"
    if scroll and ask.endpoint.endswith("get_all_ex"):
        assert answer["scroll_id"] == scroll["scroll_id"], "the UI takes the list for out of date"
    if ask.then is not None:
        _ask(browser, ask.then, scroll_id=answer["scroll_id"])
