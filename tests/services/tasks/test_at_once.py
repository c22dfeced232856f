"""Calls that change a task at once: one deletes it while another publishes it, one queues it while another dequeues it.

Each order is written down: a call stops at a step until the other call has done its own. Which of two calls comes first
is decided by the documents, so the tests are on both stores of these, and their events on the embedded store.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from apiserver.services import holds, queue_entries
from apiserver.services.model_deletions import DELETING
from apiserver.services.tasks import cleanup, queueing, queueing_turns
from apiserver.services.tasks.task_documents import BEING_QUEUED, BEING_RESET
from apiserver.stores.documents.query import Update
from apiserver.stores.events.base import EventStoreBusy
from apiserver.times import from_now
from tests.engines import mongodb
from tests.harness import Api, running_api
from tests.services.tasks.calls import get, make, put, refused, report

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["embedded", "mongodb"])
async def api(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Api]:
    settings: dict[str, Any] = {}
    if request.param == "mongodb":
        url, database = (request.getfixturevalue(name) for name in ("mongodb_url", "mongodb_shared_database"))
        settings = {"documents": mongodb.address(url, database), "migrate_at_start": True}
    async with running_api(tmp_path / "data", **settings) as running:
        yield running


class Step:
    """A step of a call, at which the first call stops until `go_on` is set. Calls that come later do not stop."""

    def __init__(self, owner: object, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.go_on = asyncio.Event(), asyncio.Event()
        self._do: Callable[..., Awaitable[Any]] = getattr(owner, name)
        monkeypatch.setattr(owner, name, self._stop)

    async def _stop(self, *arguments: Any, **named: Any) -> Any:
        if not self.reached.is_set():
            self.reached.set()
            await self.go_on.wait()
        return await self._do(*arguments, **named)


async def status(api: Api, endpoint: str, request: dict[str, Any]) -> int:
    """The HTTP status of a call."""
    return (await api.raw("POST", f"/{endpoint}", json=request)).status_code


async def events(api: Api, task: str) -> int:
    found: int = (await api.call("events.get_task_events", {"task": task}))["total"]
    return found


async def hold(api: Api, field: str, task: str, seconds: float) -> None:
    """Write what a server leaves that dies while it holds the task."""
    await api.backend.documents.update("tasks", {"id": task}, Update(set={field: from_now(seconds)}))


# --- deleted and published ---------------------------------------------------------------------------


@pytest.fixture
async def archived(api: Api) -> str:
    """A task that may be deleted without force, with an event."""
    task = await make(api)
    await put(api, task, "completed")
    await report(api, task)
    await api.call("tasks.archive", {"tasks": [task]})
    return task


@pytest.mark.parametrize("force", [False, True])
async def test_a_task_that_is_being_deleted_is_not_published(
    api: Api, archived: str, monkeypatch: pytest.MonkeyPatch, force: bool
) -> None:
    emptied = Step(api.backend.events, "delete", monkeypatch)
    deleting = asyncio.create_task(api.call("tasks.delete", {"task": archived, "force": force}))
    await emptied.reached.wait()
    assert await status(api, "tasks.publish", {"task": archived}) == 503
    emptied.go_on.set()
    assert (await deleting)["deleted"] is True
    assert await refused(api, "tasks.publish", {"task": archived}) == (400, 101)


async def test_a_task_that_was_published_meanwhile_keeps_its_events(
    api: Api, archived: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = Step(cleanup, "_check_unpublished", monkeypatch)
    deleting = asyncio.create_task(status(api, "tasks.delete", {"task": archived}))
    await looked.reached.wait()
    await api.call("tasks.unarchive_many", {"ids": [archived]})
    await api.call("tasks.publish", {"task": archived})
    looked.go_on.set()
    assert await deleting == 400
    assert (await get(api, archived))["status"] == "published"
    assert await events(api, archived) == 1


async def test_a_deletion_that_took_too_long_does_not_delete_what_was_published_then(
    api: Api, archived: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    emptied = Step(api.backend.events, "delete", monkeypatch)
    deleting = asyncio.create_task(status(api, "tasks.delete", {"task": archived}))
    await emptied.reached.wait()
    await api.backend.documents.update("tasks", {"id": archived}, Update(set={BEING_RESET: from_now(-1)}))
    await api.call("tasks.publish", {"task": archived})
    emptied.go_on.set()
    assert await deleting == 503
    assert (await get(api, archived))["status"] == "published"


async def test_a_deletion_that_fails_holds_nobody_up(api: Api, archived: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: Any) -> int:
        raise EventStoreBusy("no", overloaded=False)

    with monkeypatch.context() as patch:
        patch.setattr(api.backend.events, "delete", fail)
        assert await status(api, "tasks.delete", {"task": archived}) == 503
    await api.call("tasks.publish", {"task": archived})


async def test_a_server_that_died_while_it_deleted_a_task_holds_nobody_up_for_long(api: Api) -> None:
    project = (await api.call("projects.create", {"name": "p"}))["id"]
    tasks = [await make(api, project=project) for _ in range(3)]
    for task in tasks:
        await hold(api, BEING_RESET, task, 30)
    assert await status(api, "tasks.delete", {"task": tasks[0]}) == 503
    assert await status(api, "tasks.delete", {"task": tasks[0], "force": True}) == 200
    for seconds in (-1, 3600):  # its time has passed, or it is of a server whose clock was wrong
        await hold(api, BEING_RESET, tasks[1], seconds)
        await hold(api, BEING_QUEUED, tasks[1], seconds)
        await api.call("tasks.enqueue", {"task": tasks[1], "queue_name": "q"})
        await api.call("tasks.dequeue", {"task": tasks[1]})
    assert await status(api, "tasks.delete", {"task": tasks[1]}) == 200
    answer = await api.call("projects.delete", {"project": project, "delete_contents": True, "force": True})
    assert answer["deleted_tasks"] == 1


async def test_two_calls_delete_a_task(api: Api, archived: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queueing_turns, "_PATIENCE", 60.0)  # a busy machine takes longer than a caller waits
    emptied = Step(api.backend.events, "delete", monkeypatch)
    first = asyncio.create_task(status(api, "tasks.delete", {"task": archived}))
    await emptied.reached.wait()
    second = asyncio.create_task(status(api, "tasks.delete", {"task": archived, "force": True}))
    emptied.go_on.set()
    assert await first == 200
    assert await second == 400  # it waited, and there is no such task any more


async def test_a_controller_that_is_started_while_its_steps_are_deleted_keeps_its_events(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller = await make(api, type="controller")
    step = await make(api, parent=controller)
    emptied = Step(api.backend.events, "delete", monkeypatch)
    request = {"task": controller, "include_pipeline_steps": True}
    deleting = asyncio.create_task(status(api, "tasks.delete", request))
    await emptied.reached.wait()  # the events of the step
    await hold(api, BEING_RESET, controller, -1)
    await api.call("tasks.started", {"task": controller})
    await report(api, controller)
    emptied.go_on.set()
    assert await deleting == 503
    assert await status(api, "tasks.get_by_id", {"task": step}) == 400
    assert (await get(api, controller))["status"] == "in_progress"
    assert await events(api, controller) == 1


@pytest.mark.parametrize("call", ["tasks.delete", "tasks.reset"])
async def test_a_run_that_starts_when_a_call_took_too_long_keeps_its_events(
    api: Api, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    task = await make(api)
    looked = Step(cleanup, "event_urls", monkeypatch)
    emptying = asyncio.create_task(status(api, call, {"task": task}))
    await looked.reached.wait()
    await hold(api, BEING_RESET, task, -1)
    await api.call("tasks.started", {"task": task})
    await report(api, task)
    looked.go_on.set()
    assert await emptying == 503
    assert (await get(api, task))["status"] == "in_progress"
    assert await events(api, task) == 1


async def test_a_controller_is_held_anew_after_each_step(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    controller = await make(api, type="controller")
    for _ in range(2):
        await make(api, parent=controller)
    delete, ends = api.backend.events.delete, []

    async def noted(*arguments: Any) -> int:
        found = await api.backend.documents.find_one("tasks", {"id": controller})
        ends.append((found or {})[BEING_RESET])
        return await delete(*arguments)

    monkeypatch.setattr(api.backend.events, "delete", noted)
    moments = itertools.count()
    monkeypatch.setattr(holds.Hold, "until", lambda hold: from_now(hold.seconds - 10 + next(moments)))
    await api.call("tasks.delete", {"task": controller, "include_pipeline_steps": True})
    assert len(ends) == 3
    assert ends == sorted(set(ends))


# --- queued and dequeued -----------------------------------------------------------------------------


async def is_consistent(api: Api, task: str) -> bool:
    """Whether the task is queued and waits in one queue, or is not queued and waits in none."""
    queues = (await api.call("queues.get_all"))["queues"]
    entries: list[str] = [entry["task"] for queue in queues for entry in queue["entries"]]
    expected = 1 if (await get(api, task))["status"] == "queued" else 0
    return entries.count(task) == expected


async def has_to_wait(call: asyncio.Task[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Go on when it is not the call's turn, or when the call is done: then it has not waited."""
    waits, take = asyncio.Event(), queueing_turns._take

    async def watched(*arguments: Any) -> bool:
        taken = await take(*arguments)
        if not taken:
            waits.set()
        return taken

    monkeypatch.setattr(queueing_turns, "_take", watched)
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


@pytest.mark.parametrize("into", INTO)
@pytest.mark.parametrize("out", OUT)
async def test_a_task_is_taken_out_before_its_new_entry_is_written(
    api: Api, queued: str, monkeypatch: pytest.MonkeyPatch, into: str, out: str
) -> None:
    """Its status is queued when the other call looks, which finds no entry yet in the new queue."""
    appended = Step(queue_entries, "append" if into == "tasks.enqueue" else "append_many", monkeypatch)
    entering = asyncio.create_task(status(api, into, INTO[into](queued)))
    await appended.reached.wait()
    leaving = asyncio.create_task(status(api, out, OUT[out](queued)))
    await has_to_wait(leaving, monkeypatch)
    appended.go_on.set()
    assert {await entering, await leaving} <= {200}
    assert await is_consistent(api, queued)


async def test_a_task_is_queued_again_just_after_a_call_looked_whether_it_is_queued(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = await make(api)
    left = Step(queueing, "leave_queues", monkeypatch)
    leaving = asyncio.create_task(status(api, "tasks.dequeue", {"task": task}))
    await left.reached.wait()
    entering = asyncio.create_task(status(api, "tasks.enqueue", {"task": task, "queue_name": "q"}))
    await has_to_wait(entering, monkeypatch)
    left.go_on.set()
    assert {await entering, await leaving} == {200}
    assert (await get(api, task))["status"] == "queued"
    assert await is_consistent(api, task)


async def test_a_task_is_moved_while_it_is_taken_out(api: Api, queued: str, monkeypatch: pytest.MonkeyPatch) -> None:
    [source] = [queue["id"] for queue in (await api.call("queues.get_all", {"name": "^q$"}))["queues"]]
    target = (await api.call("queues.create", {"name": "target"}))["id"]
    removed = Step(queue_entries, "remove", monkeypatch)
    request = {"task": queued, "queue": source, "target_queue": target, "update_execution_queue": True}
    moving = asyncio.create_task(status(api, "queues.move_task_to_queue", request))
    await removed.reached.wait()
    leaving = asyncio.create_task(status(api, "tasks.dequeue", {"task": queued}))
    await has_to_wait(leaving, monkeypatch)
    removed.go_on.set()
    assert {await moving, await leaving} == {200}
    assert (await get(api, queued))["status"] == "created"
    assert await is_consistent(api, queued)


async def test_a_call_waits_for_its_turn_only_for_a_while(
    api: Api, queued: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queueing_turns, "_PATIENCE", 0)
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


@pytest.mark.parametrize("field", [BEING_QUEUED, BEING_RESET])
@pytest.mark.parametrize("out", OUT_OF)
async def test_a_call_that_cannot_take_a_task_out_leaves_none_queued_in_no_queue(
    api: Api, queue: str, three: list[str], monkeypatch: pytest.MonkeyPatch, out: str, field: str
) -> None:
    monkeypatch.setattr(queueing_turns, "_PATIENCE", 0)
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


@pytest.mark.parametrize("field", [BEING_QUEUED, BEING_RESET])
async def test_a_batch_with_a_task_that_cannot_be_queued_leaves_none_queued_in_no_queue(
    api: Api, queue: str, monkeypatch: pytest.MonkeyPatch, field: str
) -> None:
    monkeypatch.setattr(queueing_turns, "_PATIENCE", 0)
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


# --- models of a task that is deleted ------------------------------------------------------------------


@pytest.fixture
async def draft(api: Api, archived: str) -> str:
    """A draft model of the task, with an event."""
    made = await api.call("models.update_for_task", {"task": archived, "uri": "http://localhost:8081/w.bin"})
    event = {"type": "plot", "model_event": True, "task": made["id"], "metric": "m", "variant": "v", "plot_str": "{}"}
    await api.call("events.add", {**event, "iter": 0})
    model: str = made["id"]
    return model


async def model_of(api: Api, model: str) -> dict[str, Any]:
    found: dict[str, Any] = (await api.call("models.get_by_id", {"model": model}))["model"]
    return found


#: The calls that publish a model, with their requests.
PUBLISHING: dict[str, Callable[[str], dict[str, Any]]] = {
    "models.set_ready": lambda model: {"model": model, "publish_task": False},
    "models.edit": lambda model: {"model": model, "ready": True},
    "models.update": lambda model: {"model": model, "ready": True},
}
#: The calls that delete the draft models of a task.
EMPTYING: dict[str, dict[str, Any]] = {
    "tasks.delete": {"force": True, "delete_output_models": True},
    "tasks.reset": {"force": True, "delete_output_models": True},
}


@pytest.mark.parametrize("publish", PUBLISHING)
@pytest.mark.parametrize("empty", EMPTYING)
async def test_a_model_that_is_published_just_before_its_task_goes_stays_with_its_events(
    api: Api, archived: str, draft: str, monkeypatch: pytest.MonkeyPatch, empty: str, publish: str
) -> None:
    """The deletion found it as a draft. It deletes nothing then, and keeps the model the next time."""
    looked = Step(cleanup, "event_urls", monkeypatch)
    emptying = asyncio.create_task(status(api, empty, {"task": archived, **EMPTYING[empty]}))
    await looked.reached.wait()
    await api.call(publish, PUBLISHING[publish](draft))
    looked.go_on.set()
    assert await emptying == 503
    assert await events(api, archived) == 1
    assert await status(api, empty, {"task": archived, **EMPTYING[empty]}) == 200
    found = await model_of(api, draft)
    assert (found["ready"], found["task"]["id"] if isinstance(found["task"], dict) else found["task"]) == (
        True,
        f"__DELETED__{archived}" if empty == "tasks.delete" else archived,
    )
    assert (await api.call("events.get_task_plots", {"task": draft, "model_events": True}))["total"] == 1


@pytest.mark.parametrize("publish", PUBLISHING)
@pytest.mark.parametrize("empty", EMPTYING)
async def test_a_model_that_is_being_deleted_is_not_published(
    api: Api, archived: str, draft: str, monkeypatch: pytest.MonkeyPatch, empty: str, publish: str
) -> None:
    emptied = Step(api.backend.events, "delete", monkeypatch)
    emptying = asyncio.create_task(api.call(empty, {"task": archived, **EMPTYING[empty]}))
    await emptied.reached.wait()
    assert "being_deleted_until" not in await model_of(api, draft)
    assert await status(api, publish, PUBLISHING[publish](draft)) == 503
    emptied.go_on.set()
    assert (await emptying)["deleted_models"] == 1
    assert await refused(api, publish, PUBLISHING[publish](draft)) == (400, 201)


@pytest.mark.parametrize("publish", PUBLISHING)
@pytest.mark.parametrize("empty", EMPTYING)
async def test_a_model_that_is_published_once_its_hold_has_ended_is_not_deleted(
    api: Api, archived: str, draft: str, monkeypatch: pytest.MonkeyPatch, empty: str, publish: str
) -> None:
    """A deletion takes longer than it may hold the model. Then somebody else may publish it, and keeps it."""
    emptied = Step(api.backend.events, "delete", monkeypatch)
    emptying = asyncio.create_task(status(api, empty, {"task": archived, **EMPTYING[empty]}))
    await emptied.reached.wait()
    with monkeypatch.context() as later:
        later.setattr(holds, "utc_now", lambda: from_now(DELETING.seconds + 1))
        await api.call(publish, PUBLISHING[publish](draft))
    emptied.go_on.set()
    await emptying
    assert (await model_of(api, draft))["ready"] is True


async def test_a_task_that_is_published_does_not_publish_a_model_that_is_being_deleted(
    api: Api, archived: str, draft: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model is in the list of another task."""
    other = await make(api)
    await api.call("tasks.add_or_update_model", {"task": other, "type": "output", "name": "m", "model": draft})
    await put(api, other, "completed")
    emptied = Step(api.backend.events, "delete", monkeypatch)
    deleting = asyncio.create_task(api.call("tasks.delete", {"task": archived, **EMPTYING["tasks.delete"]}))
    await emptied.reached.wait()
    await api.call("tasks.publish", {"task": other})
    emptied.go_on.set()
    assert (await deleting)["deleted_models"] == 1
    assert await refused(api, "models.get_by_id", {"model": draft}) == (400, 201)


async def test_a_deletion_of_models_that_fails_or_dies_holds_nobody_up(
    api: Api, archived: str, draft: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: Any) -> int:
        raise EventStoreBusy("no", overloaded=False)

    with monkeypatch.context() as patch:
        patch.setattr(api.backend.events, "delete", fail)
        assert await status(api, "tasks.delete", {"task": archived, **EMPTYING["tasks.delete"]}) == 503
    await api.call("models.edit", {"model": draft, "comment": "changed"})
    for seconds, expected in ((30, 503), (-1, 200), (3600, 200)):
        held = Update(set={"being_deleted_until": from_now(seconds)})
        await api.backend.documents.update("models", {"id": draft}, held)
        assert await status(api, "models.edit", {"model": draft, "comment": f"in {seconds}"}) == expected
    await api.call("models.set_ready", {"model": draft, "publish_task": False})


@pytest.mark.parametrize("empty", EMPTYING)
async def test_a_task_whose_model_is_published_just_before_it_is_emptied_is_not_without_force(
    api: Api, archived: str, draft: str, monkeypatch: pytest.MonkeyPatch, empty: str
) -> None:
    """The call has found no published model yet, and finds no draft any more."""
    looked = Step(cleanup, "_removable_models", monkeypatch)
    emptying = asyncio.create_task(refused(api, empty, {"task": archived, "delete_output_models": True}))
    await looked.reached.wait()
    await api.call("models.set_ready", PUBLISHING["models.set_ready"](draft))
    looked.go_on.set()
    assert await emptying == (400, 123)
    assert (await get(api, archived))["status"] == "completed"
    assert await events(api, archived) == 1


async def test_of_two_calls_one_publishes_a_model(api: Api, draft: str, monkeypatch: pytest.MonkeyPatch) -> None:
    request = PUBLISHING["models.set_ready"](draft)
    writing = Step(api.backend.documents, "update", monkeypatch)
    first = asyncio.create_task(refused(api, "models.set_ready", request))
    await writing.reached.wait()
    await api.call("models.set_ready", request)
    writing.go_on.set()
    assert await first == (400, 203)


@pytest.mark.parametrize("made_by", ["models.create", "models.edit", "models.update_for_task"])
@pytest.mark.parametrize("is_late", [False, True])
async def test_a_model_that_is_made_while_its_task_is_deleted_names_a_deleted_task(
    api: Api, archived: str, monkeypatch: pytest.MonkeyPatch, made_by: str, is_late: bool
) -> None:
    """It is written while the task is emptied, or (`is_late`) when the task is gone already."""
    model = (await api.call("models.create", {"name": "m", "uri": "u"}))["id"]
    requests: dict[str, dict[str, Any]] = {
        "models.create": {"name": "made", "uri": "u", "task": archived},
        "models.edit": {"model": model, "name": "made", "task": archived},
        "models.update_for_task": {"task": archived, "name": "made", "uri": "u"},
    }
    documents = api.backend.documents
    writing = Step(documents, "update" if made_by == "models.edit" else "insert", monkeypatch)
    making = asyncio.create_task(status(api, made_by, requests[made_by]))
    await writing.reached.wait()
    if is_late:
        await api.call("tasks.delete", {"task": archived})
        writing.go_on.set()
        await making
    else:
        marked = Step(cleanup, "leave_queues", monkeypatch)
        deleting = asyncio.create_task(api.call("tasks.delete", {"task": archived}))
        await marked.reached.wait()
        writing.go_on.set()
        await making
        marked.go_on.set()
        assert (await deleting)["updated_models"] == 1
    [found] = await documents.find("models", {"name": "made"})
    assert found["task"] == f"__DELETED__{archived}"
