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

from apiserver.stores.events.embedded.bounds import BOUNDS, EmbeddedBounds


class Pace:
    """Made by the thread that works, when it begins.

    `due` says how much of the next work has come: 0 nothing, 1 all that it takes to begin. The more there is, the
    shorter are the rests. So the thread is ready in time, and yet requests never wait for all of its work at once. For
    example, it rests three times as long as it worked at 0, one and a half times at 0.5, and not at all from 1 on. It
    does not rest while `hurry` is set, which also ends a rest. `clock` tells how long the thread has worked.
    """

    def __init__(
        self,
        hurry: threading.Event,
        due: Callable[[], float],
        bounds: EmbeddedBounds = BOUNDS,
        clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self._hurry = hurry
        self._due = due
        self._bounds = bounds
        self._clock = clock
        self._rested = clock()

    def rest(self) -> None:
        """Rest if there was enough work since the last rest."""
        worked = self._clock() - self._rested
        if worked < self._bounds.work_seconds:
            return
        if (due := self._due()) < 1:
            self._hurry.wait(worked * self._bounds.rest * (1 - due))
        self._rested = self._clock()
