"""Runs several processes that do the same work. One that dies is started again; all are stopped together.

The parent only waits. Each child is a fork of the parent, so all share the parent's imports and sockets. The first
child runs alone until it is ready, so that what a first start creates is created once.

The parent holds one end of a pipe, the lifeline. If the parent is killed, the pipe closes, and the children stop.
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

from apiserver.server.signals import STOP, arriving

log = logging.getLogger(__name__)

_READY = signal.SIGUSR1
_SIGNALS = (*STOP, _READY, signal.SIGCHLD)
#: If a child lived for fewer seconds, its successor waits before it starts, longer each time.
_SHORT_LIFE = 5.0
_PAUSES = (0.0, 1.0, 2.0, 5.0, 10.0)


class StartFailed(Exception):
    """The first process ended before it was ready; the log says why."""


@dataclass(frozen=True, slots=True)
class Child:
    """What a process knows about itself."""

    first: bool
    """Whether this is the first process, which runs alone until it is ready."""
    lifeline: int
    """A descriptor that becomes readable when the parent is gone."""

    def ready(self) -> None:
        """Tell the parent that this process is ready."""
        if self.first:
            os.kill(os.getppid(), _READY)


@dataclass(slots=True)
class _Worker:
    """One of the processes to be kept running. `pid` is 0 while it does not run; `due` is when to start it."""

    pid: int = 0
    born: float = 0.0
    due: float = 0.0
    short_lives: int = 0


@dataclass(slots=True)
class Processes:
    """`count` processes that run `work`. It stops at SIGTERM or SIGINT, and returns the exit code.

    `patience`: seconds until processes that do not stop are killed. `let_go`: called in the parent when the processes
    are told to stop, to close what the parent holds open for them.
    """

    count: int
    work: Callable[[Child], int]
    patience: float
    let_go: Callable[[], None]
    _workers: list[_Worker] = field(default_factory=list, init=False)
    _ready: bool = field(default=False, init=False)
    _deadline: float = field(default=float("inf"), init=False)

    def run(self) -> None:
        """Run until a signal stops all processes. StartFailed if the first one ends before it is ready."""
        self._workers = [_Worker() for _ in range(self.count)]
        lifeline, held = os.pipe()
        gc.collect()
        gc.freeze()  # collections would write to the objects, and so copy the memory that all processes share
        try:
            with arriving(_SIGNALS) as (numbers, _):
                self._supervise(numbers, lifeline, held)
        finally:
            os.close(held)
            os.close(lifeline)

    def _supervise(self, numbers: int, lifeline: int, held: int) -> None:
        while not self._stopping or any(worker.pid for worker in self._workers):
            now = time.monotonic()
            if now > self._deadline:
                self._send(signal.SIGKILL)
            if not self._stopping:
                self._fill(now, lifeline, held)
            has_come = select.select([numbers], [], [], self._wait_seconds(now))[0]
            for number in os.read(numbers, 4096) if has_come else b"":
                if number in STOP:
                    self._deadline = min(self._deadline, now + self.patience)
                    self._send(number)
                    self.let_go()
                elif number == _READY:
                    self._ready = True
            self._note_ended()

    @property
    def _stopping(self) -> bool:
        return self._deadline < float("inf")

    def _wait_seconds(self, now: float) -> float:
        """Seconds until the next thing to do, if no signal arrives."""
        times = [self._deadline, *(worker.due for worker in self._workers if not worker.pid and self._ready)]
        return min(1.0, max(0.01, min(times) - now))

    def _fill(self, now: float, lifeline: int, held: int) -> None:
        """Start each process that does not run and is due."""
        for worker in self._workers if self._ready else self._workers[:1]:
            if worker.pid or worker.due > now:
                continue
            with _no_signals():
                pid = os.fork()
                if not pid:
                    os.close(held)
                    _run_child(Child(not self._ready, lifeline), self.work)
            worker.pid, worker.born = pid, now

    def _send(self, number: int) -> None:
        for worker in self._workers:
            if worker.pid:
                os.kill(worker.pid, number)

    def _note_ended(self) -> None:
        """Find the processes that have ended, and plan their successors."""
        for worker in self._workers:
            if not worker.pid or not os.waitpid(worker.pid, os.WNOHANG)[0]:
                continue
            ended, worker.pid = worker.pid, 0
            if self._stopping:
                continue
            if not self._ready:
                raise StartFailed
            now = time.monotonic()
            worker.short_lives = worker.short_lives + 1 if now - worker.born < _SHORT_LIFE else 0
            worker.due = now + _PAUSES[min(worker.short_lives, len(_PAUSES) - 1)]
            log.error("a process ended; another takes its place", extra={"pid": ended})


def _run_child(child: Child, work: Callable[[Child], int]) -> NoReturn:
    """Do the work in a new child process, then exit."""
    code = 1
    try:
        os.setpgid(0, 0)  # Ctrl-C in a terminal should reach only the parent, which passes it on
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
def _no_signals() -> Iterator[None]:
    """Delay signals, so that a new child does not handle a signal as if it were the parent."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
