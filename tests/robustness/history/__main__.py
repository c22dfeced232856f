"""Runs rounds of clients for a long time, with kills, and tells what happened."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.harness import served
from tests.robustness.history.operations import Outcome
from tests.robustness.history.rounds import Counted, Kills, run_round

#: In each round, of some ten seconds.
_KILLS = 3


def record(minutes: float, seed: int, engines: dict[str, str]) -> Counted:
    """What happened in so many minutes, and one round at least, on a folder, or by two servers on engines."""
    dice, counted = random.Random(seed), Counted()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as running:
        settings = {"migrate_at_start": True, **engines} if engines else {"merge_events": 500}
        names = {"session": "session", "strict": "strict"} if engines else {"strict": "session"}
        servers = {
            name: running.enter_context(served(Path(folder) / "data", consistency=consistency, **settings))
            for name, consistency in names.items()
        }
        began = time.monotonic()
        while not counted.wrong and (not counted.kills or time.monotonic() - began < minutes * 60):
            kills = Kills([*servers.values()], dice, counted, _KILLS)
            run_round(servers, ["strict"], dice, counted, kills)
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
    return [f"| {what} | {value} |" for what, value in found]


def main(arguments: Sequence[str]) -> int:
    """0 if all answers fit, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.robustness.history", description=record.__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--events", help="elasticsearch://… instead of a folder")
    parser.add_argument("--documents", help="mongodb://… instead of a folder")
    asked = parser.parse_args(arguments)
    engines = {name: value for name in ("events", "documents") if (value := getattr(asked, name))}
    counted = record(asked.minutes, asked.seed, engines)
    head = [f"seed {asked.seed}", "", "| what | how much |", "| --- | --- |"]
    sys.stdout.write("\n".join([*head, *rows(counted), *counted.wrong, ""]))
    return 1 if counted.wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
