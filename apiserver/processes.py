"""Several processes that do the same work: started, started again when they die, and ended together.

The parent only waits. Each child is a fork of it, so all share what it imported and the sockets that it bound. The
first is alone until it is ready, so that what is made at a first start is made once. A child that sees its lifeline
end stops by itself: none outlives a parent that was killed.
"""

from __future__ import annotations

import gc
import logging
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NoReturn

log = logging.getLogger(__name__)

_STOP = (signal.SIGTERM, signal.SIGINT)
_READY = signal.SIGUSR1
_SIGNALS = (*_STOP, _READY, signal.SIGCHLD)
#: A child that lived for less seconds died at once: the next one waits, longer each time.
_SHORT_LIFE = 5.0
_PAUSES = (0.0, 1.0, 2.0, 5.0, 10.0)


class StartFailed(Exception):
    """The first process ended before it was ready; it has said why."""


@dataclass(frozen=True, slots=True)
class Child:
    """What the work of a process is given."""

    first: bool
    """Whether it is the first of all, alone until it says that it is ready."""
    lifeline: int
    """A descriptor that can be read when the parent is gone."""

    def ready(self) -> None:
        """Say that this one does its work."""
        if self.first:
            os.kill(os.getppid(), _READY)


@dataclass(slots=True)
class _Place:
    """One of the places that are filled: its process, if there is one, and when to start the next (monotonic)."""

    pid: int = 0
    born: float = 0.0
    due: float = 0.0
    short_lives: int = 0


@dataclass(slots=True)
class Processes:
    """`count` processes that do `work`, which returns its exit code when SIGTERM or SIGINT tells it to stop.

    `patience`: seconds that they may take to stop, before they are killed. `let_go`: called in the parent when they are
    told to stop, to close what it holds for them.
    """

    count: int
    work: Callable[[Child], int]
    patience: float
    let_go: Callable[[], None]
    _places: list[_Place] = field(default_factory=list, init=False)
    _ready: bool = field(default=False, init=False)
    _deadline: float = field(default=float("inf"), init=False)

    def run(self) -> None:
        """Return when they were told to stop and have; StartFailed when the first did not get ready."""
        self._places = [_Place() for _ in range(self.count)]
        lifeline, held = os.pipe()
        gc.collect()
        gc.freeze()  # what is shared is left alone, and so stays in the same memory
        try:
            with _arriving_signals() as arriving:
                self._supervise(arriving, lifeline, held)
        finally:
            os.close(held)
            os.close(lifeline)

    def _supervise(self, arriving: int, lifeline: int, held: int) -> None:
        while not self._stopping or any(place.pid for place in self._places):
            now = time.monotonic()
            if now > self._deadline:
                self._send(signal.SIGKILL)
            if not self._stopping:
                self._fill(now, lifeline, held)
            for number in _read(arriving, self._wait_for(now)):
                if number in _STOP:
                    self._deadline = min(self._deadline, now + self.patience)
                    self._send(number)
                    self.let_go()
                elif number == _READY:
                    self._ready = True
            self._bury()

    @property
    def _stopping(self) -> bool:
        return self._deadline < float("inf")

    def _wait_for(self, now: float) -> float:
        """Seconds until something is to be done without a signal."""
        times = [self._deadline, *(place.due for place in self._places if not place.pid and self._ready)]
        return min(1.0, max(0.01, min(times) - now))

    def _fill(self, now: float, lifeline: int, held: int) -> None:
        """Start a process in each place that waits for one."""
        for place in self._places if self._ready else self._places[:1]:
            if place.pid or place.due > now:
                continue
            with _no_signals():
                pid = os.fork()
                if not pid:
                    os.close(held)
                    _be(Child(not self._ready, lifeline), self.work)
            place.pid, place.born = pid, now

    def _send(self, number: int) -> None:
        for place in self._places:
            if place.pid:
                os.kill(place.pid, number)

    def _bury(self) -> None:
        """Take note of those that have ended."""
        for place in self._places:
            if not place.pid or not os.waitpid(place.pid, os.WNOHANG)[0]:
                continue
            ended, place.pid = place.pid, 0
            if self._stopping:
                continue
            if not self._ready:
                raise StartFailed
            now = time.monotonic()
            place.short_lives = place.short_lives + 1 if now - place.born < _SHORT_LIFE else 0
            place.due = now + _PAUSES[min(place.short_lives, len(_PAUSES) - 1)]
            log.error("a process ended; another takes its place", extra={"pid": ended})


def _be(child: Child, work: Callable[[Child], int]) -> NoReturn:
    """The life of a child; it never returns."""
    code = 1
    try:
        os.setpgid(0, 0)  # an interrupt from the terminal is for the parent, who passes it on
        signal.set_wakeup_fd(-1)
        for number in _SIGNALS:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        code = work(child)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


@contextmanager
def _arriving_signals() -> Iterator[int]:
    """A descriptor from which the numbers of signals can be read that arrive meanwhile, a byte each."""
    arriving, arrived = os.pipe()
    os.set_blocking(arrived, False)
    former = {number: signal.signal(number, lambda *_: None) for number in _SIGNALS}
    former_wakeup = signal.set_wakeup_fd(arrived)
    try:
        yield arriving
    finally:
        signal.set_wakeup_fd(former_wakeup)
        for number, handler in former.items():
            signal.signal(number, handler)
        os.close(arriving)
        os.close(arrived)


def _read(arriving: int, seconds: float) -> bytes:
    """The signals that have arrived or do so in time."""
    return os.read(arriving, 4096) if select.select([arriving], [], [], seconds)[0] else b""


@contextmanager
def _no_signals() -> Iterator[None]:
    """Signals wait outside: a child is not to take its parent's, nor tell it of its own."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
