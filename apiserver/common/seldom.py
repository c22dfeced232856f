"""What is told again only after a while, such as a line of the log about a client that repeats itself."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable


class Seldom:
    """Says of each thing once an hour that it may be told. It remembers the `most` things that were told last."""

    seconds = 3600.0

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, most: int = 10_000) -> None:
        self._clock = clock
        self._most = most
        self._told: dict[Hashable, float] = {}

    def due(self, thing: Hashable) -> bool:
        """Whether it was not told in the last hour. Then it counts as told now."""
        now = self._clock()
        if now - self._told.get(thing, -math.inf) < self.seconds:
            return False
        self._told.pop(thing, None)
        self._told[thing] = now
        if len(self._told) > self._most:
            del self._told[next(iter(self._told))]
        return True
