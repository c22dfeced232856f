"""Limits how many connections a process has, and decides which one is closed for a new one.

A new connection takes a slot. When none is free, or its address has as many as it may have, an idle connection is
closed for it:

- first one that never sent a request, then the one that has waited longest for its next request;
- none that has waited for less than a second: in a storm of connections, no client would have time to send a request;
- none of a proxy: it could be sending a call on that connection.

If there is no such connection, the new one is refused (503). So silent connections keep nobody out, and a client whose
idle connection was closed makes another.

Connections have no timers of their own, which would cost each request two. All are checked once a second.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict
from itertools import chain
from operator import itemgetter
from typing import Protocol

from apiserver.common.ip_addresses import neighbourhood
from apiserver.http.bounds import KEPT_BY_EACH, ConnectionBounds
from apiserver.http.handshakes import Handshakes
from apiserver.http.proxies import Proxies
from apiserver.http.reading_turns import ReadingTurns

log = logging.getLogger(__name__)

#: One address, unless it is a proxy's, gets at most this part of all slots, so that some are left for others.
_OF_ONE_ADDRESS = 3 / 4
#: Refused connections that may stay open for a moment, as a part of all slots. Further ones are closed at once.
LINGERING = 1 / 8
#: Seconds between log lines that say that all slots are taken.
_LOG_INTERVAL = 60.0

#: Whether a connection had a request before, and since when (the loop's time) it waits for the next one.
Idle = tuple[bool, float]


class Connection(Protocol):
    """A connection as `Slots` sees it."""

    def look(self, now: float, passed: float) -> None:
        """Close the connection if its client is late; `passed`: seconds since the last look."""

    def idle_since(self) -> Idle | None:
        """Since when the connection is idle; None while a request is under way."""

    def give_way(self) -> None:
        """Close the connection: another one gets its slot."""


class Slots:
    """`total` slots; each address that is not a proxy's gets at most `per_address` of them."""

    def __init__(
        self,
        *,
        total: int = 10_000,
        per_address: int = 10_000,
        proxies: Proxies | None = None,
        bounds: ConnectionBounds | None = None,
    ) -> None:
        self.bounds = bounds or ConnectionBounds()
        self.proxies = proxies or Proxies()
        self.turns = ReadingTurns()
        self.handshakes = Handshakes()
        self._total = total
        self._per_address = max(min(per_address, int(total * _OF_ONE_ADDRESS)), 1)
        self._taken: dict[Connection, str] = {}
        self._counts: Counter[str] = Counter()
        self._lingering: set[Connection] = set()
        self._idle: defaultdict[str | None, list[tuple[Idle, Connection]]] | None = None  # as found since the last look
        self._kept = 0
        self._looked = self._logged = float("-inf")
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._taken)

    def enter(self, connection: Connection, address: str) -> bool:
        """Take a slot, if one is free or another connection can be closed; returns whether that worked."""
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
        """Free the slot of a refused connection; returns whether it may stay open until its client has the answer."""
        self._free(connection)
        if len(self._lingering) >= max(self._total * LINGERING, 1):
            return False
        self._lingering.add(connection)
        return True

    def leave(self, connection: Connection) -> None:
        """Free what a connection that has ended held."""
        self._free(connection)
        self._lingering.discard(connection)

    def keep(self, before: int, now: int) -> bool:
        """Count `now` bytes, no longer `before`, that a connection holds back; False if there is no room for them."""
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
        """Close an idle connection of `owner`, or of anybody; False if there is none."""
        if self._idle is None:
            self._idle = self._find_idle()
        queue = self._idle[owner]
        while queue:
            since, connection = queue.pop()
            if connection in self._taken and connection.idle_since() == since:
                self._free(connection)
                connection.give_way()
                return True
        now = asyncio.get_running_loop().time()
        if now - self._logged > _LOG_INTERVAL:
            self._logged = now
            whose = {"address": owner} if owner else {}
            log.warning("all connections are taken; more are refused", extra={"connections": len(self), **whose})
        return False

    def _find_idle(self) -> defaultdict[str | None, list[tuple[Idle, Connection]]]:
        """Connections that may be closed for others, by owner, and all of them under None; the next one is last."""
        latest = asyncio.get_running_loop().time() - self.bounds.grace_seconds
        idle = [(connection.idle_since(), connection, owner) for connection, owner in self._taken.items() if owner]
        found = [(since, connection, owner) for since, connection, owner in idle if since and since[1] <= latest]
        queues: defaultdict[str | None, list[tuple[Idle, Connection]]] = defaultdict(list)
        for since, connection, owner in sorted(found, key=itemgetter(0), reverse=True):
            queues[owner].append((since, connection))
            queues[None].append((since, connection))
        return queues

    def _watch(self) -> None:
        """Check all connections a second from now, unless that is planned already."""
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._looked = loop.time()
            self._timer = loop.call_later(self.bounds.look_seconds, self._look)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        # If other work held the event loop, clients are not to blame for that time.
        passed = min(now - self._looked, 2 * self.bounds.look_seconds)
        self._looked, self._timer, self._idle = now, None, None
        for connection in list(chain(self._taken, self._lingering)):
            connection.look(now, passed)
        if self._taken or self._lingering:
            self._watch()
