"""events.get_debug_image_sample, next_debug_image_sample, get_plot_sample and next_plot_sample."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness import Api
from tests.services.events.conftest import Add
from tests.services.events.test_read import event

pytestmark = pytest.mark.anyio

IMAGE, NEXT_IMAGE = "events.get_debug_image_sample", "events.next_debug_image_sample"
PLOT, NEXT_PLOT = "events.get_plot_sample", "events.next_plot_sample"


def image(task: str, iter: int, metric: str = "im", variant: str = "a", **fields: Any) -> dict[str, Any]:
    url = f"http://files/{metric}/{variant}/{iter}.png"
    return event("training_debug_image", task, iter, **{"metric": metric, "variant": variant, "url": url, **fields})


def plot(task: str, iter: int, metric: str = "pm", variant: str = "a") -> dict[str, Any]:
    return event("plot", task, iter, metric=metric, variant=variant, plot_str="{}")


async def test_images_are_walked_one_by_one(api: Api, add: Add, task: str) -> None:
    await add(*(image(task, n, url=f"http://files/{n % 5}.png", key=f"k{n}") for n in range(12)))
    first = await api.call(IMAGE, {"task": task, "metric": "im", "variant": "a"})
    assert (first["event"]["iter"], first["event"]["key"]) == (11, "k11")
    assert (first["min_iteration"], first["max_iteration"]) == (7, 11)

    async def step(scroll_id: str, **fields: bool) -> tuple[int | None, str]:
        answer = await api.call(NEXT_IMAGE, {"task": task, "scroll_id": scroll_id, **fields})
        return answer["event"] and answer["event"]["iter"], answer["scroll_id"]

    shown, scroll_id = await step(first["scroll_id"])
    assert shown == 10
    shown, scroll_id = await step(scroll_id, navigate_earlier=False)
    assert shown == 11
    end, scroll_id = await step(scroll_id, navigate_earlier=False)
    assert end is None
    await add(image(task, 12, url="http://files/2.png"))
    shown, scroll_id = await step(scroll_id, navigate_earlier=False)
    assert shown == 12
    shown, _ = await step(scroll_id, navigate_earlier=True, next_iteration=True)
    assert shown == 11


async def test_a_walk_keeps_to_its_metric_unless_told_otherwise(api: Api, add: Add, task: str) -> None:
    await add(image(task, 1), image(task, 1, variant="b"), image(task, 1, metric="other", variant="c"))
    for current, expected in ((True, ["b"]), (False, ["b", "c"])):
        request = {"task": task, "metric": "im", "variant": "a", "navigate_current_metric": current}
        answer = await api.call(IMAGE, request)
        seen = []
        while True:
            following = {"task": task, "scroll_id": answer["scroll_id"], "navigate_earlier": False}
            answer = await api.call(NEXT_IMAGE, following)
            if answer["event"] is None:
                break
            seen.append(answer["event"]["variant"])
        assert seen == expected
        assert (answer["min_iteration"], answer["max_iteration"]) == (None, None)


async def test_an_image_of_an_iteration(api: Api, add: Add, task: str) -> None:
    await add(*(image(task, n) for n in (0, 5, 9)))
    for iteration, expected in ((5, 5), (8, 5), ("9", 9), (-1, None)):
        request = {"task": task, "metric": "im", "variant": "a", "iteration": iteration}
        answer = await api.call(IMAGE, request)
        assert (answer["event"] and answer["event"]["iter"]) == expected
    answer = await api.call(IMAGE, {"task": task, "metric": "nope", "variant": "a"})
    assert (answer["event"], answer["min_iteration"], answer["max_iteration"]) == (None, None, None)
    following = {"task": task, "scroll_id": answer["scroll_id"]}
    assert (await api.call(NEXT_IMAGE, following))["event"] is None


async def test_plots_are_walked_one_by_one(api: Api, add: Add, task: str) -> None:
    await add(*(plot(task, n, variant=v) for n in range(4) for v in "ab"), plot(task, 3, "roc"))
    first = await api.call(PLOT, {"task": task, "metric": "pm"})
    assert [(one["iter"], one["variant"]) for one in first["events"]] == [(3, "a"), (3, "b")]
    assert (first["min_iteration"], first["max_iteration"]) == (0, 3)
    before = await api.call(NEXT_PLOT, {"task": task, "scroll_id": first["scroll_id"]})
    assert [(one["iter"], one["variant"]) for one in before["events"]] == [(2, "a"), (2, "b")]
    forward = {"task": task, "navigate_earlier": False}
    again = await api.call(NEXT_PLOT, {**forward, "scroll_id": before["scroll_id"]})
    assert again["events"] == first["events"]
    end = await api.call(NEXT_PLOT, {**forward, "scroll_id": again["scroll_id"]})
    assert (end["events"], end["min_iteration"]) == ([], None)
    anywhere = await api.call(PLOT, {"task": task, "metric": "pm", "navigate_current_metric": False, "iteration": 3})
    other = await api.call(NEXT_PLOT, {**forward, "scroll_id": anywhere["scroll_id"]})
    assert [one["metric"] for one in other["events"]] == ["roc"]


async def test_scroll_ids_of_samples_are_their_own(api: Api, add: Add, task: str) -> None:
    other = (await api.call("tasks.create", {"name": "other", "type": "training"}))["id"]
    await add(image(task, 1), plot(task, 1), image(other, 1), plot(other, 1))
    of_image = (await api.call(IMAGE, {"task": task, "metric": "im", "variant": "a"}))["scroll_id"]
    of_plot = (await api.call(PLOT, {"task": task, "metric": "pm"}))["scroll_id"]
    walk = await api.call("events.debug_images", {"metrics": [{"task": task}]})
    for endpoint, owner, scroll_id in (
        (NEXT_IMAGE, task, "nope"),
        (NEXT_IMAGE, task, of_plot),
        (NEXT_IMAGE, task, walk["scroll_id"]),
        (NEXT_IMAGE, other, of_image),
        (NEXT_PLOT, task, of_image),
        (NEXT_PLOT, other, of_plot),
        (NEXT_PLOT, task, of_plot[:-2]),
    ):
        meta = (await api.call(endpoint, {"task": owner, "scroll_id": scroll_id}, expect=400))["meta"]
        assert meta["result_subcode"] == 1104
    asked = {"task": task, "metric": "im", "variant": "a"}
    assert (await api.call(IMAGE, {**asked, "scroll_id": "nope"}, expect=400))["meta"]["result_subcode"] == 1104
    assert (await api.call(IMAGE, {**asked, "scroll_id": of_image, "refresh": True}))["event"]["iter"] == 1


async def test_what_is_asked_for_must_be_right(api: Api, task: str) -> None:
    for endpoint, request, subcode in (
        (IMAGE, {"task": "nope", "metric": "m", "variant": "v"}, 101),
        (NEXT_IMAGE, {"task": "nope", "scroll_id": "s"}, 101),
        (PLOT, {"task": "nope", "metric": "m"}, 101),
        (NEXT_PLOT, {"task": "nope", "scroll_id": "s"}, 101),
        (IMAGE, {"task": task, "metric": "m"}, 12),
        (IMAGE, {"task": task, "metric": "m", "variant": "v", "iteration": 2**63}, 12),
        (PLOT, {"task": task, "metric": "m", "iteration": -(2**64)}, 12),
        (NEXT_IMAGE, {"task": task}, 12),
    ):
        assert (await api.call(endpoint, request, expect=400))["meta"]["result_subcode"] == subcode


@pytest.mark.parametrize(
    ("endpoint", "version", "actual"),
    [(IMAGE, "2.12", "2.12"), (NEXT_IMAGE, "2.34", "2.12"), (PLOT, "2.1", "1.0"), (NEXT_PLOT, "2.34", "1.0")],
)
async def test_versions(api: Api, task: str, endpoint: str, version: str, actual: str) -> None:
    request = {"task": task, "metric": "m", "variant": "v", "scroll_id": "s"}
    answer = await api.raw("POST", f"/v{version}/{endpoint}", json=request)
    assert answer.json()["meta"]["endpoint"]["actual_version"] == actual


async def test_samples_of_a_model(api: Api, add: Add) -> None:
    model = (await api.call("models.create", {"name": "m", "uri": "file:///m", "ready": False}))["id"]
    await add(*({**image(model, n), "model_event": True} for n in range(2)))
    request = {"task": model, "model_events": True}
    first = await api.call(IMAGE, {**request, "metric": "im", "variant": "a"})
    second = await api.call(NEXT_IMAGE, {**request, "scroll_id": first["scroll_id"]})
    assert (first["event"]["iter"], second["event"]["iter"], second["event"]["model_event"]) == (1, 0, True)
