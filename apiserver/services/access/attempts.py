"""Attempts to log in by password: how many may fail before one has to wait, and how many are checked at once.

Names are limited by address, so that who guesses locks out nobody but those at the same address (which all have behind
a proxy), and of these nobody who has logged in before. All this is a server's own, and forgotten when it ends.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from apiserver.rpc.errors import overloaded

_REMEMBERED = 10_000
#: Passwords being compared, each by a core of its own, and those that wait for it.
_AT_ONCE, _WAITING = 2, 16


@dataclass(frozen=True, slots=True)
class Limit:
    """How many attempts may fail at once, and the seconds until there is one more."""

    burst: int
    seconds: float


#: For one name from one address, and for all names from one address.
OF_NAME, OF_ADDRESS = Limit(10, 30.0), Limit(100, 3.0)


class Attempts:
    """Counts attempts until they succeed."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._failed: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()
        self._turn = asyncio.Semaphore(_AT_ONCE)
        self._waiting = 0

    def begin(self, name: str, address: str) -> None:
        """Count an attempt as one that failed; 429 when it has to wait."""
        limits: dict[Hashable, Limit] = {(name, address): OF_NAME}
        if (name, address) not in self._known:
            limits[address] = OF_ADDRESS
        for key, limit in limits.items():
            wait = (self._count(key, limit) - limit.burst + 1) * limit.seconds
            if wait > 0:
                raise overloaded("Too many attempts to log in have failed", retry_after=math.ceil(wait))
        for key, limit in limits.items():
            self._remember(key, self._count(key, limit) + 1)

    def succeeded(self, name: str, address: str) -> None:
        """Forget what was counted for the name, and count it no more for the address."""
        self._failed.pop((name, address), None)
        self._known[name, address] = None
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)

    async def check(self, compare: Callable[[], bool]) -> bool:
        """What `compare` says, in a thread, when it is its turn; 429 when too many wait already."""
        if self._waiting >= _WAITING:
            raise overloaded("Too many are logging in")
        self._waiting += 1
        try:
            async with self._turn:
                return await asyncio.to_thread(compare)
        finally:
            self._waiting -= 1

    def _count(self, key: Hashable, limit: Limit) -> float:
        """How many failed attempts still count."""
        count, since = self._failed.get(key, (0.0, 0.0))
        return max(0.0, count - (self._clock() - since) / limit.seconds)

    def _remember(self, key: Hashable, count: float) -> None:
        self._failed.pop(key, None)
        self._failed[key] = (count, self._clock())
        if len(self._failed) > _REMEMBERED:
            self._failed.popitem(last=False)
