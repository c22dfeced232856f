"""Runs the long forms of the tests, and writes what they survived into the documentation.

    python -m tests.robustness.record --into docs/operations/robustness.md --minutes 480

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
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from tests.engines import elasticsearch, mongodb
from tests.engines.fixtures import own_engines
from tests.engines.test_network import over_a_bad_network
from tests.harness import served
from tests.robustness import kills, soak
from tests.robustness.history import __main__ as histories

BEGIN, END = "<!-- The record begins: a command writes it. -->", "<!-- The record ends. -->"
#: Seconds that one kill takes, about.
_KILL = 5.0
_ENGINES = ("events", "documents")
#: Minutes of a record from which on growth means something.
_LONG_ENOUGH = 20


def record(minutes: float, dice: random.Random) -> Iterator[str]:
    """Lines of Markdown."""
    with tempfile.TemporaryDirectory() as name, _engines(Path(name)) as urls:
        folder = Path(name)
        yield from _long_load(folder / "soak", minutes / 2)
        table = ["| what | how much |", "| --- | --- |"]
        counted = histories.record(minutes / 8, dice.randrange(2**32), {})
        assert not counted.wrong, counted.wrong
        yield from ("", "### Histories of a server that is killed", "", *table, *histories.rows(counted))
        with own_engines(*urls) as engines:
            counted = histories.record(minutes / 8, dice.randrange(2**32), {one: engines[one] for one in _ENGINES})
        assert not counted.wrong, counted.wrong
        yield from (
            "",
            "### Histories of two servers on engines, which are killed",
            "",
            *table,
            *histories.rows(counted),
        )
        yield from ("", "### A bad network before an engine", "", *_bad_network(folder, urls, dice))
        yield from ("", "### Kills", "", *kills.kill(max(10, round(minutes * 60 / 4 / _KILL)), dice, urls))


def _long_load(folder: Path, minutes: float) -> Iterator[str]:
    load = soak.Load()
    with served(folder) as server:
        soaked, writers = soak.soak(server, minutes * 60, load)
        soak.assert_kept(server, writers)
    wrong = soak.complaints(soaked) if minutes >= _LONG_ENOUGH / 2 else []  # before that, caches fill
    assert not wrong, wrong
    yield from ("### A long load", "", "| what | how much |", "| --- | --- |", *soak.rows(soaked, load))


def _bad_network(folder: Path, urls: kills.Urls, dice: random.Random) -> Iterator[str]:
    yield from ("| what is done to a request | of Elasticsearch | of MongoDB |", "| --- | --- | --- |")
    done = {}
    for engine in ("elasticsearch", "mongodb"):
        data = Path(tempfile.mkdtemp(dir=folder))
        counted, proxy = over_a_bad_network(data, engine, urls, dice)
        assert not counted.wrong, counted.wrong
        done[engine] = (counted, proxy.hits)
    for fault in done["elasticsearch"][1]:
        yield f"| {fault.value} | " + " | ".join(f"{hits[fault]:,}" for _, hits in done.values()) + " |"
    yield "| calls of clients | " + " | ".join(f"{one.outcomes.total():,}" for one, _ in done.values()) + " |"
    yield "| of these answered 503 | " + " | ".join(f"{one.answers[503]:,}" for one, _ in done.values()) + " |"
    yield "| the slowest, seconds | " + " | ".join(f"{one.slowest:.1f}" for one, _ in done.values()) + " |"
    yield "| lost, doubled, or answered wrongly | 0 | 0 |"


@contextmanager
def _engines(folder: Path) -> Iterator[kills.Urls]:
    """The URLs of Elasticsearch and MongoDB."""
    with ExitStack() as ending:
        nodes = [elasticsearch.node(folder / "elasticsearch"), mongodb.node(folder / "mongodb")]
        for node in nodes:
            ending.callback(node.remove)
            node.start()
        yield nodes[0].url, nodes[1].url


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
    head = (
        f"On {datetime.now(UTC):%Y-%m-%d}, of commit {commit.stdout.strip()}, on {os.cpu_count()} cores, in about "
        f"{asked.minutes:g} minutes, with the seed {asked.seed}:"
    )
    if asked.minutes < _LONG_ENOUGH:
        head += "\n\nIt was too short to say whether anything grows: the slopes are those of a start."
    lines = [BEGIN, head, "", *record(asked.minutes, random.Random(asked.seed)), END]
    asked.into.write_text(before + "\n".join(lines) + after)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
