"""Limits on failed logins, against guessing passwords and the secrets of access keys.

Failures are counted by name (or key) and address, so a guesser locks out nobody at other addresses. At the guesser's
own address, a user who logged in from there before never waits with the right secret. The counts are in this process's
memory only.
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

from apiserver.common.errors import overloaded
from apiserver.common.ip_addresses import neighbourhood

#: How many passwords are compared at once, each on one core, and how many comparisons may wait.
_AT_ONCE, _WAITING = 2, 16


@dataclass(frozen=True, slots=True)
class Limit:
    """`burst` attempts may fail; after that, one more every `seconds`."""

    burst: int
    seconds: float


#: The limits for one name from one address, and for all names from one address.
OF_NAME, OF_ADDRESS = Limit(10, 30.0), Limit(100, 3.0)


class Attempts:
    """Counts failed logins, and remembers successful ones.

    Of each, `remembered` are in memory. They are bounded separately, so that many guesses cannot push out the memory of
    a success.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, remembered: int = 10_000) -> None:
        self._clock = clock
        self._remembered = remembered
        #: By name and place: a digest of the right secret. Its key is random and never leaves this process.
        self._known: OrderedDict[tuple[str, str], bytes] = OrderedDict()
        self._failed: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()
        self._key = secrets.token_bytes(32)
        self._turn = asyncio.Semaphore(_AT_ONCE)
        self._waiting = 0

    def begin(self, name: str, address: str, *, remembered_as: str | None = None) -> None:
        """Count a failed attempt before it is checked (`succeeded` takes it back).

        `remembered_as` is the name under which successes are remembered, if that is another one. Raises
        Refusal(OVERLOADED) if the attempt must wait.
        """
        limits = self._limits(name, neighbourhood(address), remembered_as)
        self._check(limits)
        for key, limit in limits.items():
            self._remember(key, self._count(key, limit) + 1)

    def take_back(self, name: str, address: str, *, remembered_as: str | None = None) -> None:
        """Take back an attempt that `begin` counted, because it did not fail."""
        for key, limit in self._limits(name, neighbourhood(address), remembered_as).items():
            if (others := self._count(key, limit) - 1) > 0:
                self._remember(key, others)
            else:
                self._failed.pop(key, None)

    def let_in(self, name: str, address: str) -> None:
        """Note a right secret that was compared before the limits were checked.

        Raises Refusal(OVERLOADED) if too many attempts failed, because it may have been guessed; never where it was
        right before.
        """
        known = name, neighbourhood(address)
        if known not in self._known:
            self._check(self._limits(*known))
            self.succeeded(name, address)

    def succeeded(self, name: str, address: str, secret: str = "") -> None:
        """Forget the failures of the name at this address, and remember that the secret was right there."""
        known = name, neighbourhood(address)
        self._failed.pop(known, None)
        self._known[known] = self._digest(secret)
        self._known.move_to_end(known)
        if len(self._known) > self._remembered:
            self._known.popitem(last=False)

    def knows(self, name: str, address: str, secret: str) -> bool:
        """Whether the secret was right at this address before. It may have been changed since."""
        known = self._known.get((name, neighbourhood(address)))
        return known is not None and hmac.compare_digest(known, self._digest(secret))

    async def check(self, compare: Callable[[], bool]) -> bool:
        """Wait for a turn, then run `compare` in a thread. Raises Refusal(OVERLOADED) if too many are waiting."""
        if self._waiting >= _WAITING:
            raise overloaded("Too many logins at once")
        self._waiting += 1
        try:
            async with self._turn:
                return await asyncio.to_thread(compare)
        finally:
            self._waiting -= 1

    def _limits(self, name: str, place: str, known: str | None = None) -> dict[Hashable, Limit]:
        limits: dict[Hashable, Limit] = {(name, place): OF_NAME}
        return limits if (known or name, place) in self._known else {**limits, place: OF_ADDRESS}

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
        if len(self._failed) > self._remembered:
            self._failed.popitem(last=False)
