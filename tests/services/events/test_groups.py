"""events.scalar_metrics_of_groups: whose runs may be in a group, and how much may be asked for."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.server.bounds import Bounds
from apiserver.services.bounds import CallBounds
from tests.harness import Api
from tests.services.events.conftest import Add
from tests.services.events.test_scalars import scalar

pytestmark = pytest.mark.anyio

GROUPS = "events.scalar_metrics_of_groups"
METRICS = [{"metric": "m", "variants": ["v"]}]


def asked(*groups: list[str], **fields: Any) -> dict[str, Any]:
    of_names = [{"name": f"group {n}", "tasks": tasks} for n, tasks in enumerate(groups)]
    return {"groups": of_names, "metrics": METRICS, **fields}


@pytest.fixture
async def tasks(api: Api) -> list[str]:
    return [(await api.call("tasks.create", {"name": f"t{n}", "type": "training"}))["id"] for n in range(3)]


@pytest.mark.test
async def test_groups_of_tasks(api: Api, add: Add, tasks: list[str]) -> None:
    a, b, c = tasks
    await add(scalar(a, 0, 1), scalar(a, 2, 3), scalar(b, 1, 4), scalar(b, 2, "NaN"), scalar(c, -(2**31), 5))
    request = asked([a, b, a], [b], [c], quantiles=[0.5])
    assert await api.call(GROUPS, request) == {
        "metrics": {
            "m": {
                "v": {
                    "group 0": {
                        "x": [0, 1, 2],
                        "runs": [1, 2, 1],
                        "mean": [1, 3, 3],
                        "std": [0, 1, 0],
                        "min": [1, 2, 3],
                        "max": [1, 4, 3],
                        "quantiles": [[1, 3, 3]],
                    },
                    "group 1": {
                        **{"x": [1], "runs": [1], "mean": [4], "std": [0]},
                        **{"min": [4], "max": [4], "quantiles": [[4]]},
                    },
                }
            }
        }
    }
    part = await api.call(GROUPS, asked([a, b], range={"from": 1, "to": 1}))
    assert part["metrics"]["m"]["v"]["group 0"]["mean"] == [3]
    last = await api.call(GROUPS, asked([a, b], fill="last"))
    assert last["metrics"]["m"]["v"]["group 0"]["mean"] == [1, 2.5, 3]
    steps = await api.call(GROUPS, asked([a], smooth={"by": "derivative"}))
    assert steps["metrics"]["m"]["v"]["group 0"]["mean"] == [1]
    text = await api.call(GROUPS, asked([a], key="iso_time"))
    assert all(x.endswith("Z") for x in text["metrics"]["m"]["v"]["group 0"]["x"])
    nothing = await api.call(GROUPS, {**asked(tasks), "metrics": [{"metric": "no", "variants": ["v"]}]})
    assert nothing == {"metrics": {}}


async def test_groups_of_models(api: Api, add: Add, tasks: list[str]) -> None:
    model = (await api.call("models.create", {"name": "m", "uri": "file:///m", "ready": False}))["id"]
    await add(scalar(model, 0, 1, model_event=True))
    found = await api.call(GROUPS, asked([model], model_events=True))
    assert found["metrics"]["m"]["v"]["group 0"]["mean"] == [1]
    await api.call(GROUPS, asked([model]), expect=400)


async def test_tasks_must_be_known(api: Api, tasks: list[str]) -> None:
    meta = (await api.call(GROUPS, asked(tasks, [tasks[0], "nope"]), expect=400))["meta"]
    assert (meta["result_subcode"], "nope" in meta["result_msg"]) == (101, True)


@pytest.mark.test
@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"groups": []}, "groups"),
        ({"groups": [{"name": "g", "tasks": []}]}, "groups[0].tasks"),
        ({"groups": [{"name": "g", "tasks": ["a"]}] * 2}, "groups"),
        ({"groups": [{"name": str(n), "tasks": ["a"]} for n in range(11)]}, "groups"),
        ({"groups": [{"tasks": ["a"]}]}, "groups[0].name"),
        ({"metrics": []}, "metrics"),
        ({"metrics": [{"metric": "m"}]}, "metrics[0].variants"),
        ({"metrics": [{"metric": "m", "variants": []}]}, "metrics[0].variants"),
        ({"metrics": [{"metric": m, "variants": [str(n) for n in range(51)]} for m in "ab"]}, "metrics"),
        ({"groups": [{"name": n, "tasks": [str(t) for t in range(5001)]} for n in "ab"]}, "groups"),
        ({"samples": 9}, "samples"),
        ({"samples": 6001}, "samples"),
        ({"quantiles": [1.1]}, "quantiles[0]"),
        ({"range": {"from": 2, "to": 1}}, "range"),
        ({"quantiles": [0.5] * 21}, "quantiles"),
        ({"smooth": {"by": "median", "points": 33}}, "smooth.points"),
        ({"fill": "zero"}, "fill"),
        ({"key": "time"}, "key"),
    ],
)
async def test_what_is_asked_has_bounds(api: Api, fields: dict[str, Any], field: str) -> None:
    meta = (await api.call(GROUPS, {**asked(["a"]), **fields}, expect=400))["meta"]
    assert (meta["result_subcode"], meta["error_data"]["field"]) == (12, field)


@pytest.mark.test
@pytest.mark.bounds(Bounds(calls=CallBounds(curves=6)))
async def test_the_largest_call(api: Api, add: Add) -> None:
    tasks = [(await api.call("tasks.create", {"name": str(n), "type": "training"}))["id"] for n in range(3)]
    await add(*(scalar(task, n, n) for n, task in enumerate(tasks)))
    two = [{"metric": "m", "variants": ["v", "w"]}]
    found = await api.call(GROUPS, {**asked(tasks), "metrics": two})
    assert found["metrics"]["m"]["v"]["group 0"]["mean"] == [0, 1, 2]
    await api.call(GROUPS, {**asked(tasks, tasks[:1]), "metrics": two}, expect=400)
