"""Ends a long program as people expect it: Ctrl-C and SIGTERM end all that it has started, and it says one line.

Both raise KeyboardInterrupt in the main thread, so that each `with` ends what it has begun. A terminal sends Ctrl-C to
all programs that were started from it. Here they never see it: they inherit that SIGINT is blocked. Otherwise a server
would end before those who use it, and each would say so by a traceback.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType

#: The exit code of a program that was interrupted.
INTERRUPTED = 130
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def run(main: Callable[[], int | None]) -> int:
    """The exit code of `main`; INTERRUPTED, after a line, if Ctrl-C or SIGTERM came. Call it before threads start."""
    came = threading.Event()

    def interrupt(number: int, frame: FrameType | None) -> None:
        came.set()
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_DFL)  # a second one does not wait for anything
        raise KeyboardInterrupt

    for each in _SIGNALS:  # SIGINT, too: a library may have started a thread in which it is not blocked
        signal.signal(each, interrupt)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    threading.Thread(target=_pass_on, name="signals", daemon=True).start()
    try:
        return main() or 0
    except BaseException:
        if not came.is_set():
            raise
        sys.stderr.write("interrupted\n")
        return INTERRUPTED


def _pass_on() -> None:
    """Pass Ctrl-C on to the main thread as SIGTERM, which also ends its waiting."""
    while True:
        signal.sigwait([signal.SIGINT])
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
