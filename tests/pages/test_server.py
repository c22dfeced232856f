"""How the server serves the built pages, and that pages never come in the way of programs."""

from __future__ import annotations

import gzip
import os
import re
from pathlib import Path
from typing import Any

import pytest
import zstandard
from starlette.routing import Route
from starlette.types import Message

from apiserver.pages import server as viewer_server
from apiserver.pages.addresses import FIRST_STEPS, first_step
from apiserver.server.endpoints import ROUTES
from tests.harness import Api, running_api

pytestmark = pytest.mark.anyio

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
SCRIPT = b"console.log('pages');\n" * 200
#: Addresses of pages, in the forms in which the SDK, ClearML's web UI and this server's own pages name them.
PAGES = (
    "/",
    "/sign-in",
    "/projects",
    "/projects/p1",
    "/projects/*",
    "/projects/p1/tasks",
    "/projects/p1/tasks/t1",
    "/projects/p1/tasks/t1/output/log",
    "/projects/*/experiments/t1/output/log",
    "/projects/p1/experiments/t1/execution",
    "/projects/p1/experiments/t1/output/metrics/scalar",
    "/projects/p1/tasks/t1/output/metrics/plots",
    "/projects/p1/models/m1/general",
    "/projects/p1/compare;ids=t1,t2/scalars",
    "/datasets/simple/p1/experiments/t1",
    "/pipelines/p1/experiments/t1",
    "/reports/p1/t1",
    "/search",
    "/compare",
    "/settings/workspace-configuration",
    "/s/abc",
)


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of built pages, which the server uses."""
    folder = tmp_path / "dist"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><title>Runs</title>")
    (folder / "frame.html").write_text("<!doctype html><title>Figures</title>")
    (folder / "paper.html").write_text("<!doctype html><title>Report</title>")
    (folder / "licences.txt").write_text("MIT\n")
    (folder / "assets" / "main-AB12.js").write_bytes(SCRIPT)
    (tmp_path / "secret.js").write_text("not for anybody")
    monkeypatch.setattr(viewer_server, "built_folder", lambda: folder)
    return folder


@pytest.mark.usefixtures("built")
async def test_browsers_get_the_page_at_each_of_its_addresses(api: Api) -> None:
    for path in PAGES:
        answer = await api.raw("GET", path, headers=BROWSER, auth=None)
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8"), path
        assert answer.text == "<!doctype html><title>Runs</title>"
        head = await api.raw("HEAD", path, headers=BROWSER, auth=None)
        assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", "34")


@pytest.mark.usefixtures("built")
async def test_programs_get_what_they_would_get_without_pages(api: Api, tmp_path: Path) -> None:
    async with running_api(tmp_path / "without", viewer=False) as without:
        for path in PAGES:
            for options in ({}, {"headers": {"accept": "application/json"}}):
                answer, expected = [await one.raw("GET", path, **options) for one in (api, without)]
                assert _without_ids(answer.json()) == _without_ids(expected.json()), path
            posted = await api.raw("POST", path, headers=BROWSER, json={})
            assert posted.json()["meta"]["result_code"] in (400, 404)
        for path in ("/", "/projects/p1"):
            assert (await without.raw("GET", path, headers=BROWSER)).json()["meta"]["result_code"] == 400


@pytest.mark.usefixtures("built")
@pytest.mark.own_api
async def test_no_page_is_where_an_endpoint_a_table_a_file_or_a_vendor_is(api: Api) -> None:
    endpoints = (await api.raw("GET", "/openapi.json", auth=None)).json()["paths"]
    routes = [route.path for route in ROUTES if isinstance(route, Route)]
    others = [
        *endpoints,
        *routes,
        "/health",
        "/readyz",
        "/livez",
        "/metrics",
        "/openapi.json",
        "/v1/metrics",
        "/files/x",
    ]
    assert len(others) > 200
    assert {first_step(path) for path in others} & FIRST_STEPS == set()
    for path in ("/projects.get_all", "/v2.34/projects.get_all", "/health", "/data/projects.csv", "/files/x"):
        answer = await api.raw("GET", path, headers=BROWSER)
        assert "Runs" not in answer.text, path
    assert b"Runs" not in (await _asked(api, "//x"))[1]


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(
    ("encoding", "decode"), [("zstd", zstandard.decompress), ("gzip", gzip.decompress), ("", bytes)]
)
async def test_assets_are_compressed_and_kept_for_ever(api: Api, encoding: str, decode: Any) -> None:
    async with api.client.stream("GET", "/assets/main-AB12.js", headers={"accept-encoding": encoding}) as answer:
        raw = b"".join([piece async for piece in answer.aiter_raw()])
    assert answer.headers.get("content-encoding", "") == encoding
    assert int(answer.headers["content-length"]) == len(raw)
    assert decode(raw) == SCRIPT
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert "immutable" in answer.headers["cache-control"]
    assert answer.headers["vary"] == "accept-encoding"
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("path", ["/", "/frame.html", "/licences.txt", "/assets/main-AB12.js"])
async def test_what_a_browser_has_is_not_sent_again(api: Api, path: str) -> None:
    first = await api.raw("GET", path, headers=BROWSER)
    again = await api.raw("GET", path, headers={**BROWSER, "if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["content-security-policy" if path == "/" else "etag"]


async def test_another_build_is_served_at_once(api: Api, built: Path) -> None:
    assert (await api.raw("GET", "/", headers=BROWSER)).text.count("Runs") == 1
    (built / "index.html").write_text("another")
    os.utime(built / "index.html", ns=(1, 1))
    assert (await api.raw("GET", "/", headers=BROWSER)).text == "another"


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.own_api
async def test_without_a_build_pages_say_how_to_get_one(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setattr(viewer_server, "built_folder", lambda: tmp_path / "empty" if there else None)
    answer = await api.raw("GET", "/projects/p1", headers=BROWSER)
    assert answer.status_code == 404
    assert "make viewer" in answer.text
    assert "<script" not in answer.text
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    assert (await api.raw("GET", "/assets/main-AB12.js")).status_code == 404


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(
    "path",
    [
        "/assets/../secret.js",
        "/assets/../../secret.js",
        "/assets/..\\..\\secret.js",
        "/assets//etc/passwd",
        "/assets/\0",
        "/assets/main-AB12.js/",
        "/assets/main-AB12.js\0.css",
        "/assets/",
        "/assets/" + "a" * 60_000,
        "/assets/" + "../" * 10_000 + "etc/passwd",
        "/assets/\ufffd",
    ],
)
async def test_an_address_leads_to_no_other_file(api: Api, path: str) -> None:
    """The paths are given to the app as they are, because HTTP clients resolve `..` themselves."""
    status, body = await _asked(api, path)
    assert status == 404
    assert b"not for anybody" not in body


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(
    "path", ["/projects/" + "a" * 60_000, "/projects/\0/\ufffd", "/projects/<script>", "/projects/../../etc/passwd"]
)
async def test_huge_and_odd_addresses_of_pages_are_the_page(api: Api, path: str) -> None:
    assert await _asked(api, path) == (200, b"<!doctype html><title>Runs</title>")


@pytest.mark.usefixtures("built")
async def test_an_address_that_no_page_has_is_the_page_that_says_so(api: Api) -> None:
    for path in ("/login", "/dashboard/", "/some/where/else", "/" + "a" * 60_000):
        answer = await api.raw("GET", path, headers=BROWSER, auth=None)
        assert (answer.status_code, answer.text) == (404, "<!doctype html><title>Runs</title>"), path
        again = await api.raw("GET", path, headers={**BROWSER, "if-none-match": answer.headers["etag"]}, auth=None)
        assert again.status_code == 404
        assert (await api.raw("GET", path)).json()["meta"]["result_code"] == 400, "programs get the API's answer"
    for path in ("/favicon.ico", "/events.none", "/v2.34/none", "/v1/none", "/data/none", "/health/none"):
        assert "Runs" not in (await api.raw("GET", path, headers=BROWSER)).text, path


async def _asked(api: Api, path: str) -> tuple[int, bytes]:
    """Status and body of the answer to a browser that asks for a decoded path."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request", "body": b""}

    headers = [(b"accept", b"text/html"), (b"host", b"testserver")]
    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": headers, "client": None}
    await api.app(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


# --- what a browser lets the pages do ---------------------------------------------------------------


@pytest.mark.usefixtures("built")
async def test_the_policy_allows_only_this_server(api: Api) -> None:
    answer = await api.raw("GET", "/projects/p1", headers={**BROWSER, "host": "runs.example.org:8008"})
    policy = _policy(answer.headers["content-security-policy"])
    assert policy["default-src"] == ["'none'"]
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == policy["frame-src"] == ["'self'"]
    assert policy["img-src"] == policy["media-src"] == ["'self'", "blob:", "data:"]
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == ["'none'"]
    assert policy["require-trusted-types-for"] == ["'script'"]
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"


@pytest.mark.usefixtures("built")
async def test_figures_are_drawn_in_a_document_without_an_origin(api: Api) -> None:
    answer = await api.raw("GET", "/frame.html", auth=None)
    policy = _policy(answer.headers["content-security-policy"])
    assert policy["sandbox"] == ["allow-scripts"]
    assert policy["connect-src"] == ["'none'"]
    assert policy["script-src"] == policy["frame-ancestors"] == ["'self'"]
    assert answer.headers["connection-allowlist"] == "(response-origin);webrtc=block"


@pytest.mark.usefixtures("built")
async def test_html_reports_run_their_scripts_without_an_origin_and_network(api: Api) -> None:
    answer = await api.raw("GET", "/paper.html", auth=None)
    policy = _policy(answer.headers["content-security-policy"])
    assert policy["sandbox"] == ["allow-scripts"]
    assert policy["script-src"] == ["'unsafe-inline'", "'unsafe-eval'"]
    assert answer.headers["connection-allowlist"] == "();webrtc=block"
    assert policy["connect-src"] == policy["form-action"] == policy["default-src"] == ["'none'"]
    assert policy["frame-ancestors"] == ["'self'"]


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("host", ["evil.example; script-src *", "evil.example", "*", "a" * 60_000, "[::1]:8008", ""])
async def test_no_answer_repeats_the_host(api: Api, host: str) -> None:
    expected = dict((await api.raw("GET", "/", headers=BROWSER)).headers)
    answer = await api.raw("GET", "/", headers={**BROWSER, "host": host, "x-forwarded-host": host})
    assert dict(answer.headers) == expected


# --- another web UI -----------------------------------------------------------------------------------


async def test_browsers_are_sent_to_another_web_ui_and_programs_are_not(tmp_path: Path) -> None:
    async with running_api(tmp_path / "data", web_url="http://ui.example.org:8080/") as api:
        answer = await api.raw("GET", "/projects/*/tasks/t1/output/log?a=b%20c&d", headers=BROWSER, auth=None)
        assert answer.status_code == 302
        assert answer.headers["location"] == "http://ui.example.org:8080/projects/*/tasks/t1/output/log?a=b%20c&d"
        odd = await api.raw("GET", "/projects/%0d%0aset-cookie:%20a", headers=BROWSER, auth=None)
        assert odd.headers["location"] == "http://ui.example.org:8080/projects/%0D%0Aset-cookie:%20a"
        other = await api.raw("GET", "/dashboard", headers=BROWSER, auth=None)
        assert other.headers["location"] == "http://ui.example.org:8080/dashboard"
        assert (await api.raw("GET", "/projects/p1")).json()["meta"]["result_code"] == 400
        assert (await api.raw("GET", "/assets/main-AB12.js")).json()["meta"]["result_code"] == 400


def _policy(text: str) -> dict[str, list[str]]:
    return {words[0]: words[1:] for part in text.split("; ") if (words := part.split(" "))}


def _without_ids(answer: dict[str, Any]) -> str:
    return re.sub(r"'(id|trx)': '\w+'|[0-9a-f]{32}", "", str(answer["meta"]))
