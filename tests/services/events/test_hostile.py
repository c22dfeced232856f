"""Every reading endpoint of events.* against every kind of bad input: a clear error, never a 500."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apiserver.rpc.schema import EndpointVersion
from tests.harness import Api, basic
from tests.services import generated
from tests.services.events.conftest import Add
from tests.services.events.test_navigate import image, plot
from tests.services.events.test_scalars import scalar
from tests.services.test_endpoints import required, spoilt

pytestmark = pytest.mark.anyio

ENDPOINTS = [
    endpoint
    for endpoint in generated.ENDPOINTS
    if endpoint.name.startswith("events.") and not endpoint.name.startswith(("events.add", "events.delete"))
]


@pytest.mark.test
@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda one: f"{one.name} {one.version}")
async def test_hostile_values_are_answered(api: Api, add: Add, task: str, endpoint: EndpointVersion) -> None:
    await add(scalar(task, 1, 1), image(task, 1), plot(task, 1))
    known: dict[str, Any] = {
        "task": task,
        "tasks": [task],
        "groups": [{"name": "g", "tasks": [task]}],
        "metrics": [{"task": task, "metric": "m", "variants": ["v"]}],
    }
    least = await api.raw("POST", f"/v{endpoint.version}/{endpoint.name}", json=required(endpoint, known))
    assert least.status_code == (400 if ".next_" in endpoint.name else 200), least.text  # "next" needs a scroll id
    for request in spoilt(endpoint, required(endpoint, known)):
        status, text = await generated.ask(api, endpoint, request, basic(*api.auth))
        assert status in (200, 400), (request, text)
        if status == 400:
            assert json.loads(text)["meta"]["result_msg"], request
