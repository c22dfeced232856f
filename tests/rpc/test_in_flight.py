"""Room for bodies: first come first served, given back whatever happens."""

from __future__ import annotations

import asyncio

import pytest

from apiserver.rpc.errors import ApiError
from apiserver.rpc.in_flight import InFlight

pytestmark = pytest.mark.anyio


async def begun(in_flight: InFlight, size: int) -> asyncio.Task[None]:
    task = asyncio.create_task(in_flight.wait_for(size))
    await asyncio.sleep(0)
    return task


async def test_whoever_came_first_has_room_first() -> None:
    in_flight = InFlight(10)
    in_flight.take(8)
    large, small = await begun(in_flight, 9), await begun(in_flight, 1)
    assert not small.done()  # it would fit, but large ones shall not wait for ever
    in_flight.give(8)
    await asyncio.gather(large, small)
    with pytest.raises(ApiError):
        in_flight.take(1)


async def test_one_alone_always_has_room() -> None:
    in_flight = InFlight(10)
    await in_flight.wait_for(20)
    waiting = await begun(in_flight, 20)
    assert not waiting.done()
    in_flight.give(20)
    await waiting


async def test_patience_ends_with_429() -> None:
    in_flight = InFlight(10, patience=0.01)
    in_flight.take(10)
    with pytest.raises(ApiError) as raised:
        await in_flight.wait_for(1)
    assert (raised.value.code, raised.value.retry_after) == (429, 1)
    in_flight.give(10)
    in_flight.take(10)


async def test_who_leaves_the_queue_lets_the_next_go_on() -> None:
    in_flight = InFlight(10)
    in_flight.take(5)
    large, small = await begun(in_flight, 9), await begun(in_flight, 5)
    large.cancel()
    await small
    with pytest.raises(asyncio.CancelledError):
        await large


async def test_who_is_admitted_and_cancelled_at_once_takes_nothing() -> None:
    in_flight = InFlight(10)
    in_flight.take(10)
    waiting = await begun(in_flight, 10)
    in_flight.give(10)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    in_flight.take(10)


async def test_who_is_cancelled_and_admitted_at_once_takes_nothing() -> None:
    in_flight = InFlight(10)
    in_flight.take(10)
    waiting = await begun(in_flight, 10)
    waiting.cancel()
    in_flight.give(10)
    with pytest.raises(asyncio.CancelledError):
        await waiting
    in_flight.take(10)
