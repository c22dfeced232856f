"""Room for bodies: the oldest first, one beyond the limit, given back whatever happens."""

from __future__ import annotations

import asyncio
import random

import pytest

from apiserver.common.errors import Refusal, Why
from apiserver.rpc.in_flight import InFlight, Share

pytestmark = pytest.mark.anyio


async def begun(in_flight: InFlight, share: Share, size: int) -> asyncio.Task[None]:
    task = asyncio.create_task(in_flight.hold(share, size))
    await asyncio.sleep(0)
    return task


async def full(limit: int, **options: float) -> tuple[InFlight, Share, Share]:
    """With a share that takes up the limit, and one of as much that is ahead."""
    in_flight = InFlight(limit, **options)
    first, ahead = in_flight.share(), in_flight.share()
    await in_flight.hold(first, limit)
    await in_flight.hold(ahead, limit)
    return in_flight, first, ahead


async def test_only_one_at_a_time_goes_beyond_the_limit() -> None:
    in_flight, first, ahead = await full(10)
    other = in_flight.share()
    waiting = await begun(in_flight, other, 1)
    await in_flight.hold(ahead, 100)
    assert not waiting.done()
    in_flight.release(ahead)
    await waiting  # it is ahead now
    third = await begun(in_flight, in_flight.share(), 1)
    assert not third.done()
    in_flight.release(first)
    await third


async def test_the_oldest_has_room_first() -> None:
    in_flight, _, ahead = await full(10)
    old, young = in_flight.share(), in_flight.share()
    small, large = await begun(in_flight, young, 1), await begun(in_flight, old, 9)
    in_flight.release(ahead)
    await large
    assert not small.done()
    in_flight.release(old)
    await small


async def test_patience_ends_with_429() -> None:
    in_flight, _, ahead = await full(10, patience=0.01)
    share = in_flight.share()
    with pytest.raises(Refusal) as raised:
        await in_flight.hold(share, 1)
    assert (raised.value.why, raised.value.retry_after, share.size) == (Why.OVERLOADED, 1, 0)
    in_flight.release(ahead)
    await in_flight.hold(share, 1)


async def test_what_is_given_back_lets_the_next_go_on() -> None:
    in_flight, first, ahead = await full(10)
    waiting = await begun(in_flight, in_flight.share(), 4)
    await in_flight.hold(ahead, 1)
    assert not waiting.done()
    await in_flight.hold(first, 5)
    await waiting


async def test_releasing_once_more_does_no_harm() -> None:
    in_flight, first, _ = await full(10)
    in_flight.release(first)
    in_flight.release(first)
    await in_flight.hold(in_flight.share(), 1)
    waiting = await begun(in_flight, in_flight.share(), 1)
    assert not waiting.done()
    in_flight.release(first)
    assert not waiting.done()
    waiting.cancel()


@pytest.mark.parametrize("cancelled_first", [True, False])
async def test_who_is_admitted_and_cancelled_at_once_takes_nothing(cancelled_first: bool) -> None:
    in_flight, first, ahead = await full(10)
    share = in_flight.share()
    waiting = await begun(in_flight, share, 10)
    if cancelled_first:
        waiting.cancel()
    in_flight.release(ahead)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    in_flight.release(share)
    in_flight.release(first)
    await in_flight.hold(in_flight.share(), 10)


async def test_many_that_hold_a_part_each_all_come_to_an_end() -> None:
    """Nobody stands still for ever, and what is held never exceeds the limit and one body."""
    limit, largest = 50, 20
    in_flight, order = InFlight(limit), random.Random(1)
    shares = [in_flight.share() for _ in range(40)]
    most = 0

    async def send(share: Share) -> None:
        nonlocal most
        for size in range(1, largest + 1):
            await in_flight.hold(share, size)
            most = max(most, sum(one.size for one in shares))
            for _ in range(order.randrange(3)):
                await asyncio.sleep(0)
        in_flight.release(share)

    await asyncio.gather(*map(send, shares))
    assert limit < most <= limit + largest
