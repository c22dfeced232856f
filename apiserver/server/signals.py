"""Handles SIGTERM and SIGINT in a thread, so that they work even while something holds the event loop.

The first signal asks the server to stop, the second to hurry. The third kills the process at once, and so does a stop
that takes too long. Acknowledged data survive that.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

log = logging.getLogger(__name__)

STOP = (signal.SIGTERM, signal.SIGINT)
#: The exit code of a process that was killed because it did not stop.
HARD = 70
_LAST = 3
#: Says in place of a signal's number that the block has ended.
_ENDED = b"\0"


@contextmanager
def heard(stop: Callable[[int], None], patience: float) -> Iterator[None]:
    """Inside the block, call `stop` with the number of each of the first two signals, in another thread.

    If the block does not end within `patience` seconds of the first signal, the process is killed. Enter the block in
    the main thread and, if there is an event loop, inside it: then these handlers replace the loop's.
    """
    with arriving(STOP) as (numbers, ended):
        thread = threading.Thread(target=_hear, args=(numbers, stop, patience), name="signals", daemon=True)
        thread.start()
        try:
            yield
        finally:
            os.write(ended, _ENDED)
            thread.join()


@contextmanager
def arriving(signals: Collection[signal.Signals]) -> Iterator[tuple[int, int]]:
    """The two ends of a pipe. From the first one, the numbers of signals that arrive in the block are read: bytes."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    former = {number: signal.signal(number, lambda *_: None) for number in signals}
    former_wakeup = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        yield reading, writing
    finally:
        signal.set_wakeup_fd(former_wakeup)
        for number, handler in former.items():
            signal.signal(number, handler)
        os.close(reading)
        os.close(writing)


def _hear(numbers: int, stop: Callable[[int], None], patience: float) -> None:
    deadline, count = float("inf"), 0
    while True:
        left = deadline - time.monotonic()
        ready = select.select([numbers], [], [], max(left, 0) if count else None)[0]
        if not ready:
            _end(f"it did not stop within {patience:g} seconds")
        number = os.read(numbers, 1)
        if number == _ENDED:
            return
        if number[0] not in STOP:
            continue
        count += 1
        deadline = min(deadline, time.monotonic() + patience)
        if count == _LAST:
            _end("it got three signals")
        stop(number[0])


def _end(reason: str) -> None:
    """Kill the process, whatever its other threads do."""
    # Log in another thread, because a thread that hangs may hold the log's lock.
    saying = threading.Thread(target=log.error, args=("the server is ended hard: %s", reason), daemon=True)
    saying.start()
    saying.join(1)
    os._exit(HARD)
