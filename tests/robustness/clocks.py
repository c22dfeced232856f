"""Clocks of served processes that are wrong, and jump while they run."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from tests.robustness.preloading import built

SECOND, HOUR, DAY = 1, 3600, 86400


@dataclass(frozen=True)
class Clock:
    """The time of day of one process, or of several."""

    file: Path
    library: Path

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a process that has this clock."""
        return {"LD_PRELOAD": str(self.library), "CLOCK_FILE": str(self.file)}

    def set_ahead(self, seconds: float) -> None:
        """Set the clock this many seconds ahead of the real time; negative: behind it."""
        with open(self.file, "r+b") as file:
            file.write(round(seconds * 10**9).to_bytes(8, sys.byteorder, signed=True))


def clock(folder: Path, name: str) -> Clock:
    """A clock that is right; its files are in the folder. The test is skipped where clocks cannot be set."""
    file = folder / f"{name}.clock"
    file.write_bytes(bytes(8))
    return Clock(file, built("clock.c", folder))
