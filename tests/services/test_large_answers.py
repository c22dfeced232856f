"""Answers that would be too large: what is refused, and what is not."""

from __future__ import annotations

import pytest

from apiserver.common.answers import AnswerBounds
from apiserver.server.bounds import Bounds
from tests.harness import Api

pytestmark = pytest.mark.anyio


small_bound = pytest.mark.bounds(Bounds(answers=AnswerBounds(largest=10**6)))


async def tasks(api: Api, count: int, comment: str) -> list[str]:
    made = []
    for n in range(count):
        fields = {"name": f"{n:02}", "type": "training", "comment": comment}
        made.append((await api.call("tasks.create", fields))["id"])
    return made


@pytest.mark.test
@small_bound
async def test_only_what_is_asked_for_counts(api: Api) -> None:
    ids = await tasks(api, 20, "x" * 10**5)
    found = await api.call("tasks.get_all", {"only_fields": ["id", "name"]})
    assert {task["id"] for task in found["tasks"]} == set(ids)
    answer = await api.call("tasks.get_all", {}, expect=400)
    assert "ask for less at once" in answer["meta"]["result_msg"]
    assert len((await api.call("tasks.get_all", {"page": 0, "page_size": 2}))["tasks"]) == 2


@pytest.mark.test
@small_bound
@pytest.mark.parametrize("endpoint", ["tasks.get_all", "tasks.get_all_ex"])
async def test_a_scroll_stays_where_it_was_when_its_page_is_too_large(api: Api, endpoint: str) -> None:
    await tasks(api, 20, "x" * 10**5)
    asked = {"order_by": ["name"]}
    first = await api.call(endpoint, {**asked, "size": 2})
    scroll = {**asked, "scroll_id": first["scroll_id"]}
    await api.call(endpoint, {**scroll, "size": 15}, expect=400)
    second = await api.call(endpoint, {**scroll, "size": 2})
    assert [task["name"] for task in second["tasks"]] == ["02", "03"]


@pytest.mark.test
async def test_what_can_be_written_can_be_read(api: Api) -> None:
    [task] = await tasks(api, 1, "7," * 10**6)
    found = (await api.call("tasks.get_by_id", {"task": task}))["task"]
    assert found["comment"] == "7," * 10**6
