"""Processes of apiserver that are forked from one which has imported it.

A new Python takes most of a second of CPU until a server runs, nearly all of it for imports, and the tests start
hundreds of servers. Python's forkserver does this work once for each process that runs tests. Each server is a process
of its own all the same, with its own memory, environment and signals, and ends as any other does.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.context import ForkServerProcess
from multiprocessing.resource_tracker import ensure_running
from pathlib import Path
from pkgutil import resolve_name
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from apiserver.server.bounds import Bounds

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.warm_modules"])


class Process(Protocol):
    """A running program, as `subprocess.Popen` has it."""

    @property
    def pid(self) -> int:
        """Its number."""

    def poll(self) -> int | None:
        """Its exit code, minus the number of the signal that ended it, or None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, when it has ended; subprocess.TimeoutExpired if that takes longer than so many seconds."""

    def send_signal(self, number: int, /) -> None:
        """Send it a signal, unless it has ended."""


def may_fork(environment: Mapping[str, str]) -> bool:
    """Whether a process with this environment may be forked. Only a new Python loads the library of LD_PRELOAD."""
    return "LD_PRELOAD" not in environment


class Forked:
    """A command of apiserver, started in a process that has imported it already."""

    def __init__(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
        open_files: int = 0,
        constants: Mapping[str, Any] | None = None,
        bounds: Bounds | None = None,
    ) -> None:
        """Everything that it writes goes to the end of `log`; open_files: how many files it may open, 0: as many as
        this process; constants: values that differ from those in the sources, by `module.NAME` or `module.Class.name`;
        bounds: limits of a server.
        """
        called = (arguments, dict(environment), log, open_files, dict(constants or {}), bounds)
        self._process: ForkServerProcess = _CONTEXT.Process(target=_run, args=called)
        with _no_main_module(), same_signals():
            self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("apiserver", timeout or 0)
        return self._process.exitcode

    def send_signal(self, number: int, /) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


@contextmanager
def _no_main_module() -> Iterator[None]:
    """Have new processes run without the main module of this one, which they would import, and do not need."""
    main, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


@contextmanager
def same_signals() -> Iterator[None]:
    """Have new processes block the signals that this thread does: Python's tracker of resources unblocks some of them
    when it starts (bpo-33613), and all processes that are started afterwards would get Ctrl-C.
    """
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    ensure_running()
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    yield


def _run(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    log: Path,
    open_files: int,
    constants: Mapping[str, Any],
    bounds: Bounds | None,
) -> None:
    """What the new process does."""
    from apiserver.cli import main

    for path, value in constants.items():
        place, _, name = path.rpartition(".")
        of = resolve_name(place)
        assert hasattr(of, name), path
        setattr(of, name, value)
    with open(log, "ab") as output:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(output.fileno(), stream.fileno())
    os.environ.clear()
    os.environ.update(environment)
    if open_files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (open_files, open_files))
    sys.exit(main(arguments, bounds))
