"""Tasks begun anew and tasks removed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from apiserver.common.times import from_now
from apiserver.services.tasks.task_documents import BEING_RESET
from apiserver.stores.documents.query import Update
from apiserver.stores.events.base import EventStoreBusy
from tests.harness import Api
from tests.services.tasks.calls import get, make, names, put, refused, report

pytestmark = pytest.mark.anyio


async def new_model(api: Api, task: str, name: str, **fields: Any) -> str:
    """A model that the task has put out."""
    request = {"name": name, "uri": f"http://files/{name}", "task": task, "ready": False, **fields}
    made: str = (await api.call("models.create", request))["id"]
    await api.call("tasks.add_or_update_model", {"task": task, "name": name, "model": made, "type": "output"})
    return made


async def events(api: Api, task: str) -> int:
    found: int = (await api.call("events.get_task_events", {"task": task}))["total"]
    return found


@pytest.fixture
async def task(api: Api) -> str:
    """A task that has run and put out everything there is."""
    artifacts = [{"key": "in", "type": "t", "mode": "input", "uri": "i"}, {"key": "out", "type": "t", "uri": "o"}]
    script = {"repository": "r", "entry_point": "e"}
    made = await make(api, script=script, execution={"artifacts": artifacts, "framework": "f"}, hyperparams={"s": {}})
    await api.call("tasks.enqueue", {"task": made, "queue_name": "q"})
    await api.call("tasks.started", {"task": made})
    await api.call("tasks.edit", {"task": made, "runtime": {"a": "1"}, "force": True})
    await report(api, made, iter=7)
    image = {
        "type": "training_debug_image",
        "metric": "m",
        "variant": "v",
        "key": "k",
        "iter": 1,
        "url": "http://files/i",
    }
    plot = {
        "type": "plot",
        "metric": "m",
        "variant": "v",
        "iter": 1,
        "plot_str": '{"layout": {"images": [{"source": "http://files/p"}]}}',
    }
    for event in (image, plot, {"type": "log", "msg": "line"}):
        await api.call("events.add", {"task": made, **event})
    await new_model(api, made, "draft")
    await api.call("tasks.completed", {"task": made})
    return made


@pytest.mark.test
async def test_reset_leaves_the_inputs(api: Api, task: str) -> None:
    answer = await api.call("tasks.reset", {"task": task, "return_file_urls": True})

    assert (answer["updated"], answer["deleted_models"], answer["events"]) == (1, 1, {"deleted": 4})
    assert answer["fields"]["status"] == "created"
    assert not any(name.startswith("events_") for name in answer["fields"])
    assert answer["urls"] == {
        "event_urls": [],
        "artifact_urls": ["o"],
        "model_urls": ["http://files/draft"],
    }
    now = await get(api, task)
    assert (now["status"], now["last_iteration"], now["last_metrics"], now["runtime"]) == ("created", 0, {}, {})
    assert now["models"] == {"input": [], "output": []}
    assert [artifact["key"] for artifact in now["execution"]["artifacts"]] == ["in"]
    assert (now["script"]["repository"], now["execution"]["framework"]) == ("r", "f")
    assert list(now["hyperparams"]) == ["s"]
    assert not now.keys() & {"started", "completed", "active_duration", "published"}
    assert "queue" not in now["execution"]
    assert await events(api, task) == 0
    assert (await api.call("models.get_all"))["models"] == []


async def test_a_task_is_reset_while_it_runs(api: Api) -> None:
    task = await make(api)
    await api.call("tasks.started", {"task": task})
    answer = await api.call("tasks.reset", {"task": task})
    assert (answer["updated"], answer["fields"]["status"], answer["dequeued"]) == (1, "created", {})
    now = await get(api, task)
    assert now["status"] == "created"
    assert not now.keys() & {"started", "active_duration"}


async def test_a_reset_task_reports_from_the_beginning(api: Api, task: str) -> None:
    await api.call("tasks.reset", {"task": task})
    await api.call("tasks.started", {"task": task})
    await report(api, task, iter=2)
    now = await get(api, task)
    assert now["last_iteration"] == 2
    [[last]] = [list(variants.values()) for variants in now["last_metrics"].values()]
    assert last["count"] == 1


@pytest.mark.test
@pytest.mark.own_api
async def test_what_is_reported_during_a_reset_does_not_come_back(
    api: Api, task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    events_store = api.backend.events
    delete = events_store.delete

    async def report_and_delete(*arguments: Any) -> int:
        await report(api, task, iter=99)
        return await delete(*arguments)

    monkeypatch.setattr(events_store, "delete", report_and_delete)
    await api.call("tasks.reset", {"task": task})
    now = await get(api, task)
    assert (now["last_iteration"], now["last_metrics"]) == (0, {})


async def test_reset_may_clear_all_and_may_spare_models(api: Api, task: str) -> None:
    answer = await api.call("tasks.reset", {"task": task, "clear_all": True, "delete_output_models": False})
    assert answer["deleted_models"] == 0
    assert "urls" not in answer
    now = await get(api, task)
    assert now["execution"]["artifacts"] == []
    assert "framework" not in now["execution"]
    assert now["script"] == {"requirements": {}}
    assert len((await api.call("models.get_all"))["models"]) == 1


async def test_reset_takes_a_task_out_of_its_queue(api: Api) -> None:
    task = await make(api)
    await api.call("tasks.enqueue", {"task": task, "queue_name": "q"})
    answer = await api.call("tasks.reset", {"task": task})
    assert answer["dequeued"] == {"removed": 1}
    [queue] = (await api.call("queues.get_all", {"name": "^q$"}))["queues"]
    assert queue["entries"] == []
    assert (await get(api, task))["status"] == "created"


async def test_a_published_task_is_reset_by_force_only(api: Api, task: str) -> None:
    await api.call("tasks.publish", {"task": task})
    assert await refused(api, "tasks.reset", {"task": task}) == (400, 110)
    assert await events(api, task) == 4
    await api.call("tasks.reset", {"task": task, "force": True})
    assert (await get(api, task))["status"] == "created"


async def test_delete_removes_the_task_and_what_hangs_on_it(api: Api, task: str) -> None:
    child = await make(api, name="child", parent=task)
    published = await new_model(api, task, "published")
    await api.call("models.set_ready", {"model": published, "publish_task": False})
    used = await new_model(api, task, "used")
    await api.call("tasks.add_or_update_model", {"task": child, "name": "in", "model": used, "type": "input"})

    answer = await api.call("tasks.delete", {"task": task, "force": True, "return_file_urls": True})

    assert (answer["deleted"], answer["updated_children"], answer["deleted_models"]) == (True, 1, 1)
    assert answer["updated_models"] == 2
    assert answer["events"] == {"deleted": 4}
    assert answer["urls"]["model_urls"] == ["http://files/draft"]
    assert await names(api) == ["child"]
    assert await refused(api, "tasks.get_by_id", {"task": task}) == (400, 101)
    assert (await get(api, child))["parent"] == f"__DELETED__{task}"
    kept = (await api.call("models.get_all", {"order_by": ["name"]}))["models"]
    assert [(model["name"], model["task"]) for model in kept] == [
        ("published", f"__DELETED__{task}"),
        ("used", f"__DELETED__{task}"),
    ]
    assert await refused(api, "tasks.delete", {"task": task, "force": True}) == (400, 101)
    await api.call("tasks.edit", {"task": child, "parent": f"__DELETED__{task}"})


@pytest.mark.test
async def test_only_new_and_archived_tasks_are_deleted_without_force(api: Api, task: str) -> None:
    assert await refused(api, "tasks.delete", {"task": task}) == (400, 123)
    await api.call("tasks.archive", {"tasks": [task]})
    child = await make(api, parent=task)
    await api.call("tasks.publish", {"task": child, "force": True})
    assert await refused(api, "tasks.delete", {"task": task}) == (400, 123)
    await api.call("tasks.delete", {"task": child, "force": True})
    model = await new_model(api, task, "published")
    await api.call("models.set_ready", {"model": model, "publish_task": False})
    assert await refused(api, "tasks.delete", {"task": task}) == (400, 123)
    await api.call("models.delete", {"model": model, "force": True})
    assert (await api.call("tasks.delete", {"task": task}))["deleted"] is True
    assert (await api.call("tasks.delete", {"task": await make(api)}))["deleted"] is True


async def test_what_something_published_hangs_on_is_reset_by_force_only(api: Api, task: str) -> None:
    child = await make(api, parent=task)
    await api.call("tasks.publish", {"task": child, "force": True})
    assert await refused(api, "tasks.reset", {"task": task}) == (400, 123)
    await api.call("tasks.delete", {"task": child, "force": True})
    of_another = (await api.call("models.create", {"name": "m", "uri": "u", "ready": True}))["id"]
    put = {"task": task, "name": "m", "model": of_another, "type": "output"}
    await api.call("tasks.add_or_update_model", put)
    assert await refused(api, "tasks.reset", {"task": task}) == (400, 123)
    assert await events(api, task) == 4
    await api.call("tasks.reset", {"task": task, "force": True})
    assert (await api.call("models.get_by_id", {"model": of_another}))["model"]["ready"] is True


async def test_delete_takes_a_task_out_of_its_queue(api: Api) -> None:
    task = await make(api)
    await api.call("tasks.enqueue", {"task": task, "queue_name": "q"})
    await api.call("tasks.delete", {"task": task, "force": True})
    [queue] = (await api.call("queues.get_all", {"name": "^q$"}))["queues"]
    assert queue["entries"] == []


async def test_delete_many(api: Api, task: str) -> None:
    new = await make(api)
    answer = await api.call("tasks.delete_many", {"ids": [task, new, "none"]})
    assert [done["id"] for done in answer["succeeded"]] == [new]
    assert [(one["id"], one["error"]["codes"][1]) for one in answer["failed"]] == [(task, 123), ("none", 101)]


CHANGES: dict[str, dict[str, Any]] = {
    "tasks.started": {"force": True},
    "tasks.publish": {"force": True},
    "tasks.enqueue": {"queue_name": "q", "force": True},
    "tasks.reset": {"force": True},
}


@pytest.mark.test
@pytest.mark.parametrize("endpoint", CHANGES)
@pytest.mark.own_api
async def test_nobody_changes_the_status_while_a_task_is_reset(
    api: Api, monkeypatch: pytest.MonkeyPatch, endpoint: str
) -> None:
    task = await make(api)
    await put(api, task, "completed")
    await report(api, task, iter=7)
    begun, go_on = asyncio.Event(), asyncio.Event()
    delete = api.backend.events.delete

    async def slowly(*arguments: Any) -> int:
        begun.set()
        await go_on.wait()
        return await delete(*arguments)

    monkeypatch.setattr(api.backend.events, "delete", slowly)
    resetting = asyncio.create_task(api.call("tasks.reset", {"task": task}))
    await begun.wait()
    answer = await api.raw("POST", f"/{endpoint}", json={"task": task, **CHANGES[endpoint]})
    go_on.set()
    await resetting
    assert (answer.status_code, int(answer.headers["Retry-After"])) == (503, 1)
    assert "being_reset_until" not in await get(api, task)
    await api.call("tasks.started", {"task": task})


@pytest.mark.own_api
async def test_a_reset_that_fails_changes_nothing_and_holds_nobody_up(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = await make(api)
    await put(api, task, "completed")

    async def fail(*_: Any) -> int:
        raise EventStoreBusy("no", overloaded=False)

    with monkeypatch.context() as patch:
        patch.setattr(api.backend.events, "delete", fail)
        await api.call("tasks.reset", {"task": task}, expect=503)
    assert (await get(api, task))["status"] == "completed"
    await api.call("tasks.publish", {"task": task})


@pytest.mark.parametrize("seconds", [-1, 3600])
async def test_the_mark_of_a_reset_whose_server_died_or_had_a_wrong_clock_holds_nobody_up(
    api: Api, seconds: float
) -> None:
    task = await make(api)
    await put(api, task, "completed")
    await api.backend.documents.update("tasks", {"id": task}, Update(set={BEING_RESET: from_now(seconds)}))
    await api.call("tasks.reset", {"task": task})
    assert (await get(api, task))["status"] == "created"
