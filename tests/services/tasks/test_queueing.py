"""Tasks into queues and out of them again."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.services.backend import Call
from apiserver.services.queues.entries import leave_queues
from apiserver.services.tasks import queueing
from apiserver.stores.documents.query import Update
from tests.harness import Api
from tests.services.tasks.calls import get, make, refused

pytestmark = pytest.mark.anyio


@pytest.fixture
async def queue(api: Api) -> str:
    made: str = (await api.call("queues.create", {"name": "gpu"}))["id"]
    return made


async def waiting(api: Api, queue: str) -> list[str]:
    return [entry["task"] for entry in (await api.call("queues.get_by_id", {"queue": queue}))["queue"]["entries"]]


async def test_into_a_queue_and_out_again(api: Api, queue: str) -> None:
    task = await make(api, system_tags=["development", "x"])

    answer = await api.call("tasks.enqueue", {"task": task, "queue": queue, "status_message": "m"})

    assert (answer["queued"], answer["updated"], answer["fields"]["status"]) == (1, 1, "queued")
    assert "queue_watched" not in answer
    queued = await get(api, task)
    assert (queued["status"], queued["status_message"], queued["execution"]["queue"]) == ("queued", "m", queue)
    assert queued["system_tags"] == ["x"]
    assert "enqueue_status" not in queued
    assert await waiting(api, queue) == [task]

    answer = await api.call("tasks.dequeue", {"task": task})
    assert (answer["dequeued"], answer["updated"], answer["fields"]["status"]) == (1, 1, "created")
    assert "queue" not in (await get(api, task))["execution"]
    assert await waiting(api, queue) == []
    assert await api.call("tasks.dequeue", {"task": task}) == {"dequeued": 1, "updated": 0, "fields": {}}


async def test_a_task_goes_back_to_what_it_was(api: Api, queue: str) -> None:
    task = await make(api)
    await api.call("tasks.started", {"task": task})
    await api.call("tasks.stopped", {"task": task})
    for _ in range(2):
        await api.call("tasks.enqueue", {"task": task, "queue": queue})
        await api.call("tasks.dequeue", {"task": task})
        assert (await get(api, task))["status"] == "stopped"


async def test_a_task_goes_to_the_status_that_is_asked_for(api: Api, queue: str) -> None:
    task = await make(api)
    await api.call("tasks.enqueue", {"task": task, "queue": queue})
    await api.call("tasks.dequeue", {"task": task, "new_status": "stopped"})
    assert (await get(api, task))["status"] == "stopped"
    assert await refused(api, "tasks.dequeue", {"task": task, "new_status": "none"}) == (400, 12)


async def test_an_agent_takes_out_what_it_has_started(api: Api, queue: str) -> None:
    task = await make(api)
    await api.call("tasks.enqueue", {"task": task, "queue": queue})
    await api.call("queues.get_next_task", {"queue": queue})
    await api.call("tasks.started", {"task": task})
    taken = await api.call("tasks.dequeue", {"task": task, "new_status": "in_progress"})
    assert (taken["updated"], taken["fields"]["status"]) == (1, "in_progress")
    assert (await get(api, task))["execution"]["queue"] == queue
    assert (await api.call("tasks.dequeue", {"task": task}))["fields"]["status"] == "created"


@pytest.mark.test
@pytest.mark.parametrize("by", ["tasks.dequeue", "tasks.archive"])
@pytest.mark.own_api
async def test_a_status_that_changes_while_a_task_is_taken_out_stays(
    api: Api, queue: str, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = await make(api)
    await api.call("tasks.enqueue", {"task": task, "queue": queue})

    async def publish_and_leave(call: Call, *tasks: str) -> int:
        await api.call("tasks.publish", {"task": task, "force": True})
        return await leave_queues(call, *tasks)

    monkeypatch.setattr(queueing, "leave_queues", publish_and_leave)
    answer = await api.call(by, {"task": task, "tasks": [task]})
    if by == "tasks.dequeue":
        assert answer == {"dequeued": 1, "updated": 0, "fields": {}}
    assert (await get(api, task))["status"] == "published"


@pytest.mark.own_api
async def test_a_task_that_starts_while_it_is_taken_out_goes_back(
    api: Api, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = await make(api)
    await api.call("tasks.enqueue", {"task": task, "queue": queue})

    async def start_and_leave(call: Call, *tasks: str) -> int:
        await api.call("tasks.started", {"task": task})
        return await leave_queues(call, *tasks)

    monkeypatch.setattr(queueing, "leave_queues", start_and_leave)
    answer = await api.call("tasks.dequeue", {"task": task})
    assert (answer["updated"], answer["fields"]["status"]) == (1, "created")
    assert (await get(api, task))["status"] == "created"


async def test_a_waiting_task_may_keep_the_name_of_its_queue(api: Api, queue: str) -> None:
    task, other = await make(api), (await api.call("queues.create", {"name": "other"}))["id"]
    keep = {"task": task, "queue": other, "update_execution_queue": False}
    assert await refused(api, "tasks.enqueue", keep) == (400, 12)
    await api.call("tasks.enqueue", {"task": task, "queue": queue})
    await api.call("tasks.enqueue", keep)
    assert (await waiting(api, queue), await waiting(api, other)) == ([], [task])
    assert (await get(api, task))["execution"]["queue"] == queue


async def test_tasks_are_validated_when_that_is_asked_for(api: Api, queue: str) -> None:
    project = (await api.call("projects.create", {"name": "p"}))["id"]
    task, whole = await make(api), await make(api, project=project)
    await api.call("tasks.edit", {"task": task, "parent": await make(api, name="gone")})
    await api.backend.documents.update("tasks", {"id": task}, Update(set={"parent": "none"}))
    asked = {"ids": [task, whole], "queue": queue, "validate_tasks": True}
    answer = await api.call("tasks.enqueue_many", asked)
    assert [failed["error"]["codes"] for failed in answer["failed"]] == [[400, 101]]
    assert await waiting(api, queue) == [whole]


async def test_queues_by_name_are_made_when_missing(api: Api, queue: str) -> None:
    known, new = await make(api), await make(api)
    await api.call("tasks.enqueue", {"task": known, "queue_name": "gpu"})
    await api.call("tasks.enqueue", {"task": new, "queue_name": "cpu"})
    assert await waiting(api, queue) == [known]
    [made] = (await api.call("queues.get_all", {"name": "^cpu$"}))["queues"]
    assert await waiting(api, made["id"]) == [new]


async def test_without_a_queue_it_is_the_default_one(api: Api) -> None:
    task = await make(api)
    await api.call("tasks.enqueue", {"task": task})
    assert await waiting(api, (await api.call("queues.get_default"))["id"]) == [task]


async def test_a_task_waits_in_one_queue_only(api: Api, queue: str) -> None:
    task, other = await make(api), (await api.call("queues.create", {"name": "other"}))["id"]
    await api.call("tasks.enqueue", {"task": task, "queue": queue})
    await api.call("tasks.enqueue", {"task": task, "queue": other})
    assert (await waiting(api, queue), await waiting(api, other)) == ([], [task])
    assert (await get(api, task))["execution"]["queue"] == other
    assert await refused(api, "tasks.enqueue", {"task": task, "queue": other}) == (400, 706)
    await api.call("tasks.dequeue", {"task": task})
    assert (await get(api, task))["status"] == "created"


async def test_errors(api: Api, queue: str) -> None:
    task = await make(api)
    assert await refused(api, "tasks.enqueue", {"task": "none", "queue": queue}) == (400, 101)
    assert await refused(api, "tasks.enqueue", {"task": task, "queue": "gpu"}) == (400, 701)
    assert await refused(api, "tasks.enqueue", {"task": task, "queue": queue, "queue_name": "gpu"}) == (400, 12)
    await api.call("tasks.started", {"task": task})
    assert await refused(api, "tasks.enqueue", {"task": task, "queue": queue}) == (400, 110)
    assert await waiting(api, queue) == []
    await api.call("tasks.enqueue", {"task": task, "queue": queue, "force": True})
    assert await waiting(api, queue) == [task]


async def test_whether_anybody_watches_the_queue(api: Api, queue: str) -> None:
    async def watched() -> Any:
        request = {"task": await make(api), "queue": queue, "verify_watched_queue": True}
        return (await api.call("tasks.enqueue", request))["queue_watched"]

    assert await watched() is False
    await api.call("workers.register", {"worker": "host:0", "queues": [queue]})
    assert await watched() is True
    gone = Update(set={"expires": "2020-01-01T00:00:00.000000+00:00"})
    await api.backend.documents.update("workers", {"name": "host:0"}, gone)
    assert await watched() is False


async def test_a_task_that_starts_has_left_its_queue(api: Api, queue: str) -> None:
    """An agent takes the task from the queue before it starts it."""
    task = await make(api)
    await api.call("tasks.enqueue", {"task": task, "queue": queue})
    assert (await api.call("queues.get_next_task", {"queue": queue}))["entry"]["task"] == task
    await api.call("tasks.started", {"task": task})
    assert (await get(api, task))["status"] == "in_progress"
    assert await waiting(api, queue) == []


async def test_stopping_takes_a_waiting_task_out(api: Api, queue: str) -> None:
    task = await make(api)
    await api.call("tasks.enqueue", {"task": task, "queue": queue})
    await api.call("tasks.stop", {"task": task})
    assert (await get(api, task))["status"] == "stopped"
    assert await waiting(api, queue) == []


async def test_many(api: Api, queue: str) -> None:
    tasks = [await make(api) for _ in range(3)]
    answer = await api.call("tasks.enqueue_many", {"ids": [*tasks, "none"], "queue": queue})
    assert [(done["id"], done["queued"]) for done in answer["succeeded"]] == [(task, 1) for task in tasks]
    assert [failed["error"]["codes"] for failed in answer["failed"]] == [[400, 101]]
    assert await waiting(api, queue) == tasks
    answer = await api.call("tasks.dequeue_many", {"ids": tasks})
    assert [(done["id"], done["dequeued"]) for done in answer["succeeded"]] == [(task, True) for task in tasks]
    assert await waiting(api, queue) == []
    assert await refused(api, "tasks.enqueue_many", {"ids": tasks, "queue": "none"}) == (400, 701)


@pytest.mark.check
@pytest.mark.own_api
async def test_a_long_queue_is_changed_a_few_times_for_many(
    api: Api, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = 0
    find_and_update = api.backend.documents.find_and_update

    async def counted(collection: str, *arguments: Any, **more: Any) -> Any:
        nonlocal changes
        changes += collection == "queues"
        return await find_and_update(collection, *arguments, **more)

    monkeypatch.setattr(api.backend.documents, "find_and_update", counted)
    tasks, other = [await make(api) for _ in range(120)], (await api.call("queues.create", {"name": "other"}))["id"]
    await api.call("tasks.enqueue", {"task": tasks[1], "queue": queue})
    await api.call("tasks.enqueue", {"task": tasks[2], "queue": other})

    answer = await api.call("tasks.enqueue_many", {"ids": tasks, "queue": queue})
    assert [failed["id"] for failed in answer["failed"]] == [tasks[1]]
    assert answer["failed"][0]["error"]["codes"] == [400, 706]
    assert len(answer["succeeded"]) == 119
    assert (await waiting(api, queue), await waiting(api, other)) == ([tasks[1], tasks[0], *tasks[2:]], [])
    assert len((await api.call("tasks.dequeue_many", {"ids": tasks}))["succeeded"]) == 120
    assert await waiting(api, queue) == []
    assert changes < 10

    for do, more in (("tasks.archive_many", {}), ("tasks.delete_many", {"force": True})):
        await api.call("tasks.enqueue_many", {"ids": tasks, "queue": queue})
        assert len((await api.call(do, {"ids": tasks, **more}))["succeeded"]) == 120
        assert await waiting(api, queue) == []
    assert changes < 20


async def test_what_is_not_deleted_waits_on(api: Api, queue: str) -> None:
    tasks = [await make(api) for _ in range(2)]
    await api.call("tasks.enqueue_many", {"ids": tasks, "queue": queue})
    assert len((await api.call("tasks.delete_many", {"ids": tasks}))["failed"]) == 2
    assert await waiting(api, queue) == tasks
