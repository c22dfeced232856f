"""events.get_changes: cursors, what is told of which tasks, and to whom."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.services.access import credentials
from tests.harness import Api, Served
from tests.services.events.conftest import Add
from tests.services.events.test_scalars import scalar

pytestmark = pytest.mark.anyio

CHANGES = "events.get_changes"
REFUSED = "it is none that this server gave; leave it out to begin anew"


async def told(api: Api, cursor: str, *tasks: str, **more: Any) -> list[dict[str, Any]]:
    """The changes since a cursor."""
    answer = await api.call(CHANGES, {"tasks": tasks, "cursor": cursor, **more})
    assert answer["missing"] == []
    changed: list[dict[str, Any]] = answer["changes"]
    return changed


async def begun(api: Api, *tasks: str, **more: Any) -> str:
    """A cursor that says where things stand now."""
    answer = await api.call(CHANGES, {"tasks": tasks, **more})
    assert (answer["changes"], answer["missing"]) == ([], [])
    cursor: str = answer["cursor"]
    return cursor


def change(task: str, *series: dict[str, Any], log_lines: int = 0, everything: bool = False) -> dict[str, Any]:
    return {"task": task, "everything": everything, "series": list(series), "log_lines": log_lines}


def ends(type: str, metric: str, variant: str, start: int, stop: int) -> dict[str, Any]:
    return {"type": type, "metric": metric, "variant": variant, "from": start, "to": stop}


@pytest.fixture
async def other(api: Api) -> str:
    created: str = (await api.call("tasks.create", {"name": "another task", "type": "training"}))["id"]
    return created


async def test_what_came_is_told_by_series_and_iterations(api: Api, add: Add, task: str, other: str) -> None:
    await add(scalar(task, 0, 1.0), scalar(other, 0, 1.0))
    cursor = await begun(api, task, other)
    assert await told(api, cursor, task, other) == []
    plot = {"type": "plot", "task": task, "metric": "p", "variant": "q", "plot_str": "{}"}
    image = {"type": "training_debug_image", "task": task, "metric": "i", "variant": "j", "url": "http://f/i.png"}
    vector = {"type": "training_stats_vector", "task": task, "metric": "k", "variant": "l", "values": [1, 2]}
    line = {"type": "log", "task": task, "msg": "a line"}
    await add(
        *(scalar(task, n, 2.0) for n in (7, 3)),
        *({**one, "iter": 5} for one in (plot, image, vector)),
        {**plot, "iter": 6},
        line,
        line,
    )
    expected = change(
        task,
        ends("plot", "p", "q", 5, 6),
        ends("training_debug_image", "i", "j", 5, 5),
        ends("training_stats_scalar", "m", "v", 3, 7),
        ends("training_stats_vector", "k", "l", 5, 5),
        log_lines=2,
    )
    assert await told(api, cursor, task, other) == [expected]
    assert await told(api, cursor, other, other) == []


async def test_a_cursor_is_for_any_tasks(api: Api, add: Add, task: str, other: str) -> None:
    cursor = await begun(api, task)
    await add(scalar(other, 1, 1.0))
    assert await told(api, cursor, other) == [change(other, ends("training_stats_scalar", "m", "v", 1, 1))]


async def test_models_have_changes_of_their_own(api: Api, add: Add, task: str) -> None:
    model: str = (await api.call("models.create", {"name": "m", "uri": "file:///m", "ready": False}))["id"]
    cursor = await begun(api, model, model_events=True)
    await add({**scalar(model, 1, 1.0), "model_event": True})
    expected = [change(model, ends("training_stats_scalar", "m", "v", 1, 1))]
    assert await told(api, cursor, model, model_events=True) == expected
    assert await told(api, cursor, task) == []


@pytest.mark.test
@pytest.mark.parametrize("endpoint", ["tasks.reset", "events.delete_for_task", "events.clear_task_log", "tasks.delete"])
async def test_what_is_deleted_is_told(api: Api, add: Add, task: str, endpoint: str) -> None:
    await add(scalar(task, 1, 1.0), {"type": "log", "task": task, "msg": "a line"})
    cursor = await begun(api, task)
    await api.call(endpoint, {"task": task})
    answer = await api.call(CHANGES, {"tasks": [task], "cursor": cursor})
    if endpoint == "tasks.delete":
        assert (answer["changes"], answer["missing"]) == ([], [task])
    else:
        assert (answer["changes"], answer["missing"]) == ([change(task, everything=True)], [])


async def test_tasks_that_do_not_exist_are_named(api: Api, task: str, other: str) -> None:
    answer = await api.call(CHANGES, {"tasks": ["nobody", task, other, "nothing"]})
    assert answer["missing"] == ["nobody", "nothing"]
    await api.call("tasks.delete", {"task": other})
    answer = await api.call(CHANGES, {"tasks": [task, other], "cursor": answer["cursor"]})
    assert (answer["changes"], answer["missing"]) == ([], [other])


@pytest.mark.test
@pytest.mark.own_api
async def test_what_is_public_is_told_to_all(api: Api, add: Add, task: str, other: str) -> None:
    _, made = await credentials.create_user(api.backend.documents, "another company", "eve", "admin")
    theirs = (made.key, made.secret)
    await api.call("tasks.make_public", {"ids": [task]})
    answer = await api.call(CHANGES, {"tasks": [task, other]}, auth=theirs)
    assert answer["missing"] == [other]
    await api.call("tasks.make_private", {"ids": [task]})
    await add(scalar(task, 1, 1.0), scalar(other, 1, 1.0))
    await api.call("tasks.make_public", {"ids": [task]})
    answer = await api.call(CHANGES, {"tasks": [task, other], "cursor": answer["cursor"]}, auth=theirs)
    assert answer["missing"] == [other]
    assert answer["changes"] == [change(task, ends("training_stats_scalar", "m", "v", 1, 1))]


@pytest.mark.test
@pytest.mark.own_api
async def test_nothing_is_told_to_another_company(api: Api, add: Add, task: str) -> None:
    cursor = await begun(api, task)
    _, made = await credentials.create_user(api.backend.documents, "another company", "eve", "admin")
    theirs = (made.key, made.secret)
    answer = await api.call(CHANGES, {"tasks": [task]}, auth=theirs)
    await add(scalar(task, 1, 1.0))
    answer = await api.call(CHANGES, {"tasks": [task], "cursor": answer["cursor"]}, auth=theirs)
    assert answer["changes"] == []
    await refused(api, task, cursor, auth=theirs)


@pytest.mark.test
@pytest.mark.parametrize(
    "damage", [lambda text: text[:-1], lambda text: f"!{text[1:]}", lambda text: "é", lambda text: "x" * 60_000]
)
async def test_a_cursor_that_nobody_was_given_is_refused(api: Api, task: str, damage: Any) -> None:
    cursor = damage(await begun(api, task))
    await refused(api, task, cursor)


async def refused(api: Api, task: str, cursor: str, **how: Any) -> None:
    """Ask with a cursor, and get 400 that names it."""
    answer = await api.call(CHANGES, {"tasks": [task], "cursor": cursor}, expect=400, **how)
    assert REFUSED in answer["meta"]["result_msg"]
    assert answer["meta"]["error_data"] == {"field": "cursor"}


def test_a_cursor_outlives_a_killed_server(server: Served) -> None:
    """Who has seen all is told just what came later, by the next process."""
    task = server.call("tasks.create", {"name": "a task", "type": "training"})["id"]
    server.call("events.add", scalar(task, 1, 1.0))
    cursor = server.call(CHANGES, {"tasks": [task]})["cursor"]
    server.kill()
    server.start()
    answer = server.call(CHANGES, {"tasks": [task], "cursor": cursor})
    assert answer["changes"] == []
    server.call("events.add", scalar(task, 5, 1.0))
    server.kill()
    server.start()
    for before in (cursor, answer["cursor"]):
        (changed,) = server.call(CHANGES, {"tasks": [task], "cursor": before})["changes"]
        assert changed == change(task, everything=True) or changed["series"][0]["to"] == 5
