"""The event loop, really held, and what the log says of it."""

from __future__ import annotations

import asyncio
import logging
import threading
import time

import pytest

from apiserver.watchdog import watched
from tests.harness import wait_until

pytestmark = pytest.mark.anyio


def hold(seconds: float) -> None:
    """Hold up whoever calls."""
    time.sleep(seconds)


async def until_said(caplog: pytest.LogCaptureFixture, words: str, times: int = 1) -> None:
    """Wait, with a free loop, until the log has these words so many times."""
    await asyncio.to_thread(wait_until, lambda: caplog.text.count(words) >= times)


async def test_who_holds_the_loop_is_told_and_how_long_it_was(caplog: pytest.LogCaptureFixture) -> None:
    with watched(20):
        hold(0.5)
        await until_said(caplog, "was held")
    during, after = caplog.records[:2]
    assert (during.levelno, during.getMessage()) == (logging.WARNING, "the event loop is held: nobody else is answered")
    innermost, caller = during.stack.split(" < ")[:2]  # type: ignore[attr-defined]
    assert innermost.endswith(" hold")
    assert caller.endswith(" test_who_holds_the_loop_is_told_and_how_long_it_was")
    assert 20 <= after.ms < 60_000  # type: ignore[attr-defined]


async def test_each_hold_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    with watched(20):
        for count in (1, 2):
            hold(0.5)
            await until_said(caplog, "was held", count)
    assert caplog.text.count("is held") == caplog.text.count("was held")


async def test_a_loop_that_is_not_held_is_not_told_of(caplog: pytest.LogCaptureFixture) -> None:
    with watched(20_000):
        await asyncio.sleep(0.05)
    with watched(0):
        hold(0.3)
        await asyncio.sleep(0.05)
    assert not caplog.records


async def test_the_watch_ends_with_its_block(caplog: pytest.LogCaptureFixture) -> None:
    with watched(20):
        await asyncio.sleep(0)
    hold(0.3)
    await asyncio.sleep(0.05)
    assert not caplog.records


def test_a_loop_that_is_closed_is_not_asked() -> None:
    async def begin() -> None:
        watching.__enter__()

    watching = watched(20)
    asyncio.run(begin())
    wait_until(lambda: all(thread.name != "watchdog" for thread in threading.enumerate()))
