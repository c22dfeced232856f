"""Loads a server for a long time as a team does, and tells whether anything of it grows, and whether anything is lost.

    python -m tests.robustness.soak --minutes 480

200 writers send a batch a second each, readers look at curves and logs, others follow runs live, tasks come and are
deleted, retention deletes the plots of others, and backups are made. Meanwhile the server's memory, open files, threads
and disk are noted each second, and how long calls take. A straight line is fitted through each of them over the second
half: its slope says what the server would take more in an hour. In the end, everything acknowledged must be there
exactly once, and the last backup, restored, has what was acknowledged before it began.

For example, a server that keeps a connection open for each task that was deleted, one a second, shows 3,600 files an
hour, and fails.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np

from apiserver.common.sizes import counted
from apiserver.operating.retention.bounds import RetentionBounds
from apiserver.server.bounds import Bounds
from apiserver.settings.retention_rules import RetentionRule
from benchmarks.processes import anonymous_mb
from tests import ending
from tests.data.streams import events_of
from tests.harness import Served, run, served, wait_until
from tests.robustness.tables import head, row
from tests.robustness.writers import (
    Task,
    Writer,
    acknowledged,
    assert_a_moment,
    assert_stored,
    is_stored,
    new_task,
    writing,
)

#: A call that costs the server nearly nothing: what it takes longer, the machine takes longer.
PING = "debug.ping"
#: The project in which retention keeps less.
_SHORT = "short"


@dataclass(frozen=True, slots=True)
class Load:
    """How many do what at once."""

    writers: int = 200
    readers: int = 8
    watchers: int = 20
    deleters: int = 2
    retained: int = 2
    """How many make tasks of which retention deletes plots."""
    pause: float = 1.0
    """Seconds between two batches of a writer, two reads of a reader and two tasks of a deleter."""
    rest: float = 30.0
    """Seconds from one backup to the next, and from one time that retention deletes to the next."""


@dataclass(slots=True)
class Noted:
    """What was seen at one moment."""

    at: float
    """Seconds since the load began."""
    memory: float
    """MB of the server that are not pages of files."""
    files: int
    threads: int
    disk: float
    """MB of the data folder."""
    batches: int
    """How many were acknowledged so far."""


@dataclass(slots=True)
class Soaked:
    """What happened."""

    seconds: float
    batches: int
    noted: list[Noted] = field(default_factory=list)
    calls: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    """When each call of a kind ended, and how many seconds it took."""
    deleted: int = 0
    retained: int = 0
    """Of how many tasks retention deleted plots, and nothing else."""
    backups: int = 0
    held: tuple[list[int], list[int]] = ([], [])
    """How many batches of each writer were acknowledged before the last backup began, and when it had ended."""
    told: int = 0
    """What those who follow runs live were told."""
    refused: int = 0
    """How often writers were told to come back."""

    def settled(self) -> list[Noted]:
        """What was noted in the second half: before that, caches and pools fill."""
        return [one for one in self.noted if one.at >= self.seconds / 2]

    def an_hour(self, value: Callable[[Noted], float]) -> float:
        """How much a value grows in an hour, by the line that fits best through the second half."""
        settled = self.settled()
        slope, _ = np.polyfit([one.at for one in settled], [value(one) for one in settled], 1)
        return float(slope) * 3600

    def slower(self, kind: str) -> tuple[float, float]:
        """How many ms calls of a kind take longer at the end of the second half than at its begin, by the line that
        fits best; and how many ms such a call usually takes in it.
        """
        ended, took = np.array(self.calls[kind][len(self.calls[kind]) // 2 :]).T
        slope, _ = np.polyfit(ended - ended[0], took, 1)
        return float(slope * (ended[-1] - ended[0])) * 1000, float(np.median(took)) * 1000

    def p99(self, kind: str, part: slice) -> float:
        """The 99th percentile of the time of calls of a kind, in ms, of a part of them."""
        return float(np.percentile([took for _, took in self.calls[kind][part]], 99)) * 1000


@contextmanager
def kept_short(data: Path, load: Load, **settings: Any) -> Iterator[Served]:
    """A server whose retention keeps two plots of each series of tasks in the project `short`."""
    rule = RetentionRule(("plots",), "2 iterations", project=_SHORT)
    bounds = Bounds(retention=RetentionBounds(hour_seconds=load.rest, look_seconds=1))
    with served(data, retention=(rule,), retention_every=1, bounds=bounds, **settings) as server:
        yield server


def soak(server: Served, seconds: float, load: Load, backups: Path) -> tuple[Soaked, list[Writer]]:
    """Load a server of `kept_short` for so long, and back it up. What goes wrong in any caller is raised."""
    project: str = server.call("projects.create", {"name": _SHORT})["id"]
    tasks = [new_task(server) for _ in range(max(1, load.writers // 4))]
    writers = [Writer(server, tasks[n % len(tasks)], f"writer {n}", pause=load.pause) for n in range(load.writers)]
    soaked = Soaked(seconds, 0)
    stop = Event()
    jobs: list[Callable[[], None]] = [
        *[partial(_read, server, tasks, soaked, stop, load.pause, n) for n in range(load.readers)],
        *[partial(_follow, server, tasks[n % len(tasks)], soaked, stop) for n in range(load.watchers)],
        *[partial(_delete, server, soaked, stop, load.pause) for _ in range(load.deleters)],
        *[partial(_retain, server, project, soaked, stop) for _ in range(load.retained)],
        partial(_back_up, server, writers, soaked, stop, load.rest, backups),
    ]
    began = time.monotonic()
    with ThreadPoolExecutor(len(jobs)) as threads, writing(writers):
        running = [threads.submit(job) for job in jobs]
        try:
            while (at := time.monotonic() - began) < seconds:
                soaked.noted.append(_note(server, at, acknowledged(writers)))
                failed = [one for one in running if one.done()]
                assert not failed, [one.exception() for one in failed]
                stop.wait(1)
        finally:
            stop.set()
        for one in running:
            one.result()
    soaked.batches = acknowledged(writers)
    soaked.refused = sum(len(writer.refusals) for writer in writers)
    return soaked, writers


def _note(server: Served, at: float, batches: int) -> Noted:
    assert server.process is not None
    process = Path(f"/proc/{server.process.pid}")
    files, threads = (len(os.listdir(process / name)) for name in ("fd", "task"))
    return Noted(at, anonymous_mb(server.process.pid), files, threads, _size(server.data) / 2**20, batches)


def _size(folder: Path) -> int:
    found = 0
    for path in folder.rglob("*"):
        try:
            found += path.stat().st_blocks * 512
        except FileNotFoundError:  # a segment of the journal was merged
            continue
    return found


@contextmanager
def _timed(soaked: Soaked, kind: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    ended = time.monotonic()
    soaked.calls.setdefault(kind, []).append((ended, ended - began))


def _read(server: Served, tasks: Sequence[str], soaked: Soaked, stop: Event, pause: float, seed: int) -> None:
    dice = random.Random(seed)
    with server.client() as client:
        while not stop.wait(pause * dice.uniform(0.5, 1.5)):
            request = {"task": dice.choice(tasks)}
            for kind in (PING, "events.scalar_metrics_iter_histogram", "events.get_task_log"):
                with _timed(soaked, kind):
                    assert client.post(f"/{kind}", json=request).status_code == 200


def _follow(server: Served, task: str, soaked: Soaked, stop: Event) -> None:
    """Follow a run live, on one stream after another."""
    asked, heard = {"task": task}, time.monotonic()
    with server.client() as client:
        while not stop.is_set():
            with client.stream("GET", "/data/live", params=asked) as answer:
                for one in events_of(answer.iter_lines()):
                    soaked.told += 1
                    if one.id:
                        asked["since"] = one.id
                    if stop.is_set() or time.monotonic() - heard > 30:
                        break
            heard = time.monotonic()


def _delete(server: Served, soaked: Soaked, stop: Event, pause: float) -> None:
    """Make tasks, and delete them with what they reported."""
    with server.client() as client:
        while not stop.wait(pause):
            writer = Writer(server, new_task(server), "deleted")
            with writing([writer]):
                wait_until(lambda: writer.acknowledged >= 3)  # noqa: B023 - it ends before the next one
            request = {"task": writer.task, "force": True}
            with _timed(soaked, "tasks.delete"):
                answer = client.post("/tasks.delete", json=request)
            assert answer.status_code == 200, answer.text
            assert client.post("/events.get_task_log", json=request).status_code == 400
            soaked.deleted += 1


def _retain(server: Served, project: str, soaked: Soaked, stop: Event) -> None:
    """Make tasks, and wait until retention has deleted all plots of them but two."""
    while not stop.is_set():
        writer = Writer(server, new_task(server, project=project), "retained")
        with writing([writer]):
            wait_until(lambda: writer.acknowledged >= 10)  # noqa: B023 - it ends before the next one
        expected = writer.expected(writer.acknowledged)
        expected.plots = {iter: expected.plots[iter] for iter in sorted(expected.plots)[-2:]}
        while (stored := Task(server, writer.task).stored(writer)).plots != expected.plots:
            if stop.wait(1):
                return
        assert stored == expected
        soaked.retained += 1


def _back_up(
    server: Served, writers: Sequence[Writer], soaked: Soaked, stop: Event, rest: float, destination: Path
) -> None:
    """Make backups while the server runs, and keep the newest three."""
    places = ((f"--{name}", server.environment.get(f"APISERVER_{name.upper()}")) for name in ("events", "documents"))
    engines = [part for option, place in places if place for part in (option, place)]
    while not stop.wait(rest):
        before = [writer.acknowledged for writer in writers]
        run("backup", destination, "--data", server.data, *engines, "--keep", 3)
        soaked.held = before, [writer.acknowledged for writer in writers]
        soaked.backups += 1


def complaints(soaked: Soaked) -> list[str]:
    """What has grown more than it may, in words."""
    half = soaked.seconds / 2 / 3600
    settled = soaked.settled()
    memory = statistics.median([one.memory for one in settled])
    batches = settled[-1].batches - settled[0].batches
    bounds: list[tuple[str, Callable[[Noted], float], float]] = [
        ("MB of memory", lambda one: one.memory, max(20.0, memory / 20)),
        ("open files", lambda one: one.files, 10.0),
        ("threads", lambda one: one.threads, 5.0),
        ("MB of disk", lambda one: one.disk, 20 + batches / 1024),  # a batch takes a quarter of a KB, once it is sealed
    ]
    grown = [(what, soaked.an_hour(value) * half, bound) for what, value, bound in bounds]
    return [
        f"{more:.1f} {what} more in the second half (bound: {bound:.0f})" for what, more, bound in grown if more > bound
    ]


def delays(soaked: Soaked) -> list[str]:
    """Which calls take longer the longer the load lasts, in words, beyond what `debug.ping` takes longer, too.

    For example, a call that takes 60 ms more in the second half, where it usually takes 50 ms, is 120 % slower. If
    `debug.ping` is 100 % slower, that is the machine.
    """
    slower, usual = soaked.slower(PING)
    machine = max(0.0, slower / usual)
    grown = [(kind, *soaked.slower(kind)) for kind in soaked.calls]
    return [
        f"{kind}: {more:.0f} ms more in the second half, where it usually takes {usual:.0f} ms"
        for kind, more, usual in grown
        if more - usual * machine > max(20.0, usual / 2)
    ]


def _at_once(load: Load) -> str:
    """How many do what at once, in words."""
    do = (counted(load.writers, "writers"), counted(load.readers, "readers"), counted(load.deleters, "deleters"))
    return f"{', '.join(do)}, {load.watchers} live"


def rows(soaked: Soaked, load: Load) -> list[str]:
    """What to tell, as rows of a Markdown table."""
    settled = soaked.settled()
    found = [
        ("load", _at_once(load)),
        ("time", f"{soaked.seconds / 60:.0f} minutes"),
        ("batches acknowledged, each there once", f"{soaked.batches:,}"),
        ("tasks deleted", f"{soaked.deleted:,}"),
        ("tasks of which retention deleted plots, and nothing else", f"{soaked.retained:,}"),
        ("backups, of which the last one was restored and compared", f"{soaked.backups:,}"),
        ("told to those who follow live", f"{soaked.told:,}"),
        ("refused for a while (429, 503)", f"{soaked.refused:,}"),
    ]
    values: list[tuple[str, Callable[[Noted], float]]] = [
        ("memory, MB", lambda one: one.memory),
        ("open files", lambda one: one.files),
        ("threads", lambda one: one.threads),
        ("disk, MB", lambda one: one.disk),
    ]
    for what, value in values:
        numbers = [value(one) for one in settled]
        usual, most, growth = statistics.median(numbers), max(numbers), soaked.an_hour(value)
        found.append((what, f"{usual:,.0f}, at most {most:,.0f}, {growth:+,.1f} an hour"))
    for kind, calls in sorted(soaked.calls.items()):
        quarter = len(calls) // 4
        early, late = (soaked.p99(kind, part) for part in (slice(quarter, 2 * quarter), slice(3 * quarter, None)))
        more, usual = soaked.slower(kind)
        found += [
            (f"{kind}, p99", f"{early:,.0f} ms in the second quarter, {late:,.0f} in the last"),
            (f"{kind}, usual time", f"{usual:,.1f} ms, {more:+,.1f} over the second half"),
        ]
    return [row(*cells) for cells in found]


def main(arguments: Sequence[str]) -> int:
    """0 if nothing grew and nothing was lost, else 1."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.robustness.soak", description="Load a server for a long time."
    )
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--events", help="elasticsearch://… instead of a folder")
    parser.add_argument("--documents", help="mongodb://… instead of a folder")
    for name, default in asdict(Load()).items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    asked = parser.parse_args(arguments)
    load = Load(**{name: getattr(asked, name) for name in asdict(Load())})
    engines = {name: value for name in ("events", "documents") if (value := getattr(asked, name))}
    with tempfile.TemporaryDirectory() as name, kept_short(Path(name) / "data", load, **engines) as server:
        soaked, writers = soak(server, asked.minutes * 60, load, Path(name) / "backups")
        assert_kept(server, writers)
        assert_backed_up(soaked, writers, Path(name) / "backups")
        wrong = [*complaints(soaked), *delays(soaked)]
        sys.stdout.write("\n".join([*head("what", "how much"), *rows(soaked, load), *wrong, ""]))
    return 1 if wrong else 0


def assert_kept(server: Served, writers: list[Writer]) -> None:
    """Everything acknowledged is there exactly once, now and after a restart."""
    wait_until(lambda: is_stored(server, writers))
    server.stop()
    server.start()
    assert_stored(server, writers)
    assert "Traceback" not in server.log.read_text()


def assert_backed_up(soaked: Soaked, writers: list[Writer], backups: Path) -> None:
    """All backups, if there are any, are well, and the last one has what was acknowledged before it began, and nothing
    by half.
    """
    if not soaked.backups:  # a rest between two of them that is longer than the load
        return
    assert "all backups are well" in run("backup", backups, "--check")
    restored = backups.with_name("restored")
    run("restore", backups, "--data", restored)
    with served(restored) as server:
        assert_a_moment(server, writers, *soaked.held)


if __name__ == "__main__":
    sys.exit(ending.run(lambda: main(sys.argv[1:])))
