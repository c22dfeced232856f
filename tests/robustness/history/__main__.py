"""Runs rounds of clients for a long time, with kills, and tells what happened."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests import ending
from tests.harness import served
from tests.robustness.history.operations import Outcome
from tests.robustness.history.rounds import STRICT, Counted, Kills, run_round
from tests.robustness.tables import head, row

#: In each round, which takes some ten seconds.
_KILLS = 3


def record(minutes: float, seed: int, engines: Mapping[str, Any]) -> Counted:
    """Run rounds for so many minutes, one at least, and return what happened.

    engines: the settings of two servers on the same engines; empty: one server on a folder.
    """
    dice, counted = random.Random(seed), Counted()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as running:
        settings = engines or {"merge_events": 500}
        names = {"session": "session", STRICT: "strict"} if engines else {STRICT: "session"}
        servers = {
            name: running.enter_context(served(Path(folder) / "data", consistency=consistency, **settings))
            for name, consistency in names.items()
        }
        began = time.monotonic()
        while not counted.wrong and (not counted.kills or time.monotonic() - began < minutes * 60):
            kills = Kills([*servers.values()], dice, counted, _KILLS)
            run_round(servers, dice, counted, kills)
    return counted


def rows(counted: Counted) -> list[str]:
    """What to tell, as rows of a Markdown table."""
    found = [
        ("calls recorded", f"{counted.outcomes.total():,}"),
        ("of these done, refused, unknown", ", ".join(f"{counted.outcomes[one]:,}" for one in Outcome)),
        ("batches of events sent", f"{counted.kinds['write']:,}"),
        ("reads of all events of a task", f"{counted.kinds['read events']:,}"),
        ("tasks taken out of a queue", f"{counted.kinds['pop']:,}"),
        ("kill -9", f"{counted.kills:,}"),
        ("answers that no order explains", f"{len(counted.wrong):,}"),
    ]
    return [row(*cells) for cells in found]


def main(arguments: Sequence[str]) -> int:
    """0 if all answers fit, else 1."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.robustness.history", description="Record and check histories."
    )
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--events", help="elasticsearch://… instead of a folder")
    parser.add_argument("--documents", help="mongodb://… instead of a folder")
    asked = parser.parse_args(arguments)
    addresses = {name: value for name in ("events", "documents") if (value := getattr(asked, name))}
    counted = record(asked.minutes, asked.seed, {**addresses, "migrate_at_start": True} if addresses else {})
    lines = [f"seed {asked.seed}", "", *head("what", "how much"), *rows(counted), *counted.wrong, ""]
    sys.stdout.write("\n".join(lines))
    return 1 if counted.wrong else 0


if __name__ == "__main__":
    sys.exit(ending.run(lambda: main(sys.argv[1:])))
