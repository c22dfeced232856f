"""Links that open one file: what they open, for whom, until when."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from apiserver.common.errors import Refusal, Why
from apiserver.fileserver.links import HOUR, FileLinks
from apiserver.rpc.call import Identity
from tests.fileserver.conftest import Files

URL = "http://files/project/picture.png"
NAME = "/project/picture.png"
HOSTS = {"files"}
SECRET = "s" * 32


def query(link: str) -> bytes:
    return urlsplit(link).query.encode()


class Clock:
    def __init__(self) -> None:
        self.now = 1_000 * HOUR + 1.0

    def __call__(self) -> float:
        return self.now


def test_a_link_opens_its_file_until_the_hour_after_the_next_begins() -> None:
    clock = Clock()
    links = FileLinks(SECRET, clock)
    link = links.link(URL, "c1", HOSTS)
    assert link.startswith(URL + "?token=")
    assert links.company(query(link), NAME) == "c1"
    clock.now += HOUR - 2
    assert links.link(URL, "c1", HOSTS) == link
    clock.now += HOUR
    assert links.company(query(link), NAME) == "c1"
    clock.now += 2
    assert links.company(query(link), NAME) is None


@pytest.mark.parametrize(
    "url", ["http://other/project/picture.png", "s3://files/x", "http://[", "", "data:image/png,x"]
)
def test_urls_of_others_stay_as_they_are(url: str) -> None:
    assert FileLinks(SECRET).link(url, "c1", HOSTS) == url


def test_a_query_stays_and_others_may_add_to_it() -> None:
    links = FileLinks(SECRET)
    link = links.link(URL + "?size=2", "c1", HOSTS)
    assert parse_qs(urlsplit(link).query)["size"] == ["2"]
    assert links.company(query(link) + b"&X-Amz-Date=17", NAME) == "c1"


def test_a_file_below_the_api_is_the_one_on_the_files_own_port() -> None:
    links = FileLinks(SECRET)
    link = links.link("http://files/files/project/picture.png", "c1", HOSTS)
    assert links.company(query(link), NAME) == "c1"


def test_a_link_opens_no_other_file_and_none_that_is_signed_by_others() -> None:
    links = FileLinks(SECRET)
    link = query(links.link(URL, "c1", HOSTS))
    assert links.company(link, "/project/other.png") is None
    assert FileLinks("t" * 32).company(link, NAME) is None
    for broken in (link[:-2], b"token=", b"token=a.b.c", b"token=%ff", b"token=" + b"x" * 100_000, b""):
        assert links.company(broken, NAME) is None


@pytest.mark.anyio
async def test_a_login_is_no_link_and_a_link_no_login(files: Files) -> None:
    login = files.authenticator.issue(Identity(user="u", company="c1"), 3600)
    assert files.links.company(f"token={login}".encode(), NAME) is None
    [token] = parse_qs(urlsplit(files.links.link(URL, "c1", HOSTS)).query)["token"]
    with pytest.raises(Refusal) as refused:
        await files.authenticator.by_token(token)
    assert refused.value.why is Why.BAD_TOKEN


@pytest.mark.anyio
async def test_who_has_the_link_may_read_and_nothing_else(files: Files) -> None:
    await files.client.put(NAME, content=b"picture")
    link = urlsplit(files.links.link(URL, "c1", HOSTS))
    path = f"{link.path}?{link.query}"
    async with httpx.AsyncClient(transport=httpx.ASGITransport(files.app), base_url="http://files") as stranger:
        assert (await stranger.get(NAME)).status_code == 401
        answer = await stranger.get(path)
        assert (answer.status_code, answer.content) == (200, b"picture")
        assert answer.headers["access-control-allow-origin"] == "*"
        assert (await stranger.head(path)).headers["content-length"] == "7"
        assert (await stranger.get(f"/project/other.png?{link.query}")).status_code == 401
        for method in ("PUT", "DELETE", "POST"):
            assert (await stranger.request(method, path, content=b"other")).status_code == 401
        of_another = urlsplit(files.links.link(URL, "c2", HOSTS))
        assert (await stranger.get(f"{NAME}?{of_another.query}")).status_code == 404
    assert "access-control-allow-origin" not in (await files.client.get(NAME)).headers
