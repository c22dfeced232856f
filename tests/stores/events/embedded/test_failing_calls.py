"""Calls to the disk fail, each in turn: nothing acknowledged is lost, and everything goes on when they fail no more.

`EVENTS_FAULTS=1000 pytest -m '' tests/stores/events/embedded/test_failing_calls.py` lets each of about 700 calls fail.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.longer import beyond
from tests.robustness.injecting import KINDS, SOME_KINDS, run
from tests.robustness.preloading import built

#: Calls that fail of each kind, and how many there are about.
FAULTS = int(os.environ.get("EVENTS_FAULTS", "3"))
CALLS, SYNCS = 740, 100


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is preloaded."""
    return built("faults.c", tmp_path_factory.mktemp("faults"))


@pytest.mark.test
@pytest.mark.parametrize("kind", beyond(SOME_KINDS, KINDS))
def test_failing_calls_lose_nothing(tmp_path: Path, library: Path, dice: random.Random, kind: str) -> None:
    calls = range(SYNCS if "sync" in kind else CALLS)
    chosen = sorted({1, *dice.sample(calls, min(FAULTS, len(calls)))})  # 1 is within the folder's lock
    attempts = run("tests.stores.events.embedded.failing_calls", tmp_path / "data", library, kind, chosen)
    assert [attempt["first"] for attempt in attempts] == chosen
    assert [attempt["wrong"] for attempt in attempts if attempt["wrong"]] == []
    assert any(attempt["failed"] for attempt in attempts)
    assert any(attempt["acknowledged"] > 3 for attempt in attempts)
