"""Load and crashes under the real SDK: everything arrives, once.

The SDK takes its time. `EVENTS_HEAVY=100000 pytest tests/clients/test_heavy.py` reports more.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import Popen
from typing import Any

import pytest

from tests.clients.sdk import Sdk
from tests.engines.fixtures import OUTAGE_SECONDS
from tests.engines.nodes import Node
from tests.harness import Served, wait_until

SCALARS = int(os.environ.get("EVENTS_HEAVY", "5000"))
LINES = SCALARS // 10


@contextmanager
def started(sdk: Sdk, count: int, scalars: int = SCALARS, lines: int = LINES) -> Iterator[list[Popen[str]]]:
    processes = [sdk.start("heavy.py", str(scalars), str(lines)) for _ in range(count)]
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()


def assert_all_arrived_once(server: Served, task: str, scalars: int = SCALARS, lines: int = LINES) -> None:
    histogram = call(server, "events.scalar_metrics_iter_histogram", {"task": task, "samples": 0})
    reported = {
        (metric, x): y for metric, variants in histogram.items() for x, y in zip(*points(variants), strict=True)
    }
    expected = {(f"metric {number % 5}", number // 5): number for number in range(scalars)}
    assert reported == expected
    counts = Counter(re.findall(r"heavy line (\d+)", whole_log(server, task)))
    assert counts == {str(number): 1 for number in range(lines)}


def call(server: Served, endpoint: str, request: dict[str, Any]) -> dict[str, Any]:
    with server.client() as client:
        answer: dict[str, Any] = client.post(f"/{endpoint}", json=request).raise_for_status().json()["data"]
        return answer


def points(variants: dict[str, dict[str, list[float]]]) -> tuple[list[float], list[float]]:
    return variants["series"]["x"], variants["series"]["y"]


def whole_log(server: Served, task: str) -> str:
    messages: list[str] = []
    beyond: dict[str, int] = {}
    while True:
        request = {"task": task, "navigate_earlier": False, "batch_size": 1000, **beyond}
        page = call(server, "events.get_task_log", request)["events"]
        if not page:
            return "\n".join(messages)
        messages += [event["msg"] for event in page]
        beyond = {"from_timestamp": page[-1]["timestamp"]}


def test_two_processes_at_once_lose_and_double_nothing(sdk: Sdk, server: Served) -> None:
    with started(sdk, 2) as processes:
        for process in processes:
            assert_all_arrived_once(server, sdk.finish(process)["task"])


def wait_for_progress(process: Popen[str], scalars: int) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if f"progress {scalars}" in line:
            return


@pytest.mark.parametrize("sdk", ["as installed"], indirect=True)
def test_the_sdk_goes_on_when_the_server_is_killed_and_comes_back(sdk: Sdk, server: Served) -> None:
    with started(sdk, 1) as (process,):
        wait_for_progress(process, 2_000)
        server.kill()
        server.start()
        assert_all_arrived_once(server, sdk.finish(process)["task"])


@pytest.mark.longer
@pytest.mark.parametrize("server", ["engines to stop"], indirect=True)
def test_the_sdk_goes_on_when_elasticsearch_is_killed_and_comes_back(
    sdk: Sdk, server: Served, elasticsearch_to_stop: Node
) -> None:
    size = (10_000, 1_000)
    with started(sdk, 1, *size) as (process,):
        wait_for_progress(process, 5_000)
        began = time.monotonic()
        elasticsearch_to_stop.kill()
        wait_until(lambda: time.monotonic() - began >= OUTAGE_SECONDS, OUTAGE_SECONDS + 1)
        elasticsearch_to_stop.start()
        assert_all_arrived_once(server, sdk.finish(process)["task"], *size)
