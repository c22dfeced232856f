"""Reading events.*, through the whole server."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from apiserver.common import off_loop
from apiserver.events import documents
from apiserver.events.model import JsonObject, LogLine, Owner
from apiserver.stores.events.sizes import PAGE_BYTES
from tests.harness import Api
from tests.services.events.conftest import Add

pytestmark = pytest.mark.anyio

NOW = 1_700_000_000_000


def event(type: str, task: str, iter: int, **fields: Any) -> dict[str, Any]:
    return {"type": type, "task": task, "iter": iter, "timestamp": NOW + iter * 1000, "worker": "w", **fields}


async def fill_log(add: Add, task: str, count: int) -> None:
    await add(*(event("log", task, n, msg=f"line {n}", level="info") for n in range(count)))


async def test_unknown_tasks_are_named(api: Api, task: str) -> None:
    for endpoint, request in (
        ("events.scalar_metrics_iter_histogram", {"task": "nope"}),
        ("events.multi_task_scalar_metrics_iter_histogram", {"tasks": [task, "nope"]}),
        ("events.get_task_log", {"task": "nope"}),
        ("events.get_task_plots", {"task": "nope"}),
        ("events.get_task_events", {"task": "nope"}),
        ("events.get_task_metrics", {"tasks": ["nope"]}),
        ("events.debug_images", {"metrics": [{"task": "nope"}]}),
        ("events.get_task_single_value_metrics", {"tasks": ["nope"]}),
    ):
        meta = (await api.call(endpoint, request, expect=400))["meta"]
        assert meta["result_subcode"] == 101, endpoint
        assert "nope" in meta["result_msg"]


@pytest.mark.parametrize(
    ("request_fields", "field"),
    [({"samples": "abc"}, "samples"), ({"samples": -1}, "samples"), ({"key": "bogus"}, "key"), ({"task": 5}, "task")],
)
async def test_histogram_fields_are_validated(api: Api, task: str, request_fields: dict[str, Any], field: str) -> None:
    request = {"task": task, **request_fields}
    meta = (await api.call("events.scalar_metrics_iter_histogram", request, expect=400))["meta"]
    assert meta["result_subcode"] == 12
    assert field in meta["result_msg"]


@pytest.mark.test
async def test_more_samples_than_there_are_at_most_are_answered_with_these(
    api: Api, add: Add, task: str, caplog: pytest.LogCaptureFixture
) -> None:
    await add(*(event("training_stats_scalar", task, n, metric="m", variant="v", value=n) for n in range(7000)))

    async def asked(endpoint: str, samples: int, **fields: Any) -> tuple[Any, str | None]:
        answer = await api.raw("POST", f"/{endpoint}", json={"samples": samples, **fields})
        return answer.json()["data"], answer.headers.get("x-samples-limit")

    one, several = "events.scalar_metrics_iter_histogram", "events.multi_task_scalar_metrics_iter_histogram"
    for endpoint, fields in ((one, {"task": task}), (several, {"tasks": [task]})):
        most, header = await asked(endpoint, 6000, **fields)
        assert header is None
        assert await asked(endpoint, 10_000, **fields) == (most, "6000")
        assert await asked(endpoint, 2**62, **fields) == (most, "6000")
    series = (await asked(one, 0, task=task))[0]["m"]["v"]
    assert len(series["x"]) == 7000
    shown = {"id": [task], "scalar_metrics_iter_histogram": {"samples": 10_000}}
    report = await api.raw("POST", "/reports.get_task_data", json=shown)
    assert report.headers["x-samples-limit"] == "6000"
    [said] = [record.getMessage() for record in caplog.records if "samples" in record.getMessage()]
    assert "10000 samples" in said


@pytest.mark.test
async def test_many_variants_are_all_there(api: Api, add: Add, task: str) -> None:
    await add(*(event("training_stats_scalar", task, 1, metric="m", variant=f"v{n}", value=n) for n in range(5000)))
    answer = await api.call("events.scalar_metrics_iter_histogram", {"task": task})
    assert len(answer["m"]) == 5000
    names = await api.call("events.get_scalar_metrics_and_variants", {"task": task})
    assert len(names["metrics"]["m"]) == 5000


async def test_tasks_are_compared(api: Api, add: Add, task: str) -> None:
    other = (await api.call("tasks.create", {"name": "other", "type": "training"}))["id"]
    for owner in (task, other):
        await add(event("training_stats_scalar", owner, 1, metric="m", variant="v", value=1))
    answer = await api.call("events.multi_task_scalar_metrics_iter_histogram", {"tasks": [task, other]})
    assert answer["metrics"]["m"]["v"] == {
        task: {"name": "a task", "x": [1], "y": [1.0]},
        other: {"name": "other", "x": [1], "y": [1.0]},
    }


@pytest.mark.own_api
async def test_many_log_lines_of_one_moment_keep_nobody_waiting(
    api: Api, add: Add, task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, threads = documents.log, set()

    def event_in(owner: Owner, line: LogLine) -> JsonObject:
        threads.add(threading.current_thread())
        return made(owner, line)

    monkeypatch.setattr(documents, "log", event_in)
    count = off_loop.MANY + 1
    await add(*({**event("log", task, n, msg=f"line {n}"), "timestamp": NOW} for n in range(count)))
    page = await api.call("events.get_task_log", {"task": task, "batch_size": 1})
    assert [one["msg"] for one in page["events"]] == [f"line {n}" for n in reversed(range(count))]
    assert threading.current_thread() not in threads


async def test_the_newest_log_lines_come_first(api: Api, add: Add, task: str) -> None:
    await fill_log(add, task, 10)
    page = await api.call("events.get_task_log", {"task": task, "batch_size": 3})
    assert [one["msg"] for one in page["events"]] == ["line 9", "line 8", "line 7"]
    assert (page["returned"], page["total"]) == (3, 10)
    assert page["events"][0]["level"] == "info"
    earlier = {"task": task, "batch_size": 3, "from_timestamp": page["events"][-1]["timestamp"]}
    assert [one["iter"] for one in (await api.call("events.get_task_log", earlier))["events"]] == [6, 5, 4]
    ascending = {"task": task, "batch_size": 3, "order": "asc"}
    assert [one["iter"] for one in (await api.call("events.get_task_log", ascending))["events"]] == [7, 8, 9]


@pytest.mark.parametrize(
    ("version", "request_fields", "expected"),
    [
        ("1.5", {"order": "asc"}, [0, 1, 2, 3, 4]),
        ("1.5", {"order": "desc"}, [4, 3, 2, 1, 0]),
        ("1.7", {}, [0, 1, 2, 3, 4]),
        ("1.7", {"from": "tail"}, [4, 3, 2, 1, 0]),
    ],
)
async def test_old_log_endpoints_page_by_scroll_id(
    api: Api, add: Add, task: str, version: str, request_fields: dict[str, Any], expected: list[int]
) -> None:
    await fill_log(add, task, 5)
    seen: list[int] = []
    scroll: dict[str, Any] = {}
    while True:
        request = {"task": task, "batch_size": 2, **request_fields, **scroll}
        page = await api.call("events.get_task_log", request, version=version)
        assert page["total"] == 5
        if not page["events"]:
            break
        seen += [one["iter"] for one in page["events"]]
        scroll = {"scroll_id": page["scroll_id"]}
    assert seen == expected


async def test_task_events_are_paged_to_the_end(api: Api, add: Add, task: str) -> None:
    await add(
        *(event("training_debug_image", task, n, metric="im", variant="v", url=f"http://f/u{n}") for n in range(7))
    )
    urls: list[str] = []
    scroll: dict[str, Any] = {}
    while True:
        request = {"task": task, "event_type": "training_debug_image", "batch_size": 3, **scroll}
        page = await api.call("events.get_task_events", request)
        assert page["total"] == 7
        if not page["events"]:
            break
        urls += [one["url"] for one in page["events"]]
        scroll = {"scroll_id": page["scroll_id"]}
    assert urls == [f"http://f/u{n}" for n in range(7)]


async def test_a_scroll_id_belongs_to_its_query(api: Api, add: Add, task: str) -> None:
    await fill_log(add, task, 5)
    page = await api.call("events.get_task_events", {"task": task, "event_type": "log", "batch_size": 2})
    for scroll_id, request in (("nope", {}), (page["scroll_id"], {"order": "desc"}), (page["scroll_id"] + "AAAA", {})):
        request = {"task": task, "event_type": "log", "scroll_id": scroll_id, **request}
        assert (await api.call("events.get_task_events", request, expect=400))["meta"]["result_subcode"] == 1104


@pytest.mark.test
@pytest.mark.parametrize(
    ("endpoint", "fields"),
    [
        ("get_task_events", {}),
        ("get_scalar_metric_data", {"metric": "m"}),
        ("scalar_metrics_iter_raw", {"metric": {"metric": "m"}}),
        ("get_debug_image_sample", {"metric": "m", "variant": "v"}),
        ("next_debug_image_sample", {}),
        ("get_plot_sample", {"metric": "m"}),
        ("next_plot_sample", {}),
        ("get_task_plots", {}),
        ("get_multi_task_plots", {}),
        ("get_task_log", {"levels": ["info"]}),
    ],
)
async def test_a_wrong_scroll_id_is_named(api: Api, task: str, endpoint: str, fields: dict[str, Any]) -> None:
    request = {"task": task, "tasks": [task], **fields, "scroll_id": "nope"}
    meta = (await api.call(f"events.{endpoint}", request, expect=400))["meta"]
    assert (meta["result_subcode"], meta["error_data"]) == (1104, {"field": "scroll_id"})
    assert "leave it out" in meta["result_msg"]


async def test_the_newest_plots_of_each_series(api: Api, add: Add, task: str) -> None:
    await add(
        *(event("plot", task, n, metric="p", variant=v, plot_str=f'{{"n": {n}}}') for n in range(4) for v in "ab"),
        event("plot", task, 1, metric="q", variant="c", plot_str="{}"),
    )
    answer = await api.call("events.get_task_plots", {"task": task, "iters": 2})
    shown = [(plot["metric"], plot["variant"], plot["iter"]) for plot in answer["plots"]]
    assert shown == [("p", "a", 3), ("p", "a", 2), ("p", "b", 3), ("p", "b", 2), ("q", "c", 1)]
    assert (answer["returned"], answer["total"], answer["scroll_id"]) == (5, 5, None)
    assert answer["plots"][0]["plot_str"] == '{"n": 3}'
    narrowed = {"task": task, "metrics": [{"metric": "p", "variants": ["b"]}]}
    assert [plot["variant"] for plot in (await api.call("events.get_task_plots", narrowed))["plots"]] == ["b"]


@pytest.mark.test
@pytest.mark.parametrize("model", [False, True])
async def test_many_megabytes_of_plots_come_in_pages(api: Api, add: Add, task: str, model: bool) -> None:
    owner, plot = task, "{}" + " " * (PAGE_BYTES // 2)  # two of them fill a page
    if model:
        owner = (await api.call("models.create", {"name": "m", "uri": "file:///m", "ready": False}))["id"]
    for variant in "abcde":
        await add(event("plot", owner, 1, metric="m", variant=variant, plot_str=plot, model_event=model))
    asked = {"task": owner, "model_events": model}
    found: list[str] = []
    answer = await api.call("events.get_task_plots", asked)
    while True:
        found += [plot["variant"] for plot in answer["plots"]]
        assert answer["returned"] == len(answer["plots"]) > 0
        assert answer["total"] == min(len(found) + 1, 5)
        if answer["scroll_id"] is None:
            break
        again = {"task": owner, "iters": 1, "scroll_id": answer["scroll_id"]}  # as the web UI asks, also for a model
        answer = await api.call("events.get_task_plots", again)
    assert found == list("abcde")
    whole = await api.call("events.get_task_plots", {**asked, "no_scroll": True})
    assert [plot["variant"] for plot in whole["plots"]] == list("abcde")
    assert whole["scroll_id"] is None
    first = await api.call("events.get_task_plots", asked)
    await api.call("events.get_task_plots", {**asked, "iters": 2, "scroll_id": first["scroll_id"]}, expect=400)


async def test_debug_images_are_walked_until_nothing_is_left(api: Api, add: Add, task: str) -> None:
    await add(
        *(
            event("training_debug_image", task, n, metric="im", variant=v, key=v, url=f"http://f/{v}{n}")
            for n in range(5)
            for v in "ab"
        )
    )
    seen: list[int] = []
    scroll: dict[str, Any] = {}
    while True:
        request = {"metrics": [{"task": task, "metric": "im"}], "iters": 2, **scroll}
        page = await api.call("events.debug_images", request)
        (of_task,) = page["metrics"]
        assert of_task["task"] == task
        if not of_task["iterations"]:
            break
        for iteration in of_task["iterations"]:
            assert [one["variant"] for one in iteration["events"]] == ["a", "b"]
            seen.append(iteration["iter"])
        scroll = {"scroll_id": page["scroll_id"]}
    assert seen == [4, 3, 2, 1, 0]
    refreshed = {"metrics": [{"task": task, "metric": "im"}], "iters": 1, "refresh": True}
    assert (await api.call("events.debug_images", refreshed))["metrics"][0]["iterations"][0]["iter"] == 4


async def test_a_walk_with_a_foreign_scroll_id_begins_anew(api: Api, add: Add, task: str) -> None:
    await add(*(event("plot", task, n, metric="p", variant="v", plot_str="{}") for n in range(4)))
    request: dict[str, Any] = {"metrics": [{"task": task}], "iters": 1}
    first = await api.call("events.plots", request)
    for fields in (
        {"scroll_id": "nope"},
        {"scroll_id": first["scroll_id"], "metrics": [{"task": task, "metric": "p"}]},
    ):
        (of_task,) = (await api.call("events.plots", {**request, **fields}))["metrics"]
        assert [one["iter"] for one in of_task["iterations"]] == [3]
    images = {**request, "scroll_id": first["scroll_id"], "navigate_earlier": False}
    assert (await api.call("events.debug_images", images))["metrics"] == [{"task": task, "iterations": []}]


async def test_old_debug_images_end_after_one_page(api: Api, add: Add, task: str) -> None:
    await add(
        *(event("training_debug_image", task, n, metric="im", variant="v", url=f"http://f/u{n}") for n in range(5))
    )
    first = await api.call("events.debug_images", {"task": task, "iters": 2}, version="2.1")
    assert ([image["iter"] for image in first["images"]], first["total"]) == ([4, 3], 2)
    rest = {"task": task, "iters": 2, "scroll_id": first["scroll_id"]}
    assert (await api.call("events.debug_images", rest, version="2.1"))["images"] == []


@pytest.mark.test
async def test_single_values(api: Api, add: Add, task: str) -> None:
    single = {"metric": "Summary", "variant": "best", "value": 0.95}
    await add({**event("training_stats_scalar", task, -(2**31)), **single})
    answer = await api.call("events.get_task_single_value_metrics", {"tasks": [task]})
    (of_task,) = answer["tasks"]
    assert (of_task["task"], of_task["task_name"]) == (task, "a task")
    assert [(value["variant"], value["value"]) for value in of_task["values"]] == [("best", 0.95)]
    assert await api.call("events.scalar_metrics_iter_histogram", {"task": task}) == {}


async def test_metrics_by_type(api: Api, add: Add, task: str) -> None:
    await add(
        event("training_stats_scalar", task, 1, metric="loss", variant="train", value=1),
        event("training_stats_scalar", task, 1, metric="loss", variant="val", value=1),
        event("plot", task, 1, metric="roc", variant="v", plot_str="{}"),
    )

    async def metrics(**fields: str) -> list[str]:
        answer = await api.call("events.get_task_metrics", {"tasks": [task], **fields})
        names: list[str] = answer["metrics"][0]["metrics"]
        return names

    assert await metrics(event_type="training_stats_scalar") == ["loss"]
    assert await metrics(event_type="plot") == ["roc"]
    assert await metrics(event_type="log") == []
    assert await metrics() == await metrics(event_type="*") == ["loss", "roc"]
    multi = await api.call("events.get_multi_task_metrics", {"tasks": [task], "event_type": "training_stats_scalar"})
    assert multi["metrics"] == [{"metric": "loss", "variants": ["train", "val"]}]
    multi = await api.call("events.get_multi_task_metrics", {"tasks": [task], "event_type": "*"})
    assert [one["metric"] for one in multi["metrics"]] == ["loss", "roc"]


async def test_a_star_asks_for_events_of_all_types(api: Api, add: Add, task: str) -> None:
    await add(
        event("training_stats_scalar", task, 1, metric="loss", variant="v", value=1),
        event("plot", task, 2, metric="roc", variant="v", plot_str="{}"),
        event("log", task, 3, msg="hello"),
    )
    page = await api.call("events.get_task_events", {"task": task, "event_type": "*", "batch_size": 1})
    assert (page["returned"], page["total"]) == (1, 3)
    rest = {"task": task, "scroll_id": page["scroll_id"]}  # no type means the same, so it is the same walk
    page["events"] += (await api.call("events.get_task_events", rest))["events"]
    assert [one["type"] for one in page["events"]] == ["training_stats_scalar", "plot", "log"]


async def test_a_version_below_the_first_of_an_endpoint_means_its_first(api: Api, task: str) -> None:
    request = {"task": task, "metric": {"metric": "loss"}}
    meta = (await api.raw("POST", "/v2.1/events.scalar_metrics_iter_raw", json=request)).json()["meta"]
    assert (meta["result_code"], meta["endpoint"]["actual_version"]) == (200, "2.16")


@pytest.mark.parametrize(
    ("version", "actual"), [("1.5", "1.0"), ("1.7", "1.7"), ("2.8", "1.7"), ("2.9", "2.9"), ("999.0", "2.9")]
)
async def test_versions_of_the_log(api: Api, task: str, version: str, actual: str) -> None:
    answer = await api.raw("POST", f"/v{version}/events.get_task_log", json={"task": task})
    assert str(answer.json()["meta"]["endpoint"]["actual_version"]) == actual


async def test_another_company_sees_nothing(api: Api, add: Add, task: str) -> None:
    from apiserver.services.access.credentials import create_user

    await fill_log(add, task, 3)
    _, stranger = await create_user(api.backend.documents, "another-company", "stranger")
    for endpoint in ("events.get_task_log", "events.get_task_events", "events.delete_for_task", "tasks.get_by_id"):
        meta = (await api.call(endpoint, {"task": task}, expect=400, auth=(stranger.key, stranger.secret)))["meta"]
        assert meta["result_subcode"] == 101
    refused = await api.raw(
        "POST", "/events.add", json=event("log", task, 1, msg="x"), auth=(stranger.key, stranger.secret)
    )
    assert refused.json()["meta"]["result_subcode"] == 131
    assert (await api.call("events.get_task_log", {"task": task}))["total"] == 3


async def test_what_else_plots_and_images_have_is_answered_everywhere(api: Api, add: Add, task: str) -> None:
    extra = {"rank": 3, "tags": ["a"]}
    of = {"metric": "m", "variant": "v"}
    await add(
        event("plot", task, 1, **of, plot_str="{}", **extra),
        event("training_debug_image", task, 1, **of, url="http://f/i", **extra),
        event("plot", task, 1, metric="bare", variant="v"),
        event("training_debug_image", task, 1, metric="bare", variant="v"),
    )
    walk = {"metrics": [{"task": task}], "iters": 1}
    sample = {"task": task, "metric": "m", "variant": "v"}
    plots = await api.call("events.get_multi_task_plots", {"tasks": [task]})
    image = (await api.call("events.get_debug_image_sample", sample))["event"]
    answers: list[list[dict[str, Any]]] = [
        (await api.call("events.get_task_events", {"task": task}))["events"],
        (await api.call("events.get_task_events", {"task": task, "order": "desc"}))["events"],
        (await api.call("events.get_task_plots", {"task": task}))["plots"],
        [one["1"]["plots"][0] for metric in plots["plots"].values() for of in metric.values() for one in of.values()],
        (await api.call("events.plots", walk))["metrics"][0]["iterations"][0]["events"],
        (await api.call("events.debug_images", walk))["metrics"][0]["iterations"][0]["events"],
        (await api.call("events.debug_images", {"task": task}, version="2.1"))["images"],
        (await api.call("events.get_plot_sample", sample))["events"],
        [image],
    ]
    for events in answers:
        assert any(extra.items() <= one.items() for one in events)
        for one in events:
            rich = one["metric"] == "m"
            assert (one.keys() >= extra.keys(), "plot_str" in one or "url" in one) == (rich, rich)
