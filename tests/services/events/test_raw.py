"""events.scalar_metrics_iter_raw."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness import Api
from tests.services.events.conftest import Add
from tests.services.events.test_read import NOW
from tests.services.events.test_scalars import scalar

pytestmark = pytest.mark.anyio

RAW = "events.scalar_metrics_iter_raw"


async def test_points_come_as_columns(api: Api, add: Add, task: str) -> None:
    await add(*(scalar(task, n, n / 2) for n in range(25)), scalar(task, 0, 9, "other"), scalar(task, 0, 9, "m", "w"))
    request: dict[str, Any] = {"task": task, "metric": {"metric": "m", "variants": ["v"]}, "batch_size": 10}
    first = await api.call(RAW, {**request, "count_total": True})
    assert first["variants"] == {"v": {"y": [n / 2 for n in range(10)], "iter": list(range(10))}}
    assert (first["returned"], first["total"]) == (10, 25)
    second = await api.call(RAW, {**request, "scroll_id": first["scroll_id"]})
    assert second["variants"]["v"]["iter"] == list(range(10, 20))
    assert (second["returned"], second["total"]) == (10, 25)
    rest = await api.call(RAW, {**request, "scroll_id": second["scroll_id"]})
    end = await api.call(RAW, {**request, "scroll_id": rest["scroll_id"]})
    assert (rest["returned"], end["returned"], end["variants"]) == (5, 0, {})


async def test_a_scroll_id_remembers_the_size_of_its_pages(api: Api, add: Add, task: str) -> None:
    await add(*(scalar(task, n, n) for n in range(30)))
    request: dict[str, Any] = {"task": task, "metric": {"metric": "m"}}
    sizes = []
    for batch_size in ({"batch_size": 4}, {}, {"batch_size": 7}, {}, {}):
        page = await api.call(RAW, {**request, **batch_size})
        sizes.append(page["returned"])
        request["scroll_id"] = page["scroll_id"]
    assert sizes == [4, 4, 7, 7, 7]


async def test_single_values_are_among_the_points(api: Api, add: Add, task: str) -> None:
    await add(scalar(task, -(2**31), 0.5), scalar(task, 1, 1))
    request: dict[str, Any] = {"task": task, "metric": {"metric": "m"}, "count_total": True}
    page = await api.call(RAW, request)
    assert (page["variants"], page["total"]) == ({"v": {"y": [0.5, 1], "iter": [-(2**31), 1]}}, 2)
    await add(scalar(task, -(2**31), 0.75))
    assert (await api.call(RAW, request))["variants"]["v"]["y"] == [0.75, 1]


@pytest.mark.parametrize("key", ["timestamp", "iso_time"])
async def test_times_are_keys_too(api: Api, add: Add, task: str, key: str) -> None:
    await add(*(scalar(task, n, n, variant=variant) for n in range(4) for variant in "ab"))
    page = await api.call(RAW, {"task": task, "metric": {"metric": "m"}, "key": key, "batch_size": 5})
    times = [NOW, NOW + 1000, NOW + 2000]
    assert page["variants"] == {"a": {"y": [0, 1, 2], key: times}, "b": {"y": [0, 1, 2], key: times}}
    assert (page["returned"], page["total"]) == (6, None)


async def test_new_points_appear_at_the_end(api: Api, add: Add, task: str) -> None:
    await add(scalar(task, 0, 0), scalar(task, 1, "NaN"))
    request = {"task": task, "metric": {"metric": "m"}, "count_total": True}
    first = await api.call(RAW, request)
    assert first["variants"]["v"]["y"] == [0, None]
    end = await api.call(RAW, {**request, "scroll_id": first["scroll_id"]})
    await add(scalar(task, 2, 2))
    later = await api.call(RAW, {**request, "scroll_id": end["scroll_id"]})
    assert (later["variants"]["v"], later["total"]) == ({"y": [2], "iter": [2]}, 3)


async def test_what_is_asked_for_must_be_right(api: Api, add: Add, task: str) -> None:
    await add(scalar(task, 0, 0))
    good: dict[str, Any] = {"task": task, "metric": {"metric": "m"}}
    scroll_id = (await api.call(RAW, good))["scroll_id"]
    for fields, subcode in (
        ({"task": "nope"}, 101),
        ({"scroll_id": "nope"}, 1104),
        ({"scroll_id": scroll_id, "key": "timestamp"}, 1104),
        ({"scroll_id": scroll_id, "metric": {"metric": "other"}}, 1104),
        ({"metric": "m"}, 12),
        ({"metric": {}}, 12),
        ({"batch_size": 0}, 12),
        ({"batch_size": 200_001}, 12),
    ):
        meta = (await api.call(RAW, {**good, **fields}, expect=400))["meta"]
        assert meta["result_subcode"] == subcode, fields


async def test_points_of_a_model(api: Api, add: Add) -> None:
    model = (await api.call("models.create", {"name": "m", "uri": "file:///m", "ready": False}))["id"]
    await add(scalar(model, 1, 2, model_event=True))
    page = await api.call(RAW, {"task": model, "metric": {"metric": "m"}, "model_events": True})
    assert page["variants"] == {"v": {"y": [2], "iter": [1]}}
