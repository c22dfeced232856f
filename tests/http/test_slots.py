"""Which connections get a slot, and which are closed for others."""

from __future__ import annotations

import asyncio
from ipaddress import ip_network

import pytest

from apiserver.http.bounds import ConnectionBounds
from apiserver.http.proxies import Proxies
from apiserver.http.slots import Idle, Slots
from tests.harness import PATIENCE

pytestmark = pytest.mark.anyio

BOUNDS = ConnectionBounds(look_seconds=0.01, grace_seconds=0)


class One:
    """A connection that is as idle as it says."""

    def __init__(self, idle: Idle | None) -> None:
        self.idle = idle
        self.gave_way = False
        self.looks = 0

    def look(self, now: float, passed: float) -> None:
        self.looks += 1

    def idle_since(self) -> Idle | None:
        return self.idle

    def give_way(self) -> None:
        self.gave_way = True


async def test_a_place_for_each_until_there_are_no_more() -> None:
    slots = Slots(total=4, bounds=BOUNDS)
    ones = [One(None) for _ in range(5)]
    assert [slots.enter(one, str(number)) for number, one in enumerate(ones)] == [True] * 4 + [False]
    slots.leave(ones[0])
    assert slots.enter(ones[4], "x")
    assert len(slots) == 4


async def test_an_address_has_no_more_than_its_part() -> None:
    slots = Slots(total=8, per_address=2, bounds=BOUNDS)
    assert [slots.enter(One(None), "192.0.2.1") for _ in range(3)] == [True, True, False]
    assert slots.enter(One(None), "192.0.2.2")
    slots = Slots(total=8, bounds=BOUNDS)
    assert [slots.enter(One(None), "192.0.2.1") for _ in range(8)] == [True] * 6 + [False] * 2


async def test_proxies_share_no_bound_of_an_address_and_do_not_give_way() -> None:
    slots = Slots(total=4, per_address=1, proxies=Proxies([ip_network("10.0.0.1")]), bounds=BOUNDS)
    idle = [One((True, -5.0)) for _ in range(4)]
    assert all(slots.enter(one, "10.0.0.1") for one in idle)
    assert not slots.enter(One(None), "192.0.2.1")
    assert not any(one.gave_way for one in idle)


async def test_who_has_waited_longest_gives_way_and_first_who_never_asked() -> None:
    slots = Slots(total=4, bounds=BOUNDS)
    busy, asked, young, old = One(None), One((True, -50.0)), One((False, -1.0)), One((False, -9.0))
    for number, one in enumerate((busy, asked, young, old)):
        assert slots.enter(one, str(number))
    given = []
    for number in range(4):
        assert slots.enter(One(None), f"new {number}") is (number < 3)
        given.append([one for one in (busy, asked, young, old) if one.gave_way])
    assert given == [[old], [young, old], [asked, young, old], [asked, young, old]]


async def test_of_an_address_its_own_give_way() -> None:
    slots = Slots(total=8, per_address=2, bounds=BOUNDS)
    mine, other = One((False, -1.0)), One((False, -9.0))
    assert slots.enter(other, "192.0.2.2")
    assert slots.enter(mine, "192.0.2.1")
    assert slots.enter(One(None), "192.0.2.1")
    assert slots.enter(One(None), "192.0.2.1")
    assert mine.gave_way
    assert not other.gave_way


async def test_who_sends_a_request_meanwhile_keeps_the_place() -> None:
    slots = Slots(total=2, per_address=2, bounds=ConnectionBounds(look_seconds=60, grace_seconds=0))
    first, second = One((False, -9.0)), One((False, -1.0))
    assert slots.enter(first, "1")
    assert slots.enter(second, "2")
    assert slots.enter(One(None), "3")  # from now on it is known who is idle
    second.idle = None
    assert not slots.enter(One(None), "4")
    assert not second.gave_way


async def test_a_new_one_has_time_to_send_a_request() -> None:
    slots = Slots(total=1, bounds=ConnectionBounds(look_seconds=0.01, grace_seconds=3600))
    young = One((False, asyncio.get_running_loop().time()))
    assert slots.enter(young, "1")
    assert not slots.enter(One(None), "2")
    assert not young.gave_way


async def test_few_of_the_refused_are_waited_for() -> None:
    slots = Slots(total=16, bounds=BOUNDS)
    refused = [One(None) for _ in range(3)]
    assert [slots.linger(one) for one in refused] == [True, True, False]
    slots.leave(refused[0])
    assert slots.linger(refused[2])


async def test_all_are_looked_at_for_as_long_as_there_are_any() -> None:
    slots = Slots(total=8, bounds=BOUNDS)
    entered, lingering = One(None), One(None)
    slots.enter(entered, "1")
    slots.linger(lingering)
    async with asyncio.timeout(PATIENCE):
        while min(entered.looks, lingering.looks) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    slots.leave(entered)
    slots.leave(lingering)
    assert len(slots) == 0


async def test_what_came_too_early_is_bounded_together() -> None:
    slots = Slots(bounds=ConnectionBounds(kept_bytes=100_000))
    assert slots.keep(0, 60_000)
    assert not slots.keep(0, 60_000)
    assert slots.keep(0, 4_096)  # so much each may keep
    assert slots.keep(60_000, 0)
    assert slots.keep(0, 60_000)
