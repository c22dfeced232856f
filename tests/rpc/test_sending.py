"""Large answers leave in pieces, a few in one turn of the event loop."""

from __future__ import annotations

import asyncio

import pytest
from starlette.types import Message

from apiserver.rpc.sending import send_body

LARGE = 2**20

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("size", [0, 1, LARGE - 1, LARGE, 3 * LARGE + 1])
@pytest.mark.parametrize("more", [True, False])
async def test_all_of_it_is_sent_in_order(size: int, more: bool) -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    content = bytes(n % 251 for n in range(251)) * (size // 251) + bytes(size % 251)
    for given in (content, [b"[", content, b"]"]):
        sent.clear()
        await send_body(send, given, more_body=more)
        assert b"".join(message["body"] for message in sent) == (given if isinstance(given, bytes) else b"".join(given))
        assert all(len(message["body"]) < LARGE for message in sent)
        assert [message.get("more_body", False) for message in sent] == [True] * (len(sent) - 1) + [more]


async def test_few_of_many_send_in_one_turn() -> None:
    turn, of_turns = 0, [0]

    async def send(message: Message) -> None:
        of_turns[turn] += len(message["body"])

    senders = [asyncio.create_task(send_body(send, b" " * (2 * LARGE))) for _ in range(50)]
    while not all(sender.done() for sender in senders):
        await asyncio.sleep(0)
        turn += 1
        of_turns.append(0)
    assert sum(of_turns) == 100 * LARGE
    assert max(of_turns) <= 2 * LARGE  # what was allowed in two turns may be sent in one


async def test_one_that_is_not_read_keeps_no_other_waiting() -> None:
    read = asyncio.Event()

    async def unread(message: Message) -> None:
        await read.wait()

    async def send(message: Message) -> None:
        pass

    waiting = [asyncio.create_task(send_body(unread, b" " * (2 * LARGE))) for _ in range(10)]
    waiting[0].cancel()
    async with asyncio.timeout(120):
        await send_body(send, b" " * (9 * LARGE))
        read.set()
        await asyncio.gather(*waiting[1:])


async def test_sending_ends_when_the_last_of_it_is_taken() -> None:
    """A transport takes all that is written in a turn of the loop. What is sent later waits until there is room."""
    full, taken = asyncio.Event(), asyncio.Event()
    written = 0

    async def send(message: Message) -> None:
        nonlocal written
        if full.is_set():
            await taken.wait()
        written += len(message["body"])
        asyncio.get_running_loop().call_soon(full.set)

    sending = asyncio.create_task(send_body(send, b" " * LARGE))
    await full.wait()
    await asyncio.sleep(0)
    assert written == LARGE
    assert not sending.done()
    taken.set()
    async with asyncio.timeout(120):
        await sending
