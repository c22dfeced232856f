"""A bound of what is read of all bodies in one turn of the event loop. Who sends little waits for one such turn.

Without the bound, a thousand connections that send as fast as they can would fill a turn with a thousand reads of
256 KB each. New connections are taken a few a turn (`serve.py`), so a long turn would keep them waiting, too.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

#: Readers that go on in one turn, and the bytes that they read, each at most what the event loop reads at once.
READERS = 4
_BYTES = READERS * 256 * 2**10


class Turns:
    """Counts what is read in a turn, and has those go on later who come when it is enough."""

    def __init__(self) -> None:
        self._read = 0
        self._waiting: deque[Callable[[], None]] = deque()
        self._counting = False

    def enough(self, size: int, go_on: Callable[[], None]) -> bool:
        """Whether a connection that has read `size` bytes has to wait; then `go_on` is called when it is its turn."""
        self._read += size
        if not self._counting:
            self._counting = True
            asyncio.get_running_loop().call_soon(self._next)
        if self._read <= _BYTES and not self._waiting:
            return False
        self._waiting.append(go_on)
        return True

    def _next(self) -> None:
        self._read = 0
        for _ in range(min(READERS, len(self._waiting))):
            self._waiting.popleft()()
        self._counting = bool(self._waiting)
        if self._counting:
            asyncio.get_running_loop().call_soon(self._next)
