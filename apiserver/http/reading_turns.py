"""Limits how much is read of all request bodies in one turn of the event loop, so that small requests wait little.

Without this, a thousand fast clients would fill a turn with a thousand reads of 256 KB each. New connections would
wait, too: only a few are accepted in a turn (`serve.py`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

#: Connections that read on in one turn, and the bytes that they read together: the event loop reads 256 KB at once.
READERS = 4
_BYTES = READERS * 256 * 2**10


class ReadingTurns:
    """Counts the bytes that are read in a turn. Once they are enough, further connections wait for a later turn."""

    def __init__(self) -> None:
        self._read = 0
        self._waiting: deque[Callable[[], None]] = deque()
        self._counting = False

    def enough(self, size: int, go_on: Callable[[], None]) -> bool:
        """Whether a connection that has read `size` bytes has to wait; if so, `go_on` is called when its turn comes."""
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
