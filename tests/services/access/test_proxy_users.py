"""People whom a trusted proxy names in a header: who they are here, and whose headers count."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import httpx
import pytest

from apiserver import cli
from apiserver.live import hub
from apiserver.live.bounds import LiveBounds
from apiserver.live.telling import ALIVE
from apiserver.rpc.auth import TOKEN_COOKIE
from apiserver.server.bounds import Bounds
from apiserver.services.access.identities import PROVIDER_LINKS, SESSIONS
from apiserver.services.access.oidc.people import PROXY, link_user, unlink_user
from tests.data.streams import stream
from tests.harness import ADMIN_KEY, ADMIN_SECRET, Api, new_user, running_api, served

pytestmark = pytest.mark.anyio

HEADER = "x-forwarded-user"
#: What a browser says of a script of the server's own page.
OWN = {"origin": "http://testserver"}


@pytest.fixture
async def settings() -> dict[str, Any]:
    """Settings beside those of the proxy: tests override it."""
    return {}


@pytest.fixture
async def api(tmp_path: Path, settings: dict[str, Any], bounds: Bounds | None) -> AsyncIterator[Api]:
    """A server whose requests all come by way of the proxy."""
    own = {"trusted_proxies": (ip_network("127.0.0.1"),), "proxy_user_header": "X-Forwarded-User"}
    async with running_api(tmp_path / "data", bounds, **own, **settings) as running:
        yield running


async def user(api: Api, name: str, expect: int = 200, **headers: str) -> dict[str, Any]:
    return await user_of(api, name.encode(), expect, **headers)


async def user_of(api: Api, said: bytes, expect: int = 200, **headers: str) -> dict[str, Any]:
    sent = {HEADER.encode(): said, **{key.encode(): value.encode() for key, value in {**OWN, **headers}.items()}}
    answer = await api.raw("POST", "/users.get_current_user", json={}, auth=None, headers=sent)
    assert answer.status_code == expect, answer.text
    found: dict[str, Any] = answer.json()["data"]["user"] if expect == 200 else answer.json()["meta"]
    return found


async def test_whom_the_proxy_names_is_a_user(api: Api) -> None:
    first = await user(api, "Zoë")
    assert (first["name"], first["role"]) == ("Zoë", "user")
    assert (await user(api, "Zoë"))["id"] == first["id"]
    assert (await user(api, "eve"))["id"] != first["id"]
    assert await api.backend.documents.count(PROVIDER_LINKS, {}) == 2


async def test_data_and_pages_of_the_server_need_nothing_else(api: Api) -> None:
    assert (await api.raw("GET", "/data/projects", auth=None, headers={HEADER: "ada"})).status_code == 200
    assert (await api.raw("GET", "/data/projects", auth=None)).status_code == 401
    assert (await api.call("login.supported_modes", auth=None, headers={HEADER: "ada"}))["authenticated"]


async def test_names_lead_to_nobody_who_exists(api: Api) -> None:
    found = await user(api, "admin")
    assert (found["role"], found["name"].startswith("admin ")) == ("user", True)


async def test_the_header_counts_before_the_cookie_and_after_a_key(api: Api) -> None:
    token = (await api.call("auth.login"))["token"]
    api.client.cookies.clear()
    assert (await user(api, "ada", cookie=f"{TOKEN_COOKIE}={token}"))["name"] == "ada"
    by_key = await api.call("users.get_current_user", auth=(ADMIN_KEY, ADMIN_SECRET), headers={HEADER: "ada"})
    assert by_key["user"]["role"] == "admin"


async def test_no_session_begins(api: Api) -> None:
    ada = (await user(api, "ada"))["id"]
    for endpoint, body in (("auth.login", {}), ("auth.get_token_for_user", {"user": ada})):
        answer = await api.raw("POST", f"/{endpoint}", json=body, auth=None, headers={HEADER: "ada", **OWN})
        assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)
        assert "no session begins" in answer.json()["meta"]["result_msg"]
    assert await api.backend.documents.count(SESSIONS, {}) == 0
    # Who makes a link is known by it, as long as they may come in.
    task = (await api.call("tasks.create", {"name": "x", "type": "training"}))["id"]
    asked = {"address": f"/data/tasks/{task}/log"}
    made = (await api.raw("POST", "/data/links", json=asked, auth=None, headers={HEADER: "ada", **OWN})).json()
    assert (await api.raw("GET", made["address"], auth=None)).status_code == 200
    await unlink_user(api.backend.documents, api.company, ada)
    assert (await api.raw("GET", made["address"], auth=None)).status_code == 401


@pytest.mark.parametrize("settings", [{"sign_up": False}])
@pytest.mark.bounds(Bounds(live=LiveBounds(turn_seconds=0.05)))
async def test_a_live_stream_goes_on_as_long_as_who_is_named_may_come_in(api: Api) -> None:
    documents, task = api.backend.documents, (await api.call("tasks.create", {"name": "x", "type": "training"}))["id"]
    id, _ = await new_user(api, "Ada L.")
    [ada] = await documents.find("users", {"id": id})
    await link_user(documents, ada, PROXY, "ada")
    page = {"authorization": "", "x_forwarded_user": "ada", "sec_fetch_site": "same-origin"}
    async with stream(api, f"/data/tasks/{task}/live", **page) as told:
        await told.next()
        for _ in range(3):
            assert await told.piece() == ALIVE.decode()
        await unlink_user(documents, ada["company"], id)
        while (said := await told.piece()) == ALIVE.decode():
            pass
        assert said is not None
        assert hub.CREDENTIALS in said


@pytest.mark.test
@pytest.mark.parametrize("name", ["ada, eve", ",", "a\x7fb", "a" * 201, " , "])
async def test_what_is_no_name_signs_nobody_in(api: Api, name: str) -> None:
    assert "names nobody, or more than one" in (await user(api, name, 401))["result_msg"]
    await user_of(api, b"\xff", 401)


async def test_pages_of_other_sites_do_not_act_for_people_at_the_proxy(api: Api) -> None:
    for foreign in ({"origin": "http://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}):
        headers = {HEADER: "ada", **foreign}
        made = await api.raw("POST", "/projects.create", json={"name": "x"}, auth=None, headers=headers)
        assert made.status_code == 403


@pytest.mark.parametrize("settings", [{"sign_up": False, "proxy_sign_out": "/oauth2/sign_out"}])
@pytest.mark.own_api
async def test_where_nobody_is_added_people_are_linked(api: Api, settings: dict[str, Any]) -> None:
    assert "no user here yet" in (await user(api, "ada", 403))["result_msg"]
    id, _ = await new_user(api, "Ada L.", "admin")
    data = str(api.backend.settings.data)
    assert await _in_thread(["user", "link", "Ada L.", "ada", "--proxy", "--data", data]) == 0
    found = await user(api, "ada")
    assert (found["id"], found["role"]) == (id, "admin")
    answer = await api.call("login.logout", auth=None, headers={HEADER: "ada", **OWN})
    assert answer == {"url": "/oauth2/sign_out"}


@pytest.mark.test
def test_nobody_else_than_the_proxy_sends_the_header(tmp_path: Path) -> None:
    def asked(port: int, headers: dict[str, str]) -> int:
        return httpx.get(f"http://127.0.0.1:{port}/data/projects", headers=headers).status_code

    with served(tmp_path / "one", trusted_proxies="10.0.0.1", proxy_user_header="X-Forwarded-User") as server:
        for name in ("X-Forwarded-User", "x-forwarded-user", "X-FORWARDED-USER", "X_Forwarded_User"):
            assert asked(server.port, {name: "admin"}) == 401
            assert asked(server.files_port, {name: "admin"}) in (401, 404)
        folded = (
            b"GET /data/projects HTTP/1.1\r\nHost: x\r\nX: y\r\n X-Forwarded-User: admin\r\nConnection: close\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.sendall(folded)
            assert client.recv(100).split(b" ")[1] in (b"400", b"401")
        assert [one["name"] for one in server.call("users.get_all")["users"]] == ["admin"]
    with served(tmp_path / "two", trusted_proxies="127.0.0.1", proxy_user_header="X-Forwarded-User") as server:
        assert asked(server.port, {"X-Forwarded-User": "ada"}) == 200
        assert asked(server.port, {"X-Forwarded-User": "ada", "Authorization": "Basic eDp5"}) == 401
        twice = httpx.Headers([("X-Forwarded-User", "ada"), ("X-Forwarded-User", "admin")])
        assert httpx.get(f"{server.api_url}/data/projects", headers=twice).status_code == 401


async def _in_thread(arguments: list[str]) -> int:
    import anyio.to_thread

    return await anyio.to_thread.run_sync(cli.main, arguments)
