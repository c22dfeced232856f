"""The four vendors' calls in `/openapi.json`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from fastapi.openapi.models import OpenAPI

from tests.harness import Api
from tests.vendors.reported import Reported

pytestmark = pytest.mark.anyio

METRICS = "/v2/{project_id}/training-jobs/{training_job_id}/metrics/{task_id}"
LOGS = "/v2/{project_id}/training-jobs/{training_job_id}/tasks/{task_id}/logs/preview"
BASETEN = "/v1/training_projects/{training_project_id}/jobs/{training_job_id}/metrics"
PAI = "/api/v1/jobs/{JobId}/metrics"
#: Of each: its method, its parameters, of which those with a star are required, and the schema of its answer.
CALLS = {
    METRICS: ("get", {"project_id*", "training_job_id*", "task_id*"}, "modelarts_metrics"),
    LOGS: ("get", {"project_id*", "training_job_id*", "task_id*"}, "modelarts_log_preview"),
    BASETEN: ("post", {"training_project_id*", "training_job_id*"}, "baseten_metrics"),
    PAI: ("get", {"JobId*", "StartTime", "EndTime", "TimeStep", "MetricType*", "Token"}, "pai_metrics"),
}
METRIC_TYPES = [
    "GpuCoreUsage",
    "GpuMemoryUsage",
    "CpuCoreUsage",
    "MemoryUsage",
    "NetworkInputRate",
    "NetworkOutputRate",
    "DiskReadRate",
    "DiskWriteRate",
]


@pytest.fixture
async def document(api: Api) -> dict[str, Any]:
    described: dict[str, Any] = (await api.raw("GET", "/openapi.json", auth=None)).json()
    return described


def operation(document: dict[str, Any], path: str) -> dict[str, Any]:
    found: dict[str, Any] = document["paths"][path][CALLS[path][0]]
    return found


def whole(document: dict[str, Any], schema: Any) -> Any:
    """The schema with all that it refers to in place."""
    if isinstance(schema, list):
        return [whole(document, one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        found: Any = document
        for step in schema["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        return whole(document, {**found, **{key: of for key, of in schema.items() if key != "$ref"}})
    return {key: whole(document, of) for key, of in schema.items()}


def answer_of(document: dict[str, Any], path: str, status: str = "200") -> dict[str, Any]:
    """The schema of an answer."""
    content = operation(document, path)["responses"][status]["content"]["application/json"]
    schema: dict[str, Any] = whole(document, content["schema"])
    return schema


def fields(schema: dict[str, Any], place: str = "") -> Iterator[str]:
    """The place of each field that has to be there, and of what it may be beside its type."""
    for name in schema.get("required", ()):
        yield f"{place}.{name}"
    for name, inner in schema.get("properties", {}).items():
        yield from fields(inner, f"{place}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from fields(schema[key], f"{place}.{key}")
    for one in schema.get("anyOf", ()):
        yield from fields(one, place)


@pytest.mark.test
async def test_it_is_openapi_with_schemas_of_2020_12(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1.")
    OpenAPI.model_validate(document)
    operations = [one for path in document["paths"].values() for one in path.values()]
    assert len({one["operationId"] for one in operations}) == len(operations)
    for schema in document["components"]["schemas"].values():
        jsonschema_rs.meta.validate(schema)
    known = document["components"]["securitySchemes"].keys()
    assert all(requirement.keys() <= known for one in operations for requirement in one.get("security", ()))


async def test_parameters_are_the_documents(document: dict[str, Any]) -> None:
    for path, (_, names, _) in CALLS.items():
        parameters = operation(document, path)["parameters"]
        assert {one["name"] + "*" * one["required"] for one in parameters} == names, path
        for one in parameters:
            assert one["in"] == ("path" if f"{{{one['name']}" in path else "query")
            jsonschema_rs.meta.validate(whole(document, one["schema"]))
    types = {one["name"]: whole(document, one["schema"]) for one in operation(document, PAI)["parameters"]}
    assert types["MetricType"]["enum"] == METRIC_TYPES
    assert types["TimeStep"]["default"] == "5"
    body = whole(document, operation(document, BASETEN)["requestBody"]["content"]["application/json"]["schema"])
    for name in ("start_epoch_millis", "end_epoch_millis"):
        assert body["properties"][name]["anyOf"] == [{"type": "integer"}, {"type": "null"}]
    assert "required" not in body


async def test_answers_have_the_documents_fields(document: dict[str, Any]) -> None:
    for path, (_, _, name) in CALLS.items():
        read = json.loads((Path(__file__).parent / "schemas" / f"{name}.json").read_text())
        expected = set(fields(whole(read, read)))
        assert len(expected) >= 3
        assert set(fields(answer_of(document, path))) == expected, path


@pytest.mark.test
async def test_answers_are_what_it_says(job: Reported) -> None:
    document = (await job.api.raw("GET", "/openapi.json")).json()
    values = {
        **dict.fromkeys(("project_id", "training_project_id"), job.project),
        **dict.fromkeys(("training_job_id", "JobId"), job.id),
        "task_id": "worker-0",
    }
    for path, (method, _, _) in CALLS.items():
        options: dict[str, Any] = {"params": {"MetricType": "CpuCoreUsage"}} if path == PAI else {}
        options |= {"json": {}} if path == BASETEN else {}
        response = await job.api.raw(method.upper(), path.format(**values), **options)
        assert response.status_code == 200, path
        jsonschema_rs.validate(answer_of(document, path), response.json(), validate_formats=True)
        refused = await job.api.raw(method.upper(), path.format(**values), auth=None, **options)
        assert refused.status_code == 401
        jsonschema_rs.validate(answer_of(document, path, "default"), refused.json())


async def test_the_servers_own_calls_are_still_there(document: dict[str, Any]) -> None:
    assert "/events.add_batch" in document["paths"]
    assert {"basic", "bearer", "cookie"} <= document["components"]["securitySchemes"].keys()
    assert "meta" in document["components"]["schemas"]
