"""Calls to the disk that fail, each in turn: of whatever writes into a folder.

A module has an `Attempt`: something that is done while calls fail, and what must be left. It is run as a process with
faults.c preloaded, and says a line of JSON for each first call that fails:

    python -m MODULE FOLDER KIND COUNT FIRST…      by `run`, which reads the lines
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import shutil
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

#: Failing calls follow one another from the first one on.
FOR_GOOD = 10**6
#: What fails (`faults.c`), and how many calls one after another, by how that is called.
KINDS = {
    "one is full": ("w", 1),
    "full": ("w", FOR_GOOD),
    "one is broken": ("e", 1),
    "one is short": ("s", 1),
    "one sync fails": ("y", 1),
    "syncs fail": ("y", FOR_GOOD),
}
#: Of these, what fails in `make check`.
SOME_KINDS = ["full", "one is broken", "one is short", "one sync fails"]
#: Seconds of each attempt.
PATIENCE = 60


class Attempt(Protocol):
    """Something that writes into one folder, and what must be in it."""

    acknowledged: int
    """How many calls ended well."""

    async def fill(self) -> None:
        """Write, while calls fail. Each call ends well, or says why not as it is promised to."""

    async def check(self) -> None:
        """Calls fail no more: what was acknowledged is there, and everything goes on."""


def main(make: Callable[[Path], Attempt], arguments: Sequence[str]) -> None:
    """Make an attempt in a child for each first call that fails."""
    place, kind, count, *numbers = arguments
    folder = Path(place)
    faults = ctypes.CDLL(None)
    for number in map(int, numbers):
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            continue
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        faults.faults_under(str(folder).encode())
        attempt, wrong = make(folder), None
        try:
            faults.faults_arm(ctypes.c_char(kind.encode()), ctypes.c_long(number), ctypes.c_long(int(count)))
            asyncio.run(asyncio.wait_for(attempt.fill(), PATIENCE))
        except BaseException:
            wrong = traceback.format_exc()
        calls, failed = faults.faults_calls(), faults.faults_failed()
        faults.faults_arm(ctypes.c_char(kind.encode()), ctypes.c_long(-1), ctypes.c_long(0))
        try:
            asyncio.run(asyncio.wait_for(attempt.check(), 3 * PATIENCE))
        except BaseException:
            wrong = (wrong or "") + traceback.format_exc()
        said = {"first": number, "calls": calls, "failed": failed, "acknowledged": attempt.acknowledged, "wrong": wrong}
        sys.stdout.write(f"{json.dumps(said)}\n")
        sys.stdout.flush()
        os._exit(0)


def run(module: str, folder: Path, library: Path, kind: str, first: list[int]) -> list[dict[str, Any]]:
    """What there is to say of an attempt for each first call that fails."""
    what, count = KINDS[kind]
    environment = {**os.environ, "LD_PRELOAD": str(library), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", module, str(folder), what, str(count), *map(str, first)]
    process = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in process.stdout.splitlines()]
