"""The status of tasks: where it may go, and what each step leaves behind."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest

from apiserver.common.times import from_now, seconds_since, utc_now
from apiserver.services.tasks.statuses import LOCKED, STATUSES
from apiserver.stores.documents.query import Document, FindQuery, Update
from tests.harness import Api
from tests.services.tasks.calls import get, make, names, put, refused, report

pytestmark = pytest.mark.anyio

#: By call, where it takes a task, and from which statuses it may do so without force: as in ClearML's own server.
STEPS: dict[str, tuple[str, set[str]]] = {
    "started": ("in_progress", {"created", "queued", "in_progress", "stopped", "completed"}),
    "stop": ("stopped", {"queued", "in_progress", "stopped", "closed", "failed"}),
    "stopped": ("stopped", {"queued", "in_progress", "stopped", "closed", "failed"}),
    "failed": ("failed", {"in_progress", "stopped", "closed", "failed"}),
    "completed": ("completed", {"in_progress", "stopped", "completed"}),
    "close": ("closed", {"stopped", "closed"}),
    "publish": ("published", {"stopped", "closed", "failed", "completed", "publishing"}),
    "enqueue": ("queued", {"created", "queued", "stopped", "failed"}),
    "reset": ("created", set(STATUSES) - {"publishing", "published"}),
}
#: Calls that no status speaks against, and where they take tasks that do not stay where they are.
ALWAYS: dict[str, dict[str, str]] = {
    "dequeue": {"queued": "created", "in_progress": "created"},
    "archive_many": {"queued": "created", "in_progress": "stopped"},
    "unarchive_many": {},
    "update_tags": {},
}
#: Calls that only new tasks take.
OF_NEW = ("edit", "delete", "edit_hyper_params", "edit_configuration")


def asked(endpoint: str, task: str, **fields: Any) -> dict[str, Any]:
    contents: dict[str, dict[str, Any]] = {"edit": {"comment": "c"}, "edit_hyper_params": {"hyperparams": []}}
    contents |= {"edit_configuration": {"configuration": []}, "update_tags": {"ids": [task], "add_tags": ["t"]}}
    of_many: dict[str, Any] = {"ids": [task]} if endpoint.endswith("_many") else {}
    return {"task": task, **contents.get(endpoint, {}), **of_many, **fields}


@pytest.mark.test
@pytest.mark.parametrize("endpoint", STEPS)
async def test_steps(api: Api, endpoint: str) -> None:
    target, allowed = STEPS[endpoint]
    for status, force in product(STATUSES, (False, True)):
        task = await make(api)
        await put(api, task, status)
        request = asked(endpoint, task, force=force)
        if force or status in allowed:
            assert (await api.call(f"tasks.{endpoint}", request))["fields"]["status"] == target
        else:
            assert await refused(api, f"tasks.{endpoint}", request) == (400, 110), status
            assert (await get(api, task))["status"] == status


@pytest.mark.test
@pytest.mark.parametrize("endpoint", ALWAYS)
async def test_what_may_be_done_in_any_status(api: Api, endpoint: str) -> None:
    for status in STATUSES:
        task = await make(api)
        await put(api, task, status)
        await api.call(f"tasks.{endpoint}", asked(endpoint, task))
        assert (await get(api, task))["status"] == ALWAYS[endpoint].get(status, status)


@pytest.mark.test
@pytest.mark.parametrize("endpoint", OF_NEW)
async def test_what_may_be_done_with_new_tasks_alone(api: Api, endpoint: str) -> None:
    for status in STATUSES[1:]:
        task = await make(api)
        await put(api, task, status)
        subcode = 123 if endpoint == "delete" else 110
        assert await refused(api, f"tasks.{endpoint}", asked(endpoint, task)) == (400, subcode), status
        if status not in LOCKED or endpoint in ("edit", "delete"):
            await api.call(f"tasks.{endpoint}", asked(endpoint, task, force=True))
    await api.call(f"tasks.{endpoint}", asked(endpoint, await make(api)))


async def test_a_whole_life(api: Api) -> None:
    task = await make(api)
    started = await api.call("tasks.started", {"task": task, "status_reason": "r", "status_message": "m"})
    assert (started["started"], started["updated"]) == (1, 1)
    running = await get(api, task)
    assert (running["status"], running["status_reason"], running["status_message"]) == ("in_progress", "r", "m")
    assert running["started"] <= running["status_changed"] == running["last_change"] == running["last_update"]

    begun = from_now(-100)
    await api.backend.documents.update("tasks", {"id": task}, Update(set={"started": begun}))
    answer = await api.call("tasks.completed", {"task": task})
    assert answer["updated"] == 1
    assert answer["published"] == 0
    done = await get(api, task)
    assert (done["status"], done["status_reason"], done["status_message"]) == ("completed", "", "")
    assert done["completed"] >= done["started"] == begun
    assert 100 <= done["active_duration"] <= seconds_since(begun, utc_now())

    await api.call("tasks.publish", {"task": task})
    assert (await get(api, task))["published"] >= done["completed"]


async def test_a_run_lasts_from_its_first_start(api: Api) -> None:
    task = await make(api)
    await api.call("tasks.started", {"task": task})
    hour_ago = (datetime.now(UTC) - timedelta(hours=1)).isoformat(timespec="microseconds")
    await api.backend.documents.update("tasks", {"id": task}, Update(set={"started": hour_ago}))
    await api.call("tasks.started", {"task": task})
    assert (await get(api, task))["started"] == hour_ago
    assert 3600 <= (await get(api, task))["active_duration"] <= seconds_since(hour_ago, utc_now())
    shown = await api.call("tasks.get_all_ex", {"id": [task], "only_fields": ["status"]})
    assert shown["tasks"] == [{"id": task, "status": "in_progress"}]
    await api.call("tasks.stopped", {"task": task})
    stopped = await get(api, task)
    assert 3600 <= stopped["active_duration"] <= seconds_since(hour_ago, utc_now())

    await api.call("tasks.started", {"task": task})
    again = await get(api, task)
    assert again["started"] >= stopped["completed"]
    assert "completed" not in again
    assert again["active_duration"] <= seconds_since(again["started"], utc_now())


async def test_lists_sort_and_filter_by_how_long_runs_have_been_under_way(api: Api) -> None:
    _, ended, running, silent = [await make(api, name=name) for name in ("draft", "ended", "running", "silent")]
    hour_ago = (datetime.now(UTC) - timedelta(hours=1)).isoformat(timespec="microseconds")
    for task in (ended, running, silent):
        await api.call("tasks.started", {"task": task})
    await api.call("tasks.completed", {"task": ended})
    await api.backend.documents.update("tasks", {"id": ended}, Update(set={"active_duration": 60}))
    await api.backend.documents.update("tasks", {"id": running}, Update(set={"started": hour_ago}))
    for hears in (lambda: report(api, running), lambda: api.call("tasks.ping", {"task": running})):
        await api.backend.documents.update("tasks", {"id": running}, Update(set={"active_duration": 0}))
        await hears()
        assert await names(api, order_by=["-active_duration"]) == ["running", "ended", "silent", "draft"]
        assert await names(api, order_by=["active_duration"]) == ["silent", "ended", "running", "draft"]
        assert await names(api, active_duration=[600, None]) == ["running"]
        only = {"id": [running], "only_fields": ["status", "active_duration"]}
        assert (await api.call("tasks.get_all_ex", only))["tasks"][0]["active_duration"] >= 3600


def publish_when_looked_at(api: Api, task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Publish a task just after the next call has looked at it, and before that call changes it."""
    documents = api.backend.documents
    search = documents.search

    async def find_and_lose(collection: str, query: FindQuery) -> list[Document]:
        found = await search(collection, query)
        if collection == "tasks":
            monkeypatch.setattr(documents, "search", search)
            await put(api, task, "published")
        return found

    monkeypatch.setattr(documents, "search", find_and_lose)


async def test_a_status_that_changes_meanwhile_is_not_overwritten(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    task = await make(api)
    await api.call("tasks.started", {"task": task})
    publish_when_looked_at(api, task, monkeypatch)
    assert await refused(api, "tasks.failed", {"task": task}) == (400, 110)
    assert (await get(api, task))["status"] == "published"


@pytest.mark.parametrize("endpoint", ["tasks.publish", "tasks.reset"])
async def test_a_task_that_is_published_meanwhile_is_neither_published_nor_reset(
    api: Api, monkeypatch: pytest.MonkeyPatch, endpoint: str
) -> None:
    task = await make(api)
    await put(api, task, "stopped")
    await report(api, task, iter=7)
    publish_when_looked_at(api, task, monkeypatch)
    assert await refused(api, endpoint, {"task": task}) == (400, 110)
    assert (await get(api, task))["status"] == "published"
    assert (await api.call("events.get_task_events", {"task": task}))["total"] == 1


async def test_completed_may_publish_too(api: Api) -> None:
    task = await make(api)
    await api.call("tasks.started", {"task": task})
    answer = await api.call("tasks.completed", {"task": task, "publish": True})
    assert (answer["updated"], answer["published"], answer["fields"]["status"]) == (1, 1, "published")


async def test_a_completed_task_may_be_published_by_completing_it_again(api: Api) -> None:
    task = await make(api)
    await api.call("tasks.started", {"task": task})
    assert (await api.call("tasks.completed", {"task": task}))["published"] == 0
    answer = await api.call("tasks.completed", {"task": task, "publish": True})
    assert (answer["updated"], answer["published"], answer["fields"]["status"]) == (1, 1, "published")


async def test_publishing_publishes_the_last_output_model(api: Api) -> None:
    task = await make(api)
    models = [(await api.call("models.create", {"name": n, "uri": f"file:///{n}", "ready": False}))["id"] for n in "ab"]
    for name, model in zip("ab", models, strict=True):
        link = {"task": task, "name": name, "model": model, "type": "output"}
        await api.call("tasks.add_or_update_model", link)
    await api.call("tasks.publish", {"task": task, "force": True})
    ready = [(await api.call("models.get_by_id", {"model": model}))["model"]["ready"] for model in models]
    assert ready == [False, True]


async def test_publishing_may_leave_the_model_alone(api: Api) -> None:
    task = await make(api)
    model = (await api.call("models.create", {"name": "m", "uri": "file:///m", "ready": False}))["id"]
    await api.call("tasks.add_or_update_model", {"task": task, "name": "m", "model": model, "type": "output"})
    await api.call("tasks.publish", {"task": task, "force": True, "publish_model": False})
    assert (await api.call("models.get_by_id", {"model": model}))["model"]["ready"] is False


async def test_a_task_without_a_worker_stops_at_once(api: Api) -> None:
    task = await make(api)
    await api.call("tasks.started", {"task": task})
    await api.call("tasks.stop", {"task": task})
    stopped = await get(api, task)
    assert stopped["status"] == "stopped"
    assert stopped["status_message"].startswith("Stopped by ")
    assert stopped["completed"]


async def test_a_task_with_a_worker_is_told_to_stop(api: Api) -> None:
    task = await make(api)
    await api.call("tasks.started", {"task": task})
    await api.backend.documents.update("tasks", {"id": task}, Update(set={"last_worker": "host:0"}))
    await api.call("tasks.stop", {"task": task})
    told = await get(api, task)
    assert (told["status"], told["status_message"]) == ("in_progress", "stopping")

    long_ago = "2026-01-01T00:00:00.000000+00:00"
    await api.backend.documents.update("tasks", {"id": task}, Update(set={"last_update": long_ago}))
    await api.call("tasks.stop", {"task": task})
    assert (await get(api, task))["status"] == "stopped"


async def test_ping_is_seen_in_last_update_only(api: Api) -> None:
    task = await make(api)
    before = await get(api, task)
    assert await api.call("tasks.ping", {"task": task}) == {}
    after = await get(api, task)
    assert after["last_update"] > before["last_update"]
    assert after["last_change"] == before["last_change"]
    assert await refused(api, "tasks.ping", {"task": "none"}) == (400, 101)


async def test_archiving_hides_nothing_and_takes_tasks_out_of_queues(api: Api) -> None:
    task, queued = await make(api), await make(api)
    await api.call("tasks.enqueue", {"task": queued, "queue_name": "q"})

    assert await api.call("tasks.archive", {"tasks": [task, queued]}) == {"archived": 2}

    assert (await get(api, task))["system_tags"] == ["archived"]
    assert (await get(api, queued))["status"] == "created"
    [queue] = (await api.call("queues.get_all", {"name": "^q$"}))["queues"]
    assert queue["entries"] == []
    assert await refused(api, "tasks.archive", {"tasks": [task, "none"]}) == (400, 101)
    answer = await api.call("tasks.unarchive_many", {"ids": [task]})
    assert answer["succeeded"] == [{"id": task, "unarchived": True}]
    assert (await get(api, task))["system_tags"] == []


@pytest.mark.test
@pytest.mark.parametrize(
    ("endpoint", "key"),
    [
        ("stop_many", "updated"),
        ("publish_many", "updated"),
        ("archive_many", "archived"),
        ("unarchive_many", "unarchived"),
        ("reset_many", "updated"),
        ("enqueue_many", "queued"),
        ("dequeue_many", "dequeued"),
    ],
)
async def test_of_many_one_failure_costs_that_task_alone(api: Api, endpoint: str, key: str) -> None:
    good = await make(api)
    await api.call("tasks.started", {"task": good})
    await api.call("tasks.stopped", {"task": good})
    answer = await api.call(f"tasks.{endpoint}", {"ids": ["none", good, good]})
    [done], [failed] = answer["succeeded"], answer["failed"]
    assert done["id"] == good
    assert done[key]
    assert (failed["id"], failed["error"]["codes"]) == ("none", [400, 101])


async def test_events_of_a_published_task_are_locked(api: Api) -> None:
    task = await make(api)
    await report(api, task)
    await api.call("tasks.publish", {"task": task, "force": True})
    event: dict[str, Any] = {"type": "training_stats_scalar", "task": task, "iter": 2, "metric": "m", "value": 1}
    assert await refused(api, "events.add", event) == (400, 131)
