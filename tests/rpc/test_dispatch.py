"""Calls from the path to the envelope."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import weakref
from collections.abc import AsyncGenerator
from functools import lru_cache
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.middleware.cors import CORSMiddleware
from starlette.types import Message

from apiserver import answers
from apiserver.rpc import dispatch
from apiserver.rpc.auth import Authenticator
from apiserver.rpc.body import Limits
from apiserver.rpc.call import Call, Encoded, Streamed
from apiserver.rpc.dispatch import Dispatcher
from apiserver.rpc.errors import ApiError, invalid_id, overloaded, unavailable
from apiserver.rpc.registry import Registry
from apiserver.rpc.routes import build_routes
from apiserver.rpc.schema import SchemaFileError
from tests.rpc.apps import ALICE, SECRET, authenticator, client, demo, demo_table, single

pytestmark = pytest.mark.anyio


def meta(response: httpx.Response) -> dict[str, Any]:
    """The meta of an answer, after checking what holds for every answer."""
    answer = response.json()
    assert set(answer) == {"meta", "data"}
    assert answer["meta"]["result_code"] == response.status_code
    assert answer["meta"]["id"] == answer["meta"]["trx"]
    assert len(answer["meta"]["id"]) == 32
    assert answer["meta"]["error_stack"] is None
    assert response.headers["content-type"] == "application/json"
    assert "www-authenticate" not in response.headers
    if response.status_code != 200:
        assert answer["data"] == {}
    return dict(answer["meta"])


async def test_a_call_is_answered_in_its_envelope(tmp_path: Path) -> None:
    async with client(demo(tmp_path)) as api:
        response = await api.post("/v2.5/demo.echo", json={"task": "a"})
    assert response.json()["data"] == {"task": "a", "samples": 6000}
    assert meta(response)["endpoint"] == {"name": "demo.echo", "requested_version": "2.5", "actual_version": "1.0"}


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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "_MOST_PATHS", 2)
    dispatcher = demo(tmp_path)
    expected = {"2.8": "1.0", "2.9": "2.9", "2.10": "2.9"}
    async with client(dispatcher) as api:
        for requested in [*expected, *expected, "2.10", "2.9"]:
            path = f"/v{requested}/demo.echo"
            endpoint = meta(await api.post(path, json={"task": "a"}))["endpoint"]
            assert (endpoint["requested_version"], endpoint["actual_version"]) == (requested, expected[requested])
            assert dispatcher.serves(path)


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


@pytest.mark.parametrize("path", ["/vabc/demo.echo", "/v2/demo.echo", "/demo", "/", "/a/b/c"])
async def test_a_malformed_path_is_400(tmp_path: Path, path: str) -> None:
    async with client(demo(tmp_path), auth=None) as api:
        seen = meta(await api.post(path))
    assert (seen["result_code"], seen["result_subcode"]) == (400, 0)
    assert seen["result_msg"] == f"Invalid request path {path}"
    assert seen["endpoint"] == {"name": "", "requested_version": None, "actual_version": None}


# --- requests --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
async def test_methods_are_alike_and_query_and_body_are_one_request(tmp_path: Path, method: str) -> None:
    async with client(demo(tmp_path)) as api:
        response = await api.request(
            method, "/v2.1/demo.echo?samples=5&tags=a&fresh=true&task=query", content=b'{"task": "body"}'
        )
    assert response.json()["data"] == {"task": "body", "samples": 5, "tags": ["a"], "fresh": True}


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


# --- handlers --------------------------------------------------------------------------------------


async def test_a_handler_may_set_headers(tmp_path: Path) -> None:
    async def handler(call: Call[Any], request: dict[str, Any]) -> dict[str, Any]:
        call.response_headers.append(("Set-Cookie", "a=b; HttpOnly"))
        call.response_headers.append(("Set-Cookie", "c=d"))
        return {}

    async with client(single(tmp_path, handler)) as api:
        assert (await api.get("/one.call")).headers.get_list("set-cookie") == ["a=b; HttpOnly", "c=d"]


async def test_an_encoded_answer_is_passed_on(tmp_path: Path) -> None:
    async def handler(call: Call[Any], request: dict[str, Any]) -> Encoded:
        return Encoded(b'{"y": [1.50]}')

    async with client(single(tmp_path, handler)) as api:
        assert (await api.get("/one.call")).content.endswith(b'"data":{"y": [1.50]}}')


class StoreError(Exception):
    pass


class StoreBusy(StoreError):
    pass


ERRORS: dict[type[Exception], Any] = {
    StoreError: lambda error: unavailable(f"the store is away: {error}", retry_after=7),
    StoreBusy: lambda error: overloaded("the store is busy", retry_after=3),
}


class StrangeBusy(StoreBusy):
    pass


@pytest.mark.parametrize(
    ("error", "code", "subcode", "retry_after"),
    [
        (StoreBusy(), 429, 0, "3"),
        (StrangeBusy(), 429, 0, "3"),
        (StoreError("gone"), 503, 0, "7"),
        (ApiError(400, 131, "no"), 400, 131, None),
        (invalid_id("task", "a", "b"), 400, 101, None),
    ],
)
async def test_known_errors_have_their_answers_and_are_no_news(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    code: int,
    subcode: int,
    retry_after: str | None,
) -> None:
    async def handler(call: Call[Any], request: dict[str, Any]) -> dict[str, Any]:
        raise error

    async with client(single(tmp_path, handler, errors=ERRORS)) as api:
        response = await api.get("/one.call")
    seen = meta(response)
    assert (seen["result_code"], seen["result_subcode"]) == (code, subcode)
    assert response.headers.get("retry-after") == retry_after
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


async def test_an_unexpected_error_is_logged_with_the_request_and_answered_without_its_cause(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def handler(call: Call[Any], request: dict[str, Any]) -> dict[str, Any]:
        raise RuntimeError("the inside story")

    async with client(single(tmp_path, handler, errors=ERRORS)) as api:
        response = await api.get("/one.call")
    seen = meta(response)
    assert (seen["result_code"], seen["result_subcode"]) == (500, 0)
    assert seen["result_msg"] == f"Internal server error (request {seen['id']})"
    assert "story" not in response.text
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.name == "apiserver.rpc"
    assert record.__dict__["request"] == seen["id"]
    assert record.exc_info
    assert "the inside story" in str(record.exc_info[1])


async def test_an_answer_that_json_cannot_say_is_an_unexpected_error(tmp_path: Path) -> None:
    async def handler(call: Call[Any], request: dict[str, Any]) -> dict[str, Any]:
        return {"x": object()}

    async with client(single(tmp_path, handler)) as api:
        assert meta(await api.get("/one.call"))["result_code"] == 500


async def test_errors_of_the_lookup_have_their_answers_too(tmp_path: Path) -> None:
    async def broken(key: str, secret: str, client: str) -> None:
        raise StoreBusy

    async def handler(call: Call[Any], request: dict[str, Any]) -> dict[str, Any]:
        return {}

    async with client(single(tmp_path, handler, auth=Authenticator(SECRET, broken), errors=ERRORS)) as api:
        assert meta(await api.get("/one.call"))["result_code"] == 429


async def test_a_streamed_answer_has_no_envelope(tmp_path: Path) -> None:
    async def handler(call: Call[Any], request: dict[str, Any]) -> Streamed:
        async def lines() -> AsyncGenerator[bytes, None]:
            for number in range(3):
                yield b"%d\n" % number

        call.response_headers.append(("Content-Disposition", "attachment"))
        return Streamed(lines(), "text/plain")

    async with client(single(tmp_path, handler)) as api:
        response = await api.get("/one.call", headers={"X-ClearML-Client": "clearml-2.1.12"})
    assert response.text == "0\n1\n2\n"
    assert response.headers["content-type"] == "text/plain"
    assert response.headers["content-disposition"] == "attachment"
    assert response.headers["connection"] == "close"


@pytest.mark.parametrize(("error", "code"), [(StoreError(), 503), (KeyError(), 500)])
async def test_a_stream_that_fails_before_it_begins_is_answered_as_any_error(
    tmp_path: Path, error: Exception, code: int
) -> None:
    async def handler(call: Call[Any], request: dict[str, Any]) -> Streamed:
        async def lines() -> AsyncGenerator[bytes, None]:
            raise error
            yield b""

        return Streamed(lines(), "text/plain")

    async with client(single(tmp_path, handler, errors=ERRORS)) as api:
        assert meta(await api.get("/one.call"))["result_code"] == code


async def test_an_empty_stream_is_an_empty_body(tmp_path: Path) -> None:
    async def handler(call: Call[Any], request: dict[str, Any]) -> Streamed:
        async def nothing() -> AsyncGenerator[bytes, None]:
            return
            yield b""

        return Streamed(nothing(), "text/plain")

    async with client(single(tmp_path, handler)) as api:
        assert (await api.get("/one.call")).content == b""


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


@pytest.mark.parametrize("auth", [None, ("AK", "wrong")])
async def test_strangers_send_small_bodies_only(tmp_path: Path, auth: tuple[str, str] | None) -> None:
    async with client(demo(tmp_path), auth=auth) as api:
        assert meta(await api.post("/demo.ping", content=bytes(16 * 2**10 + 1)))["result_code"] == 413
        packed = gzip.compress(b" " * (64 * 2**10 + 1))
        answer = await api.post("/demo.ping", content=packed, headers={"content-encoding": "gzip"})
        assert meta(answer)["result_code"] == 413
    async with client(demo(tmp_path)) as api:
        assert meta(await api.post("/demo.ping", content=b" " * 2**20))["result_code"] == 200


@pytest.mark.parametrize("path", ["/demo.ping", "/demo.echo", "/demo.nope", "/nonsense", "/v2.1/demo.echo"])
async def test_no_browser_keeps_an_answer_or_takes_it_for_something_else(tmp_path: Path, path: str) -> None:
    async with client(demo(tmp_path)) as api:
        headers = (await api.post(path)).headers
    assert (headers["x-content-type-options"], headers["cache-control"]) == ("nosniff", "no-store")


async def test_an_answer_that_reads_too_much_is_refused(tmp_path: Path) -> None:
    async def handler(call: Call[Any], request: dict[str, Any]) -> dict[str, Any]:
        answers.hold(answers.LARGEST)
        answers.hold(1)
        return {}

    async with client(single(tmp_path, handler, reads=True)) as api:
        response = await api.post("/one.call", json={})
    assert response.status_code == 400
    assert "more than 64 MB: ask for less at once" in meta(response)["result_msg"]


async def test_who_finds_no_room_reads_again_when_there_is_some(tmp_path: Path) -> None:
    first_is_read, first_may_end, second_has_read = asyncio.Event(), asyncio.Event(), asyncio.Event()
    read: list[str] = []

    async def handler(call: Call[Any], request: dict[str, Any]) -> dict[str, Any]:
        read.append(request.pop("who"))  # a handler may use up what it is given
        call.response_headers.append(("read", read[-1]))
        (second_has_read if read[-1] == "second" else first_is_read).set()
        answers.hold(answers.LARGEST // 2 + 1)
        if read[-1] == "first":
            await first_may_end.wait()
        return {}

    async with client(single(tmp_path, handler, reads=True)) as api:
        first = asyncio.create_task(api.post("/one.call", json={"who": "first"}))
        await first_is_read.wait()
        second = asyncio.create_task(api.post("/one.call", json={"who": "second"}))
        await second_has_read.wait()
        await asyncio.sleep(0)
        assert not second.done()
        first_may_end.set()
        for response in (await first, await second):
            assert response.status_code == 200
            assert len(response.headers.get_list("read")) == 1
    assert read == ["first", "second", "second"]


async def test_a_stream_that_finds_no_room_begins_anew(tmp_path: Path) -> None:
    first_is_read, first_may_end, second_has_read = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def handler(call: Call[Any], request: dict[str, Any]) -> Streamed:
        async def lines() -> AsyncGenerator[bytes, None]:
            (second_has_read if first_is_read.is_set() else first_is_read).set()
            answers.hold(answers.LARGEST)
            await first_may_end.wait()
            yield b"line"

        return Streamed(lines(), "text/plain")

    async with client(single(tmp_path, handler, reads=True)) as api:
        first = asyncio.create_task(api.post("/one.call", json={}))
        await first_is_read.wait()
        second = asyncio.create_task(api.post("/one.call", json={}))
        await second_has_read.wait()
        first_may_end.set()
        assert [(await one).text for one in (first, second)] == ["line", "line"]


async def test_who_waits_for_room_holds_nothing(tmp_path: Path) -> None:
    class Page:
        """What was read; unlike a list, it can be seen when it goes."""

    first_is_read, first_may_end, page_is_gone = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def handler(call: Call[Any], request: dict[str, Any]) -> dict[str, Any]:
        page = Page()
        weakref.finalize(page, page_is_gone.set)
        answers.hold(answers.LARGEST)
        first_is_read.set()
        await first_may_end.wait()
        return {}

    async with client(single(tmp_path, handler, reads=True)) as api:
        first = asyncio.create_task(api.post("/one.call", json={}))
        await first_is_read.wait()
        second = asyncio.create_task(api.post("/one.call", json={}))
        await page_is_gone.wait()
        assert not second.done()
        first_may_end.set()
        for response in (await first, await second):
            assert response.status_code == 200


async def test_who_finds_no_room_for_long_is_to_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "PATIENCE", 0.01)
    first_is_read, first_may_end = asyncio.Event(), asyncio.Event()

    async def handler(call: Call[Any], request: dict[str, Any]) -> dict[str, Any]:
        answers.hold(answers.LARGEST)
        first_is_read.set()
        await first_may_end.wait()
        return {}

    async with client(single(tmp_path, handler, reads=True)) as api:
        first = asyncio.create_task(api.post("/one.call", json={}))
        await first_is_read.wait()
        refused = await api.post("/one.call", json={})
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        first_may_end.set()
        assert (await first).status_code == 200
        assert (await api.post("/one.call", json={})).status_code == 200
