"""Handshakes take turns, and leave turns to others."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from apiserver.http.handshakes import Handshakes

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
    """What all others did since the turn before bounds it, from 2 to 20 ms; a step takes 6 ms here."""
    now = 0.0
    handshakes, seen = Handshakes(lambda: now), list[int]()
    steps = 0

    def step() -> None:
        nonlocal steps, now
        steps += 1
        now += 0.006

    for _ in range(13):
        handshakes.wait("a", step)
    for others in (1.0, 0.01, 0.0, 0.1):
        now += others
        await asyncio.sleep(0)
        seen.append(steps)
    assert seen == [4, 6, 7, 11]


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
