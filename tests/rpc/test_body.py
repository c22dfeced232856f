"""Bodies off the wire, fed message by message."""

from __future__ import annotations

import asyncio
import gzip
import threading
from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from starlette.types import Message

from apiserver.common.errors import Refusal
from apiserver.rpc.body import Body, Drain, Limits
from apiserver.rpc.disconnects import ClientDisconnected
from apiserver.rpc.errors import ApiError
from apiserver.rpc.in_flight import InFlight, Share
from apiserver.rpc.statuses import known_error
from tests.clock import still_clock

pytestmark = pytest.mark.anyio

KIB = 2**10
DISCONNECT: Message = {"type": "http.disconnect"}


class Wire:
    """Gives out messages and counts them."""

    def __init__(self, messages: Iterator[Message]) -> None:
        self.messages = messages
        self.received = 0

    async def receive(self) -> Message:
        self.received += 1
        return next(self.messages)


def chunk(data: bytes, more: bool = True) -> Message:
    return {"type": "http.request", "body": data, "more_body": more}


def endless(size: int) -> Iterator[Message]:
    while True:
        yield chunk(bytes(size))


def body_of(
    *messages: Message, limit: int = 64 * KIB, in_flight: InFlight | None = None, **headers: str
) -> tuple[Body, Wire]:
    wire = Wire(iter(messages))
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return known(Body(wire.receive, named, Limits(body=limit), in_flight or InFlight(2**30))), wire


def known(body: Body) -> Body:
    """That of a caller who is known."""
    body.known()
    return body


async def refused(body: Body) -> ApiError:
    """The answer to a body that is not read."""
    with pytest.raises((ApiError, Refusal)) as error:
        await body.read()
    answer = known_error(error.value, {})
    assert answer is not None
    return answer


async def test_chunks_are_joined() -> None:
    body, _ = body_of(chunk(b"a"), chunk(b""), chunk(b"b", more=False))
    assert await body.read() == b"ab"
    assert body.complete


async def test_what_has_come_is_not_waited_for() -> None:
    wire, rests = Wire(iter([chunk(b"a")])), [None, b"b"]
    body = known(Body(wire.receive, {}, Limits(), InFlight(2**30), lambda: rests.pop(0)))
    assert await body.read() == b"ab"
    assert body.complete
    assert (wire.received, rests) == (1, [])


@pytest.mark.parametrize(("size", "code"), [(16 * KIB, None), (16 * KIB + 1, 413)])
async def test_what_has_come_is_as_limited_as_what_is_waited_for(size: int, code: int | None) -> None:
    body = Body(Wire(iter(())).receive, {}, Limits(), InFlight(2**30), lambda: bytes(size))
    if code is None:
        assert await body.read() == bytes(size)
    else:
        assert (await refused(body)).code == code


async def test_no_body_is_empty() -> None:
    body, _ = body_of({"type": "http.request"}, content_encoding="gzip")
    assert await body.read() == b""


@pytest.mark.parametrize("size", [100, 50_000])
async def test_a_compressed_body_is_decoded(size: int) -> None:
    text = bytes(range(256)) * (size // 256) + b"end"
    body, _ = body_of(chunk(gzip.compress(text, 0), more=False), content_encoding="gzip")
    assert await body.read() == text


async def test_a_length_beyond_the_limit_is_413_before_anything_is_read() -> None:
    body, wire = body_of(*[chunk(bytes(KIB))] * 100, content_length=str(64 * KIB + 1))
    assert (await refused(body)).code == 413
    assert wire.received == 0


async def test_a_length_of_any_size_is_413() -> None:
    body, wire = body_of(chunk(b"a"), content_length="9" * 10_000)
    assert (await refused(body)).code == 413
    assert wire.received == 0


@pytest.mark.parametrize("length", ["", "x", "-5", "1e9", "²"])
async def test_a_length_that_is_no_number_is_of_no_account(length: str) -> None:
    body, _ = body_of(chunk(b"a", more=False), content_length=length)
    assert await body.read() == b"a"


async def test_a_body_beyond_the_limit_is_413_at_the_first_chunk_too_many() -> None:
    wire = Wire(endless(KIB))
    body = known(Body(wire.receive, {}, Limits(body=64 * KIB), InFlight(2**30)))
    assert (await refused(body)).code == 413
    assert wire.received == 65


async def test_exactly_the_limit_is_fine() -> None:
    body, _ = body_of(chunk(bytes(KIB)), chunk(bytes(63 * KIB), more=False), content_length=str(64 * KIB))
    assert len(await body.read()) == 64 * KIB


async def test_the_limit_holds_for_what_is_inflated_too() -> None:
    body, _ = body_of(chunk(gzip.compress(bytes(64 * KIB + 1)), more=False), content_encoding="gzip")
    assert (await refused(body)).code == 413


async def test_a_client_that_leaves_is_not_answered() -> None:
    body, _ = body_of(chunk(b"half"), DISCONNECT)
    with pytest.raises(ClientDisconnected):
        await body.read()


async def test_a_client_that_stalls_is_408_and_not_waited_for_again() -> None:
    async def silence() -> Message:
        await anyio.sleep_forever()
        raise AssertionError

    with still_clock() as clock:
        body = known(Body(silence, {}, Limits(), InFlight(2**30)))
        reading = asyncio.create_task(body.read())
        await clock.passes(59)
        assert not reading.done()
        await clock.passes(1)
        with pytest.raises(ApiError) as error:
            await reading
        assert error.value.code == 408
        await body.drain()
    assert not body.complete


async def test_a_client_that_trickles_is_408() -> None:
    received = 0

    async def trickle() -> Message:
        nonlocal received
        received += 1
        await clock.passes(10)
        return chunk(b"a")

    with still_clock() as clock:
        body = known(Body(trickle, {}, Limits(stall_seconds=55), InFlight(2**30)))
        assert (await refused(body)).code == 408
    assert received == 6


async def test_a_client_that_sends_fast_enough_may_take_longer_than_a_stall() -> None:
    pieces = iter(range(20))

    async def steadily() -> Message:
        await clock.passes(4)
        return chunk(bytes(64 * KIB), more=next(pieces) < 19)

    with still_clock() as clock:
        body = known(Body(steadily, {}, Limits(body=2**21, stall_seconds=5), InFlight(2**30)))
        assert len(await body.read()) == 20 * 64 * KIB


async def full(patience: float = 10) -> tuple[InFlight, Share]:
    """With no room for anybody until the share is released."""
    in_flight = InFlight(100 * KIB, patience)
    await in_flight.hold(in_flight.share(), 100 * KIB)
    ahead = in_flight.share()
    await in_flight.hold(ahead, 1)
    return in_flight, ahead


def large_body(kind: str, in_flight: InFlight) -> tuple[Body, Wire]:
    """One of 200 KiB that comes in two chunks."""
    return sized_body(kind, 200 * KIB, in_flight)


def sized_body(kind: str, size: int, in_flight: InFlight) -> tuple[Body, Wire]:
    sent, headers = bytes(size), {}
    if kind == "declared":
        headers = {"content-length": str(size)}
    if kind in ("gzip", "tiny gzip"):
        sent, headers = gzip.compress(sent, 0 if kind == "gzip" else 9), {"content-encoding": "gzip"}
    wire = Wire(iter([chunk(sent[: len(sent) // 2]), chunk(sent[len(sent) // 2 :], more=False)]))
    return known(Body(wire.receive, headers, Limits(body=2**20), in_flight)), wire


LARGE = ["declared", "chunked", "gzip", "tiny gzip"]


@pytest.mark.parametrize("kind", LARGE)
async def test_a_large_body_waits_for_room(kind: str) -> None:
    in_flight, ahead = await full()
    body, wire = large_body(kind, in_flight)
    reading = asyncio.create_task(body.read())
    await anyio.wait_all_tasks_blocked()
    assert wire.received
    assert not reading.done()
    in_flight.release(ahead)
    assert await reading == bytes(200 * KIB)


@pytest.mark.parametrize("kind", LARGE)
async def test_a_large_body_that_waits_too_long_is_429_and_gives_its_room_up(kind: str) -> None:
    in_flight, ahead = await full(patience=0.01)
    body, _ = large_body(kind, in_flight)
    error = await refused(body)
    assert (error.code, error.retry_after) == (429, 1)
    await body.drain()
    assert body.complete
    in_flight.release(ahead)
    other, _ = large_body(kind, in_flight)
    assert await other.read() == bytes(200 * KIB)


@pytest.mark.parametrize("kind", ["declared", "chunked", "tiny gzip"])
async def test_a_small_body_never_waits(kind: str) -> None:
    in_flight, _ = await full(patience=0)
    body, _ = sized_body(kind, 64 * KIB, in_flight)
    assert await body.read() == bytes(64 * KIB)


async def test_what_is_still_to_come_takes_no_room() -> None:
    in_flight = InFlight(300 * KIB)
    coming = asyncio.Event()

    async def trickle() -> Message:
        await coming.wait()
        return chunk(b"a", more=False)

    limits = Limits(body=2**20)
    slow = [known(Body(trickle, {"content-length": str(2**20)}, limits, in_flight)) for _ in range(10)]
    reading = [asyncio.create_task(body.read()) for body in slow]
    await anyio.wait_all_tasks_blocked()
    body, _ = large_body("declared", in_flight)
    assert len(await body.read()) == 200 * KIB
    coming.set()
    assert await asyncio.gather(*reading) == [b"a"] * 10


async def test_one_body_alone_always_has_room() -> None:
    body, _ = large_body("gzip", InFlight(10 * KIB))
    assert len(await body.read()) == 200 * KIB


async def test_inflated_bytes_count_as_under_way_until_released() -> None:
    in_flight = InFlight(200 * KIB, patience=0.01)
    first, second, third = (large_body("tiny gzip", in_flight)[0] for _ in range(3))
    await first.read()
    await second.read()  # it goes beyond the limit
    assert (await refused(third)).code == 429
    first.release()
    second.release()
    fourth, _ = large_body("tiny gzip", in_flight)
    assert len(await fourth.read()) == 200 * KIB


async def test_draining_reads_to_the_end() -> None:
    body, wire = body_of(chunk(b"a"), chunk(b"b"), chunk(b"c", more=False))
    await body.drain()
    assert (body.complete, wire.received) == (True, 3)


async def test_draining_ends_when_the_client_leaves() -> None:
    body, _ = body_of(chunk(b"a"), DISCONNECT)
    await body.drain()
    assert body.complete


async def test_draining_has_a_bound() -> None:
    wire = Wire(endless(KIB))
    body = known(Body(wire.receive, {}, Limits(known_drain=Drain(10 * KIB, 10)), InFlight(2**30)))
    await body.drain()
    assert (body.complete, wire.received) == (False, 10)


async def test_draining_does_not_wait_for_ever() -> None:
    async def never() -> Any:
        await anyio.sleep_forever()

    with still_clock() as clock:
        body = known(Body(never, {}, Limits(), InFlight(2**30)))
        draining = asyncio.create_task(body.drain())
        await clock.passes(9)
        assert not draining.done()
        await clock.passes(1)
        await draining
    assert not body.complete


# --- of strangers ----------------------------------------------------------------------------------


def strangers(*messages: Message, **headers: str) -> tuple[Body, Wire]:
    wire = Wire(iter(messages))
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Body(wire.receive, named, Limits(), InFlight(2**30)), wire


async def test_a_stranger_sends_16_kib_at_most() -> None:
    body, _ = strangers(chunk(bytes(16 * KIB), more=False), content_length=str(16 * KIB))
    assert len(await body.read()) == 16 * KIB
    body, wire = strangers(chunk(bytes(16 * KIB + 1), more=False), content_length=str(16 * KIB + 1))
    assert (await refused(body)).code == 413
    assert wire.received == 0
    body, wire = strangers(*[chunk(bytes(KIB))] * 100)
    assert (await refused(body)).code == 413
    assert wire.received == 17


async def test_what_a_stranger_sends_is_inflated_to_64_kib_at_most() -> None:
    body, _ = strangers(chunk(gzip.compress(bytes(64 * KIB)), more=False), content_encoding="gzip")
    assert len(await body.read()) == 64 * KIB
    body, _ = strangers(chunk(gzip.compress(bytes(64 * KIB + 1)), more=False), content_encoding="gzip")
    assert (await refused(body)).code == 413


async def test_what_a_stranger_sends_is_drained_up_to_16_mib() -> None:
    wire = Wire(endless(64 * KIB))
    body = Body(wire.receive, {"transfer-encoding": "chunked"}, Limits(), InFlight(2**30))
    assert body.may_outlast_drain
    await body.drain()
    assert (body.complete, wire.received) == (False, 256)


async def test_few_strangers_are_drained_at_once() -> None:
    limits = Limits(strangers_drain=Drain(16 * KIB, 10, at_once=1))
    first, turn = Wire(endless(KIB)), asyncio.Event()

    async def slow() -> Message:
        await turn.wait()
        return await first.receive()

    async with asyncio.TaskGroup() as tasks:
        drained = tasks.create_task(Body(slow, {}, limits, InFlight(1)).drain())
        await asyncio.sleep(0)
        second = Wire(endless(KIB))
        await Body(second.receive, {}, limits, InFlight(1)).drain()
        turn.set()
    assert (drained.done(), first.received, second.received) == (True, 16, 0)
    third = Wire(endless(KIB))
    await Body(third.receive, {}, limits, InFlight(1)).drain()
    assert third.received == 16


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, False),
        ({"content-length": str(16 * 2**20)}, False),
        ({"content-length": str(16 * 2**20 + 1)}, True),
        ({"transfer-encoding": "chunked"}, True),
    ],
)
async def test_it_is_known_before_whether_a_body_may_outlast_its_drain(headers: dict[str, str], expected: bool) -> None:
    assert Body(Wire(endless(1)).receive, headers, Limits(), InFlight(1)).may_outlast_drain is expected


# --- what takes long -------------------------------------------------------------------------------


class Sender:
    """A client that has sent all of `sent`, and goes when it is told to."""

    def __init__(self, sent: bytes) -> None:
        self.messages = [chunk(sent, more=False)]
        self.leaves = asyncio.Event()

    async def receive(self) -> Message:
        if self.messages:
            return self.messages.pop()
        await self.leaves.wait()
        return DISCONNECT


def compressed_body(sender: Sender, in_flight: InFlight) -> Body:
    return known(Body(sender.receive, {"content-encoding": "gzip"}, Limits(), in_flight))


async def test_room_for_what_is_inflated_is_taken_as_it_comes() -> None:
    in_flight = InFlight(20 * 2**20, patience=0.01)
    tiny = gzip.compress(bytes(2**20))
    bodies = [compressed_body(Sender(tiny), in_flight) for _ in range(10)]
    assert [len(await body.read()) for body in bodies] == [2**20] * 10  # each could have been 16 MiB


async def test_a_client_that_goes_gives_its_room_up_at_once() -> None:
    in_flight = InFlight(100 * KIB, patience=30)
    sender = Sender(gzip.compress(bytes(2**20)))
    first, ahead = in_flight.share(), in_flight.share()
    await in_flight.hold(first, 100 * KIB)
    await in_flight.hold(ahead, 1)
    body = compressed_body(sender, in_flight)
    reading = asyncio.create_task(body.read())
    await anyio.wait_all_tasks_blocked()
    sender.leaves.set()
    with pytest.raises(ClientDisconnected):
        await reading
    body.release()
    in_flight.release(first)
    in_flight.release(ahead)
    other, _ = large_body("declared", in_flight)
    assert len(await other.read()) == 200 * KIB


async def test_no_step_is_taken_for_a_client_that_is_gone() -> None:
    sender = Sender(b"{}")
    body = known(Body(sender.receive, {}, Limits(), InFlight(2**30)))
    await body.read()
    assert await body.work(lambda: 5) == 5
    sender.leaves.set()
    begun = threading.Event()
    with pytest.raises(ClientDisconnected):
        await body.work(lambda: begun.wait(120))
    begun.set()


@pytest.mark.test
async def test_many_small_chunks_take_no_more_room_than_they_are_long() -> None:
    body, _ = body_of(*[chunk(b"ab")] * 10_000, chunk(b"", more=False))
    assert await body.read() == b"ab" * 10_000
