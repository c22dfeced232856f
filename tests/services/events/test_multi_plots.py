"""events.get_multi_task_plots."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness import Api
from tests.services.events.conftest import Add
from tests.services.events.test_read import event

pytestmark = pytest.mark.anyio

PLOTS = "events.get_multi_task_plots"


def plot(task: str, iter: int, metric: str = "pm", variant: str = "a") -> dict[str, Any]:
    return event("plot", task, iter, metric=metric, variant=variant, plot_str=f'{{"iter": {iter}}}')


@pytest.fixture
async def other(api: Api) -> str:
    created: str = (await api.call("tasks.create", {"name": "other task", "type": "training"}))["id"]
    return created


def shown(answer: dict[str, Any], tasks: dict[str, str]) -> set[tuple[str, str, str, int]]:
    """(metric, variant, short name of the task, iteration) of each plot."""
    return {
        (one["metric"], one["variant"], tasks[one["task"]], one["iter"])
        for variants in answer["plots"].values()
        for of_tasks in variants.values()
        for iterations in of_tasks.values()
        for of_iteration in iterations.values()
        for one in of_iteration["plots"]
    }


async def test_the_newest_plots_lie_side_by_side(api: Api, add: Add, task: str, other: str) -> None:
    await add(*(plot(task, n) for n in range(4)), *(plot(other, n) for n in range(3)), plot(task, 1, "roc", "b"))
    answer = await api.call(PLOTS, {"tasks": [task, other], "no_scroll": True})
    assert (answer["returned"], answer["total"], answer["scroll_id"]) == (2, 3, None)
    of_variant = answer["plots"]["pm"]["a"]
    assert (list(of_variant[task]), list(of_variant[other])) == (["3"], ["2"])
    assert (of_variant[task]["3"]["name"], of_variant[other]["2"]["name"]) == ("a task", "other task")
    assert of_variant[other]["2"]["plots"][0]["plot_str"] == '{"iter": 2}'
    assert list(answer["plots"]["roc"]["b"][task]) == ["1"]


@pytest.mark.test
@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, {("pm", "a", "t", 3), ("roc", "b", "t", 1), ("pm", "a", "o", 9)}),
        ({"last_iters_per_task_metric": False}, {("pm", "a", "t", 3), ("pm", "a", "o", 9)}),
        (
            {"iters": 2, "last_iters_per_task_metric": False},
            {("pm", "a", "t", 3), ("pm", "a", "t", 2), ("pm", "a", "o", 9)},
        ),
        ({"metrics": [{"metric": "roc"}]}, {("roc", "b", "t", 1)}),
        ({"metrics": [{"metric": "roc"}], "last_iters_per_task_metric": False}, {("roc", "b", "t", 1)}),
        ({"metrics": [{"metric": "pm", "variants": ["b"]}]}, set()),
    ],
)
async def test_iterations_are_of_each_series_or_of_each_task(
    api: Api, add: Add, task: str, other: str, fields: dict[str, Any], expected: set[tuple[str, str, str, int]]
) -> None:
    await add(*(plot(task, n) for n in range(4)), plot(task, 1, "roc", "b"), plot(other, 9))
    answer = await api.call(PLOTS, {"tasks": [task, other], **fields})
    assert shown(answer, {task: "t", other: "o"}) == expected
    assert answer["total"] == len(expected)


async def test_a_scroll_ends_at_once(api: Api, add: Add, task: str, other: str) -> None:
    await add(plot(task, 1), plot(other, 1))
    request: dict[str, Any] = {"tasks": [task, other]}
    first = await api.call(PLOTS, request)
    rest = await api.call(PLOTS, {**request, "scroll_id": first["scroll_id"]})
    assert (rest["plots"], rest["returned"], rest["total"]) == ({}, 0, 2)
    for foreign in ({"tasks": [task], "scroll_id": first["scroll_id"]}, {**request, "scroll_id": "nope"}):
        assert (await api.call(PLOTS, foreign, expect=400))["meta"]["result_subcode"] == 1104


async def test_tasks_must_be_known_and_not_too_many(api: Api, task: str) -> None:
    meta = (await api.call(PLOTS, {"tasks": [task, "nope"]}, expect=400))["meta"]
    assert (meta["result_subcode"], task in meta["result_msg"]) == (101, True)
    too_many = [str(n) for n in range(api.backend.settings.multi_task_limit + 1)]
    for tasks in (too_many, []):
        meta = (await api.call(PLOTS, {"tasks": tasks}, expect=400))["meta"]
        assert meta["error_data"]["field"] == "tasks"


@pytest.mark.parametrize(("version", "actual"), [("1.8", "1.8"), ("2.1", "1.8"), ("2.34", "1.8")])
async def test_versions(api: Api, task: str, version: str, actual: str) -> None:
    answer = await api.raw("POST", f"/v{version}/{PLOTS}", json={"tasks": [task]})
    assert answer.json()["meta"]["endpoint"]["actual_version"] == actual
