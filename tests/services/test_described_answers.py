"""What the pages are answered, by the types that `/openapi.json` describes."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import jsonschema_rs
import pytest

from apiserver.common import resources
from apiserver.rpc.openapi import openapi
from apiserver.rpc.schema import load_schemas
from tests.harness import Api

REPORTED = [
    *({"type": "training_stats_scalar", "metric": "loss", "variant": "train", "iter": n, "value": 1} for n in range(3)),
    {"type": "training_stats_scalar", "metric": "broken", "variant": "train", "iter": 0, "value": "NaN"},
    {"type": "training_stats_scalar", "metric": "Summary", "variant": "best", "iter": -(2**31), "value": 0.5},
    {"type": "training_stats_scalar", "metric": "Summary", "variant": "none", "iter": -(2**31), "value": "NaN"},
    {"type": "plot", "metric": "ROC", "variant": "val", "iter": 0, "plot_str": "{}"},
]

pytestmark = pytest.mark.anyio

#: Questions by endpoint; names in capitals stand for what is there.
QUESTIONS: list[tuple[str, dict[str, Any]]] = [
    ("auth.create_credentials", {"label": "mine", "scopes": ["read"]}),
    ("auth.get_credentials", {}),
    ("events.get_multi_task_metrics", {"tasks": ["TASK"], "event_type": "plot"}),
    ("events.get_multi_task_plots", {"tasks": ["TASK"], "no_scroll": True}),
    ("events.get_plot_sample", {"task": "TASK", "metric": "ROC"}),
    ("events.get_scalar_metrics_and_variants", {"task": "TASK"}),
    ("events.get_task_plots", {"task": "TASK", "no_scroll": True}),
    ("events.get_task_single_value_metrics", {"tasks": ["TASK"]}),
    ("login.supported_modes", {}),
    ("models.get_all", {}),
    ("models.get_all_ex", {}),
    ("models.get_all_ex", {"only_fields": ["name", "project.name", "task.project", "parent.name", "user.name"]}),
    ("models.archive_many", {"ids": ["MODEL", "nothing"]}),
    ("organization.get_tags", {"include_system": True}),
    ("projects.get_all", {}),
    ("projects.get_all_ex", {"include_stats": True, "search_hidden": True, "check_own_contents": True}),
    ("projects.get_by_id", {"project": "PROJECT"}),
    ("projects.get_hyper_parameters", {"project": "PROJECT"}),
    ("projects.get_task_tags", {"include_system": True}),
    ("projects.get_unique_metric_variants", {"project": "PROJECT"}),
    ("queues.get_all", {}),
    ("reports.get_all_ex", {"only_fields": ["name", "project.name", "user.name"]}),
    ("reports.get_all_ex", {}),
    ("tasks.get_all", {"search_hidden": True}),
    ("tasks.get_all_ex", {"search_hidden": True}),
    ("tasks.get_all_ex", {"only_fields": ["project.name", "parent.name", "parent.project", "execution.queue.name"]}),
    ("tasks.get_all_ex", {"only_fields": ["models.input.name", "models.input.model.uri", "models.output"]}),
    ("tasks.get_by_id_ex", {"id": ["TASK"]}),
    ("tasks.clone", {"task": "TASK"}),
    ("tasks.update_tags", {"ids": ["TASK"], "add_tags": ["a"]}),
    ("tasks.edit_hyper_params", {"task": "DRAFT", "hyperparams": [{"section": "Args", "name": "lr", "value": "1"}]}),
    ("tasks.delete_hyper_params", {"task": "DRAFT", "hyperparams": [{"section": "Args", "name": "lr"}]}),
    ("tasks.stop_many", {"ids": ["TASK", "nothing"]}),
    ("users.get_all", {}),
    ("users.get_current_user", {}),
    ("users.get_sessions", {}),
]


@cache
def _described() -> dict[str, Any]:
    schemas = resources.path("schemas")
    document: dict[str, Any] = openapi(load_schemas(schemas, schemas / resources.PARSED))
    return document


def _answer_of(endpoint: str) -> jsonschema_rs.Validator:
    answer = _described()["paths"][f"/{endpoint}"]["post"]["responses"]["200"]["content"]["application/json"]["schema"]
    return jsonschema_rs.validator_for(answer["properties"]["data"])


async def _things(api: Api) -> dict[str, str]:
    project = (await api.call("projects.create", {"name": "a/b"}))["id"]
    inside = {"project": project, "name": "t"}
    first = (await api.call("models.create", {"name": "m", "uri": "file:///m"}))["id"]
    parent = (await api.call("tasks.create", {**inside, "type": "training"}))["id"]
    inputs = {"models": {"input": [{"name": "weights", "model": first}, {"name": "gone", "model": "deleted"}]}}
    draft = (await api.call("tasks.create", {**inside, **inputs, "type": "training", "parent": parent}))["id"]
    await api.call("tasks.edit_hyper_params", {"task": draft, "hyperparams": [{"section": "Args", "name": "batch"}]})
    task = (await api.call("tasks.clone", {"task": draft, "new_task_parent": parent}))["id"]
    queue = (await api.call("queues.create", {"name": "q"}))["id"]
    await api.call("tasks.enqueue", {"task": parent, "queue": queue})
    await api.call("tasks.started", {"task": task})
    body = "\n".join(json.dumps({**event, "task": task}) for event in REPORTED)
    await api.raw("POST", "/events.add_batch", content=body, headers={"content-type": "application/json-lines"})
    made = {**inside, "uri": "file:///n", "task": task, "parent": first, "labels": {"cat": 1}, "ready": False}
    model = (await api.call("models.create", made))["id"]
    await api.call("tasks.add_or_update_model", {"task": task, "name": "out", "type": "output", "model": model})
    await api.call("reports.create", {"name": "r", "project": project})
    return {"PROJECT": project, "MODEL": model, "DRAFT": draft, "TASK": task}


@pytest.mark.test
async def test_they_are_as_described(api: Api) -> None:
    things = await _things(api)
    wrong: dict[str, str] = {}
    for endpoint, question in QUESTIONS:
        body = json.dumps(question)
        for name, id in things.items():
            body = body.replace(f'"{name}"', f'"{id}"')
        errors = _answer_of(endpoint).iter_errors(await api.call(endpoint, json.loads(body)))
        wrong |= {f"{endpoint} {body}: {error.instance_path}": error.message for error in errors}
    assert wrong == {}
