"""Answers on their way out."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
import zstandard

from apiserver.rpc.call import Call, Encoded
from apiserver.rpc.reply import must_close
from tests.rpc.apps import client, demo, single

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("headers", "closes"),
    [
        ({"x-clearml-client": "clearml-2.1.12"}, True),
        ({"x-clearml-client": "ClearML-3.0"}, True),
        ({"x-trains-client": "clearml-2.1.12"}, True),
        ({"x-trains-client": "trains-0.16.4"}, True),
        ({"x-clearml-agent": "3.0.3"}, True),
        ({"x-clearml-client": "Webapp-2.3.0"}, False),
        ({"x-clearml-worker": "host"}, False),
        ({"user-agent": "clearml-2.1.12"}, False),
        ({}, False),
    ],
)
def test_sdk_and_agent_get_a_connection_a_call(headers: dict[str, str], closes: bool) -> None:
    assert must_close(headers) is closes


async def test_connection_close_is_said_on_every_answer(tmp_path: Path) -> None:
    sdk = {"X-ClearML-Client": "clearml-2.1.12"}
    async with client(demo(tmp_path), headers=sdk) as api:
        for path in ("/demo.ping", "/demo.nope", "/nonsense", "/v2.1/demo.echo", "/v0.1/demo.ping"):
            assert (await api.get(path)).headers["connection"] == "close"
        assert (await api.get("/demo.ping", auth=("AK", "wrong"))).headers["connection"] == "close"
        assert (await api.delete("/demo.ping")).headers["connection"] == "close"


async def test_other_clients_may_keep_the_connection(tmp_path: Path) -> None:
    async with client(demo(tmp_path)) as api:
        for path in ("/demo.ping", "/demo.nope", "/v2.1/demo.echo"):
            assert "connection" not in (await api.get(path)).headers


async def answer(tmp_path: Path, size: int, accept: str) -> tuple[httpx.Headers, bytes]:
    """The headers and the bytes on the wire of an answer of about `size` bytes."""

    async def handler(call: Call[Any], request: dict[str, Any]) -> Encoded:
        return Encoded(b'{"x":"' + b"a" * size + b'"}')

    async with (
        client(single(tmp_path, handler), headers={"accept-encoding": accept}) as api,
        api.stream("GET", "/one.call") as response,
    ):
        return response.headers, b"".join([piece async for piece in response.aiter_raw()])


@pytest.mark.parametrize("size", [5_000, 200_000])
@pytest.mark.parametrize("accept", ["gzip, deflate", "gzip, deflate, br, zstd"])
async def test_large_answers_are_compressed(tmp_path: Path, size: int, accept: str) -> None:
    headers, raw = await answer(tmp_path, size, accept)
    zstd = "zstd" in accept
    assert headers["content-encoding"] == ("zstd" if zstd else "gzip")
    assert headers["vary"] == "accept-encoding"
    assert int(headers["content-length"]) == len(raw) < size / 10
    decoded = zstandard.ZstdDecompressor().decompressobj().decompress(raw) if zstd else gzip.decompress(raw)
    assert len(json.loads(decoded)["data"]["x"]) == size


@pytest.mark.parametrize(("size", "accept"), [(1000, "gzip, zstd"), (5000, ""), (5000, "br"), (5000, "gzip;q=0")])
async def test_small_answers_and_those_for_simple_clients_are_not_compressed(
    tmp_path: Path, size: int, accept: str
) -> None:
    headers, raw = await answer(tmp_path, size, accept)
    assert "content-encoding" not in headers
    assert int(headers["content-length"]) == len(raw)
    assert len(json.loads(raw)["data"]["x"]) == size


async def test_a_large_answer_says_that_it_depends_on_what_is_accepted(tmp_path: Path) -> None:
    headers, _ = await answer(tmp_path, 5000, "")
    assert headers["vary"] == "accept-encoding"
