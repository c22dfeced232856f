"""Every call of tasks and projects: what is required is missed, and types are checked, with the field's name."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.rpc.schema import EndpointVersion
from tests.harness import Api
from tests.services.generated import ENDPOINTS

pytestmark = pytest.mark.anyio

#: A value of each type, and one that is of no type a request can have.
_SAMPLES = {"string": "x", "array": [], "object": {}, "integer": 1, "boolean": True}
_WRONG = {"string": 5, "array": "x", "object": "x", "integer": "x", "boolean": "x", "number": "x"}

#: Calls that say what there is in a project: in one that is not there, nothing.
_LISTS = ("projects.get_hyper_parameters", "projects.get_model_metadata_keys")
#: Subcodes of what calls check before the task.
_CHECKED_FIRST = {"tasks.add_or_update_model": (201,)}


def described() -> list[EndpointVersion]:
    return [endpoint for endpoint in ENDPOINTS if endpoint.name.startswith(("tasks.", "projects."))]


def sample(field: dict[str, Any]) -> Any:
    return field["enum"][0] if "enum" in field else _SAMPLES[field.get("type", "string")]


@pytest.mark.test
async def test_missing_and_mistyped_fields_are_named(api: Api) -> None:
    for endpoint in described():
        fields = endpoint.request.get("properties", {})
        required = endpoint.request.get("required", [])
        whole = {name: sample(fields[name]) for name in required}
        bad = [(name, {key: value for key, value in whole.items() if key != name}) for name in required]
        bad += [(name, {**whole, name: _WRONG[field["type"]]}) for name, field in fields.items() if "type" in field]
        for name, request in bad:
            answer = await api.call(endpoint.name, request, version=str(endpoint.version), expect=400)
            meta = answer["meta"]
            assert meta["result_subcode"] == 12, (endpoint.name, request, meta)
            assert meta["error_data"]["field"] == name, (endpoint.name, request, meta)


@pytest.mark.test
async def test_an_unknown_task_or_project_is_an_error_whatever_is_asked_of_it(api: Api) -> None:
    for endpoint in described():
        fields, required = endpoint.request.get("properties", {}), endpoint.request.get("required", [])
        kind, subcode = ("task", 101) if endpoint.name.startswith("tasks.") else ("project", 401)
        if kind in required and endpoint.name not in _LISTS:
            request = {name: sample(fields[name]) for name in required}
            meta = (await api.call(endpoint.name, {**request, kind: "none"}, expect=400))["meta"]
            assert meta["result_subcode"] in (subcode, *_CHECKED_FIRST.get(endpoint.name, ())), (endpoint.name, meta)
