"""Clones: the inputs of a task, without what it put out."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness import Api
from tests.services.tasks.calls import get, make, refused, report

pytestmark = pytest.mark.anyio


@pytest.fixture
async def original(api: Api) -> str:
    """A task that has run and put something out."""
    model = (await api.call("models.create", {"name": "m", "uri": "file:///m"}))["id"]
    artifacts = [{"key": "in", "type": "t", "mode": "input"}, {"key": "out", "type": "t"}]
    task = await make(
        api,
        type="testing",
        comment="c",
        tags=["t"],
        system_tags=["development", "archived", "kept"],
        project=(await api.call("projects.create", {"name": "p"}))["id"],
        script={"repository": "r"},
        execution={"artifacts": artifacts, "framework": "torch", "model_labels": {"a": 1}},
        hyperparams={"Args": {"l.r": {"value": "1"}}},
        configuration={"c.c": {"value": "v"}},
        container={"image": "i"},
        runtime={"host": "h"},
        output_dest="s3://b",
    )
    for kind in ("input", "output"):
        await api.call("tasks.add_or_update_model", {"task": task, "name": kind, "model": model, "type": kind})
    await report(api, task)
    await api.call("tasks.enqueue", {"task": task, "queue_name": "q"})
    await api.call("tasks.started", {"task": task})
    await api.call("tasks.completed", {"task": task})
    return task


async def clone(api: Api, original: str, **fields: Any) -> dict[str, Any]:
    return await get(api, (await api.call("tasks.clone", {"task": original, **fields}))["id"])


@pytest.mark.test
async def test_a_clone_has_the_inputs_alone(api: Api, original: str) -> None:
    old, new = await get(api, original), await clone(api, original)

    assert new["id"] != original
    for field in ("name", "type", "comment", "tags", "project", "script", "hyperparams", "configuration", "container"):
        assert new[field] == old[field]
    assert new["status"] == "created"
    assert new["parent"] == original
    assert (await clone(api, new["id"]))["parent"] == original
    assert new["system_tags"] == ["kept"]
    assert new["output"] == {"destination": "s3://b"}
    assert new["runtime"] == new["last_metrics"] == {}
    assert new["last_iteration"] == 0
    assert new["models"] == {"input": old["models"]["input"], "output": []}
    assert [artifact["key"] for artifact in new["execution"]["artifacts"]] == ["in"]
    assert (new["execution"]["framework"], new["execution"]["model_labels"]) == ("torch", {"a": 1})
    assert "queue" not in new["execution"]
    assert not new.keys() & {"started", "completed", "status_changed", "active_duration", "published", "last_worker"}
    assert (await api.call("events.get_task_events", {"task": new["id"]}))["total"] == 0


async def test_what_is_given_takes_the_place_of_the_original(api: Api, original: str) -> None:
    parent = await make(api)
    project = (await api.call("projects.create", {"name": "other"}))["id"]
    new = await clone(
        api,
        original,
        new_task_name="new",
        new_task_comment="nc",
        new_task_parent=parent,
        new_task_project=project,
        new_task_tags=["nt"],
        new_task_system_tags=["development"],
        new_task_hyperparams={"$": {".": {"value": "2"}}},
        new_task_configuration={"d.d": {"value": "w"}},
        new_task_container={"image": "ni"},
        execution_overrides={"framework": "jax", "artifacts": [{"key": "x", "type": "t", "mode": "input"}]},
    )
    assert (new["name"], new["comment"], new["parent"], new["project"]) == ("new", "nc", parent, project)
    assert (new["tags"], new["system_tags"]) == (["nt"], ["development"])
    assert new["hyperparams"] == {"$": {".": {"section": "$", "name": ".", "value": "2"}}}
    assert new["configuration"] == {"d.d": {"name": "d.d", "value": "w"}}
    assert new["container"] == {"image": "ni"}
    assert (new["execution"]["framework"], new["execution"]["model_labels"]) == ("jax", {"a": 1})
    assert [artifact["key"] for artifact in new["execution"]["artifacts"]] == ["x"]


async def test_a_clone_may_go_into_a_new_project(api: Api, original: str) -> None:
    answer = await api.call("tasks.clone", {"task": original, "new_project_name": "a/b"})
    assert answer["new_project"]["name"] == "a/b"
    assert (await get(api, answer["id"]))["project"] == answer["new_project"]["id"]


async def test_a_clone_may_take_other_models_in(api: Api, original: str) -> None:
    model = (await api.call("models.create", {"name": "other", "uri": "file:///m"}))["id"]
    new = await clone(api, original, new_task_input_models=[{"name": "n", "model": model}])
    assert [(item["name"], item["model"]) for item in new["models"]["input"]] == [("n", model)]
    new = await clone(api, original, execution_overrides={"model": model})
    assert [item["model"] for item in new["models"]["input"]] == [model]


async def test_a_clones_own_models_are_checked_and_the_rest_when_asked(api: Api, original: str) -> None:
    none = {"name": "n", "model": "none"}
    assert await refused(api, "tasks.clone", {"task": original, "new_task_input_models": [none]}) == (400, 201)
    assert await refused(api, "tasks.clone", {"task": original, "execution_overrides": {"model": "none"}}) == (400, 201)
    await clone(api, original, validate_references=True)
    await api.call("tasks.add_or_update_model", {"task": original, "type": "input", "name": "n", "model": "none"})
    await clone(api, original)
    assert await refused(api, "tasks.clone", {"task": original, "validate_references": True}) == (400, 201)


async def test_what_is_not_there_is_an_error(api: Api, original: str) -> None:
    assert await refused(api, "tasks.clone", {"task": "none"}) == (400, 101)
    assert await refused(api, "tasks.clone", {"task": original, "new_task_project": "none"}) == (400, 401)
    assert await refused(api, "tasks.clone", {"task": original, "new_task_parent": "none"}) == (400, 101)
