"""Kills the server and its commands again and again, wherever they are, and compares what is left with what must be.

    python -m tests.robustness.kills --times 1000 --engines

It kills in rounds, in each of all ways. Each way to kill gets a folder of its own in each round, and raises
AssertionError if anything acknowledged is lost or there twice. Golden folders (`tests/golden`) are what servers start
on and what is copied: each has the answers that it gave. After each round it writes the table of what it
has done so far, so it may be ended at any time.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from apiserver.stores.data_folder import DataFolder
from tests import ending
from tests.engines.fixtures import own_engines, own_nodes
from tests.golden.make import copied, names, record, unpack
from tests.golden.test_golden import assert_answers
from tests.harness import PATIENCE, Served, apiserver, run, served, wait_until
from tests.robustness.history.rounds import STRICT, Counted, Kills, run_round
from tests.robustness.tables import head, row
from tests.robustness.writers import Writer, acknowledged, assert_a_moment, assert_stored, new_task, writing

_KILLS_A_TASK, _KILLS_A_HISTORY = 10, 3
#: So many that each way kills more often than once.
_KILLS_A_ROUND = 100
#: So few that a merge is nearly always under way.
_MERGE_EVENTS = 200


@dataclass
class Killed:
    """How often one way killed, and what it compared."""

    kills: int = 0
    under_way: int = 0
    """How many of the killed processes had not ended by themselves."""
    compared: int = 0
    """How many batches or answers were compared with what must be."""

    def __iadd__(self, other: Killed) -> Killed:
        self.kills += other.kills
        self.under_way += other.under_way
        self.compared += other.compared
        return self


Way = Callable[[Path, random.Random, int], Killed]
#: Of Elasticsearch and of MongoDB.
Urls = tuple[str, str]


def new_writers(server: Served) -> list[Writer]:
    """Writers to two tasks, two to each."""
    return [Writer(server, task, name) for task in (new_task(server), new_task(server)) for name in ("one", "two")]


def serving(folder: Path, dice: random.Random, kills: int, durability: str = "process") -> Killed:
    """The server, while clients write, while it merges and seals, and while it starts."""
    done, written = Killed(), list[Writer]()
    with served(folder / "data", durability=durability, merge_events=_MERGE_EVENTS) as server:
        while done.kills < kills:
            if done.kills % _KILLS_A_TASK == 0:
                written += (writers := new_writers(server))
            goal = acknowledged(writers) + dice.randrange(10, 300)
            with writing(writers):
                wait_until(lambda: acknowledged(writers) >= goal)  # noqa: B023 - it is called at once
                server.kill()
            done.kills += 1
            if dice.random() < 0.25:
                server.launch()
                time.sleep(dice.uniform(0, 1.5))
                server.kill()
                done.kills += 1
            server.start()
            assert_stored(server, writers)
        with writing(writers):  # what was not answered is sent again, at last
            goal = acknowledged(writers) + 20
            wait_until(lambda: acknowledged(writers) >= goal)
        assert_stored(server, written)
        server.stop()
        server.start()
        assert_stored(server, written)
        assert "Traceback" not in server.log.read_text()
    return Killed(done.kills, done.kills, acknowledged(written))


def calling(folder: Path, dice: random.Random, kills: int) -> Killed:
    """The server, while clients write, delete, change statuses and share a queue (`tests/robustness/history`)."""
    counted = Counted()
    with served(folder / "data", merge_events=_MERGE_EVENTS) as server:
        while counted.kills < kills:
            some = min(_KILLS_A_HISTORY, kills - counted.kills)
            run_round({STRICT: server}, dice, counted, Kills([server], dice, counted, some))
            assert not counted.wrong, "\n".join(counted.wrong)
    return Killed(counted.kills, counted.kills, counted.outcomes.total())


def starting(folder: Path, dice: random.Random, kills: int) -> Killed:
    """Starts on golden folders, whose server was killed. Those of older releases are brought up to date."""
    done = Killed()
    for number, golden in enumerate(_golden(folder, dice, kills)):
        with served(folder / f"other-{number}") as server:
            server.stop()
            server.data = golden.data
            for _ in range(golden.kills):
                server.launch()
                time.sleep(dice.uniform(0.2, 1.5))
                server.kill()
            server.start()
            assert_answers(server, golden.answers)
        done.kills, done.under_way = done.kills + golden.kills, done.under_way + golden.kills
        done.compared += len(golden.answers["calls"])
    return done


def backing_up(folder: Path, dice: random.Random, kills: int) -> Killed:
    """Backups under load, and restoring them: what was acknowledged before a backup began is in it."""
    done, destination, new = Killed(), folder / "backups", folder / "new"
    took = 2.0
    with served(folder / "data", merge_events=_MERGE_EVENTS) as server:
        writers = [Writer(server, new_task(server), name, pause=0.01) for name in ("one", "two")]
        back_up = ["backup", destination, "--data", server.data, "--fast"]
        restore = ["restore", destination, "--data", new]
        while done.kills < kills:
            with writing(writers):
                for _ in range(dice.randrange(1, 4)):
                    _kill(done, back_up, dice.uniform(0, took))
                before, began = [writer.acknowledged for writer in writers], time.monotonic()
                run(*back_up)
                took, after = time.monotonic() - began, [writer.acknowledged for writer in writers]
            assert "all backups are well" in run("backup", destination, "--check")
            for _ in range(dice.randrange(1, 3)):
                if _kill(done, restore, dice.uniform(0, took)) and new.exists() and any(new.iterdir()):
                    if DataFolder(new).restoring.exists():
                        assert_refused(new, folder / "refusal")
                    else:  # it was killed after the last step
                        with served(new) as restored:
                            assert_a_moment(restored, writers, before, after)
                shutil.rmtree(new, ignore_errors=True)
            run(*restore)
            with served(new) as restored:
                assert_a_moment(restored, writers, before, after)
            done.compared += sum(after)
            shutil.rmtree(new)
    return done


def assert_refused(data: Path, said: Path) -> None:
    """No server starts on a folder; what it says goes to a file."""
    command = [sys.executable, "-m", "apiserver", "serve", "--data", str(data), "--port", "0"]
    with open(said, "wb") as output:
        assert subprocess.run(command, stderr=output, stdout=output, timeout=PATIENCE).returncode != 0


def copying(folder: Path, dice: random.Random, kills: int, urls: Urls | None = None) -> Killed:
    """Copies of a folder, which go on where they were: to Elasticsearch and MongoDB at `urls`, or to another folder."""
    done = Killed()
    for number, golden in enumerate(_golden(folder, dice, kills)):
        with served(golden.data) as server:  # copies take folders that are up to date
            assert_answers(server, golden.answers)
        with own_engines(*urls) if urls else nullcontext(dict[str, Any]()) as engines:
            _copy(done, golden, folder / f"copy-{number}", engines, dice)
    return done


def _copy(done: Killed, golden: _Golden, target: Path, engines: Mapping[str, Any], dice: random.Random) -> None:
    places = [engines[name] for name in ("events", "documents") if engines] or [target]
    command, took = ["copy", "--from", golden.data, "--to", *places], 4.0
    for _ in range(golden.kills):
        began = time.monotonic()
        if not _kill(done, command, dice.uniform(0, took)):
            took = time.monotonic() - began
    run(*command)
    shutil.copytree(golden.data / "files", target / "files", dirs_exist_ok=True)  # copies have no files
    with served(target, **engines) as server:
        assert_answers(server, golden.answers)
    done.compared += len(golden.answers["calls"])


@dataclass(frozen=True)
class _Golden:
    """A golden folder, and how often it is to be killed."""

    data: Path
    answers: Mapping[str, Any] = field(repr=False)
    kills: int


def _golden(folder: Path, dice: random.Random, kills: int) -> list[_Golden]:
    """Some golden folders, each for some of the kills; of this code, as long as there are none of releases."""
    found: list[_Golden] = []
    of_releases, made = names(), folder / "golden"
    if not of_releases:
        record(made)
    while kills > 0:
        unpacked = folder / f"golden-{len(found)}"
        answers = (unpack(dice.choice(of_releases), unpacked) if of_releases else copied(made, unpacked))["folder"]
        found.append(_Golden(unpacked / "data", answers, some := min(kills, dice.randrange(3, 8))))
        kills -= some
    return found


def _kill(done: Killed, command: Sequence[object], seconds: float) -> bool:
    """Start a command, and kill it after so many seconds. Returns whether it was still running.

    If it had ended by itself, it must have ended well.
    """
    process = apiserver(*command)
    done.kills += 1
    try:
        said, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        done.under_way += 1
        return True
    assert process.returncode == 0, said
    return False


@dataclass(frozen=True)
class Kind:
    """Something that is killed."""

    what: str
    way: Way
    share: float
    """Of all kills."""
    compared: str
    """What is compared with what must be."""


KINDS = (
    Kind("the server, while it takes, merges and seals events, and starts", serving, 0.4, "batches"),
    Kind("the server, while events are deleted, statuses change, and queues are shared", calling, 0.2, "calls"),
    Kind("starts on folders whose server was killed", starting, 0.15, "answers"),
    Kind("backups under load, and restoring them", backing_up, 0.15, "batches"),
    Kind("copies of a folder", copying, 0.1, "answers"),
)


def kill(times: int, dice: random.Random, urls: Urls | None) -> Iterator[dict[str, Killed]]:
    """Kill so many times in all ways, and say after each round what each kind has done so far.

    Without `urls`, copies go to other folders.
    """
    done = {kind.what: Killed() for kind in KINDS}
    while (left := times - sum(killed.kills for killed in done.values())) > 0:
        for kind in KINDS:
            way = partial(copying, urls=urls) if kind.way is copying else kind.way
            with tempfile.TemporaryDirectory() as folder:
                done[kind.what] += way(Path(folder), dice, max(1, round(min(left, _KILLS_A_ROUND) * kind.share)))
        yield done


def rows(done: Mapping[str, Killed], urls: Urls | None) -> list[str]:
    """What to tell, as a Markdown table."""
    found = head("killed", "times", "of these under way", "compared", "lost", "doubled")
    for kind in KINDS:
        killed = done[kind.what]
        what = f"{kind.what} to Elasticsearch and MongoDB" if urls and kind.way is copying else kind.what
        compared = f"{killed.compared:,} {kind.compared}"
        found.append(row(what, f"{killed.kills:,}", f"{killed.under_way:,}", compared, 0, 0))
    return found


def main(arguments: Sequence[str]) -> int:
    """0 if nothing was lost; else it ends with an AssertionError that says what."""
    parser = argparse.ArgumentParser(prog="python -m tests.robustness.kills", description="Kill, and compare.")
    parser.add_argument("--times", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--engines", action="store_true", help="start Elasticsearch and MongoDB, and copy to them")
    asked = parser.parse_args(arguments)
    sys.stdout.write(f"seed {asked.seed}\n")
    with ExitStack() as running:
        urls = None
        if asked.engines:
            urls = running.enter_context(own_nodes(Path(running.enter_context(tempfile.TemporaryDirectory()))))
        for done in kill(asked.times, random.Random(asked.seed), urls):
            sys.stdout.write("\n".join(("", *rows(done, urls), "")))
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(ending.run(lambda: main(sys.argv[1:])))
