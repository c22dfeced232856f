"""The largest questions for one curve of many runs: wide buckets that are all filled in, and many quantiles."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from tests.hostile.conftest import LONG
from tests.hostile.target import OF_USERS, Target, at_once

RUNS, GROUPS = (1000, 10) if LONG else (180, 2)
CLIENTS = 16


@pytest.fixture(scope="module")
def tasks(target: Target) -> list[str]:
    """Tasks with two points each, far apart."""
    tasks = [
        str(target.server.call("tasks.create", {"name": f"run {n}", "type": "training"})["id"]) for n in range(RUNS)
    ]
    point = {"type": "training_stats_scalar", "metric": "loss", "variant": "train", "worker": "w"}
    lines = [{**point, "task": task, "iter": iter, "value": n} for n, task in enumerate(tasks) for iter in (n, 8000)]
    assert target.send("/events.add_batch", "\n".join(map(json.dumps, lines)).encode(), known=True) == 200
    return tasks


@pytest.mark.parametrize("samples", [6000, 10])
def test_the_largest_groups(target: Target, tasks: list[str], samples: int) -> None:
    asked: dict[str, Any] = {
        "groups": [{"name": f"{n}", "tasks": tasks} for n in range(GROUPS)],
        "metrics": [{"metric": "loss", "variants": ["train"]}],
        "quantiles": [n / 19 for n in range(20)],
        "samples": samples,
    }
    send = partial(target.send, "/events.scalar_metrics_of_groups", json.dumps(asked).encode(), known=True)
    with target.attacked(OF_USERS):
        assert send() == 200
        assert set(at_once(CLIENTS, send)) <= {200, 429}
