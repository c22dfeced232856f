"""PAI: GetJobMetrics."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.common.times import now_ms
from apiserver.server.bounds import Bounds
from apiserver.services.bounds import CallBounds
from apiserver.vendors import pai
from tests.harness import Api
from tests.vendors.reported import (
    BEGIN,
    HOUR,
    MINUTE,
    SECOND,
    Line,
    Means,
    Report,
    Reported,
    by_steps,
    iso,
    mean_of,
    reported,
    validate,
)

pytestmark = pytest.mark.anyio

#: What each metric is read from: kind, and name of the variant.
PLAIN = {
    "CpuCoreUsage": "cpu_usage",
    "NetworkInputRate": "network_rx_mbs",
    "NetworkOutputRate": "network_tx_mbs",
    "DiskReadRate": "io_read_mbs",
    "DiskWriteRate": "io_write_mbs",
}
OF_GPUS = {"GpuCoreUsage": "utilization", "GpuMemoryUsage": "mem_usage"}
ALL = [*OF_GPUS, *PLAIN, "MemoryUsage"]
#: The workers of `two_machines`, and what their rank adds to names.
RANKS = (("host-a", ""), ("host-b", ":rank1"))


async def answer(job: Reported, metric: str = "CpuCoreUsage", *, id: str = "", **query: str) -> dict[str, Any]:
    """The answer, held against its schema; `StartTime` and so on are parameters of the query."""
    path = f"/api/v1/jobs/{id or job.id}/metrics"
    response = await job.api.raw("GET", path, params={"MetricType": metric, **query})
    assert response.status_code == 200, response.text
    read: dict[str, Any] = response.json()
    validate(read, "pai_metrics")
    assert read["JobId"] == (id or job.id)
    assert read["RequestId"] == response.headers["x-acs-request-id"]
    assert all(one["PodId"].startswith(read["JobId"]) for one in read["PodMetrics"])
    return read


async def pods(job: Reported, metric: str = "CpuCoreUsage", **query: str) -> list[list[tuple[int, float]]]:
    """Times and values of each pod."""
    found = (await answer(job, metric, **query))["PodMetrics"]
    return [[(one["Time"], one["Value"]) for one in pod["Metrics"]] for pod in found]


def by_hand(job: Reported, metric: str, worker: str, rank: str, start: int, stop: int, step: int) -> Means:
    def means(kind: str, variant: str) -> Means:
        return by_steps(job.points(worker, f":monitor:{kind}{rank}", variant), start, step, stop)

    if metric == "MemoryUsage":
        return {number: used / 31.4 * 100 for number, used in means("machine", "memory_used_gb").items()}
    if metric in OF_GPUS:
        return mean_of(*(means("gpu", f"gpu_{gpu}_{OF_GPUS[metric]}") for gpu in (0, 1)))
    return means("machine", PLAIN[metric])


async def check(job: Reported, metric: str, start: int, stop: int, step: int, **query: str) -> None:
    found = await pods(job, metric, StartTime=iso(start), EndTime=iso(stop), **query)
    expected = [by_hand(job, metric, worker, rank, start, stop, step) for worker, rank in RANKS]
    assert len(found) == len(expected)
    for pod, means in zip(found, expected, strict=True):
        assert [time for time, _ in pod] == [start + number * step for number in means]
        assert [value for _, value in pod] == pytest.approx(list(means.values()), rel=1e-9, abs=1e-9)


@pytest.mark.test
async def test_a_job_of_two_machines(job_anywhere: Reported) -> None:
    job = job_anywhere
    for metric in ALL:
        await check(job, metric, BEGIN - HOUR, BEGIN + HOUR, 5 * MINUTE)
    await check(job, "GpuCoreUsage", BEGIN + 13_000, BEGIN + 900_500, 30 * SECOND, TimeStep="30s")
    await check(job, "MemoryUsage", BEGIN, BEGIN + HOUR, 999_999_999 * 24 * HOUR, TimeStep="999999999d")
    found = await answer(job, StartTime=iso(BEGIN), EndTime=iso(BEGIN + HOUR))
    assert [pod["PodId"] for pod in found["PodMetrics"]] == [f"{job.id}-worker-{n}" for n in (0, 1)]


@pytest.mark.test
async def test_ids_may_have_dashes(job: Reported) -> None:
    found = await answer(job, id=job.dashed, StartTime=iso(BEGIN), EndTime=iso(BEGIN + HOUR))
    assert [pod["PodId"] for pod in found["PodMetrics"]] == [f"{job.dashed}-worker-{n}" for n in (0, 1)]
    assert all(pod["Metrics"] for pod in found["PodMetrics"])


@pytest.mark.test
async def test_steps(job: Reported) -> None:
    forms = {
        **{"5": 5 * MINUTE, "5m": 5 * MINUTE, "1": MINUTE, "15m": 15 * MINUTE},
        **{"90s": 90 * SECOND, "10s": 10 * SECOND, "1h": HOUR, "1d": 24 * HOUR},
    }
    for form, step in forms.items():
        await check(job, "MemoryUsage", BEGIN - 1, BEGIN + HOUR, step, TimeStep=form)


@pytest.mark.test
@pytest.mark.own_api
async def test_the_last_hour_by_five_minutes_is_asked_for_by_default(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    now = BEGIN + 10 * HOUR
    monkeypatch.setattr(pai, "now_ms", lambda: now)
    job = await reported(api)
    times = (-HOUR - 1, -HOUR, -HOUR + 5 * MINUTE - 1, -HOUR + 5 * MINUTE, -1, 0)
    await job.send([Report("w", ":monitor:machine", "cpu_usage", now + at, n) for n, at in enumerate(times)])
    start = now - HOUR
    assert await pods(job) == [[(start, 1.5), (start + 5 * MINUTE, 3), (now - 5 * MINUTE, 4)]]
    # Each has a default of its own.
    assert await pods(job, StartTime=iso(now - HOUR - 1)) == [
        [(start - 1, 0.5), (start - 1 + 5 * MINUTE, 2.5), (now - 1, 4)]
    ]
    assert await pods(job, EndTime=iso(now - HOUR + 1)) == [[(start, 1)]]
    assert await pods(job, TimeStep="1h") == [[(start, 2.5)]]


async def test_without_a_given_time_it_is_now(api: Api) -> None:
    job = await reported(api)
    await job.send([Report("w", ":monitor:machine", "cpu_usage", now_ms() - 2 * MINUTE, 5)])
    assert [value for _, value in (await pods(job))[0]] == [5]


async def test_times_are_utc(api: Api) -> None:
    job = await reported(api)
    assert iso(BEGIN) == "2026-03-01T10:01:03.250Z"
    await job.send([Report("w", ":monitor:machine", "cpu_usage", BEGIN + n * MINUTE, n) for n in (-1, 0, 1)])
    for start, stop in (
        ("2026-03-01T10:01:00Z", "2026-03-01T10:02:00Z"),
        ("2026-03-01T10:01:00", "2026-03-01T10:02:00"),
        ("2026-03-01T10:01:00.000Z", "2026-03-01T10:02:00.0Z"),
        ("2026-03-01T18:01:00+08:00", "2026-03-01T10:02:00+00:00"),
    ):
        assert await pods(job, StartTime=start, EndTime=stop) == [[(BEGIN - 3_250, 0)]], start


@pytest.mark.test
@pytest.mark.bounds(Bounds(calls=CallBounds(pai_steps=100)))
async def test_pods_share_the_most_steps(api: Api) -> None:
    job = await reported(api)
    await job.send([Report(worker, ":monitor:machine", "cpu_usage", BEGIN, 1) for worker in "ab"])
    path = f"/api/v1/jobs/{job.id}/metrics"
    for end, code in ((50, 200), (51, 400)):
        params = {"MetricType": "CpuCoreUsage", "TimeStep": "1m", "StartTime": iso(BEGIN)}
        response = await api.raw("GET", path, params={**params, "EndTime": iso(BEGIN + end * MINUTE)})
        assert response.status_code == code
    assert response.json()["Code"] == "InvalidTimeStep"


async def test_a_job_without_reports_has_no_pods(api: Api) -> None:
    job = await reported(api)
    for metric in ALL:
        assert await pods(job, metric) == []


async def test_pods_that_did_not_report_the_metric_are_empty(api: Api) -> None:
    job = await reported(api)
    await job.send([Report(worker, ":monitor:machine", "cpu_usage", BEGIN, 1) for worker in "ab"])
    await job.send([Report("b", ":monitor:gpu", "gpu_3_utilization", BEGIN, 7)])
    period = {"StartTime": iso(BEGIN), "EndTime": iso(BEGIN + 1)}
    assert await pods(job, "GpuCoreUsage", **period) == [[], [(BEGIN, 7)]]
    assert await pods(job, "CpuCoreUsage", StartTime=iso(BEGIN + 1), EndTime=iso(BEGIN + 2)) == [[], []]


async def test_machines_that_are_series(api: Api) -> None:
    job = await reported(api)
    variants = ("network_rx_mbs", "gpu_0_mem_usage")
    ranked = [(f":monitor:{of}", rank, 10 * rank + n) for rank in range(3) for n, of in enumerate(variants)]
    await job.send([Report("w", metric, f"rank {rank}", BEGIN + rank, value) for metric, rank, value in ranked])
    period = {"StartTime": iso(BEGIN - MINUTE), "EndTime": iso(BEGIN + MINUTE), "TimeStep": "1"}
    assert await pods(job, "NetworkInputRate", **period) == [
        [(BEGIN, 0)],
        [(BEGIN, 10)],
        [(BEGIN, 20)],
    ]
    assert [[value for _, value in pod] for pod in await pods(job, "GpuMemoryUsage", **period)] == [[1], [11], [21]]


async def test_a_log_alone_makes_pods_too(api: Api) -> None:
    job = await reported(api)
    await job.send([], [Line("w", BEGIN, "hello")])
    assert await pods(job) == [[]]
