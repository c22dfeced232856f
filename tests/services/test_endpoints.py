"""Every endpoint of the smaller services against every kind of bad input: a clear error, never a 500."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from apiserver.rpc.schema import EndpointVersion
from apiserver.rpc.schema_bounds import Schema
from tests.harness import Api, basic
from tests.services import generated

pytestmark = pytest.mark.anyio

SERVICES = (
    "auth",
    "debug",
    "login",
    "models",
    "organization",
    "queues",
    "reports",
    "server",
    "serving",
    "storage",
    "users",
    "workers",
)
ENDPOINTS = [endpoint for endpoint in generated.ENDPOINTS if endpoint.name.partition(".")[0] in SERVICES]
HOSTILE: tuple[Any, ...] = (
    None,
    "",
    "$where",
    "a.b\0c",
    "\ud800",
    "(",
    -1,
    2**63,
    1.5,
    True,
    [],
    [None],
    ["x"],
    [[]],
    {},
    {"$where": "1", "a.b": {"": []}, "\0": 1},
)
SUBCODES = {"task": 101, "model": 201, "queue": 701, "user": 301}


def example(field: Schema) -> Any:
    """A value that the schema of a field allows, and that refers to nothing."""
    if "enum" in field:
        return field["enum"][0]
    if "anyOf" in field:
        return example(field["anyOf"][0])
    match field.get("type"):
        case "string":
            return "nothing"
        case "integer" | "number":
            return max(1, field.get("minimum", 1))
        case "boolean":
            return True
        case "array":
            return [example(field.get("items", {}))]
        case "object":
            return {name: example(field["properties"][name]) for name in field.get("required", ())}
    return "nothing"


def required(endpoint: EndpointVersion, known: dict[str, Any]) -> dict[str, Any]:
    """The least request: the required fields, by what is `known` where that fits."""
    fields = endpoint.request["properties"]
    return {name: known.get(name, example(fields[name])) for name in endpoint.request.get("required", ())}


def spoilt(endpoint: EndpointVersion, least: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The `least` request with one hostile value, in one of the fields."""
    for name in endpoint.request.get("properties", {}):
        for value in HOSTILE:
            yield {**least, name: value}


async def known_ids(api: Api, endpoint: EndpointVersion) -> dict[str, Any]:
    """Ids that lead somewhere, by the names that requests give them."""
    task = (await api.call("tasks.create", {"name": "t", "type": "training"}))["id"]
    model = (await api.call("models.create", {"name": "m", "uri": "u"}))["id"]
    queue = (await api.call("queues.create", {"name": f"{endpoint.name} {task}"}))["id"]
    other = (await api.call("queues.create", {"name": f"{endpoint.name} {queue}"}))["id"]
    await api.call("queues.add_task", {"queue": queue, "task": task})
    user = (await api.call("auth.create_user", {"name": f"{endpoint.name} {task}"}))["id"]
    ids = [model]
    if endpoint.name.startswith("reports."):
        task = (await api.call("reports.create", {"name": "r"}))["id"]
    return {"task": task, "model": model, "queue": queue, "target_queue": other, "user": user, "ids": ids, "id": ids}


async def check(api: Api, endpoint: EndpointVersion, request: dict[str, Any]) -> None:
    """The answer to any request is 200, or an error with a message; its envelope is whole."""
    status, text = await generated.ask(api, endpoint, request, basic(*api.auth))
    assert status in (200, 400, 403), (endpoint.name, request, text)
    meta = json.loads(text)["meta"]
    assert meta["result_code"] == status
    assert meta["endpoint"]["name"] == endpoint.name
    assert meta["result_msg"]


@pytest.mark.check
@pytest.mark.parametrize("service", SERVICES)
async def test_hostile_values_are_clear_errors(api: Api, service: str) -> None:
    for endpoint in (endpoint for endpoint in ENDPOINTS if endpoint.name.startswith(f"{service}.")):
        unknown, known = required(endpoint, {}), required(endpoint, await known_ids(api, endpoint))
        for least in [unknown] if known == unknown else [unknown, known]:
            for request in spoilt(endpoint, least):
                await check(api, endpoint, request)
    await api.call("auth.login")


@pytest.mark.test
async def test_missing_fields_are_named(api: Api) -> None:
    for endpoint in ENDPOINTS:
        for name in endpoint.request.get("required", ()):
            request = required(endpoint, {})
            del request[name]
            for incomplete in (request, {**request, name: None}):
                answer = await api.call(endpoint.name, incomplete, expect=400)
                assert answer["meta"]["result_subcode"] == 12
                assert answer["meta"]["error_data"] == {"field": name}


@pytest.mark.test
@pytest.mark.parametrize("field", SUBCODES)
async def test_unknown_ids_are_named(api: Api, field: str) -> None:
    for endpoint in (endpoint for endpoint in ENDPOINTS if field in endpoint.request.get("required", ())):
        known = await known_ids(api, endpoint)
        request = required(endpoint, {**known, field: "no such thing"})
        if endpoint.name == "models.update_for_task":
            request["uri"] = "file:///m"
        answer = await api.call(endpoint.name, request, expect=400)
        not_queued = field == "task" and endpoint.name.startswith("queues.") and endpoint.name != "queues.add_task"
        assert answer["meta"]["result_subcode"] == (703 if not_queued else SUBCODES[field])
        assert "no such thing" in answer["meta"]["result_msg"]
