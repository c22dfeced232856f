"""A job of two nodes that the real SDK monitored, as the vendors' own clients see it, and by hand from raw scalars."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from statistics import fmean
from subprocess import Popen
from typing import Any

import pytest

from tests.clients.sdk import Sdk
from tests.harness import Served, wait_until
from tests.longer import beyond

NODES = ("node-a", "node-b")
#: Series of a node, and how often each is reported at least.
SERIES, ENOUGH = 14, 5


@dataclass(frozen=True)
class Point:
    """A scalar as the SDK reported it."""

    worker: str
    variant: str
    time: int
    value: float


@dataclass(frozen=True)
class Monitored:
    """A job, and all that was reported of it."""

    task: dict[str, Any]
    points: list[Point]

    def values(self, node: str, variant: str) -> list[tuple[int, float]]:
        """Times and values of one series of a node, in the order of times."""
        return sorted((one.time, one.value) for one in self.points if (one.worker, one.variant) == (node, variant))

    def means(self, node: str, variants: list[str], start: int, step: int) -> dict[int, float]:
        """For each step the mean of the variants' means."""
        means: dict[int, list[float]] = defaultdict(list)
        for variant in variants:
            steps: dict[int, list[float]] = defaultdict(list)
            for time, value in self.values(node, variant):
                steps[(time - start) // step].append(value)
            for number, values in steps.items():
                means[number].append(fmean(values))
        return {number: fmean(values) for number, values in means.items()}


@pytest.fixture
def monitored(sdk: Sdk, server: Served) -> Monitored:
    """Two real SDK processes report for some seconds, until they are killed: the leader, and one of rank 1."""
    processes: list[Popen[str]] = []
    try:
        processes.append(sdk.start("monitored.py", CLEARML_WORKER_NAME=NODES[0]))
        assert processes[0].stdout is not None
        made = json.loads(next(line for line in processes[0].stdout if line.startswith("{")))
        as_node = {"CLEARML_TASK_ID": made["task"], "CLEARML_MULTI_NODE_SINGLE_TASK": "1", "NODE_RANK": "1"}
        processes.append(sdk.start("monitored.py", "1", CLEARML_WORKER_NAME=NODES[1], **as_node))
        wait_until(lambda: _has_enough(server, made["task"]), 90)
    finally:
        for process in processes:
            Sdk.kill(process)
    task: str = made["task"]
    server.call("tasks.completed", {"task": task, "force": True})
    return Monitored(server.call("tasks.get_by_id", {"task": task})["task"], _points(server, task))


def _has_enough(server: Served, task: str) -> bool:
    """Whether both nodes have reported every series some times, and a line of log."""
    points = _points(server, task)
    lines = server.call("events.get_task_log", {"task": task, "batch_size": 1000})["events"]
    names = {(one.worker, one.variant) for one in points}
    return all(
        len({variant for worker, variant in names if worker == node}) >= SERIES
        and sum((one.worker, one.variant) == (node, "cpu_usage") for one in points) >= ENOUGH
        and any(line["worker"] == node and " at second 0: " in line["msg"] for line in lines)
        for node in NODES
    )


def _points(server: Served, task: str) -> list[Point]:
    asked = {"task": task, "event_type": "training_stats_scalar", "batch_size": 10_000}
    events = server.call("events.get_task_events", asked)["events"]
    return [Point(one["worker"], one["variant"], one["timestamp"], one["value"]) for one in events]


def answers(sdk: Sdk, script: str, *questions: list[str]) -> list[dict[str, Any]]:
    """What a vendor's client gets for each question. One process asks them all: most of its time, it starts."""
    found: list[dict[str, Any]] = sdk.run(script, *map(json.dumps, questions))["answers"]
    assert len(found) == len(questions)
    return found


@pytest.mark.parametrize("server", beyond(["embedded"], ["embedded", "engines"]), indirect=True)
def test_the_vendors_own_clients_read_a_job_of_two_nodes(sdk: Sdk, server: Served, monitored: Monitored) -> None:
    token = server.call("auth.login", {})["token"]
    _check_huawei(sdk, server, monitored, token)
    _check_baseten(sdk, server, monitored, token)
    _check_pai(sdk, server, monitored, token)


def _check_huawei(sdk: Sdk, server: Served, monitored: Monitored, token: str) -> None:
    job = [monitored.task["project"], monitored.task["id"]]
    questions = [[server.api_url, token, *job, f"worker-{number}"] for number in (*range(len(NODES)), 7)]
    *of_nodes, unknown, forbidden = answers(
        sdk, "vendor_huawei.py", *questions, [server.api_url, "none", *job, "worker-0"]
    )
    for number, (node, huawei) in enumerate(zip(NODES, of_nodes, strict=True)):
        assert "metrics" in huawei, huawei
        _check_modelarts(monitored, node, {one["metric"]: one["value"] for one in huawei["metrics"]})
        lines = [line for line in huawei["log"]["content"].splitlines() if line.startswith("node ")]
        assert lines[:2] == [f"node {number} at second 0: größer {line}" for line in (0, 1)]
        assert all(line.startswith(f"node {number} at second ") for line in lines)
        assert huawei["log"]["current_size"] == huawei["log"]["full_size"] == len(huawei["log"]["content"].encode())
    assert (unknown["status"], unknown["code"]) == (400, "ModelArts.2788")
    assert (forbidden["status"], forbidden["code"]) == (401, "ModelArts.0203")


def _check_modelarts(monitored: Monitored, node: str, values: dict[str, list[float]]) -> None:
    task = monitored.task
    start = min(_millis(task["started"]), min(one.time for one in monitored.points))
    minutes = math.ceil(
        (max(_millis(task["completed"]), max(one.time for one in monitored.points) + 1) - start) / 60_000
    )
    assert list(values) == ["cpuUsage", "memUsage", "gpuUtil", "gpuMemUsage", "npuUtil", "npuMemUsage"]
    for metric, variants, factor in (
        ("cpuUsage", ["cpu_usage"], 1),
        ("memUsage", ["memory_used_gb"], 100 / task["runtime"]["memory_gb"]),
        ("gpuUtil", ["gpu_0_utilization", "gpu_1_utilization"], 1),
    ):
        means = monitored.means(node, variants, start, 60_000)
        expected = [means[minute] * factor if minute in means else -1 for minute in range(minutes)]
        assert values[metric] == pytest.approx(expected, abs=1e-3)
    assert {len(one) for one in values.values()} == {minutes}
    assert set(values["npuUtil"]) == {-1}


def _check_baseten(sdk: Sdk, server: Served, monitored: Monitored, token: str) -> None:
    task = monitored.task
    baseten, unknown = answers(
        sdk,
        "vendor_baseten.py",
        [server.api_url, f"{server.key}:{server.secret}", task["project"], task["id"]],
        [server.api_url, token, task["project"], "unknown"],
    )
    _check_job(monitored, baseten["posted"])
    assert [one["node_id"] for one in baseten["got"]["per_node_metrics"]] == list(NODES)
    assert (unknown["status"], unknown["body"]["code"]) == (404, "NOT_FOUND")


def _check_job(monitored: Monitored, answer: dict[str, Any]) -> None:
    job, runtime = answer["training_job"], monitored.task["runtime"]
    assert (job["id"], job["name"], job["current_status"]) == (monitored.task["id"], "a job", "TRAINING_JOB_COMPLETED")
    assert job["training_project"] == {"id": monitored.task["project"], "name": "monitored jobs"}
    assert job["instance_type"]["millicpu_limit"] == runtime["cpu_cores"] * 1000
    assert job["instance_type"]["gpu_count"] == 2
    assert [one["node_id"] for one in answer["per_node_metrics"]] == list(NODES)
    for node, metrics in zip(NODES, (one["metrics"] for one in answer["per_node_metrics"]), strict=True):
        for found, variant, factor in (
            (metrics["cpu_usage"], "cpu_usage", runtime["cpu_cores"] / 100),
            (metrics["cpu_memory_usage_bytes"], "memory_used_gb", 2**30),
            (metrics["gpu_utilization"]["0"], "gpu_0_utilization", 0.01),
            (metrics["gpu_utilization"]["1"], "gpu_1_utilization", 0.01),
            (metrics["gpu_memory_usage_bytes"]["1"], "gpu_1_mem_used_gb", 2**30),
        ):
            expected = monitored.values(node, variant)
            assert [_millis(one["timestamp"]) for one in found] == [time for time, _ in expected]
            assert [one["value"] for one in found] == pytest.approx([value * factor for _, value in expected])
    assert answer["cpu_usage"] == answer["per_node_metrics"][0]["metrics"]["cpu_usage"]
    assert answer["cache"] is None


def _check_pai(sdk: Sdk, server: Served, monitored: Monitored, token: str) -> None:
    job, start = monitored.task["id"], min(one.time for one in monitored.points) // 1000 * 1000
    period = [datetime.fromtimestamp(start / 1000 + more).isoformat() + "Z" for more in (0, 3600)]
    series = {"CpuCoreUsage": ["cpu_usage"], "GpuMemoryUsage": ["gpu_0_mem_usage", "gpu_1_mem_usage"]}
    questions = [[server.api_url, token, job, metric, *period, "10s"] for metric in series]
    *of_metrics, unknown = answers(sdk, "vendor_pai.py", *questions, [server.api_url, token, job, "Else", "", "", "5m"])
    for variants, pai in zip(series.values(), of_metrics, strict=True):
        assert [pod["PodId"] for pod in pai["PodMetrics"]] == [f"{job}-worker-0", f"{job}-worker-1"]
        for node, pod in zip(NODES, pai["PodMetrics"], strict=True):
            expected = monitored.means(node, variants, start, 10_000)
            assert {one["Time"]: one["Value"] for one in pod["Metrics"]} == pytest.approx(
                {start + n * 10_000: value for n, value in expected.items()}
            )
    assert (unknown["status"], unknown["code"]) == (400, "InvalidMetricType")


def _millis(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)
