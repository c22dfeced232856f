"""Says how far the work is: a bar on a terminal, else a line for each step. And rests, so that others can work."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import TextIO

from apiserver.common.escaping import shown
from apiserver.common.sizes import shown_bytes

#: The share of the time that a backup works while others may need the processor and the disk.
GENTLY = 0.2
_BAR = 30
#: Seconds until the bar is drawn again.
_SECONDS = 0.2


class Progress:
    """How far a step is. With a `share` below 1, it works only for that share of the time, and sleeps in the rest."""

    def __init__(
        self,
        out: TextIO | None = None,
        *,
        share: float = 1.0,
        redraw_seconds: float = _SECONDS,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock, self._sleep = clock, sleep
        self._out = out or sys.stderr
        self._is_terminal = self._out.isatty()
        self._rest = 1 / share - 1
        self._redraw_seconds = redraw_seconds
        self._rate = math.inf
        self._working_since = self._clock()
        self._shown_at = 0.0
        self._what, self._total, self._done = "", 0, 0
        self._open = False

    def step(self, what: str, total: int = 0, *, rate: float = math.inf) -> None:
        """Begin a step with its number of bytes. At most `rate` bytes are done in a second."""
        self.end()
        self._rate = rate
        self._what, self._total, self._done = what, total, 0
        if self._is_terminal:
            self._open = True
            self._show()
        else:
            self.say(f"{what} ({shown_bytes(total)})" if total else what)

    def advance(self, bytes: int) -> None:
        """Count further bytes that are done; rest a little."""
        self._done += bytes
        if self._open and self._clock() - self._shown_at >= self._redraw_seconds:
            self._show()
        worked = self._clock() - self._working_since
        if (pause := max(worked * self._rest, bytes / self._rate - worked)) > 0:
            self._sleep(pause)
            self._working_since = self._clock()

    def say(self, line: str) -> None:
        """Print a line."""
        self.end()
        self._out.write(f"{shown(line)}\n")
        self._out.flush()

    def end(self) -> None:
        """End the step."""
        if self._open:
            self._done = self._total
            self._show()
            self._out.write("\n")
            self._open = False

    def _show(self) -> None:
        self._shown_at = self._clock()
        share = min(self._done / self._total, 1) if self._total else 1.0
        bar = "#" * int(share * _BAR)
        self._out.write(f"\r{self._what:<24.24} [{bar:<{_BAR}}] {share:4.0%} of {shown_bytes(self._total):<10}")
        self._out.flush()


#: Takes lines about the work.
Say = Callable[[str], None]
