"""Baseten: the metrics of a training job."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apiserver.server.bounds import Bounds
from apiserver.services.bounds import CallBounds
from tests.harness import Api
from tests.vendors.reported import (
    BEGIN,
    GIB,
    HOUR,
    MINUTE,
    SECOND,
    Line,
    Points,
    Report,
    Reported,
    by_steps,
    iso,
    millis,
    reported,
    validate,
)

pytestmark = pytest.mark.anyio

CURVES = ("cpu_usage", "cpu_memory_usage_bytes")
NONE: dict[str, list[Any]] = {"usage_bytes": [], "utilization": []}
EMPTY: dict[str, Any] = {
    "gpu_memory_usage_bytes": {},
    "gpu_utilization": {},
    "cpu_usage": [],
    "cpu_memory_usage_bytes": [],
    "ephemeral_storage": NONE,
}


async def metrics(
    job: Reported, start: int | None = None, end: int | None = None, *, id: str = "", project: str = ""
) -> dict[str, Any]:
    """The answer, held against its schema."""
    path = f"/v1/training_projects/{project or job.project}/jobs/{id or job.id}/metrics"
    response = await job.api.raw("POST", path, json={"end_epoch_millis": end, "start_epoch_millis": start})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    validate(answer, "baseten_metrics")
    nodes = [node["metrics"] for node in answer["per_node_metrics"]]
    assert {name: answer[name] for name in EMPTY} == (nodes[0] if nodes else EMPTY)
    for node in nodes:
        assert node["gpu_utilization"].keys() == node["gpu_memory_usage_bytes"].keys()
    return answer


def points(curve: list[dict[str, Any]]) -> Points:
    """Times and values of a curve, in order and each time once."""
    found = [(millis(metric["timestamp"]), metric["value"]) for metric in curve]
    assert found == sorted(dict(found).items())
    return found


def assert_alike(curve: list[dict[str, Any]], expected: Points, factor: float = 1) -> None:
    found = points(curve)
    assert [time for time, _ in found] == [time for time, _ in expected]
    values = [value * factor for _, value in expected]
    assert [value for _, value in found] == pytest.approx(values, rel=1e-9, abs=1e-9)


def assert_node(job: Reported, node: dict[str, Any], worker: str, rank: str, start: int, stop: int) -> None:
    """Hold a node's curves, as reported from `start` to `stop`, against those of a worker of `two_machines`."""

    def expected(kind: str, variant: str) -> Points:
        curve = job.points(worker, f":monitor:{kind}{rank}", variant)
        return [(time, value) for time, value in curve if start <= time <= stop]

    assert_alike(node["cpu_usage"], expected("machine", "cpu_usage"), 8 / 100)
    assert_alike(node["cpu_memory_usage_bytes"], expected("machine", "memory_used_gb"), GIB)
    assert node["gpu_utilization"].keys() == {"0", "1"}
    for gpu in ("0", "1"):
        assert_alike(node["gpu_utilization"][gpu], expected("gpu", f"gpu_{gpu}_utilization"), 1 / 100)
        assert_alike(node["gpu_memory_usage_bytes"][gpu], expected("gpu", f"gpu_{gpu}_mem_used_gb"), GIB)
    assert node["ephemeral_storage"] == NONE


@pytest.mark.test
async def test_a_job_of_two_machines(job_anywhere: Reported) -> None:
    job = job_anywhere
    for start, end in (
        (None, None),
        (BEGIN + 29_750, None),
        (None, BEGIN + 415_000),
        (BEGIN + 61_000, BEGIN + 121_250),
    ):
        answer = await metrics(job, start, end)
        assert [node["node_id"] for node in answer["per_node_metrics"]] == ["host-a", "host-b"]
        nodes = [node["metrics"] for node in answer["per_node_metrics"]]
        whole = (BEGIN - HOUR if start is None else start, BEGIN + HOUR if end is None else end)
        assert_node(job, nodes[0], "host-a", "", *whole)
        assert_node(job, nodes[1], "host-b", ":rank1", *whole)
        assert answer["cache"] is None
    outside = await metrics(job, BEGIN - HOUR, BEGIN - 1)
    assert [node["metrics"] for node in outside["per_node_metrics"]] == [EMPTY, EMPTY]


@pytest.mark.test
async def test_the_job_itself(job: Reported) -> None:
    found = (await metrics(job))["training_job"]
    task = await job.document()
    assert found == {
        "id": job.id,
        "created_at": iso(millis(task["created"])),
        "current_status": "TRAINING_JOB_RUNNING",
        "error_message": None,
        "instance_type": {
            "id": found["instance_type"]["id"],
            "name": found["instance_type"]["name"],
            "memory_limit_mib": round(31.4 * 1024),
            "millicpu_limit": 8000,
            "gpu_count": 2,
            "gpu_type": "NVIDIA A100",
            "gpu_memory_limit_mib": 80 * 1024,
        },
        "updated_at": iso(millis(task["last_update"])),
        "training_project_id": job.project,
        "training_project": {"id": job.project, "name": "a/b"},
        "name": "the job",
    }


async def test_a_machine_of_which_nothing_is_known(api: Api) -> None:
    job = await reported(api, runtime={})
    await job.send([Report("w", ":monitor:machine", "cpu_usage", BEGIN, 50)])
    answer = await metrics(job)
    assert answer["cpu_usage"] == []  # percents of nobody knows how many cores
    machine = answer["training_job"]["instance_type"]
    assert [machine[name] for name in ("memory_limit_mib", "millicpu_limit", "gpu_count")] == [0, 0, 0]
    assert (machine["gpu_type"], machine["gpu_memory_limit_mib"]) == (None, None)


async def test_gpus_that_report_are_there(api: Api) -> None:
    job = await reported(api, runtime={"gpu_count": 1})
    await job.send([Report("w", ":monitor:gpu", f"gpu_{n}_utilization", BEGIN, 50) for n in range(3)])
    assert (await metrics(job))["training_job"]["instance_type"]["gpu_count"] == 3


async def test_a_projects_id_comes_before_anothers_name(api: Api) -> None:
    job = await reported(api, project="first")
    other = await reported(api, project=job.project)
    assert (await metrics(job))["training_job"]["training_project"]["name"] == "first"
    assert (await metrics(other, project=other.project))["training_job"]["id"] == other.id


async def test_a_failed_job_without_a_message_has_its_reason(api: Api) -> None:
    job = await reported(api)
    await api.call("tasks.failed", {"task": job.id, "status_reason": "out of memory", "status_message": ""})
    assert (await metrics(job))["training_job"]["error_message"] == "out of memory"


async def test_statuses(api: Api) -> None:
    project = (await api.call("projects.create", {"name": "p"}))["id"]
    for calls, status in (
        ([], "TRAINING_JOB_CREATED"),
        (["started"], "TRAINING_JOB_RUNNING"),
        (["started", "completed"], "TRAINING_JOB_COMPLETED"),
        (["started", "stopped"], "TRAINING_JOB_STOPPED"),
        (["started", "failed"], "TRAINING_JOB_FAILED"),
        (["started", "completed", "publish"], "TRAINING_JOB_COMPLETED"),
    ):
        task = (await api.call("tasks.create", {"name": "t", "type": "training", "project": project}))["id"]
        for call in calls:
            why = {"status_message": "for a reason", "status_reason": "because"}
            await api.call(f"tasks.{call}", {"task": task, **why})
        found = (await metrics(Reported(api, task, project)))["training_job"]
        assert found["current_status"] == status
        assert found["error_message"] == ("for a reason" if status == "TRAINING_JOB_FAILED" else None)


async def test_a_queued_job_is_pending(api: Api) -> None:
    project = (await api.call("projects.create", {"name": "p"}))["id"]
    task = (await api.call("tasks.create", {"name": "t", "type": "training", "project": project}))["id"]
    queue = (await api.call("queues.create", {"name": "q"}))["id"]
    await api.call("tasks.enqueue", {"task": task, "queue": queue})
    answer = await metrics(Reported(api, task, project))
    assert answer["training_job"]["current_status"] == "TRAINING_JOB_PENDING"


async def test_a_job_without_reports(api: Api) -> None:
    answer = await metrics(await reported(api))
    assert {name: answer[name] for name in EMPTY} == EMPTY
    assert (answer["cache"], answer["per_node_metrics"]) == (None, [])


async def test_a_log_alone_makes_nodes_too(api: Api) -> None:
    job = await reported(api)
    await job.send([], [Line("w", BEGIN, "hello")])
    assert (await metrics(job))["per_node_metrics"] == [{"node_id": "w", "metrics": EMPTY}]


@pytest.mark.test
async def test_ids_may_have_dashes_and_projects_names(job: Reported) -> None:
    expected = await metrics(job)
    for project in (job.project, "a%2Fb", "a/b"):
        assert await metrics(job, id=job.dashed, project=project) == expected


@pytest.mark.test
async def test_a_period_may_be_left_out_whatever_the_type_of_the_body(job: Reported) -> None:
    expected = await metrics(job)
    path = f"/v1/training_projects/{job.project}/jobs/{job.id}/metrics"
    for body in ("{}", '{"start_epoch_millis": null}', '{"end_epoch_millis":null,"more":[1]}'):
        for type in ("application/json", "application/x-www-form-urlencoded", "text/plain", None):
            headers = {"content-type": type} if type else {}
            response = await job.api.raw("POST", path, content=body, headers=headers)
            assert (response.status_code, response.json()) == (200, expected), (body, type)


async def test_storage_is_what_somebody_reports(api: Api) -> None:
    job = await reported(api)
    values = {
        "ephemeral_storage_used_gb": 1.5,
        "ephemeral_storage_usage": 25.0,
        "cache_used_gb": 3.0,
        "cache_usage": 75.0,
    }
    await job.send([Report("w", ":monitor:machine", of, BEGIN, value) for of, value in values.items()])
    answer = await metrics(job)
    time = iso(BEGIN)
    assert answer["ephemeral_storage"] == {
        "usage_bytes": [{"value": 1.5 * GIB, "timestamp": time}],
        "utilization": [{"value": 0.25, "timestamp": time}],
    }
    assert answer["cache"] == {
        "usage_bytes": [{"value": 3.0 * GIB, "timestamp": time}],
        "utilization": [{"value": 0.75, "timestamp": time}],
    }


async def test_each_machine_has_its_own_storage(job: Reported) -> None:
    variant = "ephemeral_storage_used_gb"
    await job.send([Report(f"host-{name}", ":monitor:machine", variant, BEGIN, n) for n, name in enumerate("ab", 1)])
    nodes = (await metrics(job))["per_node_metrics"]
    storages = [node["metrics"]["ephemeral_storage"]["usage_bytes"] for node in nodes]
    assert [[value for _, value in points(storage)] for storage in storages] == [[GIB], [2 * GIB]]


async def test_machines_that_are_series(api: Api) -> None:
    job = await reported(api)
    gpu = ":monitor:gpu_11_utilization"
    await job.send([Report("w", gpu, f"rank {rank}", BEGIN - rank, 50 * rank) for rank in (0, 1)])
    await job.send([Report("w", ":monitor:gpu_2_mem_used_gb", "rank 0", BEGIN, 1)])
    answer = await metrics(job)
    assert [node["node_id"] for node in answer["per_node_metrics"]] == ["w:rank0", "w:rank1"]
    assert list(answer["gpu_utilization"]) == ["2", "11"]  # in the order of numbers
    assert answer["gpu_utilization"]["2"] == answer["gpu_memory_usage_bytes"]["11"] == []
    second = answer["per_node_metrics"][1]["metrics"]
    assert second["gpu_utilization"] == {"11": [{"value": 0.5, "timestamp": iso(BEGIN - 1)}]}


async def test_machines_without_ranks_are_told_apart_by_their_workers(api: Api) -> None:
    job = await reported(api)
    names = [("late", 20, 1), ("early", 10, 2), ("late", 30, 3), ("early", 40, 4)]
    await job.send([Report(of, ":monitor:machine", "memory_used_gb", BEGIN + at, value) for of, at, value in names])
    nodes = (await metrics(job))["per_node_metrics"]
    assert [node["node_id"] for node in nodes] == ["early", "late"]
    assert points(nodes[0]["metrics"]["cpu_memory_usage_bytes"]) == [(BEGIN + 10, 2 * GIB), (BEGIN + 40, 4 * GIB)]
    assert points(nodes[1]["metrics"]["cpu_memory_usage_bytes"]) == [(BEGIN + 20, GIB), (BEGIN + 30, 3 * GIB)]


async def test_a_worker_without_a_name_is_a_node_with_one(api: Api) -> None:
    job = await reported(api)
    event = {"type": "training_stats_scalar", "task": job.id, "metric": ":monitor:machine", "variant": "cpu_usage"}
    await api.raw("POST", "/events.add_batch", content=json.dumps({**event, "value": 1, "timestamp": BEGIN, "iter": 0}))
    (node,) = (await metrics(job))["per_node_metrics"]
    assert node["node_id"] == "worker-0"


# --- long curves -----------------------------------------------------------------------------------


async def long_job(api: Api, count: int) -> Reported:
    """A job with a point every 30 s, which says its number."""
    job = await reported(api)
    await job.send(
        [Report("w", ":monitor:gpu", "gpu_0_utilization", BEGIN + n * 30_000, n / 100) for n in range(count)]
    )
    return job


async def test_a_thousand_points_come_as_they_are(api: Api) -> None:
    job = await long_job(api, 1000)
    expected = job.points("w", ":monitor:gpu", "gpu_0_utilization")
    assert_alike((await metrics(job))["gpu_utilization"]["0"], expected, 1 / 100)


@pytest.mark.test
async def test_of_more_points_come_means_of_equal_steps(api: Api) -> None:
    job = await long_job(api, 5000)
    reports = job.points("w", ":monitor:gpu", "gpu_0_utilization")
    found = points((await metrics(job))["gpu_utilization"]["0"])
    assert 250 <= len(found) <= 1000
    step = found[1][0] - found[0][0]
    assert step % MINUTE == 0
    means = by_steps(reports, found[0][0], step)
    assert BEGIN - step < found[0][0] <= BEGIN
    assert [time for time, _ in found] == [found[0][0] + number * step for number in means]
    assert [value for _, value in found] == pytest.approx([value / 100 for value in means.values()], rel=1e-9)


@pytest.mark.test
@pytest.mark.parametrize("last", [None, 4000])
async def test_nothing_counts_that_is_not_in_the_period(api: Api, last: int | None) -> None:
    job = await long_job(api, 5000)
    start = BEGIN + 999 * 30_000 + 1
    end = None if last is None else BEGIN + last * 30_000
    reports = [(at, of) for at, of in job.points("w", ":monitor:gpu", "gpu_0_utilization") if at >= start]
    reports = [(at, of) for at, of in reports if end is None or at <= end]
    found = points((await metrics(job, start, end))["gpu_utilization"]["0"])
    assert 250 <= len(found) <= 1000
    assert start <= found[0][0] <= start + 30_000
    step = found[1][0] - found[0][0]
    means = by_steps(reports, found[0][0], step)
    assert [time for time, _ in found] == [found[0][0] + number * step for number in means]
    assert [value for _, value in found] == pytest.approx([value / 100 for value in means.values()], rel=1e-9)


@pytest.mark.test
async def test_a_short_period_of_a_long_job_comes_as_it_is(api: Api) -> None:
    job = await long_job(api, 5000)
    reports = job.points("w", ":monitor:gpu", "gpu_0_utilization")[4000:4100]
    found = (await metrics(job, reports[0][0], reports[-1][0]))["gpu_utilization"]["0"]
    assert_alike(found, reports, 1 / 100)


@pytest.mark.test
async def test_the_last_points_are_in_the_last_minute(api: Api) -> None:
    """Clients that poll ask for the last minute, and take the last value for the latest."""
    job = await long_job(api, 5000)
    last = BEGIN + 4999 * 30_000
    found = points((await metrics(job, last - 45 * SECOND))["gpu_utilization"]["0"])
    assert [value for _, value in found] == pytest.approx([0.4998, 0.4999])


@pytest.mark.test
async def test_a_step_that_is_asked_for(job: Reported) -> None:
    path = f"/v1/training_projects/{job.project}/jobs/{job.id}/metrics"
    for worker, rank, node in (("host-a", "", 0), ("host-b", ":rank1", 1)):
        reports = job.points(worker, ":monitor:gpu" + rank, "gpu_1_utilization")
        for seconds in (1, 30, 300, 86_400, 10**30):
            response = await job.api.raw("POST", path, json={"step_seconds": seconds})
            assert response.status_code == 200, (seconds, response.text)
            found = points(response.json()["per_node_metrics"][node]["metrics"]["gpu_utilization"]["1"])
            start, step = found[0][0], seconds * SECOND
            assert start <= reports[0][0] < start + step
            start = BEGIN - BEGIN % step
            means = by_steps(reports, start, step)
            assert [time for time, _ in found] == [start + number * step for number in means]
            assert [value for _, value in found] == pytest.approx([value / 100 for value in means.values()], rel=1e-9)


@pytest.mark.test
async def test_newer_clients_ask_by_get(job: Reported) -> None:
    path = f"/v1/training_projects/{job.project}/jobs/{job.id}/metrics"
    for period in ({}, {"start_epoch_millis": BEGIN + 61_000, "end_epoch_millis": BEGIN + 500_000, "step_seconds": 60}):
        by_post = await job.api.raw("POST", path, json=period)
        by_get = await job.api.raw("GET", path, params=period)
        assert (by_get.status_code, by_get.json()) == (200, by_post.json())


@pytest.mark.test
@pytest.mark.bounds(Bounds(calls=CallBounds(baseten_points=1000)))
async def test_of_many_curves_each_has_fewer_points(api: Api) -> None:
    job = await reported(api)
    gpus = [f"gpu_{n}_utilization" for n in range(4)]
    await job.send([Report("w", ":monitor:gpu", gpu, BEGIN + n * SECOND, n / 4) for n in range(400) for gpu in gpus])
    found = (await metrics(job))["gpu_utilization"]
    assert {gpu: 200 <= len(curve) <= 250 for gpu, curve in found.items()} == dict.fromkeys("0123", True)
    path = f"/v1/training_projects/{job.project}/jobs/{job.id}/metrics"
    response = await job.api.raw("POST", path, json={"step_seconds": 1})
    assert (response.status_code, response.json()["code"]) == (400, "VALIDATION_ERROR")
    assert response.json()["message"].startswith("step_seconds: the 4 curves would have 40")
    assert (await job.api.raw("POST", path, json={"step_seconds": 2})).status_code == 200


async def test_a_long_job_begins_at_a_whole_step_unless_it_was_asked_for_later(api: Api) -> None:
    job = await long_job(api, 5000)
    early = points((await metrics(job, BEGIN - HOUR))["gpu_utilization"]["0"])
    assert early == points((await metrics(job))["gpu_utilization"]["0"])
    step = early[1][0] - early[0][0]
    assert early[0][0] % step == 0
    assert points((await metrics(job, BEGIN))["gpu_utilization"]["0"])[0][0] == BEGIN


async def test_few_points_after_many_come_as_they_are(api: Api) -> None:
    job = await reported(api)
    gpu = (":monitor:gpu", "gpu_0_mem_used_gb")
    await job.send([Report("w", *gpu, BEGIN + n * 1500, n) for n in range(2400)])
    few = [Report("w", *gpu, BEGIN + HOUR + n * 350 * SECOND + 234, n) for n in range(10)]
    await job.send(few)
    found = (await metrics(job, BEGIN + HOUR))["gpu_memory_usage_bytes"]["0"]
    assert_alike(found, [(one.time, one.value) for one in few], GIB)


async def test_points_that_come_in_fits_and_starts(api: Api) -> None:
    job = await reported(api)
    gpu = (":monitor:gpu", "gpu_0_mem_used_gb")
    many = [Report("w", *gpu, BEGIN + n * SECOND, n) for n in range(3000)]
    await job.send([*many, Report("w", *gpu, BEGIN + 1000 * HOUR, 1)])
    found = (await metrics(job, BEGIN, BEGIN + HOUR))["gpu_memory_usage_bytes"]["0"]
    assert 250 <= len(found) <= 1000


async def test_values_that_are_too_great_do_not_break_the_answer(api: Api) -> None:
    job = await reported(api)
    await job.send(
        [Report("w", ":monitor:machine", "memory_used_gb", BEGIN + n, of) for n, of in enumerate((1e308, 1))]
    )
    assert points((await metrics(job))["cpu_memory_usage_bytes"]) == [(BEGIN + 1, GIB)]


@pytest.mark.test
async def test_times_far_away_are_times(api: Api) -> None:
    for time in (-62_135_596_800_000, -1, 0, 253_402_300_799_999):
        job = await reported(api)
        await job.send([Report("w", ":monitor:machine", "memory_used_gb", time, 1)])
        for start, end in ((None, None), (-(10**30), 10**30), (time, time)):
            assert points((await metrics(job, start, end))["cpu_memory_usage_bytes"]) == [(time, GIB)]
        assert points((await metrics(job, time + 1, 2**64))["cpu_memory_usage_bytes"]) == []
