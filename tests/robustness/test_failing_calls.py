"""Calls to the disk fail, each in turn, of whatever else writes than the store of events: nothing acknowledged is lost.

`EVENTS_FAULTS=1000 pytest --tier all tests/robustness/test_failing_calls.py` lets each call fail. Those of events are
in `tests/stores/events/embedded/test_failing_calls.py`.
"""

from __future__ import annotations

import os
import random
import shutil
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.harness import served
from tests.longer import beyond
from tests.operating.backup.failing_calls import DATA
from tests.robustness.injecting import KINDS, SOME_KINDS, run
from tests.robustness.preloading import built
from tests.transfer.copying.failing_calls import COPIED

FAULTS = int(os.environ.get("EVENTS_FAULTS", "3"))
#: A call that does not come: nothing fails.
NEVER = 10**6
WRITERS = [
    *("tests.stores.documents.sqlite.failing_calls", "tests.stores.files.failing_calls"),
    *(f"tests.operating.{name}.failing_calls" for name in ("audit", "backup", "retention")),
    "tests.transfer.copying.failing_calls",
]
#: Of the writers that take longest, what fails in `make check`. Of the others, it is `SOME_KINDS`.
SLOW = {
    "tests.operating.backup.failing_calls": ["full", "one is short"],
    "tests.operating.retention.failing_calls": ["full", "one sync fails"],
    "tests.transfer.copying.failing_calls": ["one is broken", "one sync fails"],
}
SOME = [(writer, kind) for writer in WRITERS for kind in SLOW.get(writer, SOME_KINDS)]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is preloaded."""
    return built("faults.c", tmp_path_factory.mktemp("faults"))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small data folder, of which backups and copies are made."""
    folder = tmp_path_factory.mktemp("kept") / "data"
    with served(folder) as server, server.client() as client:
        task = server.call("tasks.create", {"name": "a task", "type": "training"})["id"]
        events: list[dict[str, Any]] = [
            *(
                {"type": "training_stats_scalar", "metric": "m", "variant": "v", "iter": n, "value": n}
                for n in range(9)
            ),
            *({"type": "log", "msg": f"line {n}", "timestamp": n} for n in range(9)),
            {"type": "plot", "metric": "m", "variant": "v", "plot_str": "{}"},
        ]
        for event in events:
            server.call("events.add", {"task": task, **event})
        for name, content in (("small.txt", b"small"), ("large.bin", bytes(range(256)) * 2000)):
            assert client.put(f"{server.files_url}/project/{name}", content=content).status_code == 200
    return folder


@pytest.mark.parametrize(
    "case", beyond(SOME, product(WRITERS, KINDS)), ids=lambda case: f"{case[0].split('.')[-2]}-{case[1]}"
)
def test_failing_calls_lose_nothing(
    tmp_path: Path,
    library: Path,
    data: Path,
    dice: random.Random,
    monkeypatch: pytest.MonkeyPatch,
    case: tuple[str, str],
) -> None:
    writer, kind = case
    for name in (DATA, COPIED):
        monkeypatch.setenv(name, str(data))
    folder = tmp_path / "disk"
    [whole] = run(writer, folder, library, kind, [NEVER])
    assert (whole["failed"], whole["wrong"]) == (0, None)
    calls = range(whole["calls"])
    chosen = sorted({0, *dice.sample(calls, min(FAULTS, len(calls)))})
    attempts = run(writer, folder, library, kind, chosen)
    assert [attempt["first"] for attempt in attempts] == chosen
    assert [attempt["wrong"] for attempt in attempts if attempt["wrong"]] == []
    assert any(attempt["failed"] for attempt in attempts)
    shutil.rmtree(folder)
