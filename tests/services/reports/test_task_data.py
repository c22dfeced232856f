"""reports.get_task_data."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness import Api
from tests.services.events.test_read import event
from tests.services.tasks.calls import make as make_task
from tests.services.tasks.calls import refused

pytestmark = pytest.mark.anyio

ALL: dict[str, Any] = {
    "plots": {},
    "debug_images": {},
    "scalar_metrics_iter_histogram": {},
    "single_value_metrics": {},
}
SINGLE = -(2**31)


@pytest.fixture(params=[False, True], ids=["task", "model"])
async def owner(request: pytest.FixtureRequest, api: Api) -> dict[str, Any]:
    """`{id, model_events}` of something that has reported two metrics of everything at iterations 1 and 2."""
    model: bool = request.param
    if model:
        id = (await api.call("models.create", {"name": "it", "uri": "file:///m", "ready": False}))["id"]
    else:
        id = await make_task(api, name="it")
    for metric in ("m0", "m1"):
        for iter in (1, 2):
            of = {"metric": metric, "variant": "v", "model_event": model}
            await api.call("events.add", event("plot", id, iter, **of, plot_str="{}"))
            await api.call("events.add", event("training_debug_image", id, iter, **of, url=f"s3://b/{metric}/{iter}"))
            await api.call("events.add", event("training_stats_scalar", id, iter, **of, value=iter))
        await api.call("events.add", event("training_stats_scalar", id, SINGLE, **of, value=7))
    return {"id": id, "model_events": model}


@pytest.mark.test
async def test_only_what_is_asked_for_is_answered(api: Api, owner: dict[str, Any]) -> None:
    asked = {**owner, "id": [owner["id"]], "only_fields": ["name"]}
    answer = await api.call("reports.get_task_data", asked)
    assert list(answer) == ["tasks"]
    assert [(one["id"], one["name"]) for one in answer["tasks"]] == [(owner["id"], "it")]
    for name in ALL:
        assert set(await api.call("reports.get_task_data", {**asked, name: {}})) == {"tasks", name}


async def test_the_events_are_those_that_the_events_calls_answer(api: Api, owner: dict[str, Any]) -> None:
    id, of = owner["id"], {"tasks": [owner["id"]], "model_events": owner["model_events"]}

    answer = await api.call("reports.get_task_data", {**owner, "id": [id], **ALL})

    assert answer["plots"] == (await api.call("events.get_multi_task_plots", of))["plots"]
    assert answer["plots"]["m1"]["v"][id]["2"]["name"] == "it"
    assert [one["task"] for one in answer["debug_images"]] == [id]
    assert [iteration["iter"] for iteration in answer["debug_images"][0]["iterations"]] == [2]
    assert {image["url"] for image in answer["debug_images"][0]["iterations"][0]["events"]} == {
        "s3://b/m0/2",
        "s3://b/m1/2",
    }
    scalars = await api.call("events.multi_task_scalar_metrics_iter_histogram", of)
    assert answer["scalar_metrics_iter_histogram"] == scalars["metrics"]
    assert answer["scalar_metrics_iter_histogram"]["m0"]["v"][id]["y"] == [1.0, 2.0]
    singles = (await api.call("events.get_task_single_value_metrics", of))["tasks"]
    assert answer["single_value_metrics"] == singles
    assert [(value["metric"], value["value"]) for value in singles[0]["values"]] == [("m0", 7.0), ("m1", 7.0)]


async def test_each_kind_of_events_is_narrowed_by_itself(api: Api, owner: dict[str, Any]) -> None:
    answer = await api.call(
        "reports.get_task_data",
        {
            **owner,
            "id": [owner["id"]],
            "plots": {"metrics": [{"metric": "m1"}], "iters": 2},
            "debug_images": {"metrics": [{"metric": "m0", "variants": ["v"]}], "iters": 5},
            "scalar_metrics_iter_histogram": {"metrics": [{"metric": "m0"}], "key": "timestamp", "samples": 1},
        },
    )
    assert list(answer["plots"]) == ["m1"]
    assert set(answer["plots"]["m1"]["v"][owner["id"]]) == {"1", "2"}
    iterations = answer["debug_images"][0]["iterations"]
    assert [image["url"] for one in iterations for image in one["events"]] == ["s3://b/m0/2", "s3://b/m0/1"]
    assert list(answer["scalar_metrics_iter_histogram"]) == ["m0"]


async def test_tasks_are_found_as_get_all_ex_finds_them(api: Api) -> None:
    for number in range(3):
        await make_task(api, name=f"t{number}", tags=["odd"] if number % 2 else [])
    request = {"name": "^t", "order_by": ["-name"], "size": 2, "single_value_metrics": {}}
    answer = await api.call("reports.get_task_data", request)
    assert [task["name"] for task in answer["tasks"]] == ["t2", "t1"]
    assert answer["single_value_metrics"] == []
    answer = await api.call("reports.get_task_data", {"tags": ["odd"], "only_fields": ["project.name"]})
    assert len(answer["tasks"]) == 1


async def test_where_nothing_is_found_nothing_is_shown(api: Api) -> None:
    answer = await api.call("reports.get_task_data", {"id": ["no such"], **ALL})
    empty: dict[str, Any] = {name: {} if name in ("plots", "scalar_metrics_iter_histogram") else [] for name in ALL}
    assert answer == {"tasks": [], **empty}


@pytest.mark.test
@pytest.mark.parametrize("kind", ["plots", "scalar_metrics_iter_histogram"])
async def test_no_more_tasks_at_a_time_than_the_events_calls_take(api: Api, kind: str) -> None:
    for _ in range(api.backend.settings.multi_task_limit + 1):
        await make_task(api)
    assert await refused(api, "reports.get_task_data", {kind: {}}) == (400, 12)
