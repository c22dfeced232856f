"""What is answered below `/data` where there is no address, or none for the method."""

from __future__ import annotations

import pytest

from tests.data.conftest import Data

pytestmark = pytest.mark.anyio


@pytest.mark.test
@pytest.mark.parametrize("path", ["", "/", "/nothing", "/task/x/scalars?metric=loss", "/tasks/x", "/projects/x.csv"])
async def test_an_unknown_address_says_which_there_are(data: Data, path: str) -> None:
    for method in ("GET", "POST", "PROPFIND"):
        answer = await data.api.raw(method, f"/data{path}")
        assert answer.status_code == 404
        error = answer.json()["error"]
        assert error.keys() == {"code", "message", "request"}
        assert error["message"].startswith(
            f"There is no address /data{path.partition('?')[0]}. /openapi.json describes "
        )
        addresses = error["message"].split("describes ")[1].split(", ")
        assert {"/data/tasks/TASK/log", "/data/projects/PROJECT/tasks", "/data/views/ID/delete"} < set(addresses)
        assert len(addresses) == len(set(addresses))
        assert "allow" not in answer.headers
    assert (await data.api.raw("GET", f"/data{path}", auth=None)).status_code == 401


@pytest.mark.test
@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/projects", "GET, HEAD"),
        ("DELETE", "/projects.csv", "GET, HEAD"),
        ("OPTIONS", "/tasks/x/y/scalars", "GET, HEAD"),
        ("PROPFIND", "/usage", "GET, HEAD"),
        ("HEAD", "/live", "GET"),
        ("GET", "/links", "POST"),
        ("PUT", "/views", "GET, POST"),
        ("GET", "/views/x/delete", "POST"),
    ],
)
async def test_an_address_says_which_methods_it_has(data: Data, method: str, path: str, allowed: str) -> None:
    answer = await data.api.raw(method, f"/data{path}")
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)
    if method != "HEAD":
        error = answer.json()["error"]
        assert (error["code"], error["message"]) == (405, f"Method {method} is not allowed: use {allowed}")


@pytest.mark.test
@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("links", b"{", "body: it is not JSON"),
        ("links", b"[]", "body: it must be a JSON object"),
        ("links", b"", "body: it is required"),
        ("links", b'{"address": 5}', "address: it must be a text"),
        ("links", b'{"address": "/data/tasks/x/log", "minutes": 5}', "minutes: there is no such field here"),
        ("views", b'{"address": ""}', "address: it must have at least 1 characters"),
        ("views", b'{"address": "x"}', "address: it must be a path of this server, such as /projects/<id>?sort=name"),
    ],
)
async def test_a_wrong_body_names_its_field(data: Data, path: str, body: bytes, said: str) -> None:
    answer = await data.api.raw("POST", f"/data/{path}", content=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["message"], error["parameter"]) == (400, said, said.partition(":")[0])


async def test_the_format_is_no_parameter_but_the_ending(data: Data) -> None:
    error = await data.error("/projects?format=csv")
    assert error["message"] == "format: the ending of the address says the format, such as .csv"
    assert error["parameter"] == "format"
