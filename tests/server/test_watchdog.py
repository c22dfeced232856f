"""The event loop, really held, and what the log says of it."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable

import pytest

from apiserver.server.watchdog import Clock, watched
from tests.harness import wait_until

pytestmark = pytest.mark.anyio

#: Milliseconds.
SLOW = 20


class Holder:
    """Holds the loop, by a clock of its own: no busy machine makes a loop look held that is not, or the other way."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self._caplog = caplog
        self.checks = 0
        self.now = 0.0
        self._holds = threading.Event()
        self.sleeps = threading.Event()
        """As if the machine slept: much time goes by when it is waited for, and nobody works."""

    @property
    def records(self) -> list[logging.LogRecord]:
        """What the log says."""
        return self._caplog.records

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.now, lambda: 0.0, self._wait)

    def hold(self, seconds: float) -> None:
        """Hold up whoever calls until the log says one thing more."""
        records = self.records
        said = len(records)
        self._holds.set()
        while len(records) == said:
            time.sleep(0.001)
        self.now += seconds
        self._holds.clear()

    def _wait(self, event: threading.Event, seconds: float) -> bool:
        """Give up what is waited for when the loop is held, or the machine sleeps; between two checks, wait little."""
        if seconds < SLOW / 1000:
            self.checks += 1
            return event.wait(0.001)
        while not event.wait(0.001):
            if self.sleeps.is_set():
                self.now += 100
                return False
            if self._holds.is_set():
                return False
        return True


@pytest.fixture
def holder(caplog: pytest.LogCaptureFixture) -> Holder:
    return Holder(caplog)


async def until(condition: Callable[[], bool]) -> None:
    """Wait, with a free loop."""
    await asyncio.to_thread(wait_until, condition)


async def test_who_holds_the_loop_is_told_and_how_long_it_was(holder: Holder) -> None:
    told: list[float] = []
    with watched(SLOW, told.append, holder.clock):
        holder.hold(3)
        await until(lambda: bool(told))
    during, after = holder.records
    assert (during.levelno, during.getMessage()) == (logging.WARNING, "the event loop is held: nobody else is answered")
    innermost, caller = during.stack.split(" < ")[:2]  # type: ignore[attr-defined]
    assert innermost.endswith(" hold")
    assert caller.endswith(" test_who_holds_the_loop_is_told_and_how_long_it_was")
    assert after.getMessage() == "the event loop was held"
    assert (after.ms, told) == (3000, [3.0])  # type: ignore[attr-defined]


async def test_each_hold_is_told_once(holder: Holder) -> None:
    with watched(SLOW, clock=holder.clock):
        for count in (2, 4):
            holder.hold(1)
            await until(lambda: len(holder.records) == count)  # noqa: B023 - it is called at once
    assert [" is " in record.getMessage() for record in holder.records] == [True, False] * 2


async def test_a_loop_that_is_not_held_is_not_told_of(holder: Holder) -> None:
    with watched(SLOW, clock=holder.clock):
        await until(lambda: holder.checks > 10)
    await until(lambda: not watchdogs())
    with watched(0):
        assert not watchdogs()
    assert not holder.records


async def test_a_machine_that_sleeps_holds_nothing(holder: Holder) -> None:
    with watched(SLOW, clock=holder.clock):
        holder.sleeps.set()
        checks = holder.checks
        wait_until(lambda: holder.checks > checks + 10)  # the loop runs nothing meanwhile
        holder.sleeps.clear()
    assert holder.now >= 900
    assert not holder.records


async def test_the_watch_ends_with_its_block(holder: Holder) -> None:
    with watched(SLOW, clock=holder.clock):
        await until(lambda: holder.checks > 0)
        assert watchdogs()
    await until(lambda: not watchdogs())
    assert not holder.records


def watchdogs() -> list[threading.Thread]:
    """The threads that watch a loop."""
    return [thread for thread in threading.enumerate() if thread.name == "watchdog"]


def test_a_loop_that_is_closed_is_not_asked() -> None:
    async def begin() -> None:
        watching.__enter__()

    watching = watched(SLOW)
    asyncio.run(begin())
    wait_until(lambda: not watchdogs())
