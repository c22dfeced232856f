"""Limits how much of TLS handshakes is done in one turn of the event loop, so that others wait little.

A step of a handshake takes about a millisecond. Without this, a thousand clients that come at once would hold the event
loop for a second. Addresses take turns, so that many clients of one address do not keep another one waiting. Of one
address, the last that came is the first: if many wait, the first ones have waited long, and may have left.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

#: Seconds of handshakes in one turn: as many as all other work took since the turn before, between these bounds. So
#: handshakes and other work share the time if there is much of both. At least one step is done.
_LEAST, _MOST = 0.002, 0.02


class Handshakes:
    """Steps of handshakes that wait for their turn, by who their clients are. `now` is a clock, in seconds."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._waiting: dict[str, list[Callable[[], None]]] = {}
        self._planned = False
        self._ended = 0.0  # when the turn before ended

    def wait(self, client: str, step: Callable[[], None]) -> None:
        """Have `step` called when its turn comes."""
        self._waiting.setdefault(client, []).append(step)
        self._plan()

    def _plan(self) -> None:
        if self._waiting and not self._planned:
            self._planned = True
            asyncio.get_running_loop().call_soon(self._take_turn)

    def _take_turn(self) -> None:
        now = self._now()
        until = now + min(max(now - self._ended, _LEAST), _MOST)
        self._planned = False
        try:
            while self._waiting:
                self._take_step()
                if self._now() >= until:
                    break
        finally:
            self._ended = self._now()
            self._plan()

    def _take_step(self) -> None:
        client = next(iter(self._waiting))
        steps = self._waiting.pop(client)
        step = steps.pop()
        if steps:
            self._waiting[client] = steps  # behind all others
        step()
