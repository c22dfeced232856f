"""queues.*, through the whole server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.harness import Api

pytestmark = pytest.mark.anyio


@pytest.fixture
async def queue(api: Api) -> str:
    made: str = (await api.call("queues.create", {"name": "gpu"}))["id"]
    return made


async def new_tasks(api: Api, count: int) -> list[str]:
    return [(await api.call("tasks.create", {"name": f"task {n}", "type": "training"}))["id"] for n in range(count)]


async def fill(api: Api, queue: str, count: int) -> list[str]:
    """Enqueue so many new tasks; their ids."""
    tasks = await new_tasks(api, count)
    for task in tasks:
        await api.call("tasks.enqueue", {"task": task, "queue": queue})
    return tasks


async def entries(api: Api, queue: str) -> list[str]:
    return [entry["task"] for entry in (await api.call("queues.get_by_id", {"queue": queue}))["queue"]["entries"]]


async def status(api: Api, task: str) -> str:
    found: str = (await api.call("tasks.get_by_id", {"task": task}))["task"]["status"]
    return found


# --- queues ------------------------------------------------------------------------------------------


async def test_a_new_queue_has_all_its_fields(api: Api, queue: str) -> None:
    made = (await api.call("queues.get_by_id", {"queue": queue}))["queue"]

    assert (made["name"], made["display_name"], made["entries"]) == ("gpu", "gpu", [])
    assert (made["tags"], made["system_tags"], made["metadata"]) == ([], [], {})
    assert made["created"] == made["last_update"]
    assert made["user"] == (await api.call("users.get_current_user"))["user"]["id"]


async def test_a_name_tried_as_an_id_is_an_error_as_the_sdk_expects(api: Api, queue: str) -> None:
    answer = await api.call("queues.get_by_id", {"queue": "gpu"}, expect=400)
    assert (answer["meta"]["result_code"], answer["meta"]["result_subcode"]) == (400, 701)


async def test_names_are_unique(api: Api, queue: str) -> None:
    answer = await api.call("queues.create", {"name": "gpu"}, expect=400)
    assert answer["meta"]["result_subcode"] == 704
    other = (await api.call("queues.create", {"name": "cpu"}))["id"]
    answer = await api.call("queues.update", {"queue": other, "name": "gpu"}, expect=400)
    assert answer["meta"]["result_subcode"] == 704


@pytest.mark.parametrize("name", ["", "  \t"])
async def test_blank_names_are_refused(api: Api, queue: str, name: str) -> None:
    for endpoint, request in (("create", {"name": name}), ("update", {"queue": queue, "name": name})):
        answer = await api.call(f"queues.{endpoint}", request, expect=400)
        assert answer["meta"]["error_data"] == {"field": "name"}


async def test_update_changes_what_is_given(api: Api, queue: str) -> None:
    before = (await api.call("queues.get_by_id", {"queue": queue}))["queue"]

    answer = await api.call("queues.update", {"queue": queue, "name": "gpus", "tags": ["fast"]})

    assert answer == {"updated": 1, "fields": {"name": "gpus", "tags": ["fast"]}}
    after = (await api.call("queues.get_by_id", {"queue": queue}))["queue"]
    assert (after["name"], after["tags"], after["display_name"]) == ("gpus", ["fast"], "gpu")
    assert after["last_update"] > before["last_update"]


async def test_queues_are_found_as_sdk_and_agent_look_for_them(api: Api, queue: str) -> None:
    await api.call("queues.create", {"name": "a.b", "tags": ["fast"]})
    await api.call("queues.create", {"name": "secret", "system_tags": ["hidden"]})
    glue = (await api.call("queues.create", {"name": "cluster", "system_tags": ["k8s-glue"]}))["id"]

    async def names(**request: Any) -> list[str]:
        return [found["name"] for found in (await api.call("queues.get_all", request))["queues"]]

    assert await names() == ["default", "gpu", "a.b"]
    assert await names(name=r"^a\.b$", only_fields=["name", "id"]) == ["a.b"]
    assert await names(id=[queue], only_fields=["name"]) == ["gpu"]
    assert await names(tags=["fast"]) == ["a.b"]
    assert await names(tags=["-fast"]) == ["default", "gpu"]
    assert await names(system_tags=["default"]) == ["default"]
    assert await names(search_hidden=True, order_by=["-name"], page=0, page_size=2) == ["secret", "gpu"]
    assert await names(name="^cluster$") == await names(id=[glue]) == ["cluster"]
    assert await names(_any_={"fields": ["name"], "pattern": "GP"}) == ["gpu"]
    assert await names(search_text="A.B") == ["a.b"]
    assert await names(filters={"tags": {"any": {"include": ["fast"]}}}) == ["a.b"]
    answer = await api.call("queues.get_all", {"name": "["}, expect=400)
    assert answer["meta"]["result_subcode"] == 12


async def test_scrolling_visits_each_queue_once(api: Api) -> None:
    for n in range(5):
        await api.call("queues.create", {"name": f"queue {n}"})
    seen: list[str] = []
    request: dict[str, Any] = {"size": 2}
    while found := (answer := await api.call("queues.get_all", request))["queues"]:
        seen += [queue["name"] for queue in found]
        request["scroll_id"] = answer["scroll_id"]
    assert seen == ["default", *(f"queue {n}" for n in range(5))]


async def test_the_default_queue_is_there(api: Api) -> None:
    default = await api.call("queues.get_default")
    assert default["name"] == "default"
    await api.call("queues.delete", {"queue": default["id"]})
    answer = await api.call("queues.get_default", expect=400)
    assert answer["meta"]["result_subcode"] == 707


async def test_entries_are_cut_where_asked(api: Api, queue: str) -> None:
    tasks = await fill(api, queue, 3)

    one = (await api.call("queues.get_by_id", {"queue": queue, "max_task_entries": 2}))["queue"]
    [found] = (await api.call("queues.get_all", {"id": [queue], "max_task_entries": 1}))["queues"]

    assert [entry["task"] for entry in one["entries"]] == tasks[:2]
    assert [entry["task"] for entry in found["entries"]] == tasks[:1]


async def test_entries_are_counted_where_asked(api: Api, queue: str) -> None:
    await fill(api, queue, 3)
    asked = {"id": [queue], "count_task_entries": True, "max_task_entries": 1, "only_fields": ["entries"]}
    [found] = (await api.call("queues.get_all_ex", asked))["queues"]
    assert (found["entries_count"], len(found["entries"])) == (3, 1)
    [plain] = (await api.call("queues.get_all", {"id": [queue]}))["queues"]
    assert "entries_count" not in plain


async def test_get_all_ex_names_tasks_and_workers(api: Api, queue: str) -> None:
    [task] = await fill(api, queue, 1)
    await api.call("workers.register", {"worker": "host:0", "queues": [queue]})
    await api.call("workers.register", {"worker": "host:1", "queues": []})

    [found] = (await api.call("queues.get_all_ex", {"id": [queue]}))["queues"]

    assert [entry["task"] for entry in found["entries"]] == [{"id": task, "name": "task 0"}]
    user = (await api.call("users.get_current_user"))["user"]
    key = f"worker_{user['company']['id']}_{user['id']}_host:0"
    assert found["workers"] == [{"name": "host:0", "ip": "127.0.0.1", "task": None, "key": key}]
    report = {"worker": "host:0", "timestamp": 1, "task": task}
    await api.call("workers.status_report", report)
    [found] = (await api.call("queues.get_all_ex", {"id": [queue]}))["queues"]
    assert found["workers"][0]["task"] == {"id": task, "name": "task 0"}
    only = {"id": [queue], "only_fields": ["name", "entries.task.name"]}
    [found] = (await api.call("queues.get_all_ex", only))["queues"]
    assert found["entries"] == [{"task": {"id": task, "name": "task 0"}}]


# --- deleting ----------------------------------------------------------------------------------------


async def test_an_empty_queue_is_deleted(api: Api, queue: str) -> None:
    assert await api.call("queues.delete", {"queue": queue}) == {"deleted": 1}
    await api.call("queues.get_by_id", {"queue": queue}, expect=400)


async def test_a_queue_with_tasks_needs_force(api: Api, queue: str) -> None:
    [task] = await fill(api, queue, 1)

    answer = await api.call("queues.delete", {"queue": queue}, expect=400)

    assert answer["meta"]["result_subcode"] == 702
    assert await entries(api, queue) == [task]
    assert await api.call("queues.delete", {"queue": queue, "force": True}) == {"deleted": 1}
    assert await status(api, task) == "created"


async def test_clearing_gives_tasks_back_their_status(api: Api, queue: str) -> None:
    tasks = await fill(api, queue, 2)
    await api.call("tasks.dequeue", {"task": tasks[1]})
    await api.call("tasks.started", {"task": tasks[1]})
    await api.call("tasks.stopped", {"task": tasks[1]})
    await api.call("tasks.enqueue", {"task": tasks[1], "queue": queue})

    assert await api.call("queues.clear_queue", {"queue": queue}) == {"removed_tasks": tasks}

    assert await entries(api, queue) == []
    assert [await status(api, task) for task in tasks] == ["created", "stopped"]


# --- entries -----------------------------------------------------------------------------------------


async def test_tasks_are_added_once_and_removed(api: Api, queue: str) -> None:
    [task] = await new_tasks(api, 1)

    assert await api.call("queues.add_task", {"queue": queue, "task": task}) == {"added": 1}
    again = await api.call("queues.add_task", {"queue": queue, "task": task}, expect=400)
    assert again["meta"]["result_subcode"] == 706
    unknown = await api.call("queues.add_task", {"queue": queue, "task": "no task"}, expect=400)
    assert unknown["meta"]["result_subcode"] == 101

    assert await api.call("queues.get_num_entries", {"queue": queue}) == {"num": 1}
    assert await api.call("queues.remove_task", {"queue": queue, "task": task}) == {"removed": 1}
    again = await api.call("queues.remove_task", {"queue": queue, "task": task}, expect=400)
    assert again["meta"]["result_subcode"] == 703


async def test_a_task_that_waits_goes_to_another_queue(api: Api, queue: str) -> None:
    other = (await api.call("queues.create", {"name": "other"}))["id"]
    [first, second] = await fill(api, queue, 2)

    await api.call("queues.add_task", {"queue": other, "task": first})
    moved = (await api.call("tasks.get_by_id", {"task": first}))["task"]
    assert (moved["status"], moved["execution"]["queue"]) == ("queued", other)
    assert (await entries(api, queue), await entries(api, other)) == ([second], [first])

    await api.call("queues.remove_task", {"queue": queue, "task": second})
    assert await status(api, second) == "queued"
    await api.call("queues.remove_task", {"queue": other, "task": first, "update_task_status": True})
    assert await status(api, first) == "created"


async def test_a_task_is_moved_to_another_queue(api: Api, queue: str) -> None:
    other = (await api.call("queues.create", {"name": "other", "display_name": "The other"}))["id"]
    first, second = await fill(api, queue, 2)
    move = {"queue": queue, "task": first, "target_queue": other}
    assert await api.call("queues.move_task_to_queue", move) == {"moved": 1}
    assert (await entries(api, queue), await entries(api, other)) == ([second], [first])
    assert await status(api, first) == "queued"
    found = await api.call("queues.get_by_task_id", {"task": first})
    assert found == {"id": other, "name": "other", "display_name": "The other"}
    assert (await api.call("tasks.get_by_id", {"task": first}))["task"]["execution"]["queue"] == other


async def test_what_does_not_wait_is_not_moved(api: Api, queue: str) -> None:
    other = (await api.call("queues.create", {"name": "other"}))["id"]
    [task] = await new_tasks(api, 1)
    for call, request in (
        ("queues.move_task_to_queue", {"queue": queue, "task": task, "target_queue": other}),
        ("queues.get_by_task_id", {"task": task}),
    ):
        assert (await api.call(call, request, expect=400))["meta"]["result_subcode"] == 703
    assert await entries(api, other) == []


async def test_a_task_that_is_moved_to_where_it_is_stays_there(api: Api, queue: str) -> None:
    [task] = await fill(api, queue, 1)
    move = {"queue": queue, "task": task, "target_queue": queue}
    refusal = await api.call("queues.move_task_to_queue", move, expect=400)
    assert refusal["meta"]["error_data"] == {"field": "target_queue"}
    assert await entries(api, queue) == [task]


async def test_tasks_leave_in_the_order_they_came(api: Api, queue: str) -> None:
    tasks = await fill(api, queue, 3)

    assert await api.call("queues.peek_task", {"queue": queue}) == {"task": tasks[0]}
    taken = [(await api.call("queues.get_next_task", {"queue": queue}))["entry"]["task"] for _ in tasks]

    assert taken == tasks
    assert await api.call("queues.get_next_task", {"queue": queue}) == {}
    assert await api.call("queues.peek_task", {"queue": queue}) == {"task": None}


async def test_agents_learn_whose_task_they_got(api: Api, queue: str) -> None:
    await fill(api, queue, 1)
    answer = await api.call("queues.get_next_task", {"queue": queue, "get_task_info": True}, version="2.14")
    user = (await api.call("users.get_current_user"))["user"]
    assert answer["task_info"] == {"company": user["company"]["id"], "user": user["id"]}


async def test_entries_of_deleted_tasks_are_passed_over(api: Api, queue: str) -> None:
    tasks = await fill(api, queue, 2)
    await api.backend.documents.delete("tasks", {"id": tasks[0]})
    assert (await api.call("queues.get_next_task", {"queue": queue}))["entry"]["task"] == tasks[1]


@pytest.mark.test
async def test_no_two_agents_get_the_same_task(api: Api, queue: str) -> None:
    tasks = await fill(api, queue, 40)

    async def agent() -> list[str]:
        mine = []
        while answer := await api.call("queues.get_next_task", {"queue": queue}):
            mine.append(answer["entry"]["task"])
        return mine

    taken = await asyncio.gather(*(agent() for _ in range(8)))
    assert sorted(task for mine in taken for task in mine) == sorted(tasks)


@pytest.mark.test
async def test_moves_and_takes_at_once_lose_and_double_nothing(api: Api, queue: str) -> None:
    tasks = await fill(api, queue, 20)

    async def move(task: str) -> None:
        await api.raw("POST", "/queues.move_task_to_front", json={"queue": queue, "task": task})

    async def take() -> str:
        taken: str = (await api.call("queues.get_next_task", {"queue": queue}))["entry"]["task"]
        return taken

    taken = await asyncio.gather(*(take() for _ in range(10)), *(move(task) for task in tasks[10:]))
    left = await entries(api, queue)
    assert sorted([task for task in taken if task] + left) == sorted(tasks)


@pytest.mark.test
@pytest.mark.parametrize(
    ("action", "request_", "order", "position"),
    [
        ("forward", {}, [0, 2, 1, 3], 1),
        ("forward", {"count": 9}, [2, 0, 1, 3], 0),
        ("backward", {}, [0, 1, 3, 2], 3),
        ("backward", {"count": 9}, [0, 1, 3, 2], 3),
        ("backward", {"count": -2}, [2, 0, 1, 3], 0),
        ("backward", {"count": 0}, [0, 1, 2, 3], 2),
        ("forward", {"count": -9}, [0, 1, 3, 2], 3),
        ("to_front", {}, [2, 0, 1, 3], 0),
        ("to_back", {}, [0, 1, 3, 2], 3),
    ],
)
async def test_tasks_are_moved(
    api: Api, queue: str, action: str, request_: dict[str, int], order: list[int], position: int
) -> None:
    tasks = await fill(api, queue, 4)

    answer = await api.call(f"queues.move_task_{action}", {"queue": queue, "task": tasks[2], **request_})

    assert answer == {"position": position}
    assert await entries(api, queue) == [tasks[n] for n in order]


async def test_only_queued_tasks_are_moved(api: Api, queue: str) -> None:
    answer = await api.call("queues.move_task_to_front", {"queue": queue, "task": "no task"}, expect=400)
    assert answer["meta"]["result_subcode"] == 703


# --- metadata ----------------------------------------------------------------------------------------


async def test_metadata_is_given_with_the_queue_as_a_list_or_by_keys(api: Api) -> None:
    item = {"key": "a.b", "type": "int", "value": "1"}
    for name, metadata in (
        ("list", [item]),
        ("map", {"a.b": item}),
        ("keys alone", {"a.b": {"type": "int", "value": "1"}}),
    ):
        queue = (await api.call("queues.create", {"name": name, "metadata": metadata}))["id"]
        assert (await api.call("queues.get_by_id", {"queue": queue}))["queue"]["metadata"] == {"a.b": item}

    answer = await api.call("queues.update", {"queue": queue, "metadata": {"c.d": {"value": "2"}}})
    assert answer["fields"] == {"metadata": {"c.d": {"key": "c.d", "type": None, "value": "2"}}}
    assert (await api.call("queues.get_by_id", {"queue": queue}))["queue"]["metadata"] == answer["fields"]["metadata"]
    for refused in ("a", [{"value": "no key"}], {"a": "no item"}):
        await api.call("queues.create", {"name": "other", "metadata": refused}, expect=400)


async def test_metadata_is_set_replaced_and_dropped(api: Api, queue: str) -> None:
    async def metadata() -> dict[str, Any]:
        found: dict[str, Any] = (await api.call("queues.get_by_id", {"queue": queue}))["queue"]["metadata"]
        return found

    item = {"key": "a.b$c", "type": "int", "value": "7"}
    await api.call("queues.add_or_update_metadata", {"queue": queue, "metadata": [item, {"key": "x"}]})
    assert await metadata() == {"a.b$c": item, "x": {"key": "x", "type": None, "value": None}}

    await api.call("queues.delete_metadata", {"queue": queue, "keys": ["a.b$c", "unknown"]})
    assert list(await metadata()) == ["x"]

    replacing = {"queue": queue, "metadata": [item], "replace_metadata": True}
    assert await api.call("queues.add_or_update_metadata", replacing) == {"updated": 1}
    assert await metadata() == {"a.b$c": item}
