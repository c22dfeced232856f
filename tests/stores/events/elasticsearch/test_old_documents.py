"""Points and lines that older versions kept, a document each, are read, moved and deleted as all others."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.events.aggregates import ALL
from apiserver.events.model import (
    SINGLE_VALUE_ITERATION,
    BucketAxis,
    EventBatch,
    EventType,
    LogLine,
    LogPosition,
    Owner,
)
from apiserver.events.queries import BucketQuery, PageQuery, SeriesQuery
from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.columnar.logs import ColumnarLogs
from apiserver.stores.events.columnar.scalars import ColumnarScalars
from apiserver.stores.events.elasticsearch import bulk, names
from apiserver.stores.events.elasticsearch.address import elasticsearch_address
from apiserver.stores.events.elasticsearch.blocks import ElasticsearchBlocks
from apiserver.stores.events.elasticsearch.bounds import ElasticsearchBounds
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.migrations import check_schema
from apiserver.stores.events.elasticsearch.old_documents import LogsWithOldDocuments, WithOldDocuments
from apiserver.stores.events.elasticsearch.old_indices import LOOK, OldIndices, State
from apiserver.stores.events.elasticsearch.old_scalars import OldScalars
from tests.chance import examples
from tests.contract.event_stores import LOGS, OWNER, SCALARS, batch, lines, scalars
from tests.contract.plain_event_store import PlainEventStore
from tests.engines import elasticsearch as engine
from tests.engines.fixtures import NewPrefix
from tests.stores.events import random_events
from tests.stores.events.columnar.test_scalars import Both
from tests.stores.events.elasticsearch.old_layout import OldServer
from tests.stores.events.random_events import OWNERS

pytestmark = pytest.mark.anyio

FEW_IN_A_BLOCK = ElasticsearchBounds(part_events=5, part_bytes=2000)


class Server:
    """What a server does with scalars and log lines."""

    def __init__(self, cluster: Cluster) -> None:
        self.points = WithOldDocuments(cluster, OldScalars(cluster))
        self.lines = LogsWithOldDocuments(cluster)
        self.scalars, self.logs = ColumnarScalars(self.points), ColumnarLogs(self.lines)
        self.stores: Sequence[WithOldDocuments] = (self.points, self.lines)

    async def add(self, batch: EventBatch) -> None:
        await self.scalars.add(batch)
        await self.logs.add(await self.lines.new_lines(batch))

    async def compact(self, owner: Owner = OWNER, fewest: int = 1) -> None:
        await self.scalars.compact(owner, fewest=fewest)
        await self.logs.compact(owner, fewest=fewest)

    async def delete(self, owners: Sequence[Owner]) -> None:
        await self.scalars.delete(owners)
        await self.logs.delete(owners)

    async def log(self, owner: Owner = OWNER) -> list[LogLine]:
        return await self.logs.log_lines(SeriesQuery(owner, EventType.LOG), PageQuery(10**6))

    async def left(self, owner: Owner = OWNER) -> int:
        """How many old events count."""
        for store in self.stores:
            await store.ended(owner)
        return sum([await store.left(owner) for store in self.stores])


@pytest.fixture
async def cluster(elasticsearch_url: str, elasticsearch_prefix: str) -> AsyncIterator[Cluster]:
    opened = Cluster(elasticsearch_address(engine.address(elasticsearch_url, elasticsearch_prefix)), strict=False)
    await check_schema(opened.client, opened.prefix, migrate=True)
    yield opened
    await opened.close()


@pytest.fixture
def few_in_a_block(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "bounds", FEW_IN_A_BLOCK)


async def assert_same(server: Server, plain: PlainEventStore, owners: Sequence[Owner] = (OWNER,)) -> None:
    """Compare what is read of points and lines, in few ways: blocks of any kind are read in all ways elsewhere."""
    engine = Both(server.points)
    engine.engine, engine.plain = server.scalars, plain
    for owner in owners:
        series, log = SeriesQuery(owner, EventType.SCALAR), SeriesQuery(owner, EventType.LOG)
        assert await server.scalars.series(owner) == await plain.series(owner, [EventType.SCALAR])
        for limit, descending in ((20, False), (1000, True)):
            await engine.assert_same_walk(series, PageQuery(limit, None, descending))
        await engine.assert_same_buckets(series, BucketQuery(BucketAxis.ITER, lambda *_: 16, aggregates=ALL))
        assert await server.logs.series(owner) == await plain.series(owner, [EventType.LOG])
        assert await server.logs.log_sizes(owner) == await plain.log_sizes(owner)
        assert await server.logs.log_count(log) == await plain.log_count(log)
        for limit, descending in ((9, False), (1000, True)):
            found, expected = [
                [line async for line in _walk(store, log, PageQuery(limit, None, descending))]
                for store in (server.logs, plain)
            ]
            assert list(map(_without_sequence, found)) == list(map(_without_sequence, expected))


async def _walk(
    store: ColumnarLogs | PlainEventStore, log: SeriesQuery, page: PageQuery[LogPosition]
) -> AsyncIterator[LogLine]:
    while found := await store.log_lines(log, page):
        for line in found:
            yield line
        page = replace(page, after=found[-1].position)


def _without_sequence(line: LogLine) -> tuple[Any, ...]:
    return (line.position.timestamp, *line[1:])


SOME = batch(
    scalars([math.sin(n) for n in range(40)]),
    scalars([1.0, math.nan, math.inf, -math.inf, -0.0], iters=[-(2**63), -5, 2**53 + 1, 2**53 + 3, 2**63 - 1]),
    scalars([2.0], iters=[SINGLE_VALUE_ITERATION], variant="single", worker="other"),
    lines([f"line {n}" * (n % 7) for n in range(30)], timestamps=[n // 4 for n in range(30)], digest=b"some"),
    lines(["first", "last", "last, too"], timestamps=[-(2**63), 2**63 - 1, 2**63 - 1], metric="other"),
)
LATER = batch(
    scalars([math.cos(n) for n in range(30)], iters=range(20, 50), worker="late"),
    lines([f"later {n}" for n in range(5)], timestamps=range(5, 10), digest=b"later"),
    received=99,
)


async def test_old_documents_are_read_and_moved(cluster: Cluster, few_in_a_block: None) -> None:
    server, other, plain = Server(cluster), Server(cluster), PlainEventStore()
    await OldServer(cluster).add(SOME)
    await plain.add(SOME)
    await assert_same(server, plain)
    positions = [line.position for line in await server.log()]
    for _ in range(2):
        await server.add(LATER)
        await plain.add(LATER)
        await assert_same(server, plain)
    log = await server.log()
    assert {line.position for line in log} >= {*positions}
    await server.compact()
    assert not await server.left()
    for one in (server, other, Server(cluster)):
        await assert_same(one, plain)
        assert await one.log() == log


async def test_blocks_have_a_bounded_number_of_points_and_lines(cluster: Cluster, few_in_a_block: None) -> None:
    await OldServer(cluster).add(SOME)
    server = Server(cluster)
    points = (await server.points.find(SCALARS)).blocks
    assert {block.series for block in points} == {("loss", "train"), ("loss", "single")}
    assert sum(block.count for block in points) == 46
    log = (await server.lines.find(LOGS)).blocks
    assert sum(block.count for block in log) == 33
    for some in (points, log):
        assert max(block.count for block in some) <= 5
        ends = sorted((block.series, block.first, block.begin, block.last, block.end) for block in some)
        for (name, *_, last, end), (next_name, first, begin, *_) in pairwise(ends):
            assert name != next_name or (last, end) < (first, begin)


async def test_lines_without_sizes_are_read(cluster: Cluster, few_in_a_block: None) -> None:
    plain = PlainEventStore()
    await OldServer(cluster, with_sizes=False).add(SOME)
    await plain.add(SOME)
    await assert_same(Server(cluster), plain)


async def test_a_batch_of_which_a_part_was_kept_is_completed(cluster: Cluster, few_in_a_block: None) -> None:
    old, server, plain = OldServer(cluster), Server(cluster), PlainEventStore()
    sent = batch(*SOME.scalars, SOME.logs[0])
    items = [*old.items(sent)]
    await old.write(items[::3])
    await plain.add(sent)
    for _ in range(2):
        await server.add(sent)
        assert sorted(map(_without_sequence, await server.log())) == sorted(
            map(_without_sequence, await plain.log_lines(LOGS, PageQuery(100)))
        )
        assert (await server.scalars.scalar_points(SCALARS, PageQuery(100))).iters.tolist() == (
            await plain.scalar_points(SCALARS, PageQuery(100))
        ).iters.tolist()
        await server.compact()


async def test_a_deletion_hides_old_documents_for_ever(cluster: Cluster) -> None:
    old, server, slow, plain = OldServer(cluster), Server(cluster), Server(cluster), PlainEventStore()
    await old.add(SOME)
    assert await slow.left()
    await server.delete([OWNER])
    for one in (server, slow, Server(cluster)):
        await one.compact()
        assert not await one.left()
        await assert_same(one, plain)
    for sent in (LATER, SOME):  # what was sent before is new now
        await server.add(sent)
        await plain.add(sent)
    await assert_same(server, plain)
    await server.compact()
    await assert_same(server, plain)


async def test_old_documents_are_thinned(cluster: Cluster, few_in_a_block: None) -> None:
    """By one server, while another one remembers all of them."""
    server, other, plain = Server(cluster), Server(cluster), PlainEventStore()
    await OldServer(cluster).add(SOME)
    await plain.add(SOME)
    await assert_same(other, plain)
    for store in (server, plain):
        await store.add(LATER)
    series = SeriesQuery(OWNER, EventType.SCALAR)
    assert await server.scalars.thin_scalars(series, 12) == await plain.thin_scalars(series, 12) > 0
    cluster.wrote([names.blocks(cluster.prefix, EventType.SCALAR, OWNER.company)])
    for one in (server, other, Server(cluster)):
        await assert_same(one, plain)


async def test_servers_of_older_versions_are_refused(cluster: Cluster) -> None:
    old, server = OldServer(cluster), Server(cluster)
    await old.add(SOME)
    await server.log()
    item = '{"create":{"_id":"any","routing":"task:task"}}\n{"owner":"task:task"}\n'
    with pytest.raises(EventStoreBusy, match="does not write"):
        await bulk.send(cluster, names.index(cluster.prefix, EventType.LOG, OWNER.company), [item], in_order=False)


async def test_a_company_without_old_documents_is_asked_for_now_and_then(cluster: Cluster) -> None:
    now = 0.0
    indices, others = (OldIndices(cluster, EventType.SCALAR, lambda: now) for _ in range(2))
    assert await indices.state("company") is State.NOTHING
    await OldServer(cluster).add(SOME)
    assert await indices.state("company") is State.NOTHING
    assert await others.state("company") is State.EVERYTHING
    now += LOOK + 1
    assert await indices.state("company") is State.EVERYTHING
    assert await indices.state("other") is State.NOTHING


class Stopped(Exception):
    pass


async def test_a_server_may_stop_anywhere_while_it_moves_documents(
    cluster: Cluster, few_in_a_block: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = PlainEventStore()
    await OldServer(cluster).add(SOME)
    await Server(cluster).add(LATER)
    for one in (SOME, LATER):
        await plain.add(one)
    before = await Server(cluster).log()
    left = 0

    def stop_before(name: str) -> None:
        call = getattr(ElasticsearchBlocks, name)

        async def stopped(*arguments: Any, **more: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise Stopped
            return await call(*arguments, **more)

        monkeypatch.setattr(ElasticsearchBlocks, name, stopped)

    for name in ("put", "remove", "ended", "find", "fetch"):
        stop_before(name)
    server, steps = Server(cluster), 0
    while True:
        left = steps = steps + 1
        try:
            await server.compact()
            break
        except Stopped:
            left = 10**9
            await assert_same(Server(cluster), plain)
            assert await Server(cluster).log() == before
    left = 10**9
    assert steps > 6
    assert not await Server(cluster).left()
    await assert_same(Server(cluster), plain)
    assert await Server(cluster).log() == before


operations = st.lists(
    st.one_of(
        st.tuples(st.just("add"), random_events.batches),
        st.tuples(st.just("add"), random_events.batches),
        st.tuples(st.just("add again"), st.integers(0, 9)),
        st.tuples(st.just("compact"), random_events.owners, st.integers(1, 2)),
        st.tuples(st.just("delete"), st.lists(random_events.owners, min_size=1, max_size=2)),
    ),
    max_size=6,
)


async def run(url: str, prefix: str, old: list[EventBatch], new: list[tuple[Any, ...]]) -> None:
    """Some batches are kept by an old server, then new servers do all the rest."""
    address = elasticsearch_address(engine.address(url, prefix))
    cluster = Cluster(address, strict=True, bounds=FEW_IN_A_BLOCK)
    before, servers, plain = OldServer(cluster), [Server(cluster), Server(cluster)], PlainEventStore()
    sent: list[EventBatch] = []
    try:
        await check_schema(cluster.client, prefix, migrate=True)
        for one in old:
            await before.add(one)
            await plain.add(one)
            sent.append(one)
        for number, (name, *arguments) in enumerate(new):
            server = servers[number % 2]
            if name == "add":
                sent += arguments
                await server.add(*arguments)
                await plain.add(*arguments)
            elif name == "add again" and sent:
                again = sent[arguments[0] % len(sent)]
                await server.add(again)
                await plain.add(again)
            elif name == "compact":
                await server.compact(*arguments)
            elif name == "delete":
                await server.delete(*arguments)
                await plain.delete(*arguments)
        for server in servers:
            await assert_same(server, plain, OWNERS)
            for owner in OWNERS:
                log = await server.log(owner)
                await server.compact(owner)
                assert not await server.left(owner)
                assert await server.log(owner) == log
        await assert_same(servers[0], plain, OWNERS)
    finally:
        await cluster.close()


def test_old_documents_answer_as_the_plain_store(elasticsearch_url: str, elasticsearch_new_prefix: NewPrefix) -> None:
    @examples(3)
    @given(st.lists(random_events.batches, min_size=1, max_size=3), operations)
    def same(old: list[EventBatch], new: list[tuple[Any, ...]]) -> None:
        with elasticsearch_new_prefix() as prefix:
            asyncio.run(run(elasticsearch_url, prefix, old, new))

    same()
