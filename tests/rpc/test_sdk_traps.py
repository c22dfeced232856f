"""What the ClearML SDK and its agent do on the wire, one test for each habit that a server must bear."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest

from apiserver.common.errors import overloaded, unavailable
from apiserver.rpc.call import Call
from tests.rpc.apps import ALICE, LOGIN, authenticator, client, demo, served, single

pytestmark = pytest.mark.anyio

SDK = {"X-ClearML-Client": "clearml-2.1.12", "X-Trains-Client": "clearml-2.1.12", "X-ClearML-Worker": "host:1"}
RETRIED = {429, 502, 503, 509}


@pytest.mark.test
def test_processes_that_share_a_connection_never_get_each_others_answers(tmp_path: Path) -> None:
    """A fork shares its parent's sockets, so a connection must not be offered for a second call."""
    with served(demo(tmp_path)) as port, httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=SDK) as api:

        def call(number: int) -> bool:
            response = api.request("GET", "/v2.9/demo.echo", json={"n": number}, auth=LOGIN)
            assert response.headers["connection"] == "close"
            return bool(response.json()["data"]["request"] == {"n": number})

        with ThreadPoolExecutor(4) as threads:
            assert all(threads.map(call, range(100)))


async def test_every_call_is_a_get_with_a_body_and_a_junk_field(tmp_path: Path) -> None:
    body = {"task": "a", "samples": 5, "method": "get"}
    async with client(demo(tmp_path), headers=SDK) as api:
        strict = await api.request("GET", "/v2.8/demo.echo", json=body)
        free = await api.request("GET", "/v2.9/demo.echo", json=body)
    assert strict.json()["data"] == {"task": "a", "samples": 5}
    assert free.json()["data"]["request"] == {"task": "a", "samples": 5}


async def test_a_batch_comes_as_lines_without_a_last_newline(tmp_path: Path) -> None:
    lines = b'{"type": "log", "method": "get"}\n{"type": "log", "method": "get"}'
    headers = {**SDK, "Content-Type": "application/json-lines"}
    async with client(demo(tmp_path), headers=headers) as api:
        response = await api.request("GET", "/v2.9/demo.add_batch", content=lines)
    assert response.json()["data"]["size"] == len(lines)


async def test_login_is_a_get_without_version_with_the_lifetime_in_the_query(tmp_path: Path) -> None:
    async with client(demo(tmp_path), headers=SDK) as api:
        response = await api.get("/demo.echo?expiration_sec=3600")
    assert response.json()["data"]["request"] == {"expiration_sec": "3600"}
    assert response.json()["data"]["user"] == "alice"


@pytest.mark.test
@pytest.mark.parametrize("version", ["2.4", "2.5", "2.9", "2.13", "2.14", "2.20", "2.23"])
async def test_the_versions_that_clients_choose_are_answered(tmp_path: Path, version: str) -> None:
    async with client(demo(tmp_path), headers=SDK) as api:
        response = await api.get(f"/v{version}/demo.ping")
    assert response.json()["meta"]["endpoint"]["requested_version"] == version


def test_the_client_decodes_the_token_without_the_secret_for_the_version_of_the_server() -> None:
    claims = jwt.decode(authenticator().issue(ALICE, 3600), options={"verify_signature": False})
    assert claims["api_version"] == "2.34"
    assert claims["server_version"].replace(".", "").isdigit()
    assert claims["feature_set"] == "basic"
    assert claims["exp"] - claims["iat"] == 3600


async def test_an_old_token_is_401_every_time_and_a_new_one_is_good(tmp_path: Path) -> None:
    old, new = authenticator().issue(ALICE, -10), authenticator().issue(ALICE, 3600)
    async with client(demo(tmp_path), auth=None, headers=SDK) as api:
        for token, code in ((old, 401), (old, 401), (new, 200)):
            response = await api.get("/demo.echo", headers={"Authorization": f"Bearer {token}"})
            assert response.status_code == response.json()["meta"]["result_code"] == code


@pytest.mark.parametrize("error", [overloaded("too much", 2), unavailable("no disk", 2)])
async def test_overload_is_a_status_that_is_sent_again_after_a_while(tmp_path: Path, error: Exception) -> None:
    async def handler(call: Call[Any], request: dict[str, Any]) -> dict[str, Any]:
        raise error

    async with client(single(tmp_path, handler), headers=SDK) as api:
        response = await api.get("/one.call")
    assert response.status_code in RETRIED
    assert response.json()["meta"]["result_code"] == response.status_code
    assert response.headers["retry-after"] == "2"


async def test_null_means_not_given_and_numbers_come_as_text(tmp_path: Path) -> None:
    body = {"task": "a", "samples": "5", "tags": None, "fresh": None}
    async with client(demo(tmp_path), headers=SDK) as api:
        response = await api.request("GET", "/v2.8/demo.echo", json=body)
    assert response.json()["data"] == {"task": "a", "samples": 5}


async def test_the_envelope_has_every_field_that_the_client_reads(tmp_path: Path) -> None:
    async with client(demo(tmp_path), headers=SDK) as api:
        answers = [await api.get(path) for path in ("/demo.ping", "/demo.nope", "/nonsense", "/v2.8/demo.echo")]
    for response in answers:
        answer = json.loads(response.content)
        assert set(answer) == {"meta", "data"}
        assert set(answer["meta"]) == {
            "id", "trx", "endpoint", "result_code", "result_subcode", "result_msg", "error_stack", "error_data",
        }  # fmt: skip
        assert set(answer["meta"]["endpoint"]) == {"name", "requested_version", "actual_version"}
        assert isinstance(answer["meta"]["error_data"], dict)
        assert isinstance(answer["data"], dict)
