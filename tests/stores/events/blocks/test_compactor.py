"""Owners are compacted by themselves: after writes, after a while without any, and if another server left them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from apiserver.events.model import EventType, Owner
from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.blocks.bounds import BOUNDS, ColumnarBounds
from apiserver.stores.events.blocks.compactor import Compactor, Compacts
from apiserver.stores.events.blocks.scalars import ColumnarScalars
from tests.contract.event_stores import OWNER, batch, scalars
from tests.stores.events.blocks.plain_blocks import PlainBlocks
from tests.stores.events.embedded.waiting import eventually

pytestmark = pytest.mark.anyio

OTHER = Owner("company", "other")
NEVER = 10**6
FEWEST, LEFT, HURRY, MOST = BOUNDS.fewest, BOUNDS.left, BOUNDS.hurry, BOUNDS.most
#: Nothing is compacted but what has many writes, and rests are short.
PATIENT = ColumnarBounds(quiet=NEVER, look=NEVER, sweep=NEVER, patience=NEVER, least_rest=0)


class Server:
    """A server that writes a point at a time."""

    def __init__(self, blocks: PlainBlocks, **bounds: Any) -> None:
        """The bounds are those that are not PATIENT."""
        self.blocks = blocks
        self.scalars = ColumnarScalars(blocks)
        self.failures: list[Exception] = []
        """What the next compactions fail with."""
        of_points = Compacts(self.compact, blocks.crowded)
        self.may_compact = asyncio.Event()
        self.may_compact.set()
        self.tried = 0
        self.compactor = Compactor({EventType.SCALAR: of_points}, replace(PATIENT, **bounds))

    async def compact(self, owner: Owner, *, fewest: int) -> bool:
        self.tried += 1
        await self.may_compact.wait()
        if self.failures:
            raise self.failures.pop()
        return await self.scalars.compact(owner, fewest=fewest)

    async def write(self, times: int, owner: Owner = OWNER) -> None:
        for _ in range(times):
            await self.compactor.until_there_is_room(EventType.SCALAR, [owner])
            number = len(self.blocks.of(owner).writes)
            await self.scalars.add(batch(scalars([1.0], iters=[number], owner=owner)))
            self.compactor.wrote(EventType.SCALAR, [owner])

    def fragments(self, owner: Owner = OWNER) -> int:
        kept = [one.block for one in self.blocks.of(owner).kept().values() if one.block is not None]
        return [one.statement for one in kept].count(None)

    def has(self, fragments: int, owner: Owner = OWNER) -> Callable[[], bool]:
        """Whether the owner has so many fragments, and a chunk."""

        def condition() -> bool:
            kept = [one.block for one in self.blocks.of(owner).kept().values() if one.block is not None]
            return len(kept) > fragments == self.fragments(owner)

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


async def test_a_few_fragments_that_another_server_left_are_compacted_if_nobody_adds_more() -> None:
    blocks = PlainBlocks()
    gone, other = Server(blocks), Server(blocks)
    await gone.write(2)
    await other.write(2, OTHER)
    async with running(Server(blocks, sweep=0.01)) as (server,):
        while not server.has(0)():
            await other.write(1, OTHER)
            await asyncio.sleep(0)
        await eventually(server.has(0, OTHER))


async def test_writes_wait_while_too_many_fragments_are_not_compacted() -> None:
    async with running(Server(PlainBlocks())) as (server,):
        server.may_compact.clear()
        writing = asyncio.create_task(server.write(3 * MOST))
        await eventually(lambda: server.fragments() == MOST)
        await server.write(1, OTHER)  # nobody waits for others' fragments
        for _ in range(100):
            await asyncio.sleep(0)
        assert server.fragments() == MOST
        server.may_compact.set()
        await writing
        assert server.fragments() <= MOST


@pytest.mark.parametrize("rest", ["rest", "least_rest"])
async def test_the_compactor_rests_until_an_owner_has_many_writes(rest: str) -> None:
    async with running(Server(PlainBlocks(), **{rest: NEVER})) as (server,):
        await server.write(FEWEST, OTHER)
        await eventually(server.has(0, OTHER))
        await server.write(HURRY - 1)
        for _ in range(100):
            await asyncio.sleep(0)
        assert server.fragments() == HURRY - 1
        await server.write(1)
        await eventually(server.has(0))


async def test_the_least_rest_is_divided_among_owners_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    rests: list[float] = []

    async def rest(_: Compactor, seconds: float) -> None:
        rests.append(seconds)

    monkeypatch.setattr(Compactor, "rest", rest)
    async with running(Server(PlainBlocks(), rest=0, least_rest=6)) as (server,):
        server.may_compact.clear()
        owners = [Owner("company", str(number)) for number in range(4)]
        for owner in owners:
            await server.write(FEWEST, owner)
        server.may_compact.set()
        await eventually(lambda: all(server.has(0, owner)() for owner in owners) and len(rests) == 4)
    assert rests == [2.0, 3.0, 6.0, 6.0]


async def test_the_compactor_does_not_rest_if_the_next_owner_has_many_writes() -> None:
    async with running(Server(PlainBlocks(), rest=NEVER)) as (server,):
        server.may_compact.clear()
        await server.write(FEWEST, OTHER)
        await eventually(lambda: server.tried == 1)
        await server.write(HURRY)
        server.may_compact.set()
        await eventually(server.has(0))


@pytest.mark.test
async def test_the_compactor_does_not_rest_while_writers_wait() -> None:
    async with running(Server(PlainBlocks(), rest=NEVER)) as (server,):
        await server.write(FEWEST, OTHER)
        await eventually(server.has(0, OTHER))
        await asyncio.wait_for(server.write(3 * MOST), 60)
        assert server.fragments() <= MOST


async def test_the_compactor_does_not_rest_longer_because_the_store_was_busy() -> None:
    async with running(Server(PlainBlocks(), rest=1000)) as (server,):
        server.failures = [EventStoreBusy("a node is away", retry_after=1)]
        await server.write(FEWEST)
        await eventually(server.has(0))


async def test_writers_are_told_to_try_again_if_waiting_does_not_help() -> None:
    async with running(Server(PlainBlocks(), patience=0.05)) as (server,):
        server.may_compact.clear()
        await server.write(MOST)
        with pytest.raises(EventStoreBusy) as busy:
            await server.write(1)
        assert busy.value.retry_after
        server.may_compact.set()
        await eventually(lambda: server.fragments() < FEWEST)
        await server.write(1)


async def test_writers_do_not_wait_for_a_compaction_that_fails() -> None:
    async with running(Server(PlainBlocks())) as (server,):
        server.failures = [ValueError("damaged") for _ in range(2 * MOST)]
        await server.write(2 * MOST)
        assert server.failures


async def test_what_another_server_compacts_is_tried_again() -> None:
    blocks = PlainBlocks()
    async with running(Server(blocks)) as (server,):
        assert await blocks.lease(OWNER, "another", NEVER)
        await server.write(FEWEST)
        await eventually(lambda: server.tried > 1)
        assert server.fragments() == FEWEST
        assert await blocks.lease(OWNER, "another", 0)
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

    async def compact(owner: Owner, *, fewest: int) -> bool:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return True

    compactor = Compactor({EventType.SCALAR: Compacts(compact, PlainBlocks().crowded)})
    compactor.start()
    for _ in range(FEWEST):
        compactor.wrote(EventType.SCALAR, [OWNER])
    await began.wait()
    await compactor.close()
    await compactor.close()
    assert ended.is_set()
