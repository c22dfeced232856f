"""SIGTERM and SIGINT, heard by a thread of its own: also while something holds the event loop.

The first asks to stop, the second to hurry, the third ends the process at once; so does a stop that takes too long.
That loses nothing that was acknowledged.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

log = logging.getLogger(__name__)

STOP = (signal.SIGTERM, signal.SIGINT)
#: The exit code of a process that did not stop by itself.
HARD = 70
_LAST = 3


@contextmanager
def heard(stop: Callable[[], None], patience: float) -> Iterator[None]:
    """Until the block ends, call `stop` in another thread for each of the first two signals.

    The process is ended when the block has not ended `patience` seconds after the first. To be entered in the main
    thread, in the event loop if there is one: the loop leaves to this what signals there are.
    """
    arriving, arrived = os.pipe()
    os.set_blocking(arrived, False)
    former = {number: signal.signal(number, lambda *_: None) for number in STOP}
    former_wakeup = signal.set_wakeup_fd(arrived, warn_on_full_buffer=False)
    thread = threading.Thread(target=_hear, args=(arriving, stop, patience), name="signals", daemon=True)
    thread.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(former_wakeup)
        for number, handler in former.items():
            signal.signal(number, handler)
        os.close(arrived)  # the thread sees the end
        thread.join()
        os.close(arriving)


def _hear(arriving: int, stop: Callable[[], None], patience: float) -> None:
    deadline, count = float("inf"), 0
    while True:
        left = deadline - time.monotonic()
        ready = select.select([arriving], [], [], max(left, 0) if count else None)[0]
        if not ready:
            _end(f"it did not stop within {patience:g} seconds")
        numbers = os.read(arriving, 1)
        if not numbers:
            return
        if numbers[0] not in STOP:
            continue
        count += 1
        deadline = min(deadline, time.monotonic() + patience)
        if count == _LAST:
            _end("it was told so three times")
        stop()


def _end(reason: str) -> None:
    """End the process, whatever its other threads do."""
    # In a thread of its own, as another may hold the log for ever.
    saying = threading.Thread(target=log.error, args=("the server is ended hard: %s", reason), daemon=True)
    saying.start()
    saying.join(1)
    os._exit(HARD)
