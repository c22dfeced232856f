"""Owners are compacted by themselves: after writes, after a while without any, and if another server left them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import pytest

from apiserver.events.model import EventType, Owner
from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.columnar.compaction import FEWEST
from apiserver.stores.events.columnar.compactor import LEFT, Compactor, Compacts
from apiserver.stores.events.columnar.scalars import ColumnarScalars
from tests.contract.event_stores import OWNER, batch, scalars
from tests.stores.events.columnar.plain_blocks import PlainBlocks
from tests.stores.events.embedded.waiting import eventually

pytestmark = pytest.mark.anyio

OTHER = Owner("company", "other")
NEVER = 10**6


class Server:
    """A server that writes a point at a time."""

    def __init__(self, blocks: PlainBlocks, *, quiet: float = NEVER, look: float = NEVER) -> None:
        self.blocks = blocks
        self.scalars = ColumnarScalars(blocks)
        self.failures: list[Exception] = []
        """What the next compactions fail with."""
        of_points = Compacts(self.compact, blocks.crowded)
        self.compactor = Compactor({EventType.SCALAR: of_points}, quiet=quiet, look=look)

    async def compact(self, owner: Owner, *, fewest: int) -> None:
        if self.failures:
            raise self.failures.pop()
        await self.scalars.compact(owner, fewest=fewest)

    async def write(self, times: int, owner: Owner = OWNER) -> None:
        for _ in range(times):
            number = len(self.blocks.of(owner).writes)
            await self.scalars.add(batch(scalars([1.0], iters=[number], owner=owner)))
            self.compactor.wrote(EventType.SCALAR, [owner])

    def has(self, fragments: int, owner: Owner = OWNER) -> Callable[[], bool]:
        """Whether the owner has so many fragments, and a chunk."""

        def condition() -> bool:
            kept = [one.block for one in self.blocks.of(owner).kept().values() if one.block is not None]
            return len(kept) > fragments == [one.statement for one in kept].count(None)

        return condition


@asynccontextmanager
async def running(*servers: Server) -> AsyncIterator[Sequence[Server]]:
    for server in servers:
        server.compactor.start()
    try:
        yield servers
    finally:
        for server in servers:
            await server.compactor.close()


async def test_an_owner_is_compacted_after_some_writes() -> None:
    async with running(Server(PlainBlocks())) as (server,):
        await server.write(FEWEST - 1)
        await server.write(FEWEST - 1, OTHER)
        await server.write(1)
        await eventually(server.has(0))
        assert not server.has(0, OTHER)()
        await server.write(FEWEST - 1)
        await eventually(server.has(FEWEST - 1))
        await server.write(1)
        await eventually(server.has(0))


async def test_the_rest_is_compacted_when_no_more_writes_come() -> None:
    async with running(Server(PlainBlocks(), quiet=0.05)) as (server,):
        await server.write(2)
        await eventually(server.has(0))


async def test_it_tells_how_many_owners_wait() -> None:
    async with running(Server(PlainBlocks())) as (server,):
        await server.write(1)
        assert server.compactor.waiting == 0  # a fragment alone stays as it is
        await server.write(1)
        await server.write(2, OTHER)
        assert server.compactor.waiting == 2
        await server.write(FEWEST - 2)
        assert server.compactor.waiting == 2
        await eventually(lambda: server.compactor.waiting == 1)
        assert server.has(0)()


async def test_what_a_compaction_under_way_puts_behind_a_deletion_is_removed() -> None:
    blocks = PlainBlocks()
    async with running(Server(blocks, quiet=0.05)) as (server,):
        other = Server(blocks)
        await other.write(3)
        await other.scalars.delete([OWNER])
        server.compactor.deleted(EventType.SCALAR, [OWNER])
        await eventually(lambda: not blocks.of(OWNER).kept())


async def test_owners_that_another_server_left_are_compacted() -> None:
    blocks = PlainBlocks()
    gone = Server(blocks)
    await gone.write(LEFT)
    async with running(Server(blocks, look=0.05)) as (server,):
        await eventually(server.has(0))


async def test_a_compaction_that_cannot_be_done_now_is_done_later() -> None:
    async with running(Server(PlainBlocks())) as (server,):
        server.failures = [EventStoreBusy("a node is away", retry_after=0)]
        await server.write(FEWEST)
        await eventually(lambda: not server.failures)
        await server.write(FEWEST)
        await eventually(server.has(0))


async def test_an_error_is_logged_and_others_are_compacted(caplog: pytest.LogCaptureFixture) -> None:
    async with running(Server(PlainBlocks())) as (server,):
        server.failures = [ValueError("damaged")]
        await server.write(FEWEST)
        await server.write(FEWEST, OTHER)
        await eventually(server.has(0, OTHER))
    assert "compacting failed" in caplog.text
    assert "damaged" in caplog.text


async def test_a_compaction_under_way_ends_when_the_server_does() -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def compact(owner: Owner, *, fewest: int) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    compactor = Compactor({EventType.SCALAR: Compacts(compact, PlainBlocks().crowded)})
    compactor.start()
    for _ in range(FEWEST):
        compactor.wrote(EventType.SCALAR, [OWNER])
    await began.wait()
    await compactor.close()
    await compactor.close()
    assert ended.is_set()
