"""Clocks of served processes that are wrong, and jump while they run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("clock.c")
SECOND, HOUR, DAY = 1, 3600, 86400


@dataclass(frozen=True)
class Clock:
    """The time of day of one process, or of several."""

    file: Path
    library: Path

    @property
    def environment(self) -> dict[str, str]:
        """Of a process that has this clock."""
        return {"LD_PRELOAD": str(self.library), "CLOCK_FILE": str(self.file)}

    def set_ahead(self, seconds: float) -> None:
        """From now on it is so far ahead of the real time, or behind it."""
        with open(self.file, "r+b") as file:
            file.write(round(seconds * 10**9).to_bytes(8, sys.byteorder, signed=True))


def clock(folder: Path, name: str, ahead: float = 0.0) -> Clock:
    """A clock whose files are in the folder; the test is skipped where there can be none."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None or sys.platform != "linux":
        pytest.skip("clocks can only be set on Linux, with a C compiler")
    library, file = folder / "clock.so", folder / f"{name}.clock"
    if not library.exists():
        subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", str(library), str(SOURCE), "-ldl"], check=True)
    file.write_bytes(bytes(8))
    made = Clock(file, library)
    made.set_ahead(ahead)
    return made
