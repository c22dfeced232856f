"""pipelines.*: starting runs, and deleting all but some."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness import Api
from tests.services.tasks.calls import get, make, refused

pytestmark = pytest.mark.anyio


@pytest.fixture
async def project(api: Api) -> str:
    created: str = (await api.call("projects.create", {"name": "a/pipe (1)"}))["id"]
    return created


@pytest.fixture
async def run(api: Api, project: str) -> str:
    """A run of the pipeline."""
    params = {"Args": {"lr": {"value": "1"}, "kept": {"value": "k"}}, "properties": {"version": {"value": "2"}}}
    fields: dict[str, Any] = {"type": "controller", "project": project, "system_tags": ["pipeline"]}
    return await make(api, name="pipe (1)", hyperparams=params, **fields)


async def test_a_pipeline_runs_once_more_with_other_arguments(api: Api, project: str, run: str) -> None:
    args = [{"name": "lr", "value": "0.1"}, {"name": "a.b", "value": "x"}, {"name": "none"}]
    started = await api.call("pipelines.start_pipeline", {"task": run, "args": args})

    assert started == {"pipeline": started["pipeline"], "enqueued": True}
    new = await get(api, started["pipeline"])
    assert (new["name"], new["status"], new["project"], new["type"]) == ("pipe (1) #1", "queued", project, "controller")
    values = {name: item["value"] for name, item in new["hyperparams"]["Args"].items()}
    assert values == {"lr": "0.1", "kept": "k", "a.b": "x", "none": ""}
    assert new["hyperparams"]["Args"]["a.b"] == {"section": "Args", "name": "a.b", "value": "x"}
    assert new["hyperparams"]["properties"]["version"]["value"] == "2"

    again = await api.call("pipelines.start_pipeline", {"task": run})
    assert (await get(api, again["pipeline"]))["name"] == "pipe (1) #2"


async def test_whether_workers_watch_the_queue_is_told_when_asked(api: Api, run: str) -> None:
    queue = (await api.call("queues.create", {"name": "q"}))["id"]
    start = {"task": run, "queue": queue, "verify_watched_queue": True}
    assert (await api.call("pipelines.start_pipeline", start))["queue_watched"] is False
    await api.call("workers.register", {"worker": "w", "queues": [queue]})
    assert (await api.call("pipelines.start_pipeline", start))["queue_watched"] is True


async def test_a_run_goes_under_a_new_name(api: Api, run: str) -> None:
    new = {"task": run, "new_project_name": "b/c", "new_pipeline_name": "other"}
    assert await api.call("pipelines.check_new_run", new) == {}
    started = await api.call("pipelines.start_pipeline", {**new, "new_pipeline_version": "3.1", "new_pipeline_run": 7})
    project = started["new_project"]
    assert project["name"] == "b/c/.pipelines/other"
    assert await api.call("pipelines.check_new_run", new) == {"existing_project": project}
    spare = {**new, "new_project_name": "/b//c/", "new_pipeline_name": " other "}
    assert await api.call("pipelines.check_new_run", spare) == {"existing_project": project}
    task = await get(api, started["pipeline"])
    assert (task["name"], task["project"], task["status"]) == ("other #7", project["id"], "queued")
    assert task["hyperparams"]["properties"]["version"]["value"] == "3.1"
    made = (await api.call("projects.get_by_id", {"project": project["id"]}))["project"]
    assert made["system_tags"] == ["pipeline", "hidden"]
    for name in ("a/b", " "):
        assert await refused(api, "pipelines.check_new_run", {**new, "new_pipeline_name": name}) == (400, 12)
    assert await refused(api, "pipelines.check_new_run", {**new, "new_project_name": "/"}) == (400, 407)
    assert await refused(api, "pipelines.check_new_run", {**new, "task": "none"}) == (400, 101)


async def test_what_cannot_be_started_makes_no_task(api: Api, run: str) -> None:
    assert await refused(api, "pipelines.start_pipeline", {"task": "none"}) == (400, 101)
    assert await refused(api, "pipelines.start_pipeline", {"task": run, "queue": "none"}) == (400, 701)
    assert [task["id"] for task in (await api.call("tasks.get_all"))["tasks"]] == [run]


@pytest.mark.test
async def test_runs_are_deleted_with_their_steps_but_one_stays(api: Api, project: str, run: str) -> None:
    runs = [(await api.call("pipelines.start_pipeline", {"task": run}))["pipeline"] for _ in range(2)]
    step = await make(api, parent=runs[0], project=project)
    every = {"project": project, "ids": [run, *runs]}
    assert await refused(api, "pipelines.delete_runs", every) == (400, 160)

    deleted = await api.call("pipelines.delete_runs", {"project": project, "ids": [*runs, step, "none"]})

    assert [(item["id"], item["deleted"]) for item in deleted["succeeded"]] == [(id, True) for id in runs]
    assert deleted["failed"] == []
    assert [task["id"] for task in (await api.call("tasks.get_all"))["tasks"]] == [run]
    assert await refused(api, "pipelines.delete_runs", {"project": "none", "ids": []}) == (400, 160)
