"""events.download_task_log, clear_task_log and clear_scroll."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apiserver.common.times import now_ms
from tests.harness import Api
from tests.services.events.conftest import Add
from tests.services.events.test_read import NOW, event, fill_log

pytestmark = pytest.mark.anyio


@pytest.mark.test
async def test_a_log_is_downloaded_as_json_lines(api: Api, add: Add, task: str) -> None:
    await fill_log(add, task, 3)
    response = await api.raw("POST", "/events.download_task_log", json={"task": task})
    assert response.headers["content-disposition"] == f"attachment; filename=task_{task}.log"
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    lines = [json.loads(line) for line in response.text.splitlines()]
    assert [line.pop("@timestamp")[:2] for line in lines] == ["20"] * 3
    assert lines[1] == {
        "iter": 1, "worker": "w", "msg": "line 1", "level": "info", "model_event": False, "metric": "", "variant": "",
        "asctime": NOW + 1000,
    }  # fmt: skip
    assert [line["asctime"] for line in lines] == [NOW, NOW + 1000, NOW + 2000]


@pytest.mark.test
async def test_a_log_is_downloaded_as_text(api: Api, add: Add, task: str) -> None:
    await fill_log(add, task, 2500)
    request = {"task": task, "line_type": "text"}
    response = await api.raw("GET", "/v2.34/events.download_task_log", params=request)
    lines = response.text.splitlines()
    assert len(lines) == 2500
    assert lines[1] == f"{NOW + 1000} w info line 1"
    formatted = await api.raw("POST", "/events.download_task_log", json={**request, "line_format": "{iter}: {msg}|"})
    assert formatted.text.startswith("0: line 0|\n1: line 1|\n")


async def test_an_empty_log_is_an_empty_file(api: Api, task: str) -> None:
    response = await api.raw("POST", "/events.download_task_log", json={"task": task})
    assert (response.status_code, response.content) == (200, b"")


@pytest.mark.test
@pytest.mark.parametrize("line_format", ["{foo}", "{msg.__class__}", "{x:>999999999}", "{msg", "{0}"])
async def test_hostile_line_formats_are_refused(api: Api, add: Add, task: str, line_format: str) -> None:
    await fill_log(add, task, 1)
    request = {"task": task, "line_type": "text", "line_format": line_format}
    meta = (await api.call("events.download_task_log", request, expect=400))["meta"]
    assert (meta["result_subcode"], meta["error_data"]["field"]) == (16, "line_format")
    assert line_format.strip("{}") in meta["result_msg"]


@pytest.mark.test
@pytest.mark.parametrize(
    ("fields", "deleted"),
    [
        ({}, 4),
        ({"exclude_metrics": ["stdout"]}, 3),
        ({"include_metrics": ["stdout", "stderr"]}, 2),
        ({"include_metrics": ["stdout"], "exclude_metrics": ["stdout"]}, 0),
        ({"include_metrics": [], "exclude_metrics": []}, 4),
        ({"threshold_sec": 3600}, 3),
        ({"threshold_sec": 10_000_000_000}, 0),
        ({"threshold_sec": 3600, "exclude_metrics": ["stderr"]}, 2),
    ],
)
async def test_lines_are_cleared_by_age_and_metric(
    api: Api, add: Add, task: str, fields: dict[str, Any], deleted: int
) -> None:
    await add(
        event("log", task, 0, msg="a"),
        event("log", task, 1, msg="b", metric="stdout"),
        event("log", task, 2, msg="c", metric="stderr"),
        {**event("log", task, 3, msg="d"), "timestamp": now_ms()},
        event("training_stats_scalar", task, 1, metric="stdout", variant="v", value=1),
    )
    assert await api.call("events.clear_task_log", {"task": task, **fields}) == {"deleted": deleted}
    assert (await api.call("events.get_task_log", {"task": task}))["total"] == 4 - deleted
    assert "stdout" in await api.call("events.scalar_metrics_iter_histogram", {"task": task})


async def test_the_log_of_a_published_task_stays(api: Api, add: Add, task: str) -> None:
    await fill_log(add, task, 2)
    await api.call("tasks.completed", {"task": task, "force": True})
    await api.call("tasks.publish", {"task": task})
    assert (await api.call("events.clear_task_log", {"task": task}, expect=400))["meta"]["result_subcode"] == 101
    assert await api.call("events.clear_task_log", {"task": task, "allow_locked": True}) == {"deleted": 2}


async def test_logs_of_unknown_tasks(api: Api) -> None:
    for endpoint in ("events.clear_task_log", "events.download_task_log"):
        assert (await api.call(endpoint, {"task": "nope"}, expect=400))["meta"]["result_subcode"] == 101
    for seconds in (-1, 10**30, "x"):
        meta = (await api.call("events.clear_task_log", {"task": "t", "threshold_sec": seconds}, expect=400))["meta"]
        assert meta["error_data"]["field"] == "threshold_sec"


async def test_scrolls_need_not_be_cleared(api: Api) -> None:
    assert await api.call("events.clear_scroll", {"scroll_id": "whatever"}) == {}
    meta = (await api.call("events.clear_scroll", {}, expect=400))["meta"]
    assert (meta["result_subcode"], meta["endpoint"]["actual_version"]) == (12, "2.18")


@pytest.mark.test
async def test_what_else_a_line_has_is_answered_everywhere_and_nothing_is_made_up(
    api: Api, add: Add, task: str
) -> None:
    plain = {"type": "log", "task": task, "timestamp": 1000, "msg": "plain"}
    rich = {**plain, "timestamp": 2000, "msg": "rich", "level": "info", "rank": 3, "asctime": "?", "who": {"name": "é"}}
    await add(plain, rich)

    def check(events: list[dict[str, Any]]) -> None:
        of = {event["msg"]: event for event in events}
        assert "level" not in of["plain"]
        assert rich.items() <= of["rich"].items()
        assert of["plain"].keys() == of["rich"].keys() - {"level", "rank", "asctime", "who"}

    for merged in (False, True):
        if merged:
            await api.backend.events.merge()  # type: ignore[attr-defined]
        for version in ("1.5", "1.7", "2.9"):
            for fields in ({"order": "asc"}, {"order": "desc"}):
                check((await api.call("events.get_task_log", {"task": task, **fields}, version=version))["events"])
        for earlier in (True, False):
            check((await api.call("events.get_task_log", {"task": task, "navigate_earlier": earlier}))["events"])
        check((await api.call("events.get_task_log", {"task": task, "search": {"text": "i"}}))["events"])
        for order in ("asc", "desc"):
            check((await api.call("events.get_task_events", {"task": task, "order": order}))["events"])
        request = {"task": task, "line_type": "json"}
        text = (await api.raw("GET", "/v2.34/events.download_task_log", params=request)).text
        first, second = (json.loads(line) for line in text.splitlines())
        assert ("level" in first, second["rank"], second["asctime"]) == (False, 3, 2000)
        request = {"task": task, "line_type": "text", "line_format": "{asctime} {level}: {msg}"}
        text = (await api.raw("GET", "/v2.34/events.download_task_log", params=request)).text
        assert text == "1000 : plain\n2000 info: rich\n"
