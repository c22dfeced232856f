"""Runs the long forms of the tests, and writes what they survived into the documentation.

    python -m tests.robustness.record --into docs/operations/figures.md --minutes 480

Half of the time is for the long load, a quarter for histories, and a quarter for kills. It starts engines by itself, as
the tests do. Nothing is written if anything was lost, doubled, or answered wrongly.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests import ending
from tests.engines.fixtures import own_engines, own_nodes
from tests.engines.test_network import over_a_bad_network
from tests.robustness import kills, soak
from tests.robustness.history import __main__ as histories
from tests.robustness.tables import head, row

BEGIN, END = "<!-- The record begins: a command writes it. -->", "<!-- The record ends. -->"
#: Seconds that one kill takes, about.
_KILL = 5.0
#: Minutes of a record from which on growth means something.
_LONG_ENOUGH = 20


def record(minutes: float, dice: random.Random) -> Iterator[str]:
    """Lines of Markdown."""
    with tempfile.TemporaryDirectory() as name, own_nodes(Path(name)) as urls:
        folder = Path(name)
        yield from _long_load(folder / "soak", minutes / 2)
        yield from ("", "### Histories of a server that is killed", "", *_history(minutes / 8, dice, {}))
        yield from ("", "### Histories of two servers on engines, which are killed", "")
        with own_engines(*urls) as engines:
            yield from _history(minutes / 8, dice, engines)
        yield from ("", "### A bad network before an engine", "", *_bad_network(folder, urls, dice))
        *_, done = kills.kill(max(10, round(minutes * 60 / 4 / _KILL)), dice, urls)
        yield from ("", "### Kills", "", *kills.rows(done, urls))


def _long_load(folder: Path, minutes: float) -> Iterator[str]:
    load, backups = soak.Load(), folder.with_name("backups")
    with soak.kept_short(folder, load) as server:
        soaked, writers = soak.soak(server, minutes * 60, load, backups)
        soak.assert_kept(server, writers)
    soak.assert_backed_up(soaked, writers, backups)
    wrong = soak.complaints(soaked) if minutes >= _LONG_ENOUGH / 2 else []  # before that, caches fill
    assert not wrong, wrong
    yield from ("### A long load", "", *head("what", "how much"), *soak.rows(soaked, load))
    yield row("calls that take longer with time", "; ".join(soak.delays(soaked)) or "none")


def _history(minutes: float, dice: random.Random, engines: Mapping[str, Any]) -> list[str]:
    counted = histories.record(minutes, dice.randrange(2**32), engines)
    assert not counted.wrong, counted.wrong
    return [*head("what", "how much"), *histories.rows(counted)]


def _bad_network(folder: Path, urls: kills.Urls, dice: random.Random) -> Iterator[str]:
    yield from head("what is done to a request", "of Elasticsearch", "of MongoDB")
    counts, hits = [], []
    for engine in ("elasticsearch", "mongodb"):
        data = Path(tempfile.mkdtemp(dir=folder))
        counted, proxy = over_a_bad_network(data, engine, urls, dice)
        assert not counted.wrong, counted.wrong
        counts.append(counted)
        hits.append(proxy.hits)
    for fault in hits[0]:
        yield row(fault.value, *(f"{of_engine[fault]:,}" for of_engine in hits))
    yield row("calls of clients", *(f"{counted.outcomes.total():,}" for counted in counts))
    yield row("of these answered 503", *(f"{counted.answers[503]:,}" for counted in counts))
    yield row("the slowest, seconds", *(f"{counted.slowest:.1f}" for counted in counts))
    yield row("lost, doubled, or answered wrongly", 0, 0)


def main(arguments: Sequence[str]) -> int:
    """0 if all went well."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.robustness.record", description="Survive, and write it down."
    )
    parser.add_argument("--into", type=Path, required=True, help="a Markdown file that has a record")
    parser.add_argument("--minutes", type=float, default=480)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    asked = parser.parse_args(arguments)
    before, _, rest = asked.into.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
    title = (
        f"On {datetime.now(UTC):%Y-%m-%d}, of commit {commit.stdout.strip()}, on {os.cpu_count()} cores, in about "
        f"{asked.minutes:g} minutes, with the seed {asked.seed}:"
    )
    if asked.minutes < _LONG_ENOUGH:
        title += "\n\nIt was too short to say whether anything grows: the slopes are those of a start."
    lines = [BEGIN, title, "", *record(asked.minutes, random.Random(asked.seed)), END]
    asked.into.write_text(before + "\n".join(lines) + after)
    return 0


if __name__ == "__main__":
    sys.exit(ending.run(lambda: main(sys.argv[1:])))
