"""SDKs check answers by classes of their own, and end the user's script when one has another shape: none has."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.clients.sdk import SCRIPTS, python_with
from tests.harness import Api

Request = tuple[str, dict[str, Any]]

pytestmark = pytest.mark.anyio

ITEM = {"key": "k.k", "type": "float", "value": "0.9"}
WHEN = {"from_date": 1_700_000_000, "to_date": 1_700_007_000, "interval": 600}
#: What no SDK ever asks for, so that nobody noticed that its classes are wrong.
UNUSED = {"tasks.get_configuration_names", "events.get_vector_metrics_and_variants"}


@pytest.mark.parametrize(("sdk", "version"), [("1.0.5", "2.13"), ("1.6.4", "2.20"), ("1.18.0", "2.23")])
async def test_an_sdk_takes_every_answer(api: Api, tmp_path: Path, sdk: str, version: str) -> None:
    python = python_with(sdk)
    if isinstance(python, str):
        pytest.skip(python)
    answers = [(version, name, await api.call(name, request, version=version)) for name, request in await calls(api)]
    file = tmp_path / "answers.json"
    file.write_text(json.dumps(answers))
    command = [str(python), "-W", "ignore", str(SCRIPTS / "any_strict.py"), str(file)]
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    said = (await anyio.run_process(command, env=environment)).stdout
    seen = json.loads(said.splitlines()[-1])
    assert set(seen["refused"]) <= UNUSED, seen["refused"]
    assert seen["taken"] >= 70


async def calls(api: Api) -> list[Request]:
    """Calls of every service, about something of each kind that has what it can have."""

    async def make(service: str, **fields: Any) -> str:
        id: str = (await api.call(f"{service}.create", fields))["id"]
        return id

    project = await make("projects", name="p", description="d", tags=["a"])
    queue = await make("queues", name="q", tags=["a"], metadata=[ITEM])
    origin = await make("models", name="origin", uri="file:///o", metadata=[ITEM])
    param = {"section": "Args", "name": "a", "value": "1", "type": "int", "description": "d"}
    artifact = {"key": "art", "type": "custom", "uri": "http://x/y", "hash": "h", "content_size": 3, "timestamp": 1}
    task = await make(
        "tasks",
        name="t",
        type="training",
        project=project,
        tags=["x"],
        hyperparams={"Args": {"a": param}},
        configuration={"General": {"name": "General", "value": "x", "type": "t", "description": ""}},
        script={"binary": "python", "repository": "r", "entry_point": "e.py", "requirements": {"pip": "numpy"}},
        container={"image": "i", "arguments": "--x"},
        models={"input": [{"name": "in", "model": origin}]},
        execution={"artifacts": [{**artifact, "type_data": {"preview": "p", "content_type": "c"}}]},
    )
    bare = await make("tasks", name="bare", type="testing", parent=task)
    about: dict[str, Any] = {
        "labels": {"a": 1},
        "design": {"x": 1},
        "framework": "PyTorch",
        "parent": origin,
        "ready": False,
    }
    model = await make("models", name="m", uri="file:///m", task=task, project=project, metadata=[ITEM], **about)
    await api.call("tasks.started", {"task": task})
    put_out = {"task": task, "name": "out", "model": model, "type": "output"}
    await api.call("tasks.add_or_update_model", put_out)
    head = {"task": task, "iter": 1, "metric": "m", "variant": "v"}
    events: list[dict[str, Any]] = [
        {**head, "type": "training_stats_scalar", "value": 1.5},
        {**head, "type": "training_stats_vector", "values": [1, 2]},
        {**head, "type": "plot", "plot_str": "{}"},
        {**head, "type": "training_debug_image", "key": "k", "url": "http://files/i.png"},
        {"task": task, "type": "log", "msg": "hello", "level": "info"},
    ]
    await api.raw("POST", "/v2.23/events.add_batch", content="\n".join(map(json.dumps, events)))
    await api.call("workers.status_report", {"worker": "w:1", "timestamp": 1_700_000_000_000, "task": task})

    of_task, of_tasks, of_queue, several = {"task": task}, {"tasks": [task]}, {"queue": queue}, {"ids": [bare]}
    of_metric = {"task": task, "metric": "m", "variant": "v"}
    one: dict[str, Any] = {"task": bare, "force": True}
    item: dict[str, Any] = {"metadata": [{"key": "z", "type": "s", "value": "v"}]}
    documents: list[Request] = [("projects.get_by_id", {"project": project}), ("queues.get_by_id", of_queue)]
    documents += [("tasks.get_by_id", {"task": id}) for id in (task, bare)]
    documents += [("models.get_by_id", {"model": id}) for id in (model, origin)]
    for service in ("tasks", "models", "projects", "queues"):
        documents += [(f"{service}.get_all", {}), (f"{service}.get_all", {"only_fields": ["name"]})]
        documents.append((f"{service}.get_all_ex", {}))
    return [
        *documents,
        ("models.get_by_task_id", of_task),
        ("models.get_frameworks", {}),
        ("models.create", {"name": "n", "uri": "file:///n"}),
        ("models.edit", {"model": origin, **item}),
        ("models.update", {"model": origin, **item}),
        ("models.add_or_update_metadata", {"model": origin, **item}),
        ("models.delete_metadata", {"model": origin, "keys": ["z"]}),
        ("models.archive_many", {"ids": [origin]}),
        ("models.set_ready", {"model": model, "publish_task": False}),
        ("tasks.ping", of_task),
        ("tasks.get_types", {}),
        ("tasks.clone", of_task),
        ("tasks.edit", {**one, "name": "b"}),
        ("tasks.update", {"task": bare, "comment": "c"}),
        ("tasks.get_hyper_params", of_tasks),
        ("tasks.get_configurations", of_tasks),
        ("tasks.get_configuration_names", of_tasks),
        ("tasks.edit_hyper_params", {**one, "hyperparams": [{"section": "s", "name": "n", "value": "v"}]}),
        ("tasks.edit_configuration", {**one, "configuration": [{"name": "n", "value": "v"}]}),
        ("tasks.set_requirements", {"task": bare, "requirements": {"pip": "x"}}),
        ("tasks.add_or_update_artifacts", {**one, "artifacts": [{"key": "a", "type": "t"}]}),
        ("tasks.add_or_update_model", {"task": bare, "name": "n", "model": origin, "type": "input"}),
        ("tasks.enqueue", {"task": bare, **of_queue}),
        ("tasks.dequeue", {"task": bare}),
        ("tasks.started", one),
        *[(f"tasks.{end}", one) for end in ("stop", "stopped", "failed", "completed", "reset")],
        ("tasks.enqueue_many", {**several, **of_queue}),
        *[(f"tasks.{many}", several) for many in ("stop_many", "reset_many", "archive_many", "unarchive_many")],
        ("queues.update", {**of_queue, **item}),
        ("queues.get_default", {}),
        ("queues.get_num_entries", of_queue),
        ("queues.peek_task", of_queue),
        ("queues.get_next_task", of_queue),
        ("queues.get_queue_metrics", WHEN),
        ("projects.update", {"project": project, "description": "e"}),
        ("projects.get_unique_metric_variants", {}),
        ("projects.get_hyper_parameters", {"project": project}),
        ("projects.get_task_tags", {}),
        ("projects.get_task_parents", {}),
        ("projects.validate_delete", {"project": project}),
        ("workers.get_all", {}),
        ("workers.get_activity_report", WHEN),
        ("auth.login", {}),
        ("organization.get_tags", {}),
        ("events.add", events[0]),
        ("events.get_task_metrics", {**of_tasks, "event_type": "plot"}),
        ("events.get_task_log", of_task),
        *[("events.get_task_events", {**of_task, "event_type": event["type"]}) for event in events],
        ("events.get_task_plots", of_task),
        ("events.get_multi_task_plots", of_tasks),
        ("events.debug_images", {"metrics": [of_metric]}),
        ("events.get_debug_image_sample", of_metric),
        ("events.get_vector_metrics_and_variants", of_task),
        ("events.vector_metrics_iter_histogram", of_metric),
        ("events.scalar_metrics_iter_histogram", of_task),
        ("events.multi_task_scalar_metrics_iter_histogram", of_tasks),
        ("events.get_scalar_metrics_and_variants", of_task),
        ("events.get_scalar_metric_data", of_metric),
        ("events.get_task_latest_scalar_values", of_task),
    ]
