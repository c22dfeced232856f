"""The way from a file's URL, as it was reported, to the file on the API's port."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from tests.data.conftest import Data

pytestmark = pytest.mark.anyio


async def test_a_url_of_this_server_leads_below_files(data: Data) -> None:
    for url, place in {
        "http://localhost:8081/ex/a%20b.png": "/files/ex/a%20b.png",
        "http://127.0.0.1:8081/a.png?token=x#y": "/files/a.png",
        "http://localhost:8008/files/a.png": "/files/a.png",
        "http://localhost:8081//evil.example/a.png": "/files//evil.example/a.png",
    }.items():
        answer = await data.get(f"/file?url={quote(url, safe='')}", expect=307)
        assert answer.headers["location"] == place
    content = await data.api.raw("PUT", "/files/ex/a.png", content=b"picture")
    assert content.status_code == 200
    answer = await data.get("/file?url=http://localhost:8081/ex/a.png", expect=307)
    assert (await data.api.raw("GET", answer.headers["location"])).content == b"picture"


async def test_files_of_others_are_not_led_to(data: Data) -> None:
    for url in ("https://foreign.example/a.png", "s3://bucket/a.png", "file:///etc/passwd", "//localhost/a", "a", ""):
        assert "no files of" in (await data.error(f"/file?url={quote(url, safe='')}", expect=404))["message"]
    await data.error("/file", expect=400)


@pytest.mark.test
@pytest.mark.parametrize("path", ["../debug.ping", "a/../../debug.ping", "%2e%2e/debug.ping", "./a.png", "a/.."])
async def test_no_url_leads_out_of_the_files(data: Data, path: str) -> None:
    for place in ("http://localhost:8081/", "http://localhost:8008/files/", "http://localhost:files/"):
        await data.error(f"/file?url={quote(place + path, safe='')}", expect=404)
    await data.get(f"/file?url={quote('http://localhost:8081/..a/b..png', safe='')}", expect=307)


async def test_a_link_opens_no_files(data: Data) -> None:
    made = await data.api.raw("POST", "/data/links", json={"address": f"/data/tasks/{data.task}/images"})
    await data.error(f"/file?url=http://localhost/a.png&token={made.json()['token']}", expect=403, auth=None)
