"""Shows how far an import is: as a bar on a terminal, as a line every few seconds elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from apiserver.common.sizes import counted
from apiserver.transfer.importing.report import span

_WIDTH = 30
_REDRAW_SECONDS, _SAY_SECONDS = 0.2, 5.0


class Progress:
    """How much of `total` units is done, and how many events were sent; a `total` of 0 means that it is not known."""

    def __init__(
        self,
        unit: str,
        total: int,
        stream: TextIO | None = None,
        *,
        redraw_seconds: float = _REDRAW_SECONDS,
        say_seconds: float = _SAY_SECONDS,
    ) -> None:
        """A bar is drawn again after `redraw_seconds`, and another line is said after `say_seconds`."""
        self._redraw_seconds, self._say_seconds = redraw_seconds, say_seconds
        self._unit = unit
        self._total = total
        self._stream = stream or sys.stderr
        self._has_bar = self._stream.isatty()
        self._done = self._events = 0
        self._begun = time.monotonic()
        self._next = self._begun + (0 if self._has_bar else say_seconds)
        self._is_drawn = False

    def say(self, line: str) -> None:
        """Show a line, above the bar."""
        self.clear()
        self._stream.write(f"{line}\n")
        self._stream.flush()

    def advance(self, *, done: int = 0, events: int = 0) -> None:
        """Count more as done."""
        self._done += done
        self._events += events
        now = time.monotonic()
        if now < self._next:
            return
        if self._has_bar:
            self._next = now + self._redraw_seconds
            self.clear()
            self._stream.write(f"{self._bar()} {self._state(now)}")
            self._stream.flush()
            self._is_drawn = True
        else:
            self._next = now + self._say_seconds
            self.say(self._state(now))

    def clear(self) -> None:
        """Take the bar away."""
        if self._is_drawn:
            self._stream.write("\r\x1b[K")
            self._is_drawn = False

    def _bar(self) -> str:
        if not self._total:
            return ""
        filled = min(_WIDTH, self._done * _WIDTH // self._total)
        return f"[{'█' * filled}{' ' * (_WIDTH - filled)}]"

    def _state(self, now: float) -> str:
        passed = max(now - self._begun, 1e-3)
        events = f"{counted(self._events, 'events')}, {self._events / passed:,.0f}/s"
        if not self._total:
            return events
        done = min(self._done, self._total)
        left = f", {span((self._total - done) * passed / done)} left" if done else ""
        return f"{done:,} of {counted(self._total, self._unit)}, {events}{left}"
