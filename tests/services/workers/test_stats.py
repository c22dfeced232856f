"""Charts of machines and of how many workers there were, against what was reported."""

from __future__ import annotations

from collections.abc import Callable
from statistics import mean
from typing import Any

import pytest

from apiserver.common.times import now_ms
from apiserver.stores.documents.query import Update
from tests.harness import Api

pytestmark = pytest.mark.anyio

#: Epoch seconds at which a step of 40 s begins.
START = now_ms() // 40_000 * 40
MACHINES: dict[str, list[dict[str, Any]]] = {
    "a": [{"cpu_usage": [10, 20], "memory_used": 50, "gpu_usage": [60, 70]}, {"cpu_usage": [0, 50], "memory_used": 0}],
    "b": [{"cpu_usage": [5], "memory_used": 30, "gpu_usage": [40], "gpu_temperature": []}],
}
KEYS = ("cpu_usage", "gpu_usage", "memory_used")


async def report(api: Api, worker: str, at: int, **fields: Any) -> None:
    await api.call("workers.status_report", {"worker": worker, "timestamp": at * 1000, **fields})


async def report_all(api: Api) -> None:
    """Each machine's states, 20 s apart."""
    for worker, states in MACHINES.items():
        for n, state in enumerate(states):
            await report(api, worker, START + 20 * n, machine_stats=state)


async def stats(api: Api, **request: Any) -> dict[str, Any]:
    """What `workers.get_stats` answers of four steps around START, by worker, metric and aggregation."""
    dates = {"from_date": START - 40, "to_date": START + 3 * 40, "interval": 1}
    answer = await api.call("workers.get_stats", {**dates, **request})
    return {
        worker["worker"]: {
            one["metric"]: {stat["aggregation"]: stat for stat in one["stats"]} for one in worker["metrics"]
        }
        for worker in answer["workers"]
    }


async def test_curves_are_of_all_cores_and_cards_of_a_step(api: Api) -> None:
    await report_all(api)
    aggregations: dict[str, Callable[[list[float]], float]] = {"avg": mean, "min": min, "max": max}
    items = [{"key": key, "aggregation": name} for key in KEYS for name in aggregations]
    found = await stats(api, items=items)

    assert list(found) == ["a", "b"]
    for worker, states in MACHINES.items():
        assert list(found[worker]) == list(KEYS)
        for key in KEYS:
            given = [state[key] for state in states if key in state]
            values = [value for one in given for value in (one if isinstance(one, list) else [one])]
            for name, aggregate in aggregations.items():
                stat = found[worker][key][name]
                assert stat["dates"] == [1000 * (START + 40 * n) for n in (-1, 0, 1, 2)]
                assert stat["values"] == [0, aggregate(values), 0, 0]
                assert "resource_series" not in stat


async def test_cards_have_curves_of_their_own_when_asked_for(api: Api) -> None:
    await report_all(api)
    items = [{"key": key} for key in KEYS]
    found = await stats(api, items=items, split_by_resource=True)
    cards = [{"name": "0", "values": [0, 60, 0, 0]}, {"name": "1", "values": [0, 70, 0, 0]}]
    assert found["a"]["gpu_usage"]["avg"]["resource_series"] == cards
    assert found["b"]["gpu_usage"]["avg"]["resource_series"] == []
    assert found["a"]["cpu_usage"]["avg"]["resource_series"] == []


async def test_many_cards_come_in_the_order_of_their_numbers(api: Api) -> None:
    await report(api, "w", START, machine_stats={"gpu_usage": list(range(12))})
    found = await stats(api, items=[{"key": "gpu_usage"}], split_by_resource=True)
    assert [one["name"] for one in found["w"]["gpu_usage"]["avg"]["resource_series"]] == [str(n) for n in range(12)]


async def test_only_the_workers_that_are_asked_for_and_reported(api: Api) -> None:
    await report_all(api)
    cpu = [{"key": "cpu_usage"}]
    assert list(await stats(api, items=cpu, worker_ids=["b"])) == ["b"]
    assert await stats(api, items=cpu, worker_ids=["nobody"]) == {}
    assert await stats(api, items=[{"key": "disk_read"}]) == {}
    assert await stats(api, items=cpu, from_date=START - 4000, to_date=START - 2000) == {}


async def test_bad_charts_are_refused(api: Api) -> None:
    for request, subcode in (
        ({"items": []}, 12),
        ({"items": [{"key": "nothing"}]}, 12),
        ({"items": [{"key": "cpu_usage"}], "to_date": 1}, 16),
        ({"items": [{"key": "cpu_usage"}], "from_date": 0}, 12),
        ({"items": [{"key": "cpu_usage"}], "interval": 0}, 12),
        ({"items": [{"key": "cpu_usage"}], "to_date": START * 1000}, 12),
    ):
        dates = {"from_date": START - 40, "to_date": START, "interval": 1}
        answer = await api.call("workers.get_stats", {**dates, **request}, expect=400)
        assert answer["meta"]["result_subcode"] == subcode


async def test_keys_are_those_that_were_reported(api: Api) -> None:
    await report_all(api)

    async def keys(*workers: str) -> dict[str, list[str]]:
        answer = await api.call("workers.get_metric_keys", {"worker_ids": workers})
        return {category["name"]: category["metric_keys"] for category in answer["categories"]}

    assert await keys() == {"cpu": ["cpu_usage"], "gpu": ["gpu_usage"], "memory": ["memory_used"]}
    await report(api, "c", START, machine_stats={"cpu_temperature": [50], "cpu_usage": [1]})
    assert await keys("c", "nobody") == {"cpu": ["cpu_temperature", "cpu_usage"]}
    answer = await api.call("workers.get_metric_keys", {"worker_ids": ["nobody"]}, expect=400)
    assert answer["meta"]["result_subcode"] == 1005


async def activity(api: Api, begin: int = START - 40, end: int = START + 400) -> tuple[list[int], list[int]]:
    request = {"from_date": begin, "to_date": end, "interval": 2}
    answer = await api.call("workers.get_activity_report", request)
    dates = [1000 * at for at in range(begin, end, 40)]
    assert answer["total"]["dates"] == answer["active"]["dates"] == dates
    return answer["total"]["counts"], answer["active"]["counts"]


async def test_workers_are_counted_while_they_report(api: Api) -> None:
    task = (await api.call("tasks.create", {"name": "t", "type": "training"}))["id"]
    assert await activity(api) == ([0] * 11, [0] * 11)
    for at in (0, 30, 60, 150):  # there from step 0 to step 3, with a task in the first two
        await report(api, "a", START + at, **({"task": task} if at < 60 else {}))
    for at in (45, 300, 310):  # in step 1, and again in step 7, busy
        await report(api, "b", START + at, task=task)
    await report(api, "c", START + 100)

    total = [0, 1, 2, 2, 1, 0, 0, 0, 1, 0, 0]
    active = [0, 1, 1, 0, 0, 0, 0, 0, 1, 0, 0]
    assert await activity(api) == (total, active)

    await api.call("workers.unregister", {"worker": "a"})
    await api.call("workers.unregister", {"worker": "b"})
    assert await activity(api) == (total, active)
    await report(api, "a", START + 350)
    total[9] += 1
    assert await activity(api) == (total, active)


async def test_workers_that_timed_out_stay_in_the_past(api: Api) -> None:
    await report(api, "a", START)
    await api.backend.documents.update(
        "workers", {"company": api.company, "name": "a"}, Update(set={"expires": "2020"})
    )
    for _ in range(2):
        assert (await activity(api))[0] == [0, 1, *[0] * 9]
        await api.call("workers.register", {"worker": "b"})
        assert await api.backend.documents.count("workers", {"company": api.company, "name": "a"}) == 0
