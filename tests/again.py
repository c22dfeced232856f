"""`make check-again`: all tests in five forms, one after another. Seeds and results go into tests/again.md.

Alone; twice in random order; while other work keeps all processors busy; with temporary files in another folder. A test
that passes in one form and fails in another is a fault, whatever it tests.

    python -m tests.again [--processes N] [--form NAME …] [--beside FILE …]

FILE: modules that a process of their own runs, beside all others. Exit code 1 if a test failed.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from tests import order

RECORD = Path(__file__).with_name("again.md")
FORMS = ("alone", "random order", "another random order", "busy", "another folder")

_BUSY = "while True: pass"
#: What pytest says in the end: `2 passed, 1 skipped in 3.14s`.
_LAST = re.compile(r"\d+ (passed|failed|errors?|skipped).* in [\d.]+s")
_COUNTS = re.compile(r"(\d+) (passed|failed|errors?|skipped)")


@dataclass
class Result:
    """What came of all tests in one form."""

    form: str
    seed: str
    seconds: float = 0
    cpu: float = 0
    """CPU seconds of the tests and of all that they started."""
    counts: dict[str, int] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    """A line for each failed test."""
    well: bool = False


def run(form: str, runs: Sequence[Sequence[str]]) -> Result:
    """Tests in one form: some runs of pytest beside each other, each by its arguments."""
    with tempfile.TemporaryDirectory(prefix="again-") as folder:
        seed = str(random.SystemRandom().randrange(2**32)) if "order" in form else ""
        environment = dict(os.environ)
        if seed:
            environment[order.VARIABLE] = seed
        if form == "another folder":
            environment["TMPDIR"] = folder
        with _busy((os.cpu_count() or 1) if form == "busy" else 0):
            return _run(Result(form, seed), environment, runs)


def _run(result: Result, environment: Mapping[str, str], runs: Sequence[Sequence[str]]) -> Result:
    begun, cpu = time.monotonic(), _cpu_of_children()
    with tempfile.TemporaryDirectory(prefix="again-log-") as folder:
        logs = [Path(folder, f"{number}.log") for number in range(len(runs))]
        started = [_started(arguments, environment, log) for arguments, log in zip(runs, logs, strict=True)]
        codes = [process.wait() for process in started]
        said = "\n".join(log.read_text(errors="replace") for log in logs)
    result.seconds, result.cpu = time.monotonic() - begun, _cpu_of_children() - cpu
    for line in filter(_LAST.search, said.splitlines()):
        for count, kind in _COUNTS.findall(line):
            kind = "failed" if kind.startswith("error") else kind
            result.counts[kind] = result.counts.get(kind, 0) + int(count)
    result.failed = _failed(said.splitlines())
    result.well = not any(codes)
    return result


def _failed(said: Sequence[str]) -> list[str]:
    """A line for each failed test: that with the cause, as `FAILED test (call): cause`, else the longest."""
    best: dict[str, str] = {}
    for line in sorted(said, key=lambda line: (" (" in line, len(line))):
        if line.startswith(("FAILED ", "ERROR ")):
            best[line.split()[1].rstrip(",")] = line
    return sorted(best.values())


def _started(arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> subprocess.Popen[bytes]:
    with open(log, "wb") as output:
        command = [sys.executable, "-m", "pytest", *arguments]
        return subprocess.Popen(command, env=dict(environment), stdout=output, stderr=subprocess.STDOUT)


def _cpu_of_children() -> float:
    times = os.times()
    return times.children_user + times.children_system


@contextmanager
def _busy(count: int) -> Iterator[None]:
    """Other work, in so many processes."""
    working = [subprocess.Popen([sys.executable, "-c", _BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for process in working:
            process.kill()
            process.wait()


def table(results: Sequence[Result], commit: str, before: str = "") -> str:
    """The record, as Markdown; forms that were not run keep what the record says of them before."""
    rows = {result.form: _row(result, commit) for result in results}
    kept = {form: line for line in before.splitlines() if (form := line[2:].partition(" | ")[0]) in FORMS}
    failures = [f"- {result.form}: `{line[:300]}`" for result in results for line in result.failed]
    return "\n".join(
        [
            "# All tests, in five forms",
            "",
            f"Made by `make check-again` on {os.cpu_count()} cores.",
            "",
            "| form | commit, day | order (`EVENTS_ORDER`) | passed | failed | skipped | minutes | CPU minutes |",
            "|---|---|---|---:|---:|---:|---:|---:|",
            *({**kept, **rows}[form] for form in FORMS if form in kept or form in rows),
            *(["", *failures] if failures else []),
            "",
        ]
    )


def _row(result: Result, commit: str) -> str:
    return (
        f"| {result.form} | {commit}, {datetime.now(UTC):%Y-%m-%d} | {result.seed or 'as collected'} "
        f"| {result.counts.get('passed', 0):,} | {result.counts.get('failed', 0):,} "
        f"| {result.counts.get('skipped', 0):,} | {result.seconds / 60:.1f} | {result.cpu / 60:.1f} |"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--form", action="append", choices=FORMS, help="only this one (may be given again)")
    parser.add_argument("--beside", nargs="*", default=[], metavar="FILE")
    asked = parser.parse_args(arguments)
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
    ignored = [option for name in asked.beside for option in ("--ignore", name)]
    runs = [["-n", str(asked.processes), "--dist", "worksteal", *ignored], *([asked.beside] if asked.beside else [])]
    results, before = [], RECORD.read_text() if RECORD.exists() else ""
    for form in asked.form or FORMS:
        results.append(run(form, runs))
        RECORD.write_text(table(results, commit or "unknown", before))
        print(RECORD.read_text(), flush=True)  # noqa: T201
    return 0 if all(result.well for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
