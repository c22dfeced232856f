"""events.scalar_metrics_statistics: what there is to know of series without their points."""

from __future__ import annotations

import pytest

from tests.harness import Api
from tests.services.events.conftest import Add
from tests.services.events.test_scalars import scalar

pytestmark = pytest.mark.anyio

STATISTICS = "events.scalar_metrics_statistics"


async def test_statistics_of_series(api: Api, add: Add, task: str) -> None:
    values = {0: 4, 10: 2, 20: "NaN", 30: 3}
    await add(*(scalar(task, iter, value, timestamp=1000 + iter) for iter, value in values.items()))
    await add(scalar(task, 5, "NaN", variant="odd", timestamp=7))
    expected = {
        "count": 4,
        "not_finite": 1,
        "first_not_finite_iter": 20,
        "first": {"iter": 0, "timestamp": 1000, "value": 4},
        "last": {"iter": 30, "timestamp": 1030, "value": 3},
        "min": {"iter": 10, "value": 2, "iters_since": 20},
        "max": {"iter": 0, "value": 4, "iters_since": 30},
        "mean": 3,
        "std": pytest.approx((2 / 3) ** 0.5),
    }
    odd = {
        **{"count": 1, "not_finite": 1, "first_not_finite_iter": 5},
        **{key: {"iter": 5, "timestamp": 7, "value": None} for key in ("first", "last")},
        **dict.fromkeys(["min", "max", "mean", "std"]),
    }
    assert await api.call(STATISTICS, {"task": task}) == {"metrics": {"m": {"odd": odd, "v": expected}}}
    chosen = {"task": task, "metrics": [{"metric": "m", "variants": ["v"]}]}
    assert await api.call(STATISTICS, chosen) == {"metrics": {"m": {"v": expected}}}
    assert await api.call(STATISTICS, {"task": task, "metrics": [{"metric": "no"}]}) == {"metrics": {}}


async def test_only_tasks_that_the_caller_may_read(api: Api) -> None:
    meta = (await api.call(STATISTICS, {"task": "nope"}, expect=400))["meta"]
    assert meta["result_subcode"] == 101
    await api.call(STATISTICS, {}, expect=400)
