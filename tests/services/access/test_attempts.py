"""How many attempts to log in may fail."""

from __future__ import annotations

import asyncio
import threading

import pytest

from apiserver.common.errors import Refusal, Why
from apiserver.services.access.attempts import OF_ADDRESS, OF_NAME, Attempts

pytestmark = pytest.mark.anyio


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def counted(clock: Clock) -> Attempts:
    return Attempts(clock)


def wait(counted: Attempts, name: str, address: str) -> int | None:
    """The seconds to wait, or None when an attempt was counted."""
    try:
        counted.begin(name, address)
    except Refusal as error:
        return error.retry_after
    return None


def test_a_name_that_is_guessed_has_to_wait(counted: Attempts, clock: Clock) -> None:
    assert [wait(counted, "alice", "here") for _ in range(OF_NAME.burst)] == [None] * OF_NAME.burst
    assert wait(counted, "alice", "here") == 30
    assert wait(counted, "bob", "here") is None
    assert wait(counted, "alice", "elsewhere") is None
    clock.now = 29.5
    assert wait(counted, "alice", "here") == 1
    clock.now = 30
    assert wait(counted, "alice", "here") is None
    assert wait(counted, "alice", "here") == 30
    clock.now = 10_000
    assert [wait(counted, "alice", "here") for _ in range(OF_NAME.burst)] == [None] * OF_NAME.burst


def test_attempts_that_are_taken_back_never_were(counted: Attempts) -> None:
    for number in range(3 * OF_ADDRESS.burst):
        assert wait(counted, f"name {number % 5}", "here") is None
        counted.take_back(f"name {number % 5}", "here")
    assert [wait(counted, "alice", "here") for _ in range(OF_NAME.burst)] == [None] * OF_NAME.burst
    counted.take_back("alice", "here")
    assert [wait(counted, "alice", "here") for _ in range(2)] == [None, 30]


def test_an_address_that_guesses_names_has_to_wait(counted: Attempts) -> None:
    names = [f"name {number}" for number in range(OF_ADDRESS.burst)]
    assert [wait(counted, name, "here") for name in names] == [None] * OF_ADDRESS.burst
    assert wait(counted, "another", "here") == 3
    assert wait(counted, "another", "elsewhere") is None


def test_who_succeeds_never_waits(counted: Attempts) -> None:
    for _ in range(OF_ADDRESS.burst + 1):
        assert wait(counted, "alice", "here") is None
        counted.succeeded("alice", "here")


def test_who_guesses_at_an_address_keeps_out_nobody_who_has_logged_in_from_there(counted: Attempts) -> None:
    counted.begin("alice", "here")
    counted.succeeded("alice", "here")
    for number in range(OF_ADDRESS.burst):
        wait(counted, f"name {number}", "here")
    assert wait(counted, "bob", "here") == 3
    assert wait(counted, "alice", "here") is None


def test_the_latest_successes_are_remembered() -> None:
    counted = Attempts(lambda: 0.0, remembered=4)
    for number in range(20):
        counted.succeeded("bob", f"address {number}", "secret")
    known = [number for number in range(20) if counted.knows("bob", f"address {number}", "secret")]
    assert known == [16, 17, 18, 19]


def test_the_latest_failures_are_remembered(clock: Clock) -> None:
    counted = Attempts(clock, remembered=4)  # of each address, the count of the name and that of all names
    for address in ("first", "second", "third"):
        for _ in range(OF_NAME.burst):
            assert wait(counted, "alice", address) is None
    assert [wait(counted, "alice", address) for address in ("third", "second", "first")] == [30, 30, None]


async def test_passwords_are_compared_in_threads_and_by_turns(counted: Attempts) -> None:
    go_on, running, most = threading.Event(), 0, 0

    def compare() -> bool:
        nonlocal running, most
        running += 1
        most = max(most, running)
        go_on.wait(120)
        running -= 1
        return True

    tasks = [asyncio.create_task(counted.check(compare)) for _ in range(16)]
    await asyncio.sleep(0)
    with pytest.raises(Refusal) as refused:
        await counted.check(compare)
    assert (refused.value.why, refused.value.retry_after) == (Why.OVERLOADED, 1)
    go_on.set()
    assert await asyncio.gather(*tasks) == [True] * 16
    assert most <= 2
    assert await counted.check(lambda: False) is False


def test_who_was_let_in_before_never_waits(counted: Attempts) -> None:
    counted.let_in("key", "here")
    for name in ("key", "other key"):
        for _ in range(OF_NAME.burst):
            counted.begin(name, "here")
    counted.let_in("key", "here")
    counted.let_in("other key", "elsewhere")
    with pytest.raises(Refusal):
        counted.let_in("other key", "here")


def test_many_guesses_make_nobody_unknown() -> None:
    counted = Attempts(lambda: 0.0, remembered=4)
    counted.succeeded("alice", "here", "secret")
    for number in range(20):
        counted.begin("alice", f"address {number}")
    assert counted.knows("alice", "here", "secret")
    assert not counted.knows("alice", "here", "other")
    assert not counted.knows("alice", "elsewhere", "secret")


def test_addresses_of_one_ipv6_network_are_one(counted: Attempts) -> None:
    for number in range(OF_NAME.burst):
        counted.begin("alice", f"2001:db8::{number:x}")
    assert wait(counted, "alice", "2001:db8::ffff") == 30
    assert wait(counted, "alice", "2001:db8:0:1::1") is None
    assert wait(counted, "alice", "no:address") is None


def test_ipv4_addresses_are_apart_on_a_socket_for_both_kinds(counted: Attempts) -> None:
    for _ in range(OF_NAME.burst):
        counted.begin("alice", "::ffff:192.0.2.1")
    assert wait(counted, "alice", "192.0.2.1") == 30
    assert wait(counted, "alice", "::ffff:192.0.2.2") is None
