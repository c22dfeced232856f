"""What tests cost, in seconds and in CPU seconds of the test's process and of all that it has started.

    EVENTS_COSTS=/tmp/costs make test
    python -m tests.costs /tmp/costs

prints what each folder, fixture and test cost. Each process that runs tests writes a file of lines into the folder: a
kind (`test` or `fixture`), a name, seconds, CPU seconds. A fixture counts what it asks other fixtures for, too.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

_TICKS = os.sysconf("SC_CLK_TCK")


def spent() -> float:
    """CPU seconds of this process and its descendants so far, those that have ended included."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime + sum(map(_cpu, _descendants(os.getpid())))


def _descendants(pid: int) -> Iterator[int]:
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found = children.read_text().split()
        except OSError:
            continue
        for child in map(int, found):
            yield child
            yield from _descendants(child)


def _cpu(pid: int) -> float:
    """CPU seconds of a process and of those of its children that have ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return sum(map(int, fields[11:15])) / _TICKS


class Costs:
    """A plugin of pytest that writes down what each test and each fixture costs."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = open(folder / f"{os.getpid()}.jsonl", "a", encoding="utf-8")  # noqa: SIM115  (until the run ends)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        before, cpu_before = time.perf_counter(), spent()
        try:
            return (yield)
        finally:
            self._write("test", item.nodeid, time.perf_counter() - before, spent() - cpu_before)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
        before, cpu_before = time.perf_counter(), spent()
        try:
            return (yield)
        finally:
            if (seconds := time.perf_counter() - before) > 0.002:
                self._write("fixture", fixturedef.argname, seconds, spent() - cpu_before)

    def _write(self, *cost: object) -> None:
        self._file.write(json.dumps(cost) + "\n")
        self._file.flush()


@dataclass
class _Sum:
    count: int = 0
    seconds: float = 0
    cpu: float = 0


def _sums(costs: Iterable[tuple[str, float, float]]) -> list[tuple[str, _Sum]]:
    """By name, what costs most first."""
    sums: dict[str, _Sum] = defaultdict(_Sum)
    for name, seconds, cpu in costs:
        total = sums[name]
        total.count, total.seconds, total.cpu = total.count + 1, total.seconds + seconds, total.cpu + cpu
    return sorted(sums.items(), key=lambda item: -item[1].cpu)


def _folder(nodeid: str) -> str:
    """`tests/rpc` of a test; of stores and services one level more."""
    parts = nodeid.partition("::")[0].split("/")[:-1]
    return "/".join(parts[: 3 if parts[1:2] in (["stores"], ["services"]) else 2])


def main(folder: str, most: str = "40") -> None:
    """Print the tables of a folder of costs, with so many rows at most."""
    lines = [json.loads(line) for file in Path(folder).glob("*.jsonl") for line in file.read_text().splitlines()]
    tests = [line[1:] for line in lines if line[0] == "test"]
    tables = {
        "folder": [(_folder(name), seconds, cpu) for name, seconds, cpu in tests],
        "fixture": [line[1:] for line in lines if line[0] == "fixture"],
        "file": [(name.partition("::")[0], seconds, cpu) for name, seconds, cpu in tests],
        "test function": [(name.partition("[")[0], seconds, cpu) for name, seconds, cpu in tests],
    }
    for title, costs in tables.items():
        print(f"{title:<80} {'count':>6} {'s':>8} {'CPU s':>8}")  # noqa: T201
        for name, total in _sums(costs)[: int(most)]:
            print(f"{name:<80} {total.count:>6} {total.seconds:>8.1f} {total.cpu:>8.1f}")  # noqa: T201
        print()  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
