"""Ends a long program as people expect it: Ctrl-C and SIGTERM end all that it has started, and it says one line.

Both raise KeyboardInterrupt in the main thread, so that each `with` ends what it has begun. A terminal sends Ctrl-C to
all programs that were started from it. Here they never see it: they inherit that SIGINT is blocked. Otherwise a server
would end before those who use it, and each would say so by a traceback.

An exception that comes while Python calls `__del__`, or a library calls back, is dropped there, and the program goes
on. So the interruption comes again, each second, until the main thread handles it.

What it has started also ends if it is killed, or interrupted while it starts something: a guard, a process of its own,
waits for its end, and ends what is left then. All that it starts has a mark in its environment. By that the guard finds
it, whoever its parent is; without `/proc`, it finds nothing.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import FrameType
from uuid import uuid4

#: The exit code of a program that was interrupted.
INTERRUPTED = 130
#: The variable of the environment of all that a program starts.
_MARK = "STARTED_BY_A_PROGRAM"
#: Seconds that a process has to end before it is killed.
_PATIENCE = 20
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
#: What Python 3.12 and 3.11 have where a thread handles no exception.
_NONE = (None, (None, None, None))
#: What comes again where an interruption was dropped, and how often.
_AGAIN, _INSIST_SECONDS = signal.SIGUSR1, 1.0


def run(main: Callable[[], int | None]) -> int:
    """The exit code of `main`; INTERRUPTED, after a line, if Ctrl-C or SIGTERM came. Call it before threads start."""
    came, ended = threading.Event(), threading.Event()

    def interrupt(number: int, frame: FrameType | None) -> None:
        came.set()
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_DFL)  # a second one does not wait for anything
        raise KeyboardInterrupt

    def interrupt_again(number: int, frame: FrameType | None) -> None:
        if not ended.is_set():
            raise KeyboardInterrupt

    for each in _SIGNALS:  # SIGINT, too: a library may have started a thread in which it is not blocked
        signal.signal(each, interrupt)
    signal.signal(_AGAIN, interrupt_again)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    threading.Thread(target=_pass_on, name="signals", daemon=True).start()
    threading.Thread(target=_insist, args=(came, ended), name="interruption", daemon=True).start()
    guard = _guarded()
    try:
        code = main() or 0
        ended.set()
        if not came.is_set():  # else who was interrupted went on all the same, as `__del__` does
            return code
    except BaseException:
        if not came.is_set():
            raise
    finally:
        ended.set()
        assert guard.stdin is not None
        guard.stdin.close()
    sys.stderr.write("interrupted\n")
    return INTERRUPTED


def _pass_on() -> None:
    """Pass Ctrl-C on to the main thread as SIGTERM, which also ends its waiting."""
    while True:
        signal.sigwait([signal.SIGINT])
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)


def _insist(came: threading.Event, ended: threading.Event) -> None:
    """Once an interruption came, send it again as long as the main thread goes on as if nothing had come."""
    main = threading.main_thread().ident or 0
    came.wait()
    while not ended.wait(_INSIST_SECONDS):
        if sys._current_exceptions().get(main) in _NONE:
            signal.pthread_kill(main, _AGAIN)


def unmarked() -> dict[str, str]:
    """The environment of what ends by itself when this program does, and may not be disturbed while it does so."""
    return {name: value for name, value in os.environ.items() if name != _MARK}


def _guarded() -> subprocess.Popen[bytes]:
    """Mark what this program will start, and start its guard."""
    mark = uuid4().hex
    guard = subprocess.Popen(
        [sys.executable, __file__, mark],
        env=unmarked(),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.environ[_MARK] = mark
    return guard


def _guard(mark: str) -> None:
    """Wait for the end of the program, which ends our standard input however it comes, then end what is marked."""
    sys.stdin.read()
    for number in (signal.SIGTERM, signal.SIGKILL):
        told: set[int] = set()
        until = time.monotonic() + _PATIENCE
        while (left := set(_marked(mark))) and time.monotonic() < until:
            for process in left - told:
                with suppress(ProcessLookupError):
                    os.kill(process, number)
            told |= left
            time.sleep(0.05)


def _marked(mark: str) -> Iterator[int]:
    """The numbers of running processes with the mark."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has just ended, or is somebody else's
            if f"{_MARK}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                yield int(folder.name)


if __name__ == "__main__":
    _guard(sys.argv[1])
