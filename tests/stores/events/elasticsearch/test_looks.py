"""What searches found is shared for a second, unless something changed."""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import count
from typing import Any

import pytest

from apiserver.events.model import EventType, JsonObject, MetricSelection, Owner
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.stores.events.blocks.blocks import Block, Found, Version
from apiserver.stores.events.blocks.scalars import ColumnarScalars
from apiserver.stores.events.elasticsearch.address import ElasticsearchAddress
from apiserver.stores.events.elasticsearch.blocks import ElasticsearchBlocks
from apiserver.stores.events.elasticsearch.bounds import BOUNDS
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.looks import Looks
from apiserver.stores.events.elasticsearch.migrations import check_schema
from apiserver.stores.events.elasticsearch.store import ElasticsearchEventStore
from tests.contract.event_stores import OWNER, SCALARS, batch, scalars, select

pytestmark = pytest.mark.anyio

INDEX = "index"
SHARED = BOUNDS.shared


class Node:
    """Answers searches with how many there were, and notes whether they had to see all. Its clock stands still."""

    def __init__(self) -> None:
        self.now = 100.0
        self.looks = Looks(lambda: self.now)
        self.see_all: list[bool] = []
        self.goes_on = asyncio.Event()
        self.goes_on.set()
        self.blocks = 0

    async def search(self, see_all: bool) -> Found:
        self.see_all.append(see_all)
        number = len(self.see_all)
        await self.goes_on.wait()
        return Found(
            [Block(OWNER, ("loss", ""), str(n), Version(n, 1), 0, 0, 1) for n in range(self.blocks)], 0, number
        )

    async def find(self, series: SeriesQuery = SCALARS, place: int = 0) -> int:
        """The number of the search that answers."""
        return (await self.looks.find(series, place, INDEX, self.search)).noted


@pytest.fixture
def node() -> Node:
    return Node()


async def test_who_asks_again_is_shown_all_and_shares_that_for_a_second(node: Node) -> None:
    assert [await node.find() for _ in range(4)] == [1, 2, 2, 2]
    assert node.see_all == [False, True]
    node.now += SHARED / 2
    assert await node.find() == 2
    node.now += SHARED / 2
    assert await node.find() == 3
    assert node.see_all == [False, True, False]


async def test_searches_are_shared_apart(node: Node) -> None:
    some = [SCALARS, SeriesQuery(Owner("company", "other"), EventType.SCALAR), select(SCALARS, MetricSelection("loss"))]
    for _ in range(2):
        for series in some:
            await node.find(series)
            await node.find(series, place=7)
    assert [(await node.find(one), await node.find(one, place=7)) for one in some] == [(7, 8), (9, 10), (11, 12)]


@pytest.mark.parametrize("changed", [OWNER, INDEX])
async def test_what_changes_is_searched_at_once(node: Node, changed: Owner | str) -> None:
    assert [await node.find() for _ in range(3)] == [1, 2, 2]
    node.now += SHARED / 4
    node.looks.changed([Owner("company", "other"), "other"])
    assert await node.find() == 2
    node.looks.changed([changed])
    node.now += SHARED / 4
    assert [await node.find() for _ in range(3)] == [3, 4, 4]


async def test_a_search_during_which_something_changes_is_not_shared(node: Node) -> None:
    await node.find()
    node.goes_on.clear()
    slow = asyncio.create_task(node.find())
    await asyncio.sleep(0)
    node.now += SHARED / 4
    node.looks.changed([OWNER])
    node.now += SHARED / 4
    node.goes_on.set()
    assert await slow == 2
    assert await node.find() == 3


async def test_what_was_found_long_ago_or_is_large_is_forgotten(node: Node) -> None:
    node.blocks = 6000
    assert [await node.find(place=place) for place in (1, 1, 1, 2, 2, 2)] == [1, 2, 2, 3, 4, 4]
    assert [await node.find(place=place) for place in (2, 1)] == [4, 5]


class _Counted(Cluster):
    """A cluster that counts searches. Each look at its clock takes a millisecond."""

    def __init__(self, address: ElasticsearchAddress) -> None:
        super().__init__(address, strict=False)
        self.looks = Looks(partial(next, count(100, 0.001)))
        self.asked = 0

    async def search(self, *arguments: Any, **options: Any) -> JsonObject:
        self.asked += 1
        return await super().search(*arguments, **options)


async def test_readers_ask_twice_and_see_what_their_server_wrote_or_deleted_or_was_told_of(
    elasticsearch_url: str, elasticsearch_prefix: str
) -> None:
    address = ElasticsearchAddress((elasticsearch_url,), elasticsearch_prefix)
    cluster, others = _Counted(address), Cluster(address, strict=False)
    await check_schema(cluster.client, elasticsearch_prefix, migrate=True)
    blocks = ElasticsearchBlocks(cluster)
    engine, other = ColumnarScalars(blocks), ColumnarScalars(ElasticsearchBlocks(others))
    await engine.add(batch(scalars([1.0])))
    assert [len((await blocks.find(SCALARS)).counting) for _ in range(5)] == [1] * 5
    assert cluster.asked == 2
    await other.add(batch(scalars([2.0], iters=[7])))
    assert len((await blocks.find(SCALARS)).counting) == 1  # for up to a second
    await blocks.ended(OWNER)
    assert [len((await blocks.find(SCALARS)).counting) for _ in range(3)] == [2] * 3
    await engine.add(batch(scalars([3.0], iters=[8])))
    assert [len((await blocks.find(SCALARS)).counting) for _ in range(3)] == [3] * 3
    await engine.delete([OWNER])
    assert [len((await blocks.find(SCALARS)).counting) for _ in range(3)] == [0] * 3
    await cluster.close()
    await others.close()


async def test_a_strict_server_shares_no_search(elasticsearch_url: str, elasticsearch_prefix: str) -> None:
    address = ElasticsearchAddress((elasticsearch_url,), elasticsearch_prefix)
    one = ElasticsearchEventStore(address, strict=True, migrate=True)
    other = ElasticsearchEventStore(address)
    await one.open()
    await other.open()
    for number in range(1, 5):
        await other.add(batch(scalars([1.0], iters=[number])))
        assert [await one.events_count(OWNER) for _ in range(2)] == [number] * 2
    await one.close()
    await other.close()


async def test_a_block_that_another_server_has_compacted_is_read_anew(
    elasticsearch_url: str, elasticsearch_prefix: str
) -> None:
    address = ElasticsearchAddress((elasticsearch_url,), elasticsearch_prefix)
    one, other = ElasticsearchEventStore(address, migrate=True), ElasticsearchEventStore(address)
    await one.open()
    await other.open()
    await one.add(batch(scalars([1.0, 2.0])))
    await one.add(batch(scalars([3.0], iters=[5])))
    for _ in range(3):
        await one.scalar_points(SCALARS, PageQuery(9))
    await other.compact(OWNER)
    assert (await one.scalar_points(SCALARS, PageQuery(9))).values.tolist() == [1.0, 2.0, 3.0]
    await one.close()
    await other.close()
