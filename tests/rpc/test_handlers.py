"""What becomes of what handlers answer, and of what they raise."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from apiserver.common.errors import Refusal, Why, invalid_id, overloaded, unavailable
from apiserver.rpc.auth import Authenticator
from apiserver.rpc.call import Call, Encoded, Streamed
from tests.rpc.apps import SECRET, client, meta, single

pytestmark = pytest.mark.anyio


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
        (Refusal(Why.EVENTS_REFUSED, "no"), 400, 131, None),
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
