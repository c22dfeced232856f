"""A thread that logs which code held the event loop, and for how long.

While code runs for long on the loop, no other request is answered. A few times a second, the thread gives the loop a
small task. If the loop does not run it in time, the thread logs what the loop's thread is doing. A hold that is shorter
than the time between two such tasks may be missed. If the whole process stopped, for example because the machine slept,
nothing is logged.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from traceback import walk_stack
from types import FrameType
from typing import NamedTuple

log = logging.getLogger(__name__)

#: How many calls of the stack are logged, the innermost first.
_CALLS = 12


class Clock(NamedTuple):
    """What time is measured and waited by, in seconds."""

    now: Callable[[], float] = time.monotonic
    worked: Callable[[], float] = time.process_time
    """What this process has worked."""
    wait: Callable[[threading.Event, float], bool] = threading.Event.wait


CLOCK = Clock()


@contextmanager
def watched(slow_ms: int, held: Callable[[float], None] = lambda _: None, clock: Clock = CLOCK) -> Iterator[None]:
    """Watch the running loop until the block ends, and log holds of `slow_ms` or longer; 0 does nothing.

    `held` is told the seconds of each, on the loop.
    """
    if not slow_ms:
        yield
        return
    watchdog = _Watchdog(asyncio.get_running_loop(), threading.get_ident(), slow_ms / 1000, held, clock)
    thread = threading.Thread(target=watchdog.run, name="watchdog", daemon=True)
    thread.start()
    try:
        yield
    finally:
        watchdog.ended.set()


class _Watchdog:
    """Watches `loop`, which runs in the thread with the id `thread`; a hold lasts for `slow` seconds or more."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        thread: int,
        slow: float,
        held: Callable[[float], None],
        clock: Clock,
    ) -> None:
        self._loop = loop
        self._thread = thread
        self._slow = slow
        self._held = held
        self._clock = clock
        self.ended = threading.Event()

    def run(self) -> None:
        """Watch until `ended` is set."""
        while not self._clock.wait(self.ended, self._slow / 2):
            self._check()

    def _check(self) -> None:
        sign = threading.Event()
        asked, worked = self._clock.now(), self._clock.worked()
        try:
            self._loop.call_soon_threadsafe(sign.set)
        except RuntimeError:  # the loop is closed
            self.ended.set()
            return
        if self._clock.wait(sign, self._slow):
            return
        late = self._clock.now() - asked - self._slow
        if late > self._slow and self._clock.worked() - worked < late / 2:
            return  # this thread did not run either: the whole process had stopped
        log.warning(
            "the event loop is held: nobody else is answered",
            extra={"over_ms": round(self._slow * 1000), "stack": _stack(sys._current_frames().get(self._thread))},
        )
        while not self._clock.wait(sign, self._slow):
            if self.ended.is_set():
                return
        seconds = self._clock.now() - asked
        log.warning("the event loop was held", extra={"ms": round(seconds * 1000)})
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._held, seconds)


def _stack(frame: FrameType | None) -> str:
    """`file:line function` of the innermost calls, without values, which may be secrets."""
    calls = (f"{called.f_code.co_filename}:{line} {called.f_code.co_name}" for called, line in walk_stack(frame))
    return " < ".join(islice(calls, _CALLS)) if frame is not None else ""
