"""ModelArts: the running metrics of a task of a training job."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from apiserver.server.bounds import Bounds
from apiserver.services.bounds import CallBounds
from apiserver.stores.documents.query import Update
from tests.harness import Api
from tests.vendors.reported import (
    BEGIN,
    MINUTE,
    SECOND,
    Means,
    Report,
    Reported,
    by_steps,
    mean_of,
    millis,
    reported,
    validate,
)

pytestmark = pytest.mark.anyio

METRICS = ["cpuUsage", "memUsage", "gpuUtil", "gpuMemUsage", "npuUtil", "npuMemUsage"]


async def metrics(job: Reported, task: str = "worker-0", *, id: str = "", project: str = "") -> dict[str, list[float]]:
    """The values of each metric."""
    path = f"/v2/{project or job.project}/training-jobs/{id or job.id}/metrics/{task}"
    response = await job.api.raw("GET", path)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/json"
    assert response.headers["cache-control"] == "no-store"
    answer: dict[str, Any] = response.json()
    validate(answer, "modelarts_metrics")
    assert [metric["metric"] for metric in answer["metrics"]] == METRICS
    assert len({len(metric["value"]) for metric in answer["metrics"]}) == 1
    return {metric["metric"]: metric["value"] for metric in answer["metrics"]}


def assert_alike(values: dict[str, list[float]], expected: dict[str, list[float]]) -> None:
    """Hold answered values, of three digits, against exact ones."""
    assert {metric: len(of_it) for metric, of_it in values.items()} == {m: len(of_it) for m, of_it in expected.items()}
    for metric, of_it in values.items():
        assert of_it == pytest.approx(expected[metric], abs=0.0005 + 1e-9), metric
        assert of_it == [round(value, 3) for value in of_it]


def by_hand(job: Reported, worker: str, rank: str, minutes: int) -> dict[str, list[float]]:
    """The metrics of a worker of `two_machines`."""

    def means(kind: str, variant: str) -> Means:
        return by_steps(job.points(worker, f":monitor:{kind}{rank}", variant), BEGIN, MINUTE)

    values = {
        "cpuUsage": means("machine", "cpu_usage"),
        "memUsage": {minute: used / 31.4 * 100 for minute, used in means("machine", "memory_used_gb").items()},
        "gpuUtil": mean_of(means("gpu", "gpu_0_utilization"), means("gpu", "gpu_1_utilization")),
        "gpuMemUsage": mean_of(means("gpu", "gpu_0_mem_usage"), means("gpu", "gpu_1_mem_usage")),
        "npuUtil": {},
        "npuMemUsage": {},
    }
    return {metric: [of_it.get(minute, -1) for minute in range(minutes)] for metric, of_it in values.items()}


@pytest.mark.test
async def test_a_job_of_two_machines(job_anywhere: Reported) -> None:
    job = job_anywhere
    minutes = 18  # from the first report at 0 s to the last one of all at 1022.4 s
    first, second = by_hand(job, "host-a", "", minutes), by_hand(job, "host-b", ":rank1", minutes)
    assert [minute for minute, value in enumerate(first["cpuUsage"]) if value != -1] == [0, 1, 2, 6, 7]
    assert [minute for minute, value in enumerate(second["memUsage"]) if value != -1] == [0, 1, 2, 7, 8, 15, 17]
    assert_alike(await metrics(job, "worker-0"), first)
    assert_alike(await metrics(job, "worker-1"), second)
    assert_alike(await metrics(job, "host-a"), first)
    assert_alike(await metrics(job, "host-b"), second)


@pytest.mark.test
async def test_ids_may_have_dashes_and_projects_names(api: Api) -> None:
    job = await reported(api, project="vision-1")
    await job.send([Report("w", ":monitor:machine", "cpu_usage", BEGIN, 12.5)])
    for id in (job.id, job.dashed, job.dashed.upper()):
        for project in (job.project, "vision-1"):
            assert (await metrics(job, id=id, project=project))["cpuUsage"] == [12.5]


async def test_a_job_without_reports_has_six_empty_metrics(api: Api) -> None:
    assert await metrics(await reported(api)) == {metric: [] for metric in METRICS}


async def test_a_completed_job_without_reports_has_minutes_without_data(api: Api) -> None:
    job = await reported(api)
    await api.call("tasks.completed", {"task": job.id})
    assert await metrics(job) == {metric: [-1] for metric in METRICS}


@pytest.mark.test
@pytest.mark.parametrize("end", ["completed", "stopped", "failed"])
async def test_minutes_last_until_the_job_has_ended(api: Api, end: str) -> None:
    job = await reported(api)
    begin = millis((await job.document())["started"]) - 10 * MINUTE - 7 * SECOND
    times = (0, 30, 59, 60, 185)
    await job.send([Report("w", ":monitor:machine", "cpu_usage", begin + n * SECOND, n / 2) for n in times])
    running = (await metrics(job))["cpuUsage"]
    assert running == [14.833, 30, -1, 92.5]
    await api.call(f"tasks.{end}", {"task": job.id})
    ended = millis((await job.document())["completed"])
    minutes = (ended - begin - 1) // MINUTE + 1
    assert minutes > 10
    assert (await metrics(job))["cpuUsage"] == [*running, *[-1] * (minutes - 4)]


async def test_a_job_of_three_minutes_has_three(api: Api) -> None:
    job = await reported(api)
    times = {"started": "2026-03-01T10:00:00+00:00", "completed": "2026-03-01T10:03:00+00:00"}
    await api.backend.documents.update("tasks", {"id": job.id}, Update(set=times))
    await job.send([Report("w", ":monitor:machine", "cpu_usage", millis(times["started"]), 5)])
    assert (await metrics(job))["cpuUsage"] == [5, -1, -1]


async def test_minutes_count_from_the_start_when_reports_come_later(api: Api) -> None:
    job = await reported(api)
    started = millis((await job.document())["started"])
    await job.send([Report("w", ":monitor:machine", "cpu_usage", started + 2 * MINUTE + 59_000, 5)])
    assert (await metrics(job))["cpuUsage"] == [-1, -1, 5]


async def test_reports_after_the_end_still_count(api: Api) -> None:
    job = await reported(api)
    await api.call("tasks.completed", {"task": job.id})
    started = millis((await job.document())["started"])
    await job.send([Report("w", ":monitor:machine", "cpu_usage", started + 3 * MINUTE, 5)])
    assert (await metrics(job))["cpuUsage"] == [-1, -1, -1, 5]


@pytest.mark.bounds(Bounds(calls=CallBounds(minutes=5)))
async def test_of_a_long_job_the_last_minutes_are_answered(api: Api) -> None:
    job = await reported(api)
    await job.send([Report("w", ":monitor:machine", "cpu_usage", BEGIN + n * MINUTE, n) for n in range(20)])
    assert (await metrics(job))["cpuUsage"] == [15, 16, 17, 18, 19]
    # The minutes stay where they are while more is reported.
    await job.send([Report("w", ":monitor:machine", "cpu_usage", BEGIN + 19 * MINUTE + 45 * SECOND, 29)])
    assert (await metrics(job))["cpuUsage"] == [15, 16, 17, 18, 24]


async def test_memory_is_of_all_there_is(api: Api) -> None:
    job = await reported(api, runtime={})
    times = [("memory_used_gb", 0, 3), ("memory_used_gb", 20, 5), ("memory_free_gb", 10, 12), ("memory_used_gb", 70, 1)]
    await job.send([Report("w", ":monitor:machine", variant, BEGIN + s * SECOND, of) for variant, s, of in times])
    # Of the second minute nobody knows how much was free.
    assert (await metrics(job))["memUsage"] == [25, -1]
    nothing = [Report("w", ":monitor:machine", f"memory_{what}_gb", BEGIN + 130_000, 0) for what in ("used", "free")]
    await job.send(nothing)
    assert (await metrics(job))["memUsage"] == [25, -1, -1]
    await job.api.call("tasks.edit", {"task": job.id, "force": True, "runtime": {"memory_gb": "40.0"}})
    assert (await metrics(job))["memUsage"] == [10, 2.5, 0]


async def test_anybody_may_report_npus(api: Api) -> None:
    job = await reported(api)
    reports = [("npu_0_utilization", 40), ("npu_7_utilization", 60), ("npu_7_mem_usage", 12.3456)]
    await job.send([Report("w", ":monitor:npu", variant, BEGIN, value) for variant, value in reports])
    found = await metrics(job)
    assert (found["npuUtil"], found["npuMemUsage"], found["gpuUtil"]) == ([50], [12.346], [-1])


async def test_what_a_second_machine_says_without_its_rank_is_of_it(api: Api) -> None:
    job = await reported(api)
    cpu = [
        Report("a", ":monitor:machine", "cpu_usage", BEGIN, 1),
        Report("b", ":monitor:machine:rank1", "cpu_usage", BEGIN, 2),
    ]
    npu = [
        Report("a", ":monitor:npu", "npu_0_utilization", BEGIN, 3),
        Report("b", ":monitor:npu", "npu_0_utilization", BEGIN, 4),
    ]
    await job.send([*cpu, *npu])
    first, second = await metrics(job, "worker-0"), await metrics(job, "worker-1")
    assert (first["cpuUsage"], first["npuUtil"]) == ([1], [3])
    assert (second["cpuUsage"], second["npuUtil"]) == ([2], [4])


async def test_machines_that_are_series(api: Api) -> None:
    """The SDK's other way to report several machines; the first one reports in the usual way, too."""
    job = await reported(api)
    reports = [Report("a", ":monitor:machine", "cpu_usage", BEGIN + SECOND, 10)]
    for rank, worker in enumerate("ab"):
        reports.append(Report(worker, ":monitor:cpu_usage", f"rank {rank:02}", BEGIN + SECOND - rank, 10 + rank))
        reports.append(Report(worker, ":monitor:gpu_1_utilization", f"rank {rank:02}", BEGIN + SECOND, 20 + rank))
    await job.send(reports)
    # Ranks come before times.
    for rank, task in ((0, "worker-0"), (1, "worker-1"), (0, "a"), (1, "b")):
        found = await metrics(job, task)
        assert (found["cpuUsage"], found["gpuUtil"]) == ([10 + rank], [20 + rank])


async def test_machines_without_ranks_are_told_apart_by_their_workers(api: Api) -> None:
    job = await reported(api)
    times = [("late", 20, 1), ("early", 10, 2), ("late", 30, 3), ("early", 20, 4)]
    await job.send([Report(worker, ":monitor:machine", "cpu_usage", BEGIN + s * SECOND, of) for worker, s, of in times])
    assert (await metrics(job, "worker-0"))["cpuUsage"] == (await metrics(job, "early"))["cpuUsage"] == [3]
    assert (await metrics(job, "worker-1"))["cpuUsage"] == (await metrics(job, "late"))["cpuUsage"] == [2]


async def test_a_workers_name_comes_before_its_number(api: Api) -> None:
    job = await reported(api)
    await job.send([Report(f"worker-{1 - n}", ":monitor:machine", "cpu_usage", BEGIN + n, n) for n in (0, 1)])
    assert [(await metrics(job, f"worker-{n}"))["cpuUsage"] for n in (0, 1)] == [[1], [0]]


async def test_workers_names_may_be_any(api: Api) -> None:
    job = await reported(api)
    names = ("host:gpu0,1", "a/b/logs", "name of a — 行", "100%")
    await job.send([Report(name, ":monitor:machine", "cpu_usage", BEGIN, n) for n, name in enumerate(names)])
    for n, name in enumerate(names):
        assert (await metrics(job, quote(name, safe="")))["cpuUsage"] == [n]


async def test_a_machine_that_begins_anew_under_another_name_is_the_same(api: Api) -> None:
    job = await reported(api)
    names = [("a:1", "", 0), ("b:1", ":rank1", 0), ("b:2", ":rank1", MINUTE), ("a:1", "", MINUTE)]
    cpu = [
        Report(worker, ":monitor:machine" + rank, "cpu_usage", BEGIN + at, at // SECOND) for worker, rank, at in names
    ]
    await job.send(cpu)
    assert (await metrics(job, "worker-1"))["cpuUsage"] == [0, 60]


async def test_points_count_alike_whichever_worker_reported_them(api: Api) -> None:
    job = await reported(api)
    cpu = (":monitor:machine:rank1", "cpu_usage")
    await job.send([Report("old", *cpu, BEGIN, 10), *(Report("new", *cpu, BEGIN + n * SECOND, 50) for n in (1, 2, 3))])
    assert (await metrics(job, "worker-1"))["cpuUsage"] == [40]


async def test_a_nodes_number_is_its_rank(api: Api) -> None:
    job = await reported(api)
    await job.send([Report(f"w{n}", f":monitor:machine:rank{n}", "cpu_usage", BEGIN - n, n) for n in (2, 5)])
    assert (await metrics(job, "worker-5"))["cpuUsage"] == [5]
    assert (await job.api.raw("GET", f"/v2/{job.project}/training-jobs/{job.id}/metrics/worker-0")).status_code == 400


async def test_values_that_are_too_great_do_not_break_the_answer(api: Api) -> None:
    job = await reported(api)
    variants = ("cpu_usage", "memory_used_gb")
    at = (0, 1, MINUTE)
    await job.send([Report("w", ":monitor:machine", of, BEGIN + n, 1.7e308) for of in variants for n in at])
    response = await api.raw("GET", f"/v2/{job.project}/training-jobs/{job.id}/metrics/worker-0")
    assert response.status_code == 200
    found = {metric["metric"]: metric["value"] for metric in response.json()["metrics"]}
    assert (found["cpuUsage"], found["memUsage"]) == ([-1, -1], [-1, -1])
