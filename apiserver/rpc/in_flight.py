"""How many bytes of request bodies may be under way at once: large bodies queue for room, so memory stays bounded."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import NamedTuple

from apiserver.rpc.errors import ApiError, overloaded


class _Waiting(NamedTuple):
    size: int
    admitted: asyncio.Future[None]


class InFlight:
    """Counts the bytes of all bodies under way, up to `limit`; one body alone always has room.

    Who waits for room has taken none, so waiting ends as soon as others are answered.
    """

    def __init__(self, limit: int, patience: float = 10) -> None:
        self._limit = limit
        self._patience = patience
        self._bytes = 0
        self._queue: deque[_Waiting] = deque()

    def take(self, size: int) -> None:
        """Count `size` bytes more, or raise 429 when there is no room for them."""
        if not self._fits(size):
            raise _no_room()
        self._bytes += size

    async def wait_for(self, size: int) -> None:
        """Count `size` bytes more as soon as there is room for them, first come first served; 429 after a while."""
        if not self._queue and self._fits(size):
            self._bytes += size
            return
        waiting = _Waiting(size, asyncio.get_running_loop().create_future())
        self._queue.append(waiting)
        try:
            async with asyncio.timeout(self._patience):
                await waiting.admitted
        except BaseException as error:
            if waiting in self._queue:
                self._queue.remove(waiting)
                self._admit()
            else:
                self.give(size)  # it was admitted in the same moment
            if isinstance(error, TimeoutError):
                raise _no_room() from None
            raise

    def give(self, size: int) -> None:
        """Count `size` bytes less."""
        self._bytes -= size
        self._admit()

    def _fits(self, size: int) -> bool:
        return not self._bytes or self._bytes + size <= self._limit

    def _admit(self) -> None:
        while self._queue and self._fits(self._queue[0].size):
            size, admitted = self._queue.popleft()
            self._bytes += size
            if not admitted.done():  # one that was just cancelled gives it back itself
                admitted.set_result(None)


def _no_room() -> ApiError:
    return overloaded("Too much is being sent to the server at once")
