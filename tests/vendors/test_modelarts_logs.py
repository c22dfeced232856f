"""ModelArts: the preview of a task's log."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from apiserver.services.bounds import CallBounds
from tests.harness import Api
from tests.vendors.reported import BEGIN, HOUR, SECOND, Line, Report, Reported, reported, validate

pytestmark = pytest.mark.anyio

LIMIT = 5 * 1024 * 1024


async def preview(job: Reported, task: str = "worker-0", *, id: str = "", project: str = "") -> dict[str, Any]:
    path = f"/v2/{project or job.project}/training-jobs/{id or job.id}/tasks/{task}/logs/preview"
    response = await job.api.raw("GET", path)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    validate(answer, "modelarts_log_preview")
    assert answer["current_size"] == len(answer["content"].encode()) <= answer["full_size"]
    return answer


def whole(content: str) -> dict[str, Any]:
    size = len(content.encode())
    return {"content": content, "current_size": size, "full_size": size}


def by_hand(lines: Sequence[Line], *workers: str) -> str:
    """The lines of these workers by time, each ended by one line feed at least."""
    mine = sorted((line.time, n, line.message) for n, line in enumerate(lines) if line.worker in workers)
    return "".join(message if message[-1:] == "\n" else message + "\n" for _, _, message in mine)


@pytest.mark.test
async def test_a_job_of_two_machines(job_anywhere: Reported) -> None:
    job = job_anywhere
    first, second = by_hand(job.lines, "host-a"), by_hand(job.lines, "host-b")
    assert "line 3 of host-a\nsecond — 行\nline 4 of host-a\n" in first
    assert await preview(job, "worker-0") == await preview(job, "host-a", id=job.dashed) == whole(first)
    assert await preview(job, "worker-1") == await preview(job, "host-b") == whole(second)


async def test_lines_of_other_workers_are_of_the_first_machine(job: Reported) -> None:
    await job.send([], [Line("agent", BEGIN - HOUR, "environment made"), Line("agent", BEGIN + HOUR, "the end")])
    content = by_hand(job.lines, "host-a", "agent")
    assert content.startswith("environment made\nline 0 of host-a\n")
    assert await preview(job) == whole(content)
    assert await preview(job, "worker-1") == whole(by_hand(job.lines, "host-b"))


async def test_a_second_machines_own_scalars_leave_its_log_alone(job: Reported) -> None:
    await job.send([Report("host-b", ":monitor:machine", "ephemeral_storage_used_gb", BEGIN, 1)])
    assert await preview(job, "worker-1") == whole(by_hand(job.lines, "host-b"))


async def test_machines_of_one_name_have_one_log(api: Api) -> None:
    job = await reported(api)
    ranks = ("", ":rank1")
    reports = [Report("w", ":monitor:machine" + rank, "cpu_usage", BEGIN, 1) for rank in ranks]
    await job.send(reports, [Line("w", BEGIN, "hello")])
    assert await preview(job) == await preview(job, "w:rank0") == whole("hello\n")
    path = f"/v2/{job.project}/training-jobs/{job.id}/tasks/worker-1/logs/preview"
    assert (await api.raw("GET", path)).json()["error_code"] == "ModelArts.2818"


async def test_without_reports_of_resources_machines_are_who_logged(api: Api) -> None:
    job = await reported(api, project="vision")
    lines = [Line("b", BEGIN + SECOND, "b 1"), Line("a", BEGIN + 2 * SECOND, "a 1"), Line("b", BEGIN + HOUR, "b 2")]
    await job.send([], lines)
    assert await preview(job, "worker-0", project="vision") == await preview(job, "b") == whole("b 1\nb 2\n")
    assert await preview(job, "worker-1") == await preview(job, "a") == whole("a 1\n")


async def test_lines_that_come_late_are_where_they_belong(job: Reported) -> None:
    for line in (Line("host-b", BEGIN + HOUR, "last"), Line("host-b", BEGIN, "first"), Line("host-b", BEGIN + 9, "2")):
        await job.send([], [line])
        assert await preview(job, "worker-1") == whole(by_hand(job.lines, "host-b"))


@pytest.mark.test
@pytest.mark.own_api
async def test_the_latest_lines_that_have_room(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    job = await reported(api)
    await job.send([], [Line("w", BEGIN + n, text) for n, text in enumerate(("one", "zwei — 行", "three"))])
    three, two, one = "one\nzwei — 行\nthree\n", "zwei — 行\nthree\n", "three\n"
    for limit, content in ((100, three), (23, three), (22, two), (19, two), (18, one), (6, one), (5, "hree\n")):
        monkeypatch.setattr(api.backend, "bounds", CallBounds(preview_bytes=limit))
        expected = {"content": content, "current_size": len(content.encode()), "full_size": 23}
        assert await preview(job) == expected, limit


@pytest.mark.test
@pytest.mark.own_api
async def test_a_line_without_room_is_cut_at_a_whole_character(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    job = await reported(api)
    await job.send([], [Line("w", BEGIN, "行" * 20)])
    for limit, characters in ((9, 2), (8, 2), (7, 2), (6, 1), (4, 1), (3, 0)):
        monkeypatch.setattr(api.backend, "bounds", CallBounds(preview_bytes=limit))
        expected = {"content": "行" * characters + "\n", "current_size": 3 * characters + 1, "full_size": 61}
        assert await preview(job) == expected, limit


@pytest.mark.test
async def test_a_log_of_more_than_five_mebibytes(api: Api) -> None:
    job = await reported(api)
    text = "é" * 500_000
    await job.send([], [Line("w", BEGIN + n, f"{n} {text}") for n in range(7)])
    answer = await preview(job)
    assert answer["content"] == "".join(f"{n} {text}\n" for n in range(2, 7))
    assert answer["current_size"] <= LIMIT < answer["full_size"] == 7 * 1_000_003


async def test_all_text_that_is_taken_comes_back(api: Api) -> None:
    job = await reported(api)
    messages = ["", " ", "a\r\nb", "tab\t\x1b[31m", "\x00", "\ud800 half", "a\n\n", " ", "💥"]
    events = [
        {"type": "log", "task": job.id, "worker": "w", "timestamp": BEGIN + n, "msg": message}
        for n, message in enumerate(messages)
    ]
    await api.raw("POST", "/events.add_batch", content="\n".join(map(json.dumps, events)))
    kept = (await api.call("events.get_task_log", {"task": job.id, "order": "asc"}))["events"]
    await preview(job)
    assert await preview(job) == whole(by_hand([Line("w", n, line["msg"]) for n, line in enumerate(kept)], "w"))
