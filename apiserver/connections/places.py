"""The connections of a process: how many there may be, and who is ended when.

A new connection takes a place. When all are taken, or all that its address may have, it gets the place of the one that
has waited longest for its client to send a request: those first that never sent one. Else it is refused (503). One that
has waited for less than a second keeps its place: in a storm of connections, nobody would have time to send a request.
So silent connections keep nobody out, and who loses one that was idle makes another. Proxies lose none: they would send
a call on one that is being closed.

No connection has timers of its own, which would cost each request two: all are looked at once a second.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict
from itertools import chain
from operator import itemgetter
from typing import Protocol

from apiserver.connections.bounds import KEPT_BY_EACH, Bounds
from apiserver.connections.proxies import Proxies
from apiserver.connections.turns import Turns
from apiserver.ip_addresses import neighbourhood

log = logging.getLogger(__name__)

#: Of its places, a process gives one address no more than these parts: others find some then.
_OF_ONE_ADDRESS = 3 / 4
#: Refused connections that may still be sending, as a part of all places; those beyond are closed at once.
LINGERING = 1 / 8
#: Seconds between lines in the log that say so.
_SAID = 60.0

#: Whether a connection had a request before, and since when (loop's time) it waits for the next.
Idle = tuple[bool, float]


class Connection(Protocol):
    """What a place is for."""

    def look(self, now: float, passed: float) -> None:
        """End it if its client is late; `passed`: seconds since the last look."""

    def idle_since(self) -> Idle | None:
        """None while a request is under way."""

    def give_way(self) -> None:
        """End it: another gets its place."""


class Places:
    """`total` places, of which an address that is no proxy's may have `per_address`."""

    def __init__(
        self,
        *,
        total: int = 10_000,
        per_address: int = 10_000,
        proxies: Proxies | None = None,
        bounds: Bounds | None = None,
    ) -> None:
        self.bounds = bounds or Bounds()
        self.proxies = proxies or Proxies()
        self.turns = Turns()
        self._total = total
        self._per_address = max(min(per_address, int(total * _OF_ONE_ADDRESS)), 1)
        self._taken: dict[Connection, str] = {}
        self._counts: Counter[str] = Counter()
        self._lingering: set[Connection] = set()
        self._idle: defaultdict[str | None, list[tuple[Idle, Connection]]] | None = None  # of the time since a look
        self._kept = 0
        self._looked = self._said = float("-inf")
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._taken)

    def enter(self, connection: Connection, address: str) -> bool:
        """Take a place, if there is one or another connection gives way."""
        self._watch()
        owner = "" if self.proxies.trusts(address) else neighbourhood(address)
        if owner and self._counts[owner] >= self._per_address and not self._make_room(owner):
            return False
        if len(self._taken) >= self._total and not self._make_room(None):
            return False
        self._taken[connection] = owner
        self._counts[owner] += 1
        return True

    def linger(self, connection: Connection) -> bool:
        """Whether a refused connection may wait until its client has read the answer. It needs no place any more."""
        self._free(connection)
        if len(self._lingering) >= max(self._total * LINGERING, 1):
            return False
        self._lingering.add(connection)
        return True

    def leave(self, connection: Connection) -> None:
        """It has ended."""
        self._free(connection)
        self._lingering.discard(connection)

    def keep(self, before: int, now: int) -> bool:
        """Whether there is room when a connection keeps `now` bytes that came too early, in place of `before`."""
        more = max(now - KEPT_BY_EACH, 0) - max(before - KEPT_BY_EACH, 0)
        if more > 0 and self._kept + more > self.bounds.kept_bytes:
            return False
        self._kept += more
        return True

    def _free(self, connection: Connection) -> None:
        owner = self._taken.pop(connection, None)
        if owner is not None:
            self._counts[owner] -= 1
            if not self._counts[owner]:
                del self._counts[owner]

    def _make_room(self, owner: str | None) -> bool:
        """End the connection that waits for its client most: of an owner, or of all but proxies."""
        if self._idle is None:
            self._idle = self._find_idle()
        queue = self._idle[owner]
        while queue:
            since, connection = queue.pop()
            if connection in self._taken and connection.idle_since() == since:
                self._free(connection)
                connection.give_way()
                return True
        self._say_full(owner)
        return False

    def _find_idle(self) -> defaultdict[str | None, list[tuple[Idle, Connection]]]:
        """By owner, and for None of all, those that may have to give way; who is first is last."""
        latest = asyncio.get_running_loop().time() - self.bounds.grace_seconds
        idle = [(connection.idle_since(), connection, owner) for connection, owner in self._taken.items() if owner]
        found = [(since, connection, owner) for since, connection, owner in idle if since and since[1] <= latest]
        queues: defaultdict[str | None, list[tuple[Idle, Connection]]] = defaultdict(list)
        for since, connection, owner in sorted(found, key=itemgetter(0), reverse=True):
            queues[owner].append((since, connection))
            queues[None].append((since, connection))
        return queues

    def _say_full(self, owner: str | None) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._said > _SAID:
            self._said = now
            whose = {"address": owner} if owner else {}
            log.warning("all connections are taken; more are refused", extra={"connections": len(self), **whose})

    def _watch(self) -> None:
        """Look at all connections every second, for as long as there are any."""
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._looked = loop.time()
            self._timer = loop.call_later(self.bounds.look_seconds, self._look)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        # When other work held the event loop, it was not the clients who were late.
        passed = min(now - self._looked, 2 * self.bounds.look_seconds)
        self._looked, self._timer, self._idle = now, None, None
        for connection in list(chain(self._taken, self._lingering)):
            connection.look(now, passed)
        if self._taken or self._lingering:
            self._watch()
