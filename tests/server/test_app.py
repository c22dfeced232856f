"""The application as a whole: what is where, who may ask, and what the stores' troubles become."""

from __future__ import annotations

import asyncio
import gzip
import os
import random
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from starlette.routing import Route

import apiserver
from apiserver.common.errors import Refusal, Why
from apiserver.server import health
from apiserver.server.app import create_app
from apiserver.services.store_errors import STORE_ERRORS
from apiserver.settings.settings import Settings
from apiserver.stores.documents.base import DocumentStoreBusy, InvalidFilter
from apiserver.stores.events.base import EventStoreBusy, EventStoreError
from tests.clock import still_clock, turns
from tests.harness import ADMIN_KEY, ADMIN_SECRET, Api, api_client, bearer, running_api

pytestmark = pytest.mark.anyio

ADMIN = (ADMIN_KEY, ADMIN_SECRET)


@pytest.mark.own_api
async def test_health_is_for_anyone(api: Api) -> None:
    response = await api.raw("GET", "/health", auth=None)
    assert response.status_code == 200
    assert response.json() == {
        "status": "ok",
        "version": apiserver.__version__,
        "stores": {"documents": "ok", "events": "ok", "files": "ok"},
        "scrub": {"findings": 0, "ended": None},
    }


@pytest.mark.own_api
async def test_health_names_the_store_that_is_down(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    async def trouble(*arguments: Any) -> int:
        raise EventStoreBusy("the disk is full")

    monkeypatch.setattr(api.backend.events, "check", trouble)
    response = await api.raw("GET", "/health", auth=None)
    assert response.status_code == 503
    assert response.json()["status"] == "unavailable"
    assert response.json()["stores"] == {"documents": "ok", "events": "down", "files": "ok"}


@pytest.mark.own_api
async def test_stores_are_asked_once_for_all_who_ask_at_once(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, answers_all = 0, asyncio.Event()

    async def count(*arguments: Any) -> None:
        nonlocal asked
        asked += 1
        await answers_all.wait()

    monkeypatch.setattr(api.backend.events, "check", count)
    asking = [asyncio.ensure_future(api.raw("GET", "/health", auth=None)) for _ in range(10)]
    await turns(100)
    answers_all.set()
    answers = await asyncio.gather(*asking)
    assert {answer.status_code for answer in answers} == {200}
    assert asked == 1
    await api.raw("GET", "/health", auth=None)
    assert asked == 2


@pytest.mark.test
@pytest.mark.parametrize("path", ["/debug.ping", "/nothing", "/files/nothing", "/health", "/openapi.json"])
async def test_no_browser_keeps_an_answer_or_takes_it_for_something_else(api: Api, path: str) -> None:
    headers = (await api.raw("GET", path)).headers
    assert (headers["x-content-type-options"], headers["cache-control"]) == ("nosniff", "no-store")


async def test_a_store_that_does_not_answer_is_down() -> None:
    with still_clock() as clock:
        asking = asyncio.create_task(health.state("events", asyncio.Event().wait()))
        await clock.passes(1.9)
        assert not asking.done()
        await clock.passes(0.1)
        assert await asking == "down"


async def test_everything_else_falls_through_to_the_api(api: Api) -> None:
    assert (await api.raw("GET", "/debug.ping", auth=None)).status_code == 200
    for path in ("/", "/docs", "/redoc", "/nothing", "/health/x"):
        assert (await api.raw("GET", path)).json()["meta"]["result_code"] == 400
    assert (await api.raw("GET", "/files.x")).json()["meta"]["result_code"] == 404  # an endpoint that there is not


async def test_the_openapi_document_lists_the_endpoints(api: Api) -> None:
    document = (await api.raw("GET", "/openapi.json", auth=None)).json()
    assert document["openapi"].startswith("3.")
    assert "/events.add_batch" in document["paths"]


@pytest.mark.test
async def test_the_openapi_document_has_every_address_and_nothing_else(api: Api) -> None:
    document = (await api.raw("GET", "/openapi.json", auth=None)).json()
    described = {
        (path, method.upper())
        for path, item in document["paths"].items()
        for method in item
        if "." not in path.removesuffix(".json")  # the others are endpoints
    }
    served = {("/files", "POST"), *(("/files/{path}", method) for method in ("GET", "HEAD", "PUT", "DELETE"))}
    plain = {"/health", "/readyz", "/livez", "/metrics"}
    for route in api.app.routes:
        assert isinstance(route, Route)
        path = re.sub(r":path\}", "}", route.path).removesuffix(".{ending}")
        if path in plain:
            served.add((path, "GET"))
        elif path == "/v1/metrics":
            served.add((path, "POST"))
        elif path != "/data" and not path.endswith(("/{rest}", "/{path}")):  # which refuse what is not there
            assert route.methods
            served |= {(path, method) for method in route.methods if method != "HEAD"}
    assert described == served
    for path, method in served:
        address = re.sub(r"\{[^}]*\}", "x", path)
        answer = await api.raw(method, address)
        assert answer.status_code not in (405, 501), (method, address)
        assert "There is no address" not in answer.text


@pytest.mark.test
@pytest.mark.parametrize(
    "path",
    ["/events.add", "/files/x", "/v1/metrics", "/livez", "/openapi.json", "/data/projects", "/api/v1/jobs/x/metrics"],
)
async def test_whoever_refuses_a_method_says_which_there_are(api: Api, path: str) -> None:
    answer = await api.raw("TRACE", path)
    assert answer.status_code == 405
    assert {"GET", "POST"} & set(answer.headers["allow"].split(", "))


@pytest.mark.test
async def test_errors_of_data_are_described_as_they_are(api: Api) -> None:
    document = (await api.raw("GET", "/openapi.json", auth=None)).json()
    for path, item in document["paths"].items():
        for method, operation in item.items() if path.startswith("/data") else ():
            assert "422" not in operation["responses"], path
            error = operation["responses"]["default"]["content"]["application/json"]["schema"]
            answer = await api.raw(method, re.sub(r"\{[^}]*\}", "x", path), params={"no-such-parameter": 1})
            assert answer.status_code == 400
            jsonschema_rs.validate(error, answer.json())
            assert answer.json()["error"]["parameter"] == "no-such-parameter"
            assert any(one["name"] == "token" for one in operation.get("parameters", ())) == (method == "get"), path


async def test_answers_of_otlp_are_described_as_they_are(api: Api) -> None:
    document = (await api.raw("GET", "/openapi.json", auth=None)).json()
    operation = document["paths"]["/v1/metrics"]["post"]
    for headers, auth, content, code in (
        ({"content-type": "application/json"}, ADMIN, b"{}", 200),
        ({"content-type": "application/json"}, ADMIN, b"{", 400),
        ({"content-type": "application/json"}, None, b"{}", 401),
        ({"content-type": "text/csv"}, ADMIN, b"{}", 415),
    ):
        answer = await api.raw("POST", "/v1/metrics", headers=headers, auth=auth, content=content)
        assert answer.status_code == code
        described = operation["responses"][str(code)]["content"][answer.headers["content-type"]]
        jsonschema_rs.validate(described["schema"], answer.json())
    assert operation["requestBody"]["content"].keys() == {"application/json", "application/x-protobuf"}


async def test_files_are_under_files_and_on_their_own_port(api: Api) -> None:
    upload = await api.raw("POST", "/files", files={"/a/b c.txt": ("/a/b c.txt", b"content")})
    assert upload.status_code == 200
    assert (await api.raw("GET", "/files/a/b%20c.txt")).content == b"content"
    assert (await api.raw("GET", "/files/a/b%20c.txt", auth=None)).status_code == 401
    async with api_client(api.app.files_port) as own_port:
        response = await own_port.get("/a/b%20c.txt", auth=api.auth)
    assert response.content == b"content"


async def test_a_token_of_the_api_opens_files(api: Api) -> None:
    await api.raw("PUT", "/files/x", content=b"1")
    token = (await api.call("auth.login"))["token"]
    response = await api.raw("GET", "/files/x", auth=None, headers=bearer(token))
    assert response.content == b"1"


UI = "http://ui:8080"
#: As the web UI's calls are asked about by browsers.
PREFLIGHT = {
    "access-control-request-method": "POST",
    "access-control-request-headers": (
        "access-control-allow-credentials,authorization,content-type,x-clearml-impersonate-as"
    ),
}


@pytest.fixture
async def open_to_ui(tmp_path: Path) -> AsyncIterator[Api]:
    async with running_api(tmp_path / "data", allowed_origins=(UI,)) as api:
        yield api


@pytest.mark.test
@pytest.mark.parametrize("path", ["/v999.0/auth.login", "/debug.ping", "/files/x", "/health"])
async def test_browsers_are_told_without_credentials_what_allowed_pages_may(open_to_ui: Api, path: str) -> None:
    ours = await open_to_ui.raw("OPTIONS", path, auth=None, headers={"origin": UI, **PREFLIGHT})
    assert ours.status_code == 200
    assert ours.headers["access-control-allow-origin"] == UI
    assert ours.headers["access-control-allow-credentials"] == "true"
    assert "POST" in ours.headers["access-control-allow-methods"]
    allowed = ours.headers["access-control-allow-headers"].lower().replace(" ", "").split(",")
    assert set(PREFLIGHT["access-control-request-headers"].split(",")) <= set(allowed)
    assert "Origin" in ours.headers["vary"]
    for origin in ("http://evil", "http://ui", "http://ui:8080.evil", "null"):
        foreign = await open_to_ui.raw("OPTIONS", path, auth=None, headers={"origin": origin, **PREFLIGHT})
        assert foreign.status_code == 400
        assert "access-control-allow-origin" not in foreign.headers


async def test_allowed_pages_read_answers_and_refusals(open_to_ui: Api) -> None:
    for auth, code in (((ADMIN_KEY, ADMIN_SECRET), 200), (None, 401)):
        answer = await open_to_ui.raw("POST", "/users.get_current_user", auth=auth, headers={"origin": UI})
        assert answer.status_code == code
        assert answer.headers["access-control-allow-origin"] == UI
        assert answer.headers["access-control-allow-credentials"] == "true"
    foreign = await open_to_ui.raw("POST", "/users.get_current_user", headers={"origin": "http://evil"})
    assert "access-control-allow-origin" not in foreign.headers
    assert "access-control-allow-origin" not in (await open_to_ui.raw("POST", "/users.get_current_user")).headers


async def test_the_cookie_counts_for_own_and_allowed_pages_only(open_to_ui: Api) -> None:
    await open_to_ui.raw("POST", "/auth.login", headers={"origin": UI})
    cases: list[tuple[dict[str, str], int]] = [
        ({"origin": UI}, 200),
        ({"origin": "http://testserver"}, 200),
        ({"origin": "http://evil"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({}, 403),
    ]
    for number, (headers, code) in enumerate(cases):
        request = {"name": f"page {number}", "description": ""}
        answer = await open_to_ui.raw("POST", "/projects.create", json=request, auth=None, headers=headers)
        assert answer.status_code == code, headers
    for path, code in (("/projects.get_all", 200), ("/projects.create?name=by+a+link&description=", 403)):
        assert (await open_to_ui.raw("GET", path, auth=None)).status_code == code
    assert (await open_to_ui.raw("GET", "/files/x", auth=None)).status_code == 404
    assert (await open_to_ui.raw("DELETE", "/files/x", auth=None)).status_code == 403
    projects = (await open_to_ui.call("projects.get_all", {"name": "page|link"}))["projects"]
    assert len(projects) == 2


async def test_without_allowed_origins_there_are_none(api: Api) -> None:
    answer = await api.raw("POST", "/debug.ping", headers={"origin": "http://ui:8080"})
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.test
@pytest.mark.parametrize(
    ("error", "code", "retry_after"),
    [
        (EventStoreBusy("behind", retry_after=3), 429, 3),
        (EventStoreBusy("full", retry_after=7, overloaded=False), 503, 7),
        (DocumentStoreBusy("locked", retry_after=2), 503, 2),
        (InvalidFilter("bad regex"), 400, None),
    ],
)
@pytest.mark.own_api
async def test_troubles_of_stores_are_answers(
    api: Api, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int, retry_after: int | None
) -> None:
    async def trouble(*arguments: Any, **options: Any) -> Any:
        raise error

    monkeypatch.setattr(api.backend.documents, "find_one", trouble)
    response = await api.raw("POST", "/server.info", headers=bearer(token(api)), auth=None)
    assert response.status_code == code
    assert response.headers.get("retry-after") == (str(retry_after) if retry_after else None)


def token(api: Api) -> str:
    from apiserver.rpc.call import Identity

    return api.backend.auth.issue(Identity(user="u", company="c", role="admin"), 3600)


def test_invalid_filters_are_validation_errors() -> None:
    error = STORE_ERRORS[InvalidFilter](InvalidFilter("bad regex"))
    assert isinstance(error, Refusal)
    assert error.why is Why.INVALID


async def test_data_outlives_a_restart(tmp_path: Path) -> None:
    async with running_api(tmp_path / "data") as api:
        project = (await api.call("projects.create", {"name": "kept", "description": ""}))["id"]
        old_token = (await api.call("auth.login"))["token"]
    async with running_api(tmp_path / "data") as api:
        headers = bearer(old_token)
        answer = await api.call("projects.get_by_id", {"project": project}, auth=None, headers=headers)
        assert answer["project"]["name"] == "kept"


async def test_the_admins_key_is_made_once(tmp_path: Path) -> None:
    made = []
    for _ in range(2):
        app = create_app(Settings(data=tmp_path / "data"))
        async with app.lifespan() as credential:
            made.append(credential)
    first, second = made
    assert first is not None
    assert first.key
    assert second is None


async def test_a_folder_in_use_stays_the_first_servers(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    async with running_api(folder) as api:
        upload = folder / "files" / "incoming" / "under way"
        upload.write_bytes(b"half")
        with pytest.raises(EventStoreError, match=f"{folder}.* in use by the process {os.getpid()}"):
            async with running_api(folder):
                raise AssertionError("two servers on one folder")
        assert upload.read_bytes() == b"half"
        await api.call("debug.ping")


@pytest.mark.test
async def test_there_is_always_room_for_one_largest_body(tmp_path: Path) -> None:
    largest = gzip.compress(b'{"text": "%s"}' % random.Random(0).randbytes(4 * 2**20).hex().encode())
    async with running_api(tmp_path, max_body_bytes=9 * 2**20, max_bytes_in_flight=2**20) as api:
        response = await api.raw("POST", "/debug.ping", content=largest, headers={"content-encoding": "gzip"})
    assert response.status_code == 200
