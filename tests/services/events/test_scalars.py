"""events.*: last values, vectors, and the scalar events of one metric."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from apiserver.server.bounds import Bounds
from apiserver.services.bounds import CallBounds
from tests.harness import Api, running_api
from tests.services.events.conftest import Add
from tests.services.events.test_read import NOW, event

pytestmark = pytest.mark.anyio


def scalar(task: str, iter: int, value: Any, metric: str = "m", variant: str = "v", **fields: Any) -> dict[str, Any]:
    line = event("training_stats_scalar", task, iter, metric=metric, variant=variant, value=value)
    return {**line, **fields}


@pytest.mark.parametrize(
    ("endpoint", "fields"),
    [
        ("get_task_latest_scalar_values", {}),
        ("get_scalar_metric_data", {"metric": "m"}),
        ("get_vector_metrics_and_variants", {}),
        ("vector_metrics_iter_histogram", {"metric": "m", "variant": "v"}),
    ],
)
async def test_the_task_must_be_there(api: Api, endpoint: str, fields: dict[str, str]) -> None:
    for version in ("1.5", "2.1", "999.0"):
        request = {"task": "nope", **fields}
        meta = (await api.call(f"events.{endpoint}", request, version=version, expect=400))["meta"]
        assert (meta["result_subcode"], meta["endpoint"]["actual_version"]) == (101, "1.0")


async def test_last_values(api: Api, add: Add, task: str) -> None:
    await add(*(scalar(task, n, n) for n in range(150)), scalar(task, 9, "NaN", "a"))
    await add(scalar(task, -(2**31), 0.95, "Summary", "best"))
    answer = await api.call("events.get_task_latest_scalar_values", {"task": task})
    shown = {metric["name"]: metric["variants"] for metric in answer["metrics"]}
    assert list(shown) == ["Summary", "a", "m"]
    assert shown["a"] == [{"name": "v", "last_value": None, "last_100_value": None, "last_10_value": None}]
    assert shown["m"] == [{"name": "v", "last_value": 149, "last_100_value": 99.5, "last_10_value": 149}]
    assert (answer["last_iter"], answer["name"], answer["status"]) == (149, "a task", "created")
    assert answer["last_timestamp"] > 1_700_000_000_000


async def test_the_events_of_a_metric_come_newest_first(api: Api, add: Add, task: str) -> None:
    await add(scalar(task, 1, 7.25), scalar(task, 2, 3), scalar(task, 3, 4, "other"))
    request = {"task": task, "metric": "m"}
    page = await api.call("events.get_scalar_metric_data", request)
    assert [(one["iter"], one["value"], one["metric"]) for one in page["events"]] == [(2, 3, "m"), (1, 7.25, "m")]
    assert (page["returned"], page["total"]) == (2, 2)
    end = await api.call("events.get_scalar_metric_data", {**request, "scroll_id": page["scroll_id"]})
    assert (end["events"], end["returned"], end["total"]) == ([], 0, 2)
    assert (await api.call("events.get_scalar_metric_data", {**request, "no_scroll": True}))["scroll_id"] is None


@pytest.mark.bounds(Bounds(calls=CallBounds(scalars=3)))
async def test_events_of_a_metric_are_paged_while_others_arrive(api: Api, add: Add, task: str) -> None:
    await add(*(scalar(task, n, n, variant=variant) for n in range(10) for variant in "ab"))
    seen: list[tuple[int, str]] = []
    request = {"task": task, "metric": "m"}
    while (page := await api.call("events.get_scalar_metric_data", request))["events"]:
        seen += [(one["iter"], one["variant"]) for one in page["events"]]
        await add(scalar(task, 100 + len(seen), 1))
        request["scroll_id"] = page["scroll_id"]
    assert seen == [(n, variant) for n in range(9, -1, -1) for variant in "ba"]
    assert page["total"] == 20 + 5


async def test_scroll_ids_of_a_metric_are_its_own(api: Api, add: Add, task: str) -> None:
    await add(scalar(task, 1, 1))
    page = await api.call("events.get_scalar_metric_data", {"task": task, "metric": "m"})
    for metric, scroll_id in (("m", "nope"), ("other", page["scroll_id"])):
        request = {"task": task, "metric": metric, "scroll_id": scroll_id}
        assert (await api.call("events.get_scalar_metric_data", request, expect=400))["meta"]["result_subcode"] == 1104
    meta = (await api.call("events.get_scalar_metric_data", {"task": task}, expect=400))["meta"]
    assert (meta["result_subcode"], meta["error_data"]["field"]) == (12, "metric")


async def test_vectors(api: Api, add: Add, task: str) -> None:
    await add(
        *(event("training_stats_vector", task, n, metric="Hist", variant="w", values=[n, n + 0.5]) for n in (2, 0, 1)),
        event("training_stats_vector", task, 0, metric="hist", variant="z", values=[]),
    )
    names = await api.call("events.get_vector_metrics_and_variants", {"task": task})
    assert names == {"metrics": {"Hist": ["w"], "hist": ["z"]}}
    request = {"task": task, "metric": "Hist", "variant": "w"}
    assert await api.call("events.vector_metrics_iter_histogram", request) == {
        "metric": "Hist",
        "variant": "w",
        "vectors": [[0, 0.5], [1, 1.5], [2, 2.5]],
        "iterations": [0, 1, 2],
    }
    none = await api.call("events.vector_metrics_iter_histogram", {**request, "metric": "nope"})
    assert (none["vectors"], none["iterations"]) == ([], [])


async def test_a_metric_with_single_values_alone_has_no_scalars_to_show(api: Api, add: Add, task: str) -> None:
    await add(
        scalar(task, -(2**31), 1, "Summary", "best"), scalar(task, -(2**31), 1, "loss"), scalar(task, 0, 1, "loss")
    )
    request = {"tasks": [task], "event_type": "training_stats_scalar"}
    assert (await api.call("events.get_task_metrics", request))["metrics"] == [{"task": task, "metrics": ["loss"]}]
    multi = await api.call("events.get_multi_task_metrics", request)
    assert [metric["metric"] for metric in multi["metrics"]] == ["Summary", "loss"]


HISTOGRAM, HISTOGRAMS = "events.scalar_metrics_iter_histogram", "events.multi_task_scalar_metrics_iter_histogram"


async def test_a_range_zooms(api: Api, add: Add, task: str) -> None:
    await add(*(scalar(task, n, n) for n in range(100)), scalar(task, 0, 1, "other"))
    request: dict[str, Any] = {"samples": 5, "range": {"from": 20, "to": 69}, "envelope": True}
    answer = await api.call(HISTOGRAM, {"task": task, **request})
    series = answer["m"]["v"]
    assert (series["x"], series["y"]) == (list(range(20, 70, 10)), [n + 4.5 for n in range(20, 70, 10)])
    assert (series["count"], series["first"][0], series["last"][-1]) == ([10] * 5, 20, 69)
    assert answer["other"]["v"] == {
        "name": "v", "x": [], "y": [], "min": [], "max": [], "count": [], "first": [], "last": [],
    }  # fmt: skip
    of_tasks = await api.call(HISTOGRAMS, {"tasks": [task], **request})
    assert of_tasks["metrics"]["m"]["v"][task]["x"] == series["x"]
    later = {"task": task, "key": "iso_time", "range": {"from": str(NOW + 98_000), "to": None}}
    assert (await api.call(HISTOGRAM, later))["m"]["v"]["y"] == [98, 99]


@pytest.mark.parametrize("bad", [{"from": 2, "to": 1}, {"from": 2**63}, {"to": "x"}, [1, 2], 5])
async def test_a_range_must_be_one(api: Api, task: str, bad: Any) -> None:
    for endpoint, request in ((HISTOGRAM, {"task": task}), (HISTOGRAMS, {"tasks": [task]})):
        meta = (await api.call(endpoint, {**request, "range": bad}, expect=400))["meta"]
        assert (meta["result_subcode"], meta["error_data"]["field"].partition(".")[0]) == (12, "range")


async def test_curves_are_smoothed_with_all_points(api: Api, add: Add, task: str) -> None:
    await add(*(scalar(task, n, n % 2) for n in range(101)))
    smooth: dict[str, Any] = {"by": "mean", "points": 4}
    request = {"samples": 5, "range": {"from": 40, "to": 59}, "smooth": smooth, "envelope": True}
    series = (await api.call(HISTOGRAM, {"task": task, **request}))["m"]["v"]
    assert (series["x"], series["min"], series["max"]) == ([40, 44, 48, 52, 56], [0.5] * 5, [0.5] * 5)
    of_tasks = await api.call(HISTOGRAMS, {"tasks": [task], **request})
    assert of_tasks["metrics"]["m"]["v"][task]["y"] == [0.5] * 5
    request = {"task": task, "smooth": {"by": "derivative"}, "range": {"from": 0, "to": 2}}
    assert (await api.call(HISTOGRAM, request))["m"]["v"]["y"] == [None, 1, -1]


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        ({"by": "best"}, "smooth.by"),
        ({"weight": 0.5}, "smooth.by"),
        ({"by": "ema", "weight": 1}, "smooth.weight"),
        ({"by": "mean", "points": 0}, "smooth.points"),
        ({"by": "median", "points": 33}, "smooth.points"),
        ("ema", "smooth"),
    ],
)
async def test_a_smoothing_must_be_one(api: Api, task: str, bad: Any, field: str) -> None:
    meta = (await api.call(HISTOGRAM, {"task": task, "smooth": bad}, expect=400))["meta"]
    assert (meta["result_subcode"], meta["error_data"]["field"]) == (12, field)


async def test_x_axes_have_their_labels(api: Api, add: Add, task: str) -> None:
    model = (await api.call("models.create", {"name": "m", "uri": "file:///m", "ready": False}))["id"]
    await add(
        scalar(task, 1, 1, x_axis_label="epochs"),
        scalar(task, 1, 1, "other"),
        scalar(model, 1, 1, model_event=True, x_axis_label="seconds"),
    )
    answer = await api.call(HISTOGRAM, {"task": task})
    assert answer["m"]["v"]["x_axis_label"] == "epochs"
    assert "x_axis_label" not in answer["other"]["v"]
    await add(scalar(task, 2, 2, x_axis_label="steps"))
    of_tasks = (await api.call(HISTOGRAMS, {"tasks": [task]}))["metrics"]
    assert of_tasks["m"]["v"][task] == {"name": "a task", "x": [1, 2], "y": [1, 2], "x_axis_label": "steps"}
    of_model = await api.call(HISTOGRAM, {"task": model, "model_events": True})
    assert of_model["m"]["v"]["x_axis_label"] == "seconds"
    await api.call("tasks.reset", {"task": task})
    await add(scalar(task, 1, 1))
    assert "x_axis_label" not in (await api.call(HISTOGRAM, {"task": task}))["m"]["v"]


@pytest.mark.test
async def test_as_many_tasks_are_compared_as_a_setting_says(tmp_path: Path) -> None:
    async with running_api(tmp_path / "data", multi_task_limit=12) as api:
        tasks = [(await api.call("tasks.create", {"name": f"t{n}", "type": "training"}))["id"] for n in range(13)]
        body = "\n".join(json.dumps(scalar(task, 1, n)) for n, task in enumerate(tasks))
        headers = {"content-type": "application/json-lines"}
        await api.raw("POST", "/events.add_batch", content=body, headers=headers)
        series = (await api.call(HISTOGRAMS, {"tasks": tasks[:12]}))["metrics"]["m"]["v"]
        assert [(one, series[one]["name"], series[one]["y"]) for one in series] == [
            (task, f"t{n}", [n]) for n, task in enumerate(tasks[:12])
        ]
        meta = (await api.call(HISTOGRAMS, {"tasks": tasks}, expect=400))["meta"]
        assert (meta["result_subcode"], meta["error_data"]["field"]) == (12, "tasks")
        assert "12" in meta["result_msg"]
