"""One small training run, and what a client that looks at all of it is told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.harness import Api
from tests.services.events.conftest import Add
from tests.services.events.test_navigate import image, plot
from tests.services.events.test_read import NOW, event
from tests.services.events.test_scalars import scalar

pytestmark = pytest.mark.anyio

HISTOGRAM, HISTOGRAMS = "events.scalar_metrics_iter_histogram", "events.multi_task_scalar_metrics_iter_histogram"
LOG = "events.get_task_log"


@pytest.fixture
async def run(add: Add, task: str) -> str:
    """The task, with ten iterations of two scalars, three plots and images, and a log of ten lines."""
    await add(
        *(scalar(task, n, n * factor, "loss", variant) for n in range(10) for variant, factor in (("a", 1), ("b", 2))),
        scalar(task, -(2**31), 0.5, "Summary", "best"),
        *(plot(task, n, metric, "v") for n in range(4) for metric in ("roc", "confusion")),
        *(image(task, n, metric) for n in range(4) for metric in ("im", "other")),
        *(event("log", task, n, msg=f"line {n}", level="info", metric="out" if n % 2 else "") for n in range(10)),
    )
    return task


async def test_curves_in_every_form(api: Api, run: str) -> None:
    answer = await api.call(HISTOGRAM, {"task": run, "samples": "5", "whatever": 1}, version="2.1")
    assert answer["loss"]["b"] == {"name": "b", "x": [0, 2, 4, 6, 8], "y": [1, 5, 9, 13, 17]}
    only = {"key": "iso_time", "metrics": [{"metric": "loss", "variants": ["a"]}], "samples": 2}
    curves = (await api.call(HISTOGRAMS, {"tasks": [run, run], **only}))["metrics"]
    assert list(curves) == ["loss"]
    assert list(curves["loss"]) == ["a"]
    assert curves["loss"]["a"][run]["x"][0].endswith("Z")
    for name, value in (("samples", "x"), ("samples", -1), ("key", "bogus"), ("metrics", [{}]), ("envelope", "maybe")):
        assert (await api.call(HISTOGRAM, {"task": run, name: value}, expect=400))["meta"]["result_subcode"] == 12
    for tasks in ([], None, run, [run, 5]):
        assert (await api.call(HISTOGRAMS, {"tasks": tasks}, expect=400))["meta"]["result_subcode"] == 12
    meta = (await api.call(HISTOGRAMS, {"tasks": [run, "f" * 32]}, expect=400))["meta"]
    assert meta["result_subcode"] == 101
    assert run in meta["result_msg"]
    assert "f" * 32 in meta["result_msg"]


@pytest.mark.test
@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"batch_size": 3}, [9, 8, 7]),
        ({"batch_size": 3, "from_timestamp": NOW + 7000}, [6, 5, 4]),
        ({"batch_size": 3, "from_timestamp": NOW + 7000, "navigate_earlier": False}, [8, 9]),
        ({"batch_size": 3, "navigate_earlier": False}, [0, 1, 2]),
        ({"batch_size": 3, "navigate_earlier": False, "order": "desc"}, [2, 1, 0]),
        ({"from_timestamp": NOW + 10**9, "navigate_earlier": False}, []),
        ({"from_timestamp": 0}, []),
    ],
)
async def test_the_log_from_anywhere(api: Api, run: str, fields: dict[str, Any], expected: list[int]) -> None:
    page = await api.call(LOG, {"task": run, **fields})
    assert [one["iter"] for one in page["events"]] == expected
    assert (page["returned"], page["total"]) == (len(expected), 10)


async def test_the_log_of_one_metric_and_by_query(api: Api, run: str) -> None:
    page = await api.call(LOG, {"task": run, "batch_size": 2, "metrics": [{"metric": "out"}]})
    assert ([one["iter"] for one in page["events"]], page["total"]) == ([9, 7], 5)
    by_query = (await api.raw("GET", f"/{LOG}", params={"task": run, "batch_size": "2"})).json()["data"]
    assert [one["iter"] for one in by_query["events"]] == [9, 8]
    tail = {"task": run, "from": "tail", "order": "asc", "batch_size": 2}
    assert [one["iter"] for one in (await api.call(LOG, tail, version="1.7"))["events"]] == [8, 9]


async def test_the_newest_plots(api: Api, run: str) -> None:
    only = {"task": run, "iters": 2, "metrics": [{"metric": "roc", "variants": ["v"]}], "no_scroll": True}
    answer = await api.call("events.get_task_plots", only)
    assert [(one["metric"], one["iter"]) for one in answer["plots"]] == [("roc", 3), ("roc", 2)]
    assert (answer["returned"], answer["total"]) == (2, 2)
    meta = (await api.call("events.get_task_plots", {"task": run, "scroll_id": "x"}, expect=400))["meta"]
    assert meta["result_subcode"] == 1104


@pytest.mark.parametrize(("endpoint", "metrics"), [("plots", ("roc", "confusion")), ("debug_images", ("im", "other"))])
async def test_walks_back_and_forth(api: Api, add: Add, run: str, endpoint: str, metrics: tuple[str, str]) -> None:
    request: dict[str, Any] = {"metrics": [{"task": run, "metric": name} for name in metrics], "iters": 3}

    async def step(**fields: Any) -> list[int]:
        answer = await api.call(f"events.{endpoint}", {**request, **fields})
        request["scroll_id"] = answer["scroll_id"]
        (of_task,) = answer["metrics"]
        assert all({one["metric"] for one in shown["events"]} == set(metrics) for shown in of_task["iterations"])
        return [one["iter"] for one in of_task["iterations"]]

    assert [await step(), await step(), await step()] == [[3, 2, 1], [0], []]
    assert [await step(navigate_earlier=False), await step(navigate_earlier=False)] == [[3, 2, 1], []]
    make = plot if endpoint == "plots" else image
    await add(*(make(run, 7, name) for name in metrics))
    assert await step() == [0]
    assert await step(refresh=True) == [7, 3, 2]
    assert await step(navigate_earlier=False) == []
    other = {"metrics": [{"task": run, "metric": "nothing"}]}
    answer = await api.call(f"events.{endpoint}", other)
    assert answer["metrics"] == [{"task": run, "iterations": []}]


async def test_every_event_by_type(api: Api, run: str) -> None:
    for type, count in (
        ("plot", 8),
        ("training_debug_image", 8),
        ("log", 10),
        ("training_stats_scalar", 21),
        (None, 47),
    ):
        request = {"task": run, "event_type": type, "order": "desc", "batch_size": 1000}
        page = await api.call("events.get_task_events", request)
        assert (page["returned"], page["total"]) == (count, count), type
        end = await api.call("events.get_task_events", {**request, "scroll_id": page["scroll_id"]})
        assert (end["returned"], end["total"]) == (0, count)
    meta = (await api.call("events.get_task_events", {"task": run, "event_type": "nope"}, expect=400))["meta"]
    assert (meta["result_subcode"], meta["error_data"]["field"]) == (12, "event_type")


async def test_nothing_is_left_when_all_is_deleted(api: Api, run: str) -> None:
    assert await api.call("events.clear_task_log", {"task": run, "exclude_metrics": ["out"]}) == {"deleted": 5}
    assert await api.call("events.delete_for_task", {"task": run}) == {"deleted": 42}
    assert await api.call(HISTOGRAM, {"task": run}) == {}
    for endpoint, field in (
        ("get_task_plots", "plots"),
        (LOG.partition(".")[2], "events"),
        ("get_task_events", "events"),
    ):
        answer = await api.call(f"events.{endpoint}", {"task": run})
        assert (answer[field], answer["total"]) == ([], 0)
    assert (await api.call("events.get_task_metrics", {"tasks": [run]}))["metrics"] == [{"task": run, "metrics": []}]
    assert (await api.call("events.get_scalar_metrics_and_variants", {"task": run}))["metrics"] == {}
    image_of = {"task": run, "metric": "im", "variant": "a"}
    assert (await api.call("events.get_debug_image_sample", image_of))["event"] is None
    assert (await api.call("events.get_task_latest_scalar_values", {"task": run}))["last_iter"] is None


async def test_a_series_may_have_no_variant(api: Api, add: Add, task: str) -> None:
    await add({**scalar(task, 1, 2), "variant": None}, {**scalar(task, 2, 4), "variant": None, "metric": None})
    assert await api.call("events.get_scalar_metrics_and_variants", {"task": task}) == {
        "metrics": {"": [""], "m": [""]}
    }
    document = (await api.call("tasks.get_by_id", {"task": task}))["task"]
    assert sorted(one["value"] for metric in document["last_metrics"].values() for one in metric.values()) == [2, 4]


@pytest.mark.test
async def test_no_metric_is_missing_among_a_thousand(api: Api, task: str) -> None:
    names = [(f"m{m}", f"v{v}") for m in range(1000) for v in range(5)]
    body = "\n".join(json.dumps(scalar(task, 1, 1, *name)) for name in names)
    headers = {"content-type": "application/json-lines"}
    assert (await api.raw("POST", "/events.add_batch", content=body, headers=headers)).json()["data"]["added"] == 5000
    curves = await api.call(HISTOGRAM, {"task": task})
    compared = (await api.call(HISTOGRAMS, {"tasks": [task]}))["metrics"]
    listed = (await api.call("events.get_scalar_metrics_and_variants", {"task": task}))["metrics"]
    multi = (await api.call("events.get_multi_task_metrics", {"tasks": [task]}))["metrics"]
    for found in (curves, compared, listed, {one["metric"]: one["variants"] for one in multi}):
        assert sorted((metric, variant) for metric in found for variant in found[metric]) == sorted(names)
    request = {"tasks": [task], "event_type": "training_stats_scalar"}
    (of_task,) = (await api.call("events.get_task_metrics", request))["metrics"]
    assert of_task["metrics"] == sorted({metric for metric, _ in names})
    latest = (await api.call("events.get_task_latest_scalar_values", {"task": task}))["metrics"]
    assert sum(len(metric["variants"]) for metric in latest) == 5000
    document = (await api.call("tasks.get_by_id", {"task": task}))["task"]
    assert sum(len(metric) for metric in document["last_metrics"].values()) == 5000
