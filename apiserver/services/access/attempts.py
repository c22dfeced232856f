"""Guesses of passwords and of access keys' secrets: how many may fail before one has to wait.

They are counted by name (or key) and address, so that who guesses locks out nobody elsewhere. At the same address, too,
whoever got in from there before goes on: with the right secret they never wait, while all guesses do. All this is a
server's own, and forgotten when it ends.
"""

from __future__ import annotations

import asyncio
import hmac
import math
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from apiserver.ip_addresses import neighbourhood
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
    """Counts attempts until they succeed.

    What succeeded is remembered apart from what failed, so that guesses, however many, push out nobody.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        #: By name and place, a digest of the secret that was right, made with a key that never leaves this memory.
        self._known: OrderedDict[tuple[str, str], bytes] = OrderedDict()
        self._failed: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()
        self._key = secrets.token_bytes(32)
        self._turn = asyncio.Semaphore(_AT_ONCE)
        self._waiting = 0

    def begin(self, name: str, address: str) -> None:
        """Count an attempt as one that failed; 429 when it has to wait."""
        limits = self._limits(name, neighbourhood(address))
        self._check(limits)
        for key, limit in limits.items():
            self._remember(key, self._count(key, limit) + 1)

    def let_in(self, name: str, address: str) -> None:
        """A secret that is cheap to compare is the right one: 429 when it may be guessed, which it is not where it was
        right before.
        """
        known = name, neighbourhood(address)
        if known not in self._known:
            self._check(self._limits(*known))
            self.succeeded(name, address)

    def succeeded(self, name: str, address: str, secret: str = "") -> None:
        """Forget what was counted for the name, and remember that its secret was the right one from there."""
        known = name, neighbourhood(address)
        self._failed.pop(known, None)
        self._known[known] = self._digest(secret)
        self._known.move_to_end(known)
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)

    def knows(self, name: str, address: str, secret: str) -> bool:
        """Whether the secret was the right one from there before; it may have been changed since."""
        known = self._known.get((name, neighbourhood(address)))
        return known is not None and hmac.compare_digest(known, self._digest(secret))

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

    def _limits(self, name: str, place: str) -> dict[Hashable, Limit]:
        limits: dict[Hashable, Limit] = {(name, place): OF_NAME}
        return limits if (name, place) in self._known else {**limits, place: OF_ADDRESS}

    def _check(self, limits: dict[Hashable, Limit]) -> None:
        for key, limit in limits.items():
            wait = (self._count(key, limit) - limit.burst + 1) * limit.seconds
            if wait > 0:
                raise overloaded("Too many attempts to log in have failed", retry_after=math.ceil(wait))

    def _digest(self, secret: str) -> bytes:
        return hmac.digest(self._key, secret.encode("utf-8", "surrogatepass"), "sha256")

    def _count(self, key: Hashable, limit: Limit) -> float:
        """How many failed attempts still count."""
        count, since = self._failed.get(key, (0.0, 0.0))
        return max(0.0, count - (self._clock() - since) / limit.seconds)

    def _remember(self, key: Hashable, count: float) -> None:
        self._failed.pop(key, None)
        self._failed[key] = (count, self._clock())
        if len(self._failed) > _REMEMBERED:
            self._failed.popitem(last=False)
