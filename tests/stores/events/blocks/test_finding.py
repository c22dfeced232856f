"""What a server remembers of blocks: it answers as if it remembered nothing, whatever other servers do meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from apiserver.events.model import EventType, MetricSelection, Owner
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.stores.events.blocks.blocks import Found
from apiserver.stores.events.blocks.bounds import BOUNDS, ColumnarBounds
from apiserver.stores.events.blocks.finding import Finder
from apiserver.stores.events.blocks.scalars import ColumnarScalars
from apiserver.stores.events.blocks.stretches import OfSeries, stretches
from tests.contract.event_stores import OWNER, SCALARS, batch, scalars, select
from tests.stores.events.blocks.plain_blocks import PlainBlocks
from tests.stores.events.blocks.watched_blocks import WatchedBlocks

pytestmark = pytest.mark.anyio

OTHER = Owner("company", "other")
MANY = BOUNDS.many_blocks


@pytest.fixture
def blocks() -> WatchedBlocks:
    return WatchedBlocks()


async def series_in(found: Found) -> OfSeries:
    return stretches(found)


@pytest.fixture
def finder(blocks: WatchedBlocks) -> Finder:
    return Finder(blocks, series_in)


async def add(blocks: PlainBlocks, *iters: int, owner: Owner = OWNER) -> None:
    """Put a fragment for each iteration."""
    store = ColumnarScalars(blocks)
    for one in iters:
        await store.add(batch(scalars([float(one)], iters=[one], owner=owner)))


async def asked_again(finder: Finder, blocks: WatchedBlocks, series: SeriesQuery = SCALARS) -> list[int]:
    """How many blocks each request finds for a query, which is answered as by who remembers nothing."""
    everything = await PlainBlocks.find(blocks, series)
    blocks.forget()
    found = await finder.find(series)
    counting = [one for one in found.blocks if one.reaches >= found.deleted]
    expected = [one for one in everything.blocks if one.reaches >= everything.deleted]
    assert sorted(one.id for one in counting) == sorted(one.id for one in expected)
    assert found.deleted == everything.deleted
    return [len(one.blocks) for one in blocks.found]


async def test_asks_only_for_what_came_since(finder: Finder, blocks: WatchedBlocks) -> None:
    await add(blocks, *range(MANY))
    assert await asked_again(finder, blocks) == [MANY]
    assert await asked_again(finder, blocks) == [MANY]
    assert await asked_again(finder, blocks) == [1]
    await add(blocks, 100, 101)
    assert await asked_again(finder, blocks) == [3]
    assert await asked_again(finder, blocks) == [3]


async def test_the_series_are_remembered_until_something_comes(blocks: WatchedBlocks) -> None:
    made: list[int] = []

    async def noted(found: Found) -> OfSeries:
        made.append(len(found.counting))
        return stretches(found)

    finder = Finder(blocks, noted)
    await add(blocks, *range(MANY))
    for _ in range(3):
        await finder.series(SCALARS)
    made.clear()
    ((_, some),) = (await finder.series(SCALARS)).items()
    assert [one.first for one in some] == [*range(MANY)]
    assert made == []
    await add(blocks, 100)
    for _ in range(3):
        ((_, some),) = (await finder.series(SCALARS)).items()
        assert [one.first for one in some] == [*range(MANY), 100]
    assert made == [MANY + 1]
    await ColumnarScalars(blocks).delete([OWNER])
    assert [await finder.series(SCALARS) for _ in range(2)] == [{}, {}]


async def test_series_of_fewer_blocks_are_not_remembered_for_more(blocks: WatchedBlocks) -> None:
    """While one reader makes series of the blocks, another one finds more."""
    goes_on = asyncio.Event()

    async def slow(found: Found) -> OfSeries:
        if len(found.blocks) == MANY:
            await goes_on.wait()
        return stretches(found)

    finder = Finder(blocks, slow)
    await add(blocks, *range(MANY))
    for _ in range(2):
        await finder.find(SCALARS)
    before = asyncio.create_task(finder.series(SCALARS))
    await asyncio.sleep(0)
    await add(blocks, 100)
    assert [len(some) for some in (await finder.series(SCALARS)).values()] == [MANY + 1]
    goes_on.set()
    assert [len(some) for some in (await before).values()] == [MANY]
    assert [len(some) for some in (await finder.series(SCALARS)).values()] == [MANY + 1]


async def test_remembers_all_series_of_a_bundle(finder: Finder, blocks: WatchedBlocks) -> None:
    store = ColumnarScalars(blocks)
    for one in range(MANY // 2):
        some = (scalars([1.0], iters=[one], metric=metric) for metric in ("loss", "accuracy"))
        await store.add(batch(*some))
    for _ in range(3):
        found = (await asked_again(finder, blocks))[-1]
    assert found == 2
    assert len(await store.series(OWNER)) == 2


async def test_a_query_with_few_blocks_is_asked_as_it_is(finder: Finder, blocks: WatchedBlocks) -> None:
    await add(blocks, *range(MANY - 1))
    for _ in range(4):
        assert await asked_again(finder, blocks) == [MANY - 1]


async def test_remembers_anew_when_much_came_since(finder: Finder, blocks: WatchedBlocks) -> None:
    await add(blocks, *range(MANY))
    for _ in range(2):
        await asked_again(finder, blocks)
    more = MANY + MANY // 4
    await add(blocks, *range(100, 100 + more))
    assert await asked_again(finder, blocks) == [1 + more]
    assert await asked_again(finder, blocks) == [MANY + more]
    assert await asked_again(finder, blocks) == [1]


async def test_another_server_compacts_between_two_reads(blocks: WatchedBlocks) -> None:
    reader, other = ColumnarScalars(blocks), ColumnarScalars(blocks)
    await add(blocks, *range(MANY))
    for last in (MANY, MANY, MANY, MANY + 1):
        if last > MANY:
            await add(blocks, MANY)
            await other.compact(OWNER, fewest=1)
        found = await reader.scalar_points(SCALARS, PageQuery(1000))
        assert found.iters.tolist() == [*range(last)]
    blocks.forget()
    assert (await reader.scalar_points(SCALARS, PageQuery(1000))).iters.tolist() == [*range(MANY + 1)]
    assert [len(found.blocks) for found in blocks.found] == [1]  # so few that they are not remembered


async def test_another_server_deletes_between_two_reads(blocks: WatchedBlocks) -> None:
    reader, other = ColumnarScalars(blocks), ColumnarScalars(blocks)
    await add(blocks, *range(MANY))
    for _ in range(3):
        assert len((await reader.scalar_points(SCALARS, PageQuery(1000))).iters) == MANY
    await other.delete([OWNER])
    assert len((await reader.scalar_points(SCALARS, PageQuery(1000))).iters) == 0
    await add(blocks, 7)
    assert (await reader.scalar_points(SCALARS, PageQuery(1000))).iters.tolist() == [7]


async def test_a_store_that_was_made_anew_is_asked_for_everything(finder: Finder, blocks: WatchedBlocks) -> None:
    await add(blocks, *range(MANY))
    for _ in range(3):
        await asked_again(finder, blocks)
    blocks.owners.clear()
    await add(blocks, *range(100, 100 + MANY + 5))
    assert await asked_again(finder, blocks) == [6, MANY + 5]
    assert await asked_again(finder, blocks) == [1]
    blocks.owners.clear()
    assert await asked_again(finder, blocks) == [0, 0]


async def test_a_write_that_may_be_undone_is_not_remembered(finder: Finder, blocks: WatchedBlocks) -> None:
    await add(blocks, *range(MANY + 1))
    last = blocks.of(OWNER).writes[-1]
    last.has_ended = False
    for _ in range(2):
        await asked_again(finder, blocks)
    assert await asked_again(finder, blocks) == [2]
    blocks.of(OWNER).fail_over()
    assert await asked_again(finder, blocks) == [1]


async def test_a_block_that_is_not_there_lets_a_read_ask_for_everything(blocks: WatchedBlocks) -> None:
    reader = ColumnarScalars(blocks, cache=0)
    await add(blocks, *range(MANY))
    for _ in range(3):
        await reader.scalar_points(SCALARS, PageQuery(1000))
    writes = blocks.of(OWNER).writes
    del writes[0]  # as nobody may do
    assert (await reader.scalar_points(SCALARS, PageQuery(1000))).iters.tolist() == [*range(1, MANY)]


async def test_reads_at_the_same_time_remember_together(monkeypatch: pytest.MonkeyPatch, blocks: WatchedBlocks) -> None:
    finder = Finder(blocks, series_in)

    async def pause() -> None:
        await asyncio.sleep(0)

    monkeypatch.setattr(blocks, "pause", pause)
    await add(blocks, *range(MANY))
    for expected in (MANY, MANY, 1, 1):
        blocks.forget()
        await asyncio.gather(*(finder.find(SCALARS) for _ in range(3)))
        assert [len(found.blocks) for found in blocks.found] == [expected] * 3


async def test_queries_are_remembered_apart(finder: Finder, blocks: WatchedBlocks) -> None:
    await add(blocks, *range(2 * MANY))
    await add(blocks, *range(MANY), owner=OTHER)
    none = select(SCALARS, MetricSelection("none"))
    for _ in range(3):
        assert len((await finder.find(SCALARS)).blocks) == 2 * MANY
        assert len((await finder.find(none)).blocks) == 0
        assert len((await finder.find(SeriesQuery(OTHER, EventType.SCALAR))).blocks) == MANY


async def test_queries_that_were_asked_long_ago_are_forgotten(blocks: WatchedBlocks) -> None:
    finder = Finder(blocks, series_in, ColumnarBounds(remembered_blocks=MANY + 3))
    other = SeriesQuery(OTHER, EventType.SCALAR)
    for owner in (OWNER, OTHER):
        await add(blocks, *range(MANY), owner=owner)
    for _ in range(3):
        last = await asked_again(finder, blocks)
    assert last == [1]
    for _ in range(3):
        last = await asked_again(finder, blocks, other)
    assert last == [1]
    assert await asked_again(finder, blocks) == [MANY]


@pytest.mark.parametrize("names", [("x" * 1000,), tuple("abcdefgh")])
async def test_names_in_queries_take_room(blocks: WatchedBlocks, names: tuple[str, ...]) -> None:
    finder = Finder(blocks, series_in, ColumnarBounds(remembered_blocks=2 * (MANY + 4)))
    await add(blocks, *range(MANY))
    for query in (SCALARS, select(SCALARS, MetricSelection("loss", ("train", *names)))):
        for _ in range(3):
            last = await asked_again(finder, blocks, query)
        assert last == [1]
    assert await asked_again(finder, blocks) == [MANY]


async def test_several_owners_are_found_by_one_request(blocks: WatchedBlocks) -> None:
    finder = Finder(blocks, series_in, ColumnarBounds(many_blocks=1))
    queries = [SCALARS, SeriesQuery(OTHER, EventType.SCALAR)]
    await add(blocks, 1, 2)
    for _ in range(3):
        blocks.forget()
        assert [len(series) for series in await finder.series_of_each(queries)] == [1, 0]
        assert blocks.searches == 1


async def test_what_compaction_leaves_is_remembered_and_later_writes_of_others_are_found(blocks: WatchedBlocks) -> None:
    engine, other = ColumnarScalars(blocks), ColumnarScalars(blocks)
    for series in (MANY + 5, 3):
        await engine.add(
            batch(*(scalars([1.0, 2.0], metric=f"{one:02}", iters=[series, 100]) for one in range(series)))
        )
        await engine.compact(OWNER, fewest=1)
    await other.add(batch(scalars([3.0], metric="99")))
    assert await engine.count(SCALARS) == await ColumnarScalars(blocks).count(SCALARS) == 2 * (MANY + 5) + 3 + 1
    blocks.forget()
    assert len(await engine.series(OWNER)) == MANY + 6
    assert [len(one.blocks) for one in blocks.found] == [1 + 1]
    await other.delete([OWNER])
    assert await engine.series(OWNER) == []
