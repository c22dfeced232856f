"""A clock of the event loop that a test moves, so that no busy machine makes a timer end too soon or too late."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

#: Turns of the loop in which others begin to wait, and in which what a timer has set going goes on.
_TURNS = 10


class StillClock:
    """The time of the running loop. It stands still until `passes` is called, and so do timers and deadlines."""

    def __init__(self) -> None:
        self.now = asyncio.get_running_loop().time()

    def time(self) -> float:
        return self.now

    async def passes(self, seconds: float) -> None:
        """Let so much time go by at once, for all that others wait for now; what is due is done when this returns."""
        await turns(_TURNS)
        self.now += seconds
        await turns(_TURNS)


async def turns(count: int) -> None:
    """Let all others go on until they wait for more than so many turns of the loop, however busy the machine is."""
    for _ in range(count):
        await asyncio.sleep(0)


@contextmanager
def still_clock() -> Iterator[StillClock]:
    """The clock of the running loop, inside the block."""
    clock = StillClock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio.get_running_loop(), "time", clock.time)
        yield clock
