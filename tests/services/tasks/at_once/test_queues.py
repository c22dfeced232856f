"""Calls that queue a task and take it out of a queue at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from apiserver.server.bounds import Bounds
from apiserver.services.bounds import CallBounds
from apiserver.services.queues import entries as queue_entries
from apiserver.services.tasks import queueing, queueing_turns
from apiserver.services.tasks.task_documents import BEING_QUEUED, BEING_RESET
from apiserver.stores.events.base import EventStoreBusy
from tests.harness import Api
from tests.services.tasks.at_once.steps import Step, hold, status
from tests.services.tasks.calls import get, make

pytestmark = pytest.mark.anyio


async def is_consistent(api: Api, task: str) -> bool:
    """Whether the task is queued and waits in one queue, or is not queued and waits in none."""
    queues = (await api.call("queues.get_all"))["queues"]
    entries: list[str] = [entry["task"] for queue in queues for entry in queue["entries"]]
    expected = 1 if (await get(api, task))["status"] == "queued" else 0
    return entries.count(task) == expected


async def has_to_wait(call: asyncio.Task[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Go on when it is not the call's turn, or when the call is done: then it has not waited."""
    waits, take = asyncio.Event(), queueing_turns.take

    async def watched(*arguments: Any) -> bool:
        taken = await take(*arguments)
        if not taken:
            waits.set()
        return taken

    monkeypatch.setattr(queueing_turns, "take", watched)
    waiting = asyncio.create_task(waits.wait())
    await asyncio.wait([call, waiting], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()


#: The calls that take a task out of a queue, with their requests.
OUT: dict[str, Callable[[str], dict[str, Any]]] = {
    "tasks.dequeue": lambda task: {"task": task},
    "tasks.dequeue_many": lambda task: {"ids": [task]},
    "tasks.archive": lambda task: {"tasks": [task]},
    "tasks.stop": lambda task: {"task": task},
    "tasks.reset": lambda task: {"task": task},
}
#: The calls that put it into one.
INTO: dict[str, Callable[[str], dict[str, Any]]] = {
    "tasks.enqueue": lambda task: {"task": task, "queue_name": "other"},
    "tasks.enqueue_many": lambda task: {"ids": [task], "queue_name": "other"},
}


@pytest.fixture
async def queued(api: Api) -> str:
    task = await make(api)
    await api.call("tasks.enqueue", {"task": task, "queue_name": "q"})
    return task


@pytest.mark.test
@pytest.mark.parametrize("into", INTO)
@pytest.mark.parametrize("out", OUT)
async def test_a_task_is_taken_out_before_its_new_entry_is_written(
    api: Api, queued: str, monkeypatch: pytest.MonkeyPatch, into: str, out: str
) -> None:
    """Its status is queued when the other call looks, which finds no entry yet in the new queue."""
    appended = Step(queue_entries, "append" if into == "tasks.enqueue" else "append_many", monkeypatch)
    async with appended.stops(status(api, into, INTO[into](queued))) as entering:
        leaving = asyncio.create_task(status(api, out, OUT[out](queued)))
        await has_to_wait(leaving, monkeypatch)
    assert {await entering, await leaving} <= {200}
    assert await is_consistent(api, queued)


async def test_a_task_is_queued_again_just_after_a_call_looked_whether_it_is_queued(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = await make(api)
    left = Step(queueing, "leave_queues", monkeypatch)
    async with left.stops(status(api, "tasks.dequeue", {"task": task})) as leaving:
        entering = asyncio.create_task(status(api, "tasks.enqueue", {"task": task, "queue_name": "q"}))
        await has_to_wait(entering, monkeypatch)
    assert {await entering, await leaving} == {200}
    assert (await get(api, task))["status"] == "queued"
    assert await is_consistent(api, task)


async def test_a_task_is_moved_while_it_is_taken_out(api: Api, queued: str, monkeypatch: pytest.MonkeyPatch) -> None:
    [source] = [queue["id"] for queue in (await api.call("queues.get_all", {"name": "^q$"}))["queues"]]
    target = (await api.call("queues.create", {"name": "target"}))["id"]
    removed = Step(queue_entries, "remove", monkeypatch)
    request = {"task": queued, "queue": source, "target_queue": target, "update_execution_queue": True}
    async with removed.stops(status(api, "queues.move_task_to_queue", request)) as moving:
        leaving = asyncio.create_task(status(api, "tasks.dequeue", {"task": queued}))
        await has_to_wait(leaving, monkeypatch)
    assert {await moving, await leaving} == {200}
    assert (await get(api, queued))["status"] == "created"
    assert await is_consistent(api, queued)


@pytest.mark.bounds(Bounds(calls=CallBounds(queue_turn_seconds=0)))
async def test_a_call_waits_for_its_turn_only_for_a_while(api: Api, queued: str) -> None:
    other = await make(api)
    await hold(api, BEING_QUEUED, queued, 5)
    answer = await api.raw("POST", "/tasks.enqueue_many", json={"ids": [queued, other], "queue_name": "other"})
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert BEING_QUEUED not in await get(api, queued)
    await api.call("tasks.enqueue", {"task": other, "queue_name": "other"})


#: Calls that take tasks out of the queue `queue`, or the second of them, with their requests.
OUT_OF: dict[str, Callable[[list[str], str], dict[str, Any]]] = {
    "tasks.dequeue": lambda tasks, _: {"task": tasks[1]},
    "tasks.stop": lambda tasks, _: {"task": tasks[1]},
    "tasks.reset": lambda tasks, _: {"task": tasks[1]},
    "tasks.archive": lambda tasks, _: {"tasks": tasks},
    "tasks.dequeue_many": lambda tasks, _: {"ids": tasks},
    "tasks.archive_many": lambda tasks, _: {"ids": tasks},
    "tasks.delete_many": lambda tasks, _: {"ids": tasks, "force": True},
    "queues.remove_task": lambda tasks, queue: {"task": tasks[1], "queue": queue, "update_task_status": True},
    "queues.clear_queue": lambda _, queue: {"queue": queue},
    "queues.delete": lambda _, queue: {"queue": queue, "force": True},
}


@pytest.fixture
async def queue(api: Api) -> str:
    made: str = (await api.call("queues.create", {"name": "three"}))["id"]
    return made


@pytest.fixture
async def three(api: Api, queue: str) -> list[str]:
    """Three tasks in the queue `queue`."""
    tasks = [await make(api) for _ in range(3)]
    await api.call("tasks.enqueue_many", {"ids": tasks, "queue": queue})
    return tasks


@pytest.mark.test
@pytest.mark.parametrize("field", [BEING_QUEUED, BEING_RESET])
@pytest.mark.parametrize("out", OUT_OF)
@pytest.mark.bounds(Bounds(calls=CallBounds(queue_turn_seconds=0)))
async def test_a_call_that_cannot_take_a_task_out_leaves_none_queued_in_no_queue(
    api: Api, queue: str, three: list[str], out: str, field: str
) -> None:
    request = OUT_OF[out](three, queue)
    await hold(api, field, three[1], 5)
    if (out, field) == ("tasks.delete_many", BEING_RESET):  # `force` deletes also what another call deletes
        assert len((await api.call(out, request))["succeeded"]) == 3
        assert (await api.call("queues.get_by_id", {"queue": queue}))["queue"]["entries"] == []
        return
    assert await status(api, out, request) == 503
    for task in three:
        assert await is_consistent(api, task)
    await hold(api, field, three[1], -1)
    assert await status(api, out, request) == 200
    if out != "tasks.delete_many":
        for task in three:
            assert await is_consistent(api, task)


@pytest.mark.test
@pytest.mark.parametrize("field", [BEING_QUEUED, BEING_RESET])
@pytest.mark.bounds(Bounds(calls=CallBounds(queue_turn_seconds=0)))
async def test_a_batch_with_a_task_that_cannot_be_queued_leaves_none_queued_in_no_queue(
    api: Api, queue: str, field: str
) -> None:
    tasks = [await make(api) for _ in range(3)]
    await hold(api, field, tasks[1], 5)
    assert await status(api, "tasks.enqueue_many", {"ids": tasks, "queue": queue}) == 503
    for task in tasks:
        assert await is_consistent(api, task)
    await hold(api, field, tasks[1], -1)
    answer = await api.call("tasks.enqueue_many", {"ids": tasks, "queue": queue})
    assert [item["id"] for item in answer["succeeded"]] == tasks


async def test_a_queued_task_whose_deletion_fails_stays_in_its_queue(
    api: Api, queued: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: Any) -> int:
        raise EventStoreBusy("no", overloaded=False)

    monkeypatch.setattr(api.backend.events, "delete", fail)
    assert await status(api, "tasks.delete", {"task": queued, "force": True}) == 503
    assert (await get(api, queued))["status"] == "queued"
    assert await is_consistent(api, queued)


async def test_a_queue_is_cleared_of_a_task_that_is_not_there(api: Api, queue: str, three: list[str]) -> None:
    await api.backend.documents.delete("tasks", {"id": three[0]})
    assert (await api.call("queues.clear_queue", {"queue": queue}))["removed_tasks"] == three
    assert [(await get(api, task))["status"] for task in three[1:]] == ["created", "created"]
