"""Lets a thread that works for long rest now and then, so that requests are answered meanwhile.

Python runs one thread at a time. The event loop gives its turn away whenever it reads or writes, some ten times a
request. It gets the turn back when the other thread has had it for a while (`serve.py`), so beside a thread that never
rests, the loop gets less time than many requests take. These would wait until the work is done: with 2,500 clients,
for a third of a second after each merge.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

#: Seconds of work after which a thread rests. Requests wait for less than twice as long.
WORK_SECONDS = 0.005
#: How many times as long as it worked a thread rests.
REST = 3


class Pace:
    """Made by the thread that works, when it begins.

    It does not rest while `hurry` is set, which also ends a rest, or while `must_hurry` says so.
    """

    def __init__(self, hurry: threading.Event, must_hurry: Callable[[], bool]) -> None:
        self._hurry = hurry
        self._must_hurry = must_hurry
        self._rested = time.thread_time()

    def rest(self) -> None:
        """Rest if there was enough work since the last rest."""
        worked = time.thread_time() - self._rested
        if worked < WORK_SECONDS:
            return
        if not self._must_hurry():
            self._hurry.wait(worked * REST)
        self._rested = time.thread_time()
