"""How many reading calls of one user are handled at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

import pytest

from apiserver.rpc.disconnects import ClientDisconnected, while_connected
from apiserver.rpc.reads_at_once import AT_ONCE, ReadsAtOnce

pytestmark = pytest.mark.anyio


def stays() -> AbstractAsyncContextManager[None]:
    return nullcontext()


def leaves() -> AbstractAsyncContextManager[None]:
    async def receive() -> dict[str, str]:
        return {"type": "http.disconnect"}

    return while_connected(receive)


async def handle(reads: ReadsAtOnce, user: str, client: Callable[[], AbstractAsyncContextManager[None]]) -> None:
    async with reads.turn(user, client):
        pass


@asynccontextmanager
async def busy(reads: ReadsAtOnce, user: str) -> AsyncIterator[Callable[[], None]]:
    """As many calls of a user as are handled at once; the function that is given ends one of them."""
    ends = [asyncio.Event() for _ in range(AT_ONCE)]

    async def take_long(end: asyncio.Event) -> None:
        async with reads.turn(user, stays):
            await end.wait()

    async with asyncio.TaskGroup() as calls:
        for end in ends:
            calls.create_task(take_long(end))
        await asyncio.sleep(0)
        yield ends[0].set
        for end in ends:
            end.set()


async def test_a_call_waits_until_another_of_its_user_ends() -> None:
    reads = ReadsAtOnce(longest=60)
    async with busy(reads, "many") as end_one:
        waiting = asyncio.create_task(handle(reads, "many", stays))
        await asyncio.sleep(0)
        await handle(reads, "another", stays)
        assert not waiting.done()
        end_one()
        await waiting
        await handle(reads, "many", stays)


async def test_a_call_that_waits_ends_with_its_client() -> None:
    reads = ReadsAtOnce()
    async with busy(reads, "many") as end_one:
        with pytest.raises(ClientDisconnected):
            await handle(reads, "many", leaves)
        end_one()
        await handle(reads, "many", stays)


async def test_a_call_does_not_wait_for_those_that_take_long() -> None:
    reads = ReadsAtOnce(longest=0.01)
    async with busy(reads, "many"):
        await handle(reads, "many", stays)
    async with busy(reads, "many"):  # as many turns are left as before
        pass
