"""Whoever reads much waits for others."""

from __future__ import annotations

import asyncio

import pytest

from apiserver.http.reading_turns import READERS, ReadingTurns

pytestmark = pytest.mark.anyio

PIECE = 256 * 2**10


async def test_few_readers_never_wait() -> None:
    turns = ReadingTurns()
    for _ in range(20):
        assert not any(turns.enough(PIECE, lambda: None) for _ in range(READERS))
        await asyncio.sleep(0)


async def test_many_go_on_a_few_in_each_turn_in_order() -> None:
    turns = ReadingTurns()
    gone: list[int] = []
    waiting = [number for number in range(200) if turns.enough(PIECE, lambda number=number: gone.append(number))]  # type: ignore[misc]
    assert waiting == list(range(READERS, 200))
    lengths = []
    while len(gone) < len(waiting):
        await asyncio.sleep(0)
        lengths.append(len(gone))
    assert gone == waiting
    assert lengths[:3] == [READERS, 2 * READERS, 3 * READERS]
    await asyncio.sleep(0)
    assert not turns.enough(PIECE, lambda: None)


async def test_who_comes_later_waits_behind() -> None:
    turns = ReadingTurns()
    gone: list[str] = []
    for _ in range(100):
        turns.enough(PIECE, lambda: gone.append("first"))
    await asyncio.sleep(0)
    assert turns.enough(PIECE, lambda: gone.append("second"))
    for _ in range(100):
        await asyncio.sleep(0)
    assert gone == ["first"] * (100 - READERS) + ["second"]
