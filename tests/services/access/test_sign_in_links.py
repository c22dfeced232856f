"""Links that sign in once: used twice, at once, too late, guessed, and from other pages."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from apiserver import cli
from apiserver.common.times import from_now
from apiserver.operating.audit.reading import Wanted, read
from apiserver.services.access import sign_in_links
from apiserver.services.access.attempts import OF_NAME
from apiserver.services.access.sign_in_links import LINKS, new_path
from apiserver.stores.documents.query import Update
from tests.harness import Api, Served, free_ports, new_user, running_api
from tests.services.access.conftest import FAILURES_STAY

pytestmark = [pytest.mark.anyio, pytest.mark.own_api]

#: What a browser says of a script of the server's own page.
OWN = {"origin": "http://testserver"}


async def new_link(api: Api) -> str:
    path = await new_path(api.backend.documents, api.company)
    assert path.startswith("/sign-in#link=")
    return path.partition("=")[2]


async def asked(api: Api, link: str, headers: Mapping[str, str] = OWN) -> httpx.Response:
    return await api.raw("POST", "/auth.login_by_link", json={"link": link}, auth=None, headers=headers)


async def use(api: Api, link: str, headers: Mapping[str, str] = OWN) -> int:
    answer = await asked(api, link, headers)
    assert ("set-cookie" in answer.headers) is (answer.status_code == 200)
    return answer.status_code


async def test_a_link_signs_the_admin_in_with_a_cookie(api: Api) -> None:
    answer = await asked(api, await new_link(api))
    assert answer.json()["data"] == {}
    cookie = answer.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= set(cookie.split("; "))
    by_cookie = {"cookie": cookie.partition(";")[0], "origin": "http://testserver"}
    found = await api.call("users.get_current_user", auth=None, headers=by_cookie)
    assert (found["user"]["name"], found["user"]["role"]) == ("admin", "admin")


async def test_a_link_works_once(api: Api) -> None:
    link = await new_link(api)
    assert await use(api, link) == 200
    api.client.cookies.clear()
    assert await use(api, link) == 401


async def test_of_many_who_use_a_link_at_once_one_is_signed_in(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api.backend.attempts, "begin", lambda name, client: None)
    link = await new_link(api)
    assert sorted(await asyncio.gather(*(use(api, link) for _ in range(20)))) == [200, *[401] * 19]


async def test_a_link_ends_after_ten_minutes(api: Api) -> None:
    earliest = from_now(599)
    link = await new_link(api)
    [kept] = await api.backend.documents.find(LINKS, {})
    assert earliest < kept["expires"] <= from_now(600)
    assert link not in str(kept)
    await api.backend.documents.update(LINKS, {}, Update(set={"expires": from_now(-1)}))
    assert await use(api, link) == 401
    await new_link(api)
    assert await api.backend.documents.count(LINKS, {}) == 1


@pytest.mark.test
@pytest.mark.bounds(FAILURES_STAY)
async def test_guesses_are_slowed_down_and_the_owner_still_gets_in(api: Api) -> None:
    link = await new_link(api)
    statuses = [await use(api, f"guess-{n}") for n in range(1000)]
    assert statuses == [401] * OF_NAME.burst + [429] * (1000 - OF_NAME.burst)
    answer = await asked(api, "guess")
    assert 0 < int(answer.headers["retry-after"]) <= OF_NAME.seconds
    assert await use(api, link) == 200


@pytest.mark.test
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "cors", "sec-fetch-dest": "empty"},
        {"sec-fetch-site": "same-origin", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"},
    ],
)
async def test_no_form_and_no_page_of_another_site_uses_a_link(api: Api, headers: dict[str, str]) -> None:
    link = await new_link(api)
    assert await use(api, link, headers) == 403
    answer = await api.raw("GET", f"/auth.login_by_link?link={link}", auth=None)
    assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)
    assert await use(api, link) == 200


@pytest.mark.test
@pytest.mark.parametrize("link", ["", "a" * 101, None, 5, ["a"]])
async def test_what_can_be_no_link_is_refused_by_name(api: Api, link: Any) -> None:
    refused = await api.call("auth.login_by_link", {"link": link}, auth=None, headers=OWN, expect=400)
    assert refused["meta"]["error_data"] == {"field": "link"}


async def test_a_link_signs_in_nobody_who_is_no_admin_any_more(api: Api) -> None:
    link = await new_link(api)
    await new_user(api, "eve", "admin")
    await api.backend.documents.update("users", {"name": "admin"}, Update(set={"role": "user"}))
    assert await use(api, link) == 401


async def test_a_link_of_a_server_works_on_another_of_the_same_store(tmp_path: Path) -> None:
    async with running_api(tmp_path / "data") as first:
        link = await new_link(first)
    async with running_api(tmp_path / "data") as second:
        assert await use(second, link) == 200


async def test_without_an_admin_there_is_no_link(api: Api) -> None:
    with pytest.raises(LookupError):
        await sign_in_links.new_path(api.backend.documents, "another company")


def test_the_command_prints_a_link_while_the_server_runs(server: Served, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["link", "--data", str(server.data), "--port", str(server.port)]
    assert cli.main(arguments) == 0
    url, _, link = capsys.readouterr().out.strip().partition("#link=")
    assert url == f"{server.api_url}/sign-in"
    assert any(read(server.data / "audit", Wanted(action="sign_in_link.make")))
    own = {"origin": server.api_url}
    for status in (200, 401):
        answer = httpx.post(f"{server.api_url}/auth.login_by_link", json={"link": link}, headers=own)
        assert answer.status_code == status


def test_there_is_no_link_to_pages_that_are_turned_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("APISERVER_WEB_URL", "http://ui.example.org")
    assert cli.main(["link", "--data", str(tmp_path)]) == 1
    assert "no pages" in capsys.readouterr().err


def test_a_link_leads_to_the_server_that_started_last_on_the_folder(
    server: Served, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever makes it need not know the ports, which the environment of the server may have."""
    command, noted = ["link", "--data", str(server.data)], server.data / "address"
    assert cli.main(command) == 0
    assert capsys.readouterr().out.startswith(f"{server.api_url}/sign-in#link=")
    noted.write_text("http://127.0.0.1:1")
    assert cli.main([*command, "--port", str(server.port)]) == 0
    assert capsys.readouterr().out.startswith(f"{server.api_url}/sign-in#link=")
    noted.unlink()
    monkeypatch.setenv("APISERVER_PORT", str(server.port))
    assert cli.main(command) == 0
    assert capsys.readouterr().out.startswith(f"{server.api_url}/sign-in#link=")


def test_there_is_no_link_if_no_server_answers(server: Served, capsys: pytest.CaptureFixture[str]) -> None:
    server.kill()
    command = ["link", "--data", str(server.data)]
    other = ["--port", str(free_ports(1)[0])]
    for arguments, address in ((command, server.api_url), ([*command, *other], f"http://127.0.0.1:{other[1]}")):
        assert cli.main(arguments) == 1
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.startswith(f"apiserver: no server answers at {address}: ")
        assert "there is no data folder" not in said.err


def test_a_link_for_a_folder_that_is_not_there_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "typo"
    assert cli.main(["link", "--data", str(missing), "--port", str(free_ports(1)[0])]) == 1
    assert capsys.readouterr().err.endswith(f", and there is no data folder '{missing}': name it by --data\n")
    assert not missing.exists()


def test_whether_a_server_answers_is_asked_of_it_and_not_of_a_proxy(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_ports(1)[0]}")
    monkeypatch.setenv("no_proxy", "")
    assert cli.main(["link", "--data", str(server.data)]) == 0
    assert cli.main(["health", "--port", str(server.port)]) == 0
