"""`apiserver migrate` moves what older versions kept, a document each, while servers serve."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from apiserver.cli import main
from apiserver.events.model import EventBatch, EventType, Owner
from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.columnar.bounds import ColumnarBounds
from apiserver.stores.events.elasticsearch import names, old_indices
from apiserver.stores.events.elasticsearch.blocks import ElasticsearchBlocks
from apiserver.stores.events.elasticsearch.bounds import ElasticsearchBounds
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.moving import Moving
from apiserver.stores.events.elasticsearch.old_indices import OldIndices, State
from tests.contract.event_stores import OWNER, batch, lines, scalars
from tests.contract.plain_event_store import PlainEventStore
from tests.stores.events.elasticsearch import test_old_documents
from tests.stores.events.elasticsearch.old_layout import OldServer
from tests.stores.events.elasticsearch.test_old_documents import LATER, SOME, Server, assert_same

pytestmark = pytest.mark.anyio
cluster = test_old_documents.cluster
few_in_a_block = test_old_documents.few_in_a_block

OWNERS = [OWNER, *(Owner(company, f"task {n}") for company in ("company", "other") for n in range(6))]


def of(owner: Owner, received: int) -> EventBatch:
    """A few points and lines of an owner."""
    points = scalars([1.0, 2.0], owner=owner)
    return batch(points, lines(["one", "two"], owner=owner, digest=b"body"), received=received)


async def indices(cluster: Cluster) -> set[str]:
    """The indices of old documents."""
    types = (EventType.SCALAR, EventType.LOG)
    return set(await cluster.indices([f"{cluster.prefix}-{type.plural}-*" for type in types]))


async def fill(cluster: Cluster, plain: PlainEventStore, received: int) -> None:
    """What an older server kept of all owners."""
    old = OldServer(cluster)
    for one in (SOME, *(of(owner, received) for owner in OWNERS[1:])):
        await old.add(one)
        await plain.add(one)


async def test_everything_is_moved_while_servers_serve(cluster: Cluster, few_in_a_block: None) -> None:
    plain, said = PlainEventStore(), list[str]()
    await fill(cluster, plain, received=7)
    server, mover = Server(cluster), Moving(cluster, said.append)
    await cluster.ensure([names.blocks(cluster.prefix, type, "company") for type in (EventType.SCALAR, EventType.LOG)])
    await assert_same(server, plain, OWNERS)
    assert await mover.left()
    counts = ["58 scalars of 'company'", "12 scalars of 'other'", "45 logs of 'company'", "12 logs of 'other'"]
    assert said == [f"to be moved: {one}" for one in counts]
    said.clear()
    run = asyncio.create_task(mover.run())
    while not run.done():
        await assert_same(server, plain)
    await run
    said = [line for line in said if not line.startswith("waiting")]
    assert said[:2] == ["to be moved: 58 scalars of 'company'", "moved: all scalars of 'company'"]
    assert not await mover.left()
    assert not await indices(cluster)
    for one in (server, Server(cluster)):
        await assert_same(one, plain, OWNERS)
        await one.add(LATER)
        await plain.add(LATER)
        await assert_same(one, plain, OWNERS)


async def test_lines_that_are_sent_again_are_known_for_a_day(cluster: Cluster) -> None:
    sent, plain = of(OWNER, int(time.time() * 1000)), PlainEventStore()
    await OldServer(cluster).add(sent)
    await plain.add(sent)
    await Moving(cluster, lambda line: None).run()
    for server in (Server(cluster), Server(cluster)):
        assert await server.lines.indices.state("company") is State.IDS
        await server.add(sent)
        await assert_same(server, plain)
    later = time.time() + old_indices.SENT_AGAIN + 1
    assert not await Moving(cluster, lambda line: None).left()
    assert await indices(cluster)
    assert await OldIndices(cluster, EventType.LOG, wall_clock=lambda: later).companies() == []
    assert not await indices(cluster)
    assert await Server(cluster).lines.indices.state("company") is State.NOTHING


class Stopped(Exception):
    pass


async def test_it_may_be_stopped_anywhere(
    cluster: Cluster, few_in_a_block: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = PlainEventStore()
    await fill(cluster, plain, received=7)
    put, puts = ElasticsearchBlocks.put, 0

    async def stopped(*arguments: Any) -> None:
        nonlocal puts
        puts += 1
        is_last = puts % 3 == 0
        await put(*arguments)
        if is_last:
            raise Stopped

    monkeypatch.setattr(ElasticsearchBlocks, "put", stopped)
    short = replace(cluster.bounds, move_pause=0.01, columnar=ColumnarBounds(lease=0.001))
    monkeypatch.setattr(cluster, "bounds", short)
    stops = 0
    while await Moving(cluster, lambda line: None).left():
        try:
            await Moving(cluster, lambda line: None).run()
        except Stopped:
            stops += 1
        await assert_same(Server(cluster), plain)
    assert stops > 2
    await assert_same(Server(cluster), plain, OWNERS)


async def test_a_server_moves_some_owners_at_a_time(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "bounds", ElasticsearchBounds(owners_at_a_time=3))
    plain = PlainEventStore()
    await fill(cluster, plain, received=7)
    server = Server(cluster)
    looks, met = 0, set[Owner]()
    while await indices(cluster):
        looks += 1
        for store, compact in ((server.points, server.scalars.compact), (server.lines, server.logs.compact)):
            some = await store.crowded(10**6)
            assert len(some) <= 6
            for owner in some:
                await compact(owner)
            met |= {*some}
        await assert_same(server, plain)
    assert met == {*OWNERS}
    assert looks > 3
    await assert_same(Server(cluster), plain, OWNERS)


async def test_two_may_move_at_once(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = PlainEventStore()
    await fill(cluster, plain, received=7)
    monkeypatch.setattr(cluster, "bounds", ElasticsearchBounds(move_pause=0.01))
    await asyncio.gather(*(Moving(cluster, lambda line: None).run() for _ in range(2)))
    await assert_same(Server(cluster), plain, OWNERS)


async def test_it_waits_for_a_busy_node(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, said = PlainEventStore(), list[str]()
    await fill(cluster, plain, received=7)
    put, puts = ElasticsearchBlocks.put, 0

    async def busy(*arguments: Any) -> None:
        nonlocal puts
        puts += 1
        if puts == 2:
            raise EventStoreBusy("so many", retry_after=0)
        await put(*arguments)

    monkeypatch.setattr(ElasticsearchBlocks, "put", busy)
    await Moving(cluster, said.append).run()
    assert "waiting: so many" in said
    await assert_same(Server(cluster), plain, OWNERS)


async def test_the_command_says_what_it_would_move_and_moves_it(
    cluster: Cluster, elasticsearch_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = PlainEventStore()
    await fill(cluster, plain, received=7)
    address = f"elasticsearch://{elasticsearch_url.removeprefix('http://')}/{cluster.prefix}"
    places = ["--events", address, "--data", str(tmp_path)]

    async def said(*arguments: str) -> tuple[int, list[str]]:
        code = await asyncio.to_thread(main, ["migrate", *places, *arguments])
        lines = capsys.readouterr().out.splitlines()
        return code, [line for line in lines if " of '" in line and "waiting" not in line]

    types = [
        (58, "scalars of 'company'"),
        (12, "scalars of 'other'"),
        (45, "logs of 'company'"),
        (12, "logs of 'other'"),
    ]
    to_move = [f"events: to be moved: {count} {what}" for count, what in types]
    assert await said("--check") == (1, to_move)
    moved = [[line, f"events: moved: all {what}"] for line, (_, what) in zip(to_move, types, strict=True)]
    assert await said() == (0, [line for both in moved for line in both])
    assert await said("--check") == await said() == (0, [])
    await assert_same(Server(cluster), plain, OWNERS)
