"""Handshakes take turns, and leave turns to others."""

from __future__ import annotations

import asyncio
import time
from functools import partial

import pytest

from apiserver.connections.handshakes import Handshakes

pytestmark = pytest.mark.anyio


async def test_clients_take_turns() -> None:
    steps: list[str] = []
    handshakes, done = Handshakes(), asyncio.Event()

    def take(step: str) -> None:
        steps.append(step)
        if len(steps) == 5:
            done.set()

    for client, step in (("many", "1"), ("many", "2"), ("one", "3"), ("many", "4"), ("other", "5")):
        handshakes.wait(client, partial(take, step))
    assert not steps
    await done.wait()
    assert steps == ["4", "3", "5", "2", "1"]


async def test_a_turn_is_short_and_others_come_between() -> None:
    handshakes, seen = Handshakes(), list[int]()
    steps = 0

    def step() -> None:
        nonlocal steps
        steps += 1
        time.sleep(0.025)

    for _ in range(5):
        handshakes.wait("a", step)
    while steps < 5:
        await asyncio.sleep(0)
        seen.append(steps)
    assert set(seen) == {1, 2, 3, 4, 5}


async def test_what_goes_wrong_stops_nobody_else() -> None:
    def wrong_step() -> None:
        raise ValueError

    handshakes = Handshakes()
    wrong: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, what: wrong.append(what["exception"]))
    done = asyncio.Event()
    handshakes.wait("a", done.set)
    handshakes.wait("a", wrong_step)
    await done.wait()
    assert isinstance(wrong[0], ValueError)


async def test_a_step_may_ask_for_another() -> None:
    handshakes, done = Handshakes(), asyncio.Event()
    handshakes.wait("a", lambda: handshakes.wait("a", done.set))
    await done.wait()
