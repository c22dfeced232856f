"""tasks.import_run and get_imported_runs: tasks whose ids are made from what a run is called elsewhere."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apiserver.common.times import from_now
from apiserver.services.access import credentials
from apiserver.stores.documents.query import Update
from tests.harness import Api
from tests.services.tasks.calls import get, make, refused, report

pytestmark = pytest.mark.anyio

SOURCE = "tensorboard runs/ä.b$"
RUN: dict[str, Any] = {"source": SOURCE, "name": "a", "project_name": "old/runs"}


async def test_a_run_is_made_once_and_then_brought_up_to_date(api: Api) -> None:
    times = {"started": "2024-02-03T04:05:06+01:00", "completed": "2024-02-03T04:06:06Z"}
    made = await api.call("tasks.import_run", {**RUN, "status": "in_progress"})
    id = made["id"]
    assert made == {"id": id, "made": True}
    params = {"Args": {"l.r": {"value": "1"}}}
    more = {"status": "failed", **times, "tags": ["t"], "position": "17", "hyperparams": params}
    assert await api.call("tasks.import_run", {**RUN, **more}) == {"id": id, "made": False}
    found = await get(api, id)
    assert (found["name"], found["type"], found["status"], found["tags"]) == ("a", "training", "failed", ["t"])
    assert (found["started"], found["active_duration"]) == ("2024-02-03T03:05:06.000000+00:00", 3660)
    assert found["completed"] == found["status_changed"] == "2024-02-03T04:06:06.000000+00:00"
    assert found["runtime"] == {"imported_from": SOURCE, "import_position": "17"}
    assert found["hyperparams"]["Args"]["l.r"]["value"] == "1"
    project = (await api.call("projects.get_by_id", {"project": found["project"]}))["project"]
    assert project["name"] == "old/runs"

    again = {"runtime": {"x.y": "z"}, "hyperparams": {"Args": {"n": {"value": "2"}}}}
    await api.call("tasks.import_run", {"source": SOURCE, **again})
    assert (await get(api, id))["runtime"] == {**found["runtime"], "x.y": "z"}
    assert (await get(api, id))["hyperparams"]["Args"].keys() == {"l.r", "n"}
    runs = (await api.call("tasks.get_imported_runs", {"sources": ["another", SOURCE]}))["runs"]
    assert runs == [{"source": SOURCE, "task": id, "position": "17"}]


@pytest.mark.own_api
async def test_a_task_belongs_to_the_user_of_that_name(api: Api) -> None:
    async def owner_of(name: str, **caller: Any) -> str:
        run = {**RUN, "source": f"{name} {caller}", "user_name": name}
        owner: str = (await get(api, (await api.call("tasks.import_run", run, **caller))["id"]))["user"]
        return owner

    company = api.company
    users = [(company, "ann"), (company, "bob"), ("another company", "eve")]
    (ann, _), (bob, key), *_ = [await credentials.create_user(api.backend.documents, *user) for user in users]
    admin = await owner_of("nobody")
    assert await owner_of("ann") == ann["id"]
    assert await owner_of("eve") == admin
    assert await owner_of("ann", auth=(key.key, key.secret)) == bob["id"]


async def test_a_guess_is_no_status_of_a_task_that_has_ended(api: Api) -> None:
    async def status(**change: Any) -> str:
        found = await get(api, (await api.call("tasks.import_run", {**RUN, **change}))["id"])
        return str(found["status"])

    assert await status(guessed_status="in_progress") == "in_progress"
    assert await status() == "in_progress"
    assert await status(guessed_status="completed") == "completed"
    ended = "2024-02-03T04:06:06.000000+00:00"
    assert await status(status="failed", completed=ended) == "failed"
    assert await status(guessed_status="in_progress") == "failed"
    assert await status(guessed_status="stopped", name="b") == "failed"
    assert await status(guessed_status="stopped", status="in_progress") == "in_progress"
    assert await status(guessed_status="stopped", completed=ended) == "stopped"
    id = (await api.call("tasks.import_run", RUN))["id"]
    assert ((await get(api, id))["status_changed"], (await get(api, id))["name"]) == (ended, "a")


async def imported(api: Api, id: str) -> str | None:
    """Since when retention counts the age of a task; None: since it was made."""
    found: str | None = (await api.backend.documents.find("tasks", {"id": id}))[0].get("imported")
    return found


async def test_the_server_notes_when_a_task_is_made_and_when_events_come(api: Api) -> None:
    before = from_now(0)
    id = (await api.call("tasks.import_run", {**RUN, "created": "2020-01-01T00:00:00Z"}))["id"]
    made = await imported(api, id)
    assert made is not None
    assert made >= before
    await report(api, id)
    await api.call("tasks.reset", {"task": id, "force": True})
    assert await imported(api, id) == made, "it is noted once an hour"
    assert "imported" not in await get(api, id)

    old = "2026-01-01T00:00:00.000000+00:00"
    await api.backend.documents.update("tasks", {"id": id}, Update(set={"imported": old}))
    for change in ({}, {"position": "17"}, {"created": "2099-01-01T00:00:00Z", "status": "completed"}):
        await api.call("tasks.import_run", {**RUN, **change})
        await api.call("tasks.edit", {"task": id, "name": "another", "force": True})
        assert await imported(api, id) == old
    await api.call("events.delete_for_task", {"task": id})
    assert await imported(api, id) == old
    await report(api, id)
    later = await imported(api, id)
    assert later is not None
    assert later >= made


async def test_it_is_told_when_events_were_deleted(api: Api) -> None:
    async def deleted() -> str | None:
        (run,) = (await api.call("tasks.get_imported_runs", {"sources": [SOURCE]}))["runs"]
        told: str | None = run.get("events_deleted")
        return told

    id = (await api.call("tasks.import_run", RUN))["id"]
    lines = [{"type": "log", "task": id, "timestamp": 1, "msg": "a", "metric": metric} for metric in "ab"]
    await api.raw("POST", "/events.add_batch", content="\n".join(map(json.dumps, lines)))
    await api.call("events.clear_task_log", {"task": id, "include_metrics": ["c"]})
    assert await deleted() is None
    await api.call("events.clear_task_log", {"task": id, "include_metrics": ["a"]})
    first = await deleted()
    assert first
    await api.call("events.delete_for_task", {"task": id})
    second = await deleted()
    assert second
    assert second > first
    assert "events_deleted" not in await get(api, id)


async def test_only_imported_tasks_whose_events_are_stored_have_that_time(api: Api) -> None:
    id = (await api.call("tasks.import_run", RUN))["id"]
    old = "2026-01-01T00:00:00.000000+00:00"
    await api.backend.documents.update("tasks", {"id": id}, Update(set={"imported": old}))
    await api.call("tasks.import_run", {**RUN, "status": "published"})
    other = await make(api)
    lines = [{"type": "log", "task": task, "timestamp": 1, "msg": "a"} for task in (id, other)]
    added = await api.raw("POST", "/events.add_batch", content="\n".join(map(json.dumps, lines)))
    assert added.json()["data"] | {"errors_info": {}} == {"added": 1, "errors": 1, "errors_info": {}}
    assert (await imported(api, id), await imported(api, other)) == (old, None)


async def test_the_output_comes_along(api: Api) -> None:
    output = {"output_dest": "s3://b", "output_result": "good", "output_error": "none"}
    id = (await api.call("tasks.import_run", {**RUN, **output}))["id"]
    assert (await get(api, id))["output"] == {"destination": "s3://b", "result": "good", "error": "none"}
    await api.call("tasks.import_run", {**RUN, "output_result": "better"})
    assert (await get(api, id))["output"] == {"destination": "s3://b", "result": "better", "error": "none"}


@pytest.mark.own_api
async def test_each_company_has_a_task_of_its_own(api: Api) -> None:
    ours = (await api.call("tasks.import_run", RUN))["id"]
    _, eve = await credentials.create_user(api.backend.documents, "another company", "eve", "admin")
    theirs = await api.call("tasks.import_run", RUN, auth=(eve.key, eve.secret))
    assert theirs["made"]
    assert theirs["id"] != ours


async def test_what_is_refused(api: Api) -> None:
    for change in ({"source": ""}, {"name": None}, {"started": "soon"}, {"status": "queued"}):
        assert await refused(api, "tasks.import_run", {**RUN, **change}) == (400, 12)
    id = (await api.call("tasks.import_run", RUN))["id"]
    await api.call("tasks.import_run", {**RUN, "status": "published"})
    assert (await get(api, id))["published"]
    assert await refused(api, "tasks.import_run", RUN) == (400, 110)
