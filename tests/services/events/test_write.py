"""events.add, add_batch and the deletes, through the whole server."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from tests.harness import Api
from tests.services.events.conftest import Add

pytestmark = pytest.mark.anyio

NOW = 1_700_000_000_000


def scalar(task: str, **fields: Any) -> dict[str, Any]:
    event = {"type": "training_stats_scalar", "task": task, "metric": "m", "variant": "v", "iter": 1, "value": 2.0}
    return {**event, "timestamp": NOW, **fields}


async def series(api: Api, task: str) -> dict[str, Any]:
    answer = await api.call("events.scalar_metrics_iter_histogram", {"task": task})
    return {f"{metric}/{variant}": (one["x"], one["y"]) for metric, of in answer.items() for variant, one in of.items()}


async def test_a_batch_is_added_and_read_back(api: Api, add: Add, task: str) -> None:
    answer = await add(*(scalar(task, iter=n, value=n / 2) for n in range(5)))
    assert answer.json()["data"] == {"added": 5, "errors": 0, "errors_info": {}}
    assert await series(api, task) == {"m/v": ([0, 1, 2, 3, 4], [0.0, 0.5, 1.0, 1.5, 2.0])}


@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
async def test_every_method_carries_a_body(api: Api, task: str, method: str) -> None:
    answer = await api.raw(method, "/events.add_batch", content=json.dumps(scalar(task)))
    assert answer.json()["data"]["added"] == 1


async def test_a_single_event_may_come_as_json_or_as_a_query(api: Api, task: str) -> None:
    assert (await api.call("events.add", scalar(task)))["added"] == 1
    query = f"/events.add?type=training_stats_scalar&task={task}&metric=m&variant=q&iter=3&value=1.5"
    assert (await api.raw("GET", query)).json()["data"]["added"] == 1
    assert (await series(api, task))["m/q"] == ([3], [1.5])


async def test_the_same_identity_overwrites(api: Api, add: Add, task: str) -> None:
    await add(scalar(task, value=1), scalar(task, value=2))
    await add(scalar(task, value=7.25))
    assert await series(api, task) == {"m/v": ([1], [7.25])}


async def test_bad_lines_cost_only_themselves(api: Api, add: Add, task: str) -> None:
    answer = await add(
        scalar(task, iter=1),
        '{"type": "log", "task": ',
        scalar(task, iter="abc"),
        {"type": "nope", "task": task},
        {"type": "log"},
        {"task": task},
        scalar("f" * 32),
        scalar(task, iter=2),
    )
    data = answer.json()["data"]
    assert (data["added"], data["errors"]) == (2, 6)
    assert data["errors_info"]["Invalid event type nope"] == 1
    assert data["errors_info"][f"Invalid task id {'f' * 32}"] == 1
    assert any("'iter'" in reason for reason in data["errors_info"])
    assert data["errors_lines"] == [2, 3, 4, 6]
    assert (await series(api, task))["m/v"][0] == [1, 2]


@pytest.mark.parametrize(
    ("fields", "field"),
    [({"iter": "abc"}, "iter"), ({"value": "x"}, "value"), ({"iter": 2**63}, "iter"), ({"metric": []}, "metric")],
)
async def test_an_only_event_with_a_wrong_field_is_a_validation_error(
    api: Api, task: str, fields: dict[str, Any], field: str
) -> None:
    answer = await api.call("events.add", scalar(task, **fields), expect=400)
    assert answer["meta"]["result_subcode"] == 12
    assert f"'{field}'" in answer["meta"]["result_msg"]
    assert answer["meta"]["error_data"]["field"] == field


async def test_nan_is_a_value_bare_and_as_text(api: Api, add: Add, task: str) -> None:
    await add(scalar(task, iter=1, value="NaN"), scalar(task, iter=2, value="Infinity"), scalar(task, iter=3, value=1))
    await add(scalar(task, iter=4, value=math.nan), scalar(task, iter=5, value=-math.inf))
    for n, value in enumerate(["NaN", "Infinity", "-Infinity"], start=6):
        event = json.dumps(scalar(task, iter=n, value=value)).replace(f'"{value}"', value)
        answer = await api.raw("POST", "/events.add", content=event)
        assert answer.json()["data"]["added"] == 1
    assert await series(api, task) == {"m/v": ([*range(1, 9)], [None, None, 1.0, *[None] * 5])}


@pytest.mark.parametrize(
    ("body", "subcode"), [("", 17), ("\n\n", 17), ("[1,2]", 12), ('{"type": "log", "task": ', 12), ("\xff\xfe", 12)]
)
async def test_bodies_without_events(api: Api, body: str, subcode: int) -> None:
    answer = await api.raw("POST", "/events.add_batch", content=body.encode("latin-1"))
    assert (answer.status_code, answer.json()["meta"]["result_subcode"]) == (400, subcode)


@pytest.mark.parametrize("body", ["[1,2]", "3", "{", "nonsense"])
async def test_an_event_must_be_an_object(api: Api, body: str) -> None:
    answer = await api.raw("POST", "/events.add", content=body)
    assert answer.status_code == 400


async def test_nothing_added_says_why(api: Api, task: str) -> None:
    answer = await api.call("events.add", scalar("f" * 32), expect=400)
    assert answer["meta"]["result_subcode"] == 131
    assert f"Invalid task id {'f' * 32}=1" in answer["meta"]["result_msg"]
    answer = await api.call("events.add", {"task": task, "value": 1}, expect=400)
    assert "Event must have a 'type' field=1" in answer["meta"]["result_msg"]


async def test_contradicting_lines_are_refused_together(add: Add, api: Api, task: str) -> None:
    answer = await add(scalar(task), scalar(task, allow_locked=True))
    assert (answer.status_code, answer.json()["meta"]["result_subcode"]) == (400, 12)
    assert await series(api, task) == {}


async def test_a_published_task_is_locked(api: Api, task: str) -> None:
    await api.call("tasks.started", {"task": task})
    await api.call("tasks.stopped", {"task": task})
    await api.call("tasks.publish", {"task": task})
    assert (await api.call("events.add", scalar(task), expect=400))["meta"]["result_subcode"] == 131
    assert (await api.call("events.add", scalar(task, allow_locked=True)))["added"] == 1
    assert (await api.call("events.delete_for_task", {"task": task}, expect=400))["meta"]["result_subcode"] == 101
    assert (await api.call("events.delete_for_task", {"task": task, "allow_locked": True}))["deleted"] == 1


async def test_delete_for_task_deletes_all_of_it_and_nothing_else(api: Api, add: Add, task: str) -> None:
    other = (await api.call("tasks.create", {"name": "other", "type": "training"}))["id"]
    for owner in (task, other):
        await add(
            scalar(owner),
            {"type": "log", "task": owner, "msg": "x"},
            {"type": "plot", "task": owner, "metric": "p", "variant": "v", "plot_str": "{}"},
        )
    assert (await api.call("events.delete_for_task", {"task": task}))["deleted"] == 3
    assert (await api.call("events.get_task_events", {"task": task}))["total"] == 0
    assert (await api.call("events.get_task_events", {"task": other}))["total"] == 3
    await api.call("events.delete_for_task", {"task": "f" * 32}, expect=400)


async def test_events_of_models(api: Api, add: Add) -> None:
    model = (await api.call("models.create", {"name": "a model", "uri": "file:///a/b", "ready": False}))["id"]
    assert (await add(scalar(model, model_event=True, iter=4))).json()["data"]["added"] == 1
    request = {"task": model, "model_events": True}
    assert (await api.call("events.scalar_metrics_iter_histogram", request))["m"]["v"]["x"] == [4]
    await api.call("events.scalar_metrics_iter_histogram", {"task": model}, expect=400)
    refused = await add({"type": "log", "task": model, "msg": "x", "model_event": True})
    assert "Task log events are not supported for models=1" in refused.json()["meta"]["result_msg"]
    shown = (await api.call("models.get_by_id", {"model": model}))["model"]
    assert (await api.call("events.delete_for_model", {"model": model}))["deleted"] == 1
    assert (await api.call("models.get_by_id", {"model": model}))["model"].keys() == shown.keys()


async def test_a_batch_moves_its_task(api: Api, add: Add, task: str) -> None:
    before = (await api.call("tasks.get_by_id", {"task": task}))["task"]
    await add(*(scalar(task, iter=n, value=float(n)) for n in (3, 9, 5)))
    await add(scalar(task, iter=-(2**31), metric="Summary", variant="best", value=0.5))
    after = (await api.call("tasks.get_by_id", {"task": task}))["task"]
    assert after["last_iteration"] == 9
    assert after["last_change"] > before["last_change"]
    summaries = {
        (one["metric"], one["variant"]): one for variants in after["last_metrics"].values() for one in variants.values()
    }
    loss = summaries["m", "v"]
    assert (loss["value"], loss["min_value"], loss["max_value"], loss["count"]) == (9.0, 3.0, 9.0, 3)
    assert (loss["min_value_iteration"], loss["max_value_iteration"]) == (3, 9)
    assert summaries["Summary", "best"]["value"] == 0.5


async def test_a_resent_batch_changes_nothing(api: Api, add: Add, task: str) -> None:
    lines = [{"type": "log", "task": task, "timestamp": NOW + n // 2, "msg": "same"} for n in range(6)]
    for _ in range(3):
        assert (await add(*lines, scalar(task))).json()["data"]["errors"] == 0
    log = await api.call("events.get_task_log", {"task": task, "navigate_earlier": False})
    assert log["total"] == 6
    assert len(log["events"]) == 6
    summary = (await api.call("tasks.get_by_id", {"task": task}))["task"]["last_metrics"]
    assert [one["count"] for variants in summary.values() for one in variants.values()] == [1]


@pytest.mark.test
@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        " JaVaScript:alert(1)",
        "data:image/svg+xml,<svg/>",
        "/api/v2.34/auth.edit_user?user=EVE&role=admin",
        "/files/../api/v2.34/auth.edit_user?user=EVE&role=admin",
        "//host/a.png",
    ],
)
async def test_a_picture_that_may_be_a_call_or_a_script_costs_its_event(
    api: Api, add: Add, task: str, url: str
) -> None:
    image = {"type": "training_debug_image", "task": task, "metric": "m", "variant": "v", "iter": 1}
    good = [
        {**image, "url": "s3://bucket/a b.png"},
        {**image, "url": "/files/a.png", "iter": "2"},
    ]  # a plain one, an odd one
    for bad in ({**image, "url": url}, {**image, "url": url, "iter": "3"}):
        data = (await add(*good, bad)).json()["data"]
        assert (data["added"], data["errors"]) == (2, 1)
        assert "'url'" in next(iter(data["errors_info"]))
        refused = (await api.call("events.add", bad, expect=400))["meta"]
        assert (refused["result_subcode"], refused["error_data"]["field"]) == (12, "url")
    page = await api.call("events.get_task_events", {"task": task})
    assert [one["url"] for one in page["events"]] == ["s3://bucket/a b.png", "/files/a.png"]
