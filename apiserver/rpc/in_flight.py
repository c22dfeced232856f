"""Limits the bytes of all request bodies together: bodies wait in a queue for room, so memory stays bounded.

A body holds room for the bytes that have come, not for those that it announces, so a slow client keeps nobody out. Then
many bodies could each hold a part and wait for more for ever. To prevent that, one body may exceed the limit. While it
does, all others wait; once there is room again, the oldest goes first. A body that waits for too long gets 429 and
gives up its room.

For example, with a limit of 64 MB:

    A and B hold 30 MB each. A needs 40: 70 MB in all, so A is ahead, and goes on as far as it needs.
    B needs 35: it waits.
    A is answered and released: 30 MB in all. B gets its 35 MB.
"""

from __future__ import annotations

import asyncio
import itertools
from bisect import insort
from dataclasses import dataclass
from typing import NamedTuple

from apiserver.common.errors import overloaded


@dataclass(slots=True, eq=False)
class Share:
    """The bytes of room that one body holds. Older bodies have lower numbers."""

    number: int
    size: int = 0


class _WaitingBody(NamedTuple):
    share: Share
    size: int
    admitted: asyncio.Future[None]


class InFlight:
    """Counts the bytes of all bodies, up to `limit` and one body more; a body waits up to `patience` seconds."""

    def __init__(self, limit: int, patience: float = 10) -> None:
        self._limit = limit
        self._patience = patience
        self._bytes = 0
        self._numbers = itertools.count()
        self._queue: list[_WaitingBody] = []
        self._ahead: Share | None = None
        """The body that exceeded the limit, while the limit is exceeded."""

    def share(self) -> Share:
        """A share of 0 bytes for a new body. The caller has to `release` it, whatever happens."""
        return Share(next(self._numbers))

    async def hold(self, share: Share, size: int) -> None:
        """Make the share `size` bytes as soon as there is room for them; 429 if that takes too long."""
        nobody_waits = self._ahead is None and not self._queue
        if nobody_waits or size <= share.size or share is self._ahead:
            self._resize(share, size)
            self._admit()
            return
        waiting = _WaitingBody(share, size, asyncio.get_running_loop().create_future())
        insort(self._queue, waiting, key=lambda one: one.share.number)
        self._admit()
        try:
            async with asyncio.timeout(self._patience):
                await waiting.admitted
        except TimeoutError:
            raise overloaded("Too much is being sent to the server at once") from None
        finally:
            if waiting in self._queue:
                self._queue.remove(waiting)

    def release(self, share: Share) -> None:
        """Make the share 0 bytes; a second call does nothing."""
        self._resize(share, 0)
        self._admit()

    def _admit(self) -> None:
        while self._queue and self._ahead is None:
            share, size, admitted = self._queue.pop(0)
            self._resize(share, size)
            if not admitted.done():  # a body that was just cancelled is released soon
                admitted.set_result(None)

    def _resize(self, share: Share, size: int) -> None:
        self._bytes += size - share.size
        share.size = size
        if self._bytes <= self._limit:
            self._ahead = None
        elif self._ahead is None:
            self._ahead = share
