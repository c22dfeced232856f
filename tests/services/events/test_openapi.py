"""Every version of every call of events.*, as /openapi.json describes it: never a 500, and answers are as it says.

`EVENTS_EXAMPLES=300 pytest tests/services/events/test_openapi.py` looks longer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import Phase, given, settings

from apiserver.common import resources
from apiserver.rpc.openapi import openapi
from apiserver.rpc.schema import load_schemas
from tests.chance import examples
from tests.harness import served
from tests.services.events.test_navigate import image, plot
from tests.services.events.test_read import event
from tests.services.events.test_scalars import scalar

#: What these fields are given, so that most requests lead somewhere. Names in capitals stand for what is on the server.
KNOWN = {
    "task": ["TASK", "MODEL"],
    "tasks": ["TASK"],
    "model": ["MODEL"],
    "metric": ["m", "nothing"],
    "variant": ["v", "nothing"],
    "variants": ["v", "w"],
    "scroll_id": ["IMAGES", "PLOTS", "nothing"],
}
DELETES = ("events.delete", "events.clear_task_log")


def _narrow(schema: Any) -> None:
    """Let the fields of a request be what is KNOWN."""
    if isinstance(schema, list):
        for one in schema:
            _narrow(one)
    elif isinstance(schema, dict):
        for name, field in schema.get("properties", {}).items():
            texts = field.get("items", field)
            if name in KNOWN and texts.get("type") == "string":
                texts["enum"] = KNOWN[name]
        for one in schema.values():
            _narrow(one)


def _operations() -> dict[str, Any]:
    schemas = resources.path("schemas")
    document = json.loads(json.dumps(openapi(load_schemas(schemas, schemas / resources.PARSED))))
    calls = {path: call for path, call in document["paths"].items() if path.startswith("/v") and "/events." in path}
    calls.pop("/v2.1/events.add_batch")  # its bodies are no JSON
    for call in calls.values():
        _narrow(call["post"]["requestBody"])
    schema: Any = schemathesis.openapi.from_dict({**document, "paths": calls})
    operations = [found.ok() for found in schema.get_all_operations()]
    return {operation.path: operation for operation in operations}


OPERATIONS = _operations()


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with served(tmp_path_factory.mktemp("openapi") / "data") as server, server.client() as client:
        yield client


def _post(client: httpx.Client, path: str, body: Any) -> Any:
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


@pytest.fixture(scope="module")
def known(client: httpx.Client) -> dict[str, str]:
    """What the names in capitals stand for."""
    task = _post(client, "/tasks.create", {"name": "t", "type": "training"})["id"]
    model = _post(client, "/models.create", {"name": "m", "uri": "file:///m", "ready": False})["id"]
    _fill(client, task, model)
    image_of = {"task": task, "metric": "m", "variant": "v", "navigate_current_metric": False}
    images = _post(client, "/events.get_debug_image_sample", image_of)["scroll_id"]
    plots = _post(client, "/events.get_plot_sample", {"task": task, "metric": "m"})["scroll_id"]
    return {"TASK": task, "MODEL": model, "IMAGES": images, "PLOTS": plots}


def _fill(client: httpx.Client, task: str, model: str) -> None:
    lines = [
        *(scalar(task, n, value, variant=v) for n, value in enumerate((1, "NaN", 2.5)) for v in "vw"),
        scalar(task, -(2**31), 0.5, x_axis_label="steps"),
        *(line for n in range(3) for line in (image(task, n, "m", "v"), plot(task, n, "m", "v"))),
        *(event("training_stats_vector", task, n, metric="m", variant="v", values=[1, 2.5]) for n in range(2)),
    ]
    lines += [{**line, "task": model, "model_event": True} for line in lines]
    lines += [event("log", task, n, metric="m", msg=f"line {n}", level="info") for n in range(5)]
    body = "\n".join(map(json.dumps, lines))
    answer = client.post("/events.add_batch", content=body, headers={"content-type": "application/json-lines"})
    assert answer.json()["data"]["added"] == len(lines)


@pytest.mark.check
@pytest.mark.parametrize("path", OPERATIONS)
def test_answers_are_as_they_are_described(client: httpx.Client, known: dict[str, str], path: str) -> None:
    operation = OPERATIONS[path]

    @settings(examples(5), phases=[Phase.generate])
    @given(operation.as_strategy())
    def check(case: Any) -> None:
        body = json.dumps(case.body if isinstance(case.body, dict) else {})
        for name, value in known.items():
            body = body.replace(f'"{name}"', f'"{value}"')
        answer = client.post(path, content=body)
        assert answer.status_code in (200, 400), answer.text
        operation.validate_response(answer)

    check()
    if any(name in path for name in DELETES):
        _fill(client, known["TASK"], known["MODEL"])
