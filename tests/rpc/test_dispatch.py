"""Calls from the path to the envelope."""

from __future__ import annotations

import gzip
import json
import logging
from functools import lru_cache
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.middleware.cors import CORSMiddleware
from starlette.types import Message

from apiserver.rpc.body import Limits
from apiserver.rpc.dispatch import Dispatcher
from apiserver.rpc.registry import Registry
from apiserver.rpc.routes import build_routes
from apiserver.rpc.schema import SchemaFileError
from tests.rpc.apps import ALICE, authenticator, client, demo, demo_table, meta

pytestmark = pytest.mark.anyio


async def test_a_call_is_answered_in_its_envelope(tmp_path: Path) -> None:
    async with client(demo(tmp_path)) as api:
        response = await api.post("/v2.5/demo.echo", json={"task": "a"})
    assert response.json()["data"] == {"task": "a", "samples": 6000}
    assert meta(response)["endpoint"] == {"name": "demo.echo", "requested_version": "2.5", "actual_version": "1.0"}


@pytest.mark.test
@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/demo.echo", True),
        ("/v2.13/demo.echo", True),
        ("/v2/demo.echo", True),
        ("/files/demo.echo", False),
        ("/v2.1/files/demo.echo", False),
        ("/demo.nothing", False),
        ("/", False),
        ("", False),
    ],
)
def test_it_knows_which_paths_are_of_its_endpoints(tmp_path: Path, path: str, expected: bool) -> None:
    assert demo(tmp_path).serves(path) is expected


@pytest.mark.test
@pytest.mark.parametrize(
    ("path", "requested", "actual"),
    [
        ("/v1.0/demo.echo", "1.0", "1.0"),
        ("/v2.8/demo.echo", "2.8", "1.0"),
        ("/v2.9/demo.echo", "2.9", "2.9"),
        ("/v999.0/demo.echo", "999.0", "2.9"),
        ("/demo.echo", "2.34", "2.9"),
    ],
)
async def test_the_version_decides_who_answers(tmp_path: Path, path: str, requested: str, actual: str) -> None:
    async with client(demo(tmp_path)) as api:
        endpoint = meta(await api.post(path, json={"task": "a"}))["endpoint"]
    assert endpoint == {"name": "demo.echo", "requested_version": requested, "actual_version": actual}


async def test_a_path_leads_to_the_same_however_many_are_asked_for(
    tmp_path: Path,
) -> None:
    dispatcher = demo(tmp_path, paths=2)
    expected = {"2.8": "1.0", "2.9": "2.9", "2.10": "2.9"}
    async with client(dispatcher) as api:
        for requested in [*expected, *expected, "2.10", "2.9"]:
            path = f"/v{requested}/demo.echo"
            endpoint = meta(await api.post(path, json={"task": "a"}))["endpoint"]
            assert (endpoint["requested_version"], endpoint["actual_version"]) == (requested, expected[requested])
            assert dispatcher.serves(path)


@pytest.mark.test
@pytest.mark.parametrize(
    ("path", "version"), [("/v0.9/demo.echo", "0.9"), ("/v9.9/demo.nope", "9.9"), ("/nope.nope", "2.34")]
)
async def test_what_nothing_answers_is_404(tmp_path: Path, path: str, version: str) -> None:
    name = path.rpartition("/")[2]
    async with client(demo(tmp_path), auth=None) as api:
        seen = meta(await api.post(path))
    assert (seen["result_code"], seen["result_subcode"]) == (404, 0)
    assert seen["result_msg"] == f"Unable to find endpoint for name {name} and version {version}"
    assert seen["endpoint"] == {"name": name, "requested_version": version, "actual_version": None}


@pytest.mark.test
@pytest.mark.parametrize("path", ["/vabc/demo.echo", "/v2/demo.echo", "/demo", "/", "/a/b/c"])
async def test_a_malformed_path_is_400(tmp_path: Path, path: str) -> None:
    async with client(demo(tmp_path), auth=None) as api:
        seen = meta(await api.post(path))
    assert (seen["result_code"], seen["result_subcode"]) == (400, 0)
    assert seen["result_msg"] == f"Invalid request path {path}"
    assert seen["endpoint"] == {"name": "", "requested_version": None, "actual_version": None}


# --- requests --------------------------------------------------------------------------------------


@pytest.mark.test
@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
async def test_methods_are_alike_and_query_and_body_are_one_request(tmp_path: Path, method: str) -> None:
    async with client(demo(tmp_path)) as api:
        response = await api.request(
            method, "/v2.1/demo.echo?samples=5&tags=a&fresh=true&task=query", content=b'{"task": "body"}'
        )
    assert response.json()["data"] == {"task": "body", "samples": 5, "tags": ["a"], "fresh": True}


@pytest.mark.test
@pytest.mark.parametrize("content_type", [None, "text/plain", "application/x-www-form-urlencoded", "nonsense"])
async def test_the_content_type_does_not_matter(tmp_path: Path, content_type: str | None) -> None:
    headers = {"content-type": content_type} if content_type else {}
    async with client(demo(tmp_path)) as api:
        response = await api.post("/v2.1/demo.echo", content=b'{\r\n "task": "a"\r\n}\r\n', headers=headers)
    assert response.json()["data"]["task"] == "a"


@pytest.mark.parametrize("method", ["DELETE", "PATCH", "TRACE"])
async def test_other_methods_are_405(tmp_path: Path, method: str) -> None:
    async with client(demo(tmp_path)) as api:
        response = await api.request(method, "/demo.ping")
    assert meta(response)["result_code"] == 405
    assert response.headers["allow"] == "GET, POST, PUT, OPTIONS"


async def test_options_says_what_is_allowed(tmp_path: Path) -> None:
    async with client(demo(tmp_path), auth=None) as api:
        response = await api.options("/demo.ping")
    assert (response.status_code, response.content) == (204, b"")
    assert response.headers["allow"] == "GET, POST, PUT, OPTIONS"


async def test_cors_can_be_put_in_front(tmp_path: Path) -> None:
    origin = "http://ui.test"
    app = CORSMiddleware(demo(tmp_path), allow_origins=[origin], allow_credentials=True, allow_methods=["POST"])
    async with client(app) as api:
        asked = await api.options("/demo.ping", headers={"origin": origin, "access-control-request-method": "POST"})
        answered = await api.post("/demo.nope", headers={"origin": origin})
    assert asked.headers["access-control-allow-origin"] == origin
    assert answered.headers["access-control-allow-origin"] == origin


@pytest.mark.test
@pytest.mark.parametrize(
    ("body", "subcode", "field"),
    [
        (b"{}", 12, "task"),
        (b'{"task": 5}', 12, "task"),
        (b'{"task": "a", "samples": 6001}', 12, "samples"),
        (b'{"task": "a", "samples": NaN}', 0, None),
        (b'{"task": "a", "samples": 99999999999999999999}', 12, "samples"),
        (b'["a"]', 12, None),
        (b'{"task": ', 0, None),
        (b'{"task": ' + b"[" * 100 + b"]" * 100 + b"}", 12, None),
    ],
)
async def test_bad_requests_are_400_and_name_the_field(
    tmp_path: Path, body: bytes, subcode: int, field: str | None
) -> None:
    async with client(demo(tmp_path)) as api:
        seen = meta(await api.post("/v2.1/demo.echo", content=body))
    assert (seen["result_code"], seen["result_subcode"]) == (400, subcode)
    assert seen["error_data"] == ({"field": field} if field else {})
    assert seen["endpoint"]["actual_version"] == "1.0"


async def test_a_raw_handler_gets_the_decoded_bytes_and_the_query(tmp_path: Path) -> None:
    lines = b'{"a": 1}\n[not json'
    async with client(demo(tmp_path)) as api:
        response = await api.post(
            "/demo.add_batch?x=1&x=2", content=gzip.compress(lines), headers={"content-encoding": "gzip"}
        )
    assert response.json()["data"] == {"size": len(lines), "head": lines.decode(), "request": {"x": ["1", "2"]}}


async def test_a_batch_is_checked_line_by_line(tmp_path: Path) -> None:
    lines = b'{"task": "a", "samples": "5"}\n\n{"task": "b", "other": 1}\r\n'
    async with client(demo(tmp_path)) as api:
        answer = await api.post("/demo.echo_batch", content=lines)
        assert answer.json()["data"]["items"] == [{"task": "a", "samples": 5}, {"task": "b", "samples": 6000}]
        for body, subcode in (
            (b"", 17),
            (b" \n", 17),
            (b'{"task": "a"}\n{', 0),
            (b'{"task": "a"}\n{"samples": 1}', 12),
        ):
            seen = meta(await api.post("/demo.echo_batch", content=body))
            assert (seen["result_code"], seen["result_subcode"]) == (400, subcode)


@pytest.mark.test
@pytest.mark.parametrize(
    ("encoding", "body", "code"),
    [
        ("br", b"x", 415),
        ("gzip", b"x", 400),
        ("gzip", gzip.compress(bytes(70_000), mtime=0), 413),
        ("identity", bytes(70_000), 413),
    ],
)
async def test_bodies_that_cannot_be_read_have_an_envelope(
    tmp_path: Path, encoding: str, body: bytes, code: int
) -> None:
    async with client(demo(tmp_path, limits=Limits(body=64 * 2**10))) as api:
        response = await api.post("/demo.add_batch", content=body, headers={"content-encoding": encoding})
    assert meta(response)["result_code"] == code
    assert meta(response)["endpoint"]["name"] == "demo.add_batch"


# --- callers ---------------------------------------------------------------------------------------


async def test_who_calls_is_told_to_the_handler(tmp_path: Path) -> None:
    async with client(demo(tmp_path)) as api:
        assert (await api.post("/demo.echo")).json()["data"]["user"] == "alice"


@pytest.mark.test
@pytest.mark.parametrize(
    ("headers", "subcode"),
    [
        ({}, 20),
        ({"authorization": "Foo x"}, 10),
        ({"authorization": "Basic !!!"}, 22),
        ({"authorization": "Bearer abc.def.ghi"}, 30),
    ],
)
async def test_callers_that_are_not_known_are_401(tmp_path: Path, headers: dict[str, str], subcode: int) -> None:
    async with client(demo(tmp_path), auth=None) as api:
        seen = meta(await api.post("/v2.1/demo.echo", content=b"not even json", headers=headers))
    assert (seen["result_code"], seen["result_subcode"]) == (401, subcode)


async def test_endpoints_for_anyone_still_tell_who_calls(tmp_path: Path) -> None:
    async with client(demo(tmp_path), auth=None) as api:
        assert (await api.post("/demo.ping")).json()["data"]["user"] == ""
        assert (await api.post("/demo.ping", auth=("AK", "wrong"))).json()["data"]["user"] == ""
        assert (await api.post("/demo.ping", auth=("AK", "sk"))).json()["data"]["user"] == "alice"
        foreign = {
            "cookie": f"clearml_token_basic={authenticator().issue(ALICE, 60)}",
            "origin": "http://evil.test",
        }
        assert (await api.post("/demo.ping", headers=foreign)).json()["data"]["user"] == ""
        assert meta(await api.post("/demo.echo", headers=foreign))["result_code"] == 403


async def test_the_worker_header_is_told_to_the_handler(tmp_path: Path) -> None:
    async with client(demo(tmp_path)) as api:
        assert (await api.get("/demo.ping", headers={"X-ClearML-Worker": "w"})).json()["data"]["worker"] == "w"
        assert (await api.get("/demo.ping", headers={"X-Trains-Worker": "t"})).json()["data"]["worker"] == "t"


# --- the rest --------------------------------------------------------------------------------------


async def test_a_request_is_one_debug_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="apiserver.rpc")
    async with client(demo(tmp_path)) as api:
        response = await api.get("/v2.1/demo.echo?task=secret")
    (record,) = [record for record in caplog.records if record.name == "apiserver.rpc"]
    fields = {name: record.__dict__[name] for name in ("request", "endpoint", "version", "status", "bytes")}
    assert fields == {
        "request": meta(response)["id"],
        "endpoint": "demo.echo",
        "version": "1.0",
        "status": 200,
        "bytes": len(response.content),
    }
    assert record.__dict__["ms"] >= 0
    assert "secret" not in caplog.text


async def test_a_client_that_leaves_in_the_middle_of_a_body_ends_it_quietly(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    messages: list[Message] = [
        {"type": "http.request", "body": b'{"ta', "more_body": True},
        {"type": "http.disconnect"},
    ]
    sent: list[Message] = []

    async def receive() -> Message:
        return messages.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    token = authenticator().issue(ALICE, 60).encode()
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v2.1/demo.echo",
        "query_string": b"",
        "headers": [(b"authorization", b"Bearer " + token)],
    }
    await demo(tmp_path)(scope, receive, send)
    assert sent == []
    assert not [record for record in caplog.records if record.levelno > logging.DEBUG]


async def test_a_websocket_is_turned_away(tmp_path: Path) -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    await demo(tmp_path)({"type": "websocket", "path": "/"}, None, send)  # type: ignore[arg-type]
    assert sent == [{"type": "websocket.close"}]


def test_schemas_and_handlers_that_do_not_fit_stop_the_start(tmp_path: Path) -> None:
    with pytest.raises(SchemaFileError, match=r"demo\.ping 1\.0 has a schema but no handler"):
        build_routes(demo_table(tmp_path), Registry())


async def test_bodies_under_way_are_released_whatever_happens(tmp_path: Path) -> None:
    app = demo(tmp_path, limits=Limits(body=1000, in_flight=1500))
    async with client(app) as api:
        for _ in range(5):
            assert (await api.post("/demo.add_batch", content=bytes(900))).status_code == 200
            assert (await api.post("/demo.add_batch", content=bytes(1001))).status_code == 413
            assert (await api.post("/v2.1/demo.echo", content=bytes(900))).status_code == 400


paths = st.sampled_from(["/v2.1/demo.echo", "/v2.9/demo.echo", "/demo.ping", "/demo.add_batch"]) | st.text().map(
    "/".__add__
)
header_names = st.sampled_from(
    ["content-encoding", "content-length", "accept-encoding", "cookie", "origin", "host", "authorization"]
)


@pytest.mark.test
@given(
    method=st.sampled_from(["GET", "POST", "PUT"]),
    path=paths,
    query=st.binary(max_size=30),
    headers=st.dictionaries(header_names, st.sampled_from(["gzip", "zstd", "deflate", "5", "zstd;q=x"]) | st.text()),
    body=st.binary(max_size=60)
    | st.dictionaries(
        st.sampled_from(["task", "samples", "tags"]),
        st.none() | st.integers() | st.floats() | st.text() | st.lists(st.text()),
    ).map(lambda value: json.dumps(value).encode()),
)
async def test_whatever_is_sent_is_never_an_internal_error(
    tmp_path: Path, method: str, path: str, query: bytes, headers: dict[str, str], body: bytes
) -> None:
    token = authenticator().issue(ALICE, 60)
    named = {"authorization": f"Bearer {token}", **headers}
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query,
        "headers": [(name.encode(), value.encode("latin-1", "replace")) for name, value in named.items()],
    }
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": body}

    async def send(message: Message) -> None:
        sent.append(message)

    await demo_once(tmp_path)(scope, receive, send)
    assert sent[0]["status"] < 500


@lru_cache
def demo_once(tmp_path: Path) -> Dispatcher:
    return demo(tmp_path)


async def test_every_answer_is_valid_json_even_for_odd_paths(tmp_path: Path) -> None:
    async with client(demo(tmp_path)) as api:
        for path in ("/%ff%fe", "/v1.0/%00.x", "/%22%5c", "/%F0%9F%98%80.x", "/" + "x" * 5000):
            response = await api.get(path)
            assert orjson.loads(response.content)["meta"]["result_code"] == 400


# --- bodies by who sends them ----------------------------------------------------------------------


@pytest.mark.test
@pytest.mark.parametrize("auth", [None, ("AK", "wrong")])
async def test_strangers_send_small_bodies_only(tmp_path: Path, auth: tuple[str, str] | None) -> None:
    async with client(demo(tmp_path), auth=auth) as api:
        assert meta(await api.post("/demo.ping", content=bytes(16 * 2**10 + 1)))["result_code"] == 413
        packed = gzip.compress(b" " * (64 * 2**10 + 1))
        answer = await api.post("/demo.ping", content=packed, headers={"content-encoding": "gzip"})
        assert meta(answer)["result_code"] == 413
    async with client(demo(tmp_path)) as api:
        assert meta(await api.post("/demo.ping", content=b" " * 2**20))["result_code"] == 200


@pytest.mark.test
@pytest.mark.parametrize("path", ["/demo.ping", "/demo.echo", "/demo.nope", "/nonsense", "/v2.1/demo.echo"])
async def test_no_browser_keeps_an_answer_or_takes_it_for_something_else(tmp_path: Path, path: str) -> None:
    async with client(demo(tmp_path)) as api:
        headers = (await api.post(path)).headers
    assert (headers["x-content-type-options"], headers["cache-control"]) == ("nosniff", "no-store")
