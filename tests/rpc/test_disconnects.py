"""What is done for a client ends when the client goes."""

from __future__ import annotations

import asyncio

import pytest
from starlette.types import Message

from apiserver.rpc.disconnects import ClientDisconnected, while_connected
from tests.clock import turns

pytestmark = pytest.mark.anyio


class Client:
    """One that has sent its request, and goes when it is told to."""

    def __init__(self) -> None:
        self.leaves, self.asked = asyncio.Event(), asyncio.Event()

    async def receive(self) -> Message:
        self.asked.set()
        await self.leaves.wait()
        return {"type": "http.disconnect"}


async def test_the_block_ends_as_soon_as_the_client_is_gone() -> None:
    client = Client()
    asyncio.get_running_loop().call_soon(client.leaves.set)
    with pytest.raises(ClientDisconnected):
        async with while_connected(client.receive):
            await asyncio.Event().wait()
    await asyncio.sleep(0)  # nothing of it is left to be cancelled


async def test_a_block_that_ends_first_is_let_be() -> None:
    client = Client()
    async with while_connected(client.receive):
        await client.asked.wait()
    client.leaves.set()
    await turns(10)  # nothing of it is left to be cancelled


async def test_messages_before_the_last_are_of_no_account() -> None:
    messages: list[Message] = [{"type": "http.request"}, {"type": "http.request"}, {"type": "http.disconnect"}]

    async def receive() -> Message:
        return messages.pop(0)

    with pytest.raises(ClientDisconnected):
        async with while_connected(receive):
            await asyncio.Event().wait()


async def test_a_cancelled_request_is_cancelled_and_the_client_not_gone() -> None:
    client = Client()

    async def request() -> None:
        async with while_connected(client.receive):
            await asyncio.Event().wait()

    task = asyncio.create_task(request())
    await client.asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
