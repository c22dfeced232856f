"""Calls to the disk fail, each in turn: nothing acknowledged is lost, and everything goes on when they fail no more.

`EVENTS_FAULTS=1000 pytest tests/stores/events/embedded/test_failing_calls.py` lets each of about 700 calls fail.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.robustness.preloading import built

#: Calls that fail of each kind, and how many there are about.
FAULTS = int(os.environ.get("EVENTS_FAULTS", "5"))
CALLS, SYNCS = 740, 100
#: Failing calls follow one another from the first one on.
FOR_GOOD = 10**6


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is preloaded."""
    return built("faults.c", tmp_path_factory.mktemp("faults"))


@pytest.mark.parametrize(
    ("kind", "count"),
    [("w", 1), ("w", FOR_GOOD), ("e", 1), ("s", 1), ("y", 1), ("y", FOR_GOOD)],
    ids=["one is full", "full", "one is broken", "one is short", "one sync fails", "syncs fail"],
)
def test_failing_calls_lose_nothing(tmp_path: Path, library: Path, dice: random.Random, kind: str, count: int) -> None:
    calls = range(SYNCS if kind == "y" else CALLS)
    chosen = sorted({1, *dice.sample(calls, min(FAULTS, len(calls)))})  # 1 is within the folder's lock
    attempts = run(tmp_path / "data", library, kind, count, chosen)
    assert [attempt["first"] for attempt in attempts] == chosen
    assert [attempt["wrong"] for attempt in attempts if attempt["wrong"]] == []
    assert any(attempt["failed"] for attempt in attempts)
    assert any(attempt["acknowledged"] > 3 for attempt in attempts)


def run(folder: Path, library: Path, kind: str, count: int, first: list[int]) -> list[dict[str, Any]]:
    """What there is to say of each attempt."""
    command = [sys.executable, "-m", "tests.stores.events.embedded.failing_calls", str(folder), kind, str(count)]
    environment = {**os.environ, "LD_PRELOAD": str(library), "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.run([*command, *map(str, first)], env=environment, stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in process.stdout.splitlines()]
