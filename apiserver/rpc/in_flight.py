"""How many bytes of request bodies may be under way at once: they queue for room, so memory stays bounded.

A body holds room for what has come of it, not for what it says is to come: who sends slowly keeps nobody out. So
bodies that hold a part each may all wait for more. That is no standstill, because there is always one that may go on:
the one that went beyond the limit. While it is exceeded, all others wait; then the oldest is next. Who waits too long
is told to come back (429), and gives up what it holds.
"""

from __future__ import annotations

import asyncio
import itertools
from bisect import insort
from dataclasses import dataclass
from typing import NamedTuple

from apiserver.rpc.errors import overloaded


@dataclass(slots=True, eq=False)
class Share:
    """What one body holds of the room, in bytes. Older ones have lower numbers."""

    number: int
    size: int = 0


class _Waiting(NamedTuple):
    share: Share
    size: int
    admitted: asyncio.Future[None]


class InFlight:
    """Counts the bytes of all bodies under way, up to `limit` and one body more."""

    def __init__(self, limit: int, patience: float = 10) -> None:
        self._limit = limit
        self._patience = patience
        self._bytes = 0
        self._numbers = itertools.count()
        self._queue: list[_Waiting] = []
        self._ahead: Share | None = None
        """Who went beyond the limit, while it is exceeded."""

    def share(self) -> Share:
        """Of a body that is no small one: nothing yet. Whoever asks for one has to `release` it, whatever happens."""
        return Share(next(self._numbers))

    async def hold(self, share: Share, size: int) -> None:
        """Make it `size` bytes, as soon as there is room for them; 429 after a while."""
        nobody_waits = self._ahead is None and not self._queue
        if nobody_waits or size <= share.size or share is self._ahead:
            self._resize(share, size)
            self._admit()
            return
        waiting = _Waiting(share, size, asyncio.get_running_loop().create_future())
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
        """Make it nothing; once more does no harm."""
        self._resize(share, 0)
        self._admit()

    def _admit(self) -> None:
        while self._queue and self._ahead is None:
            share, size, admitted = self._queue.pop(0)
            self._resize(share, size)
            if not admitted.done():  # one that was just cancelled is released soon
                admitted.set_result(None)

    def _resize(self, share: Share, size: int) -> None:
        self._bytes += size - share.size
        share.size = size
        if self._bytes <= self._limit:
            self._ahead = None
        elif self._ahead is None:
            self._ahead = share
