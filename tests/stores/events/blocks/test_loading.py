"""Columns are loaded ahead of whoever decodes them: in order, some parts at a time, and not when nobody wants them."""

from __future__ import annotations

import asyncio
import threading
from contextlib import ExitStack, aclosing
from random import random
from typing import Any
from unittest.mock import patch

import pytest

from apiserver.events.model import BucketAxis, Owner
from apiserver.events.queries import EVERYWHERE, BucketQuery, PageQuery, Range
from apiserver.stores.events.blocks.blocks import Block, Gone
from apiserver.stores.events.blocks.bounds import BOUNDS
from apiserver.stores.events.blocks.encoding import CURVE
from apiserver.stores.events.blocks.loading import AHEAD, Loader, Wanted, curve_in, points_in
from apiserver.stores.events.blocks.scalars import ColumnarScalars
from apiserver.stores.events.blocks.stretches import stretches
from apiserver.stores.events.codec import chunks
from apiserver.stores.events.codec.points import Workers
from tests.contract.event_stores import OWNER, SCALARS, batch, scalars
from tests.stores.events.blocks.watched_blocks import WatchedBlocks

pytestmark = pytest.mark.anyio

FEW = BOUNDS.few

PARTS = 8
OTHER = Owner("company", "other")
#: Turns of the event loop in which plain lists have long answered.
TURNS = 100


@pytest.fixture
def blocks() -> WatchedBlocks:
    return WatchedBlocks()


@pytest.fixture
def loader(blocks: WatchedBlocks) -> Loader:
    return Loader(blocks, 0)


@pytest.fixture
async def parts(blocks: WatchedBlocks) -> list[Block]:
    """A fragment each."""
    store = ColumnarScalars(blocks)
    for one in range(PARTS):
        await store.add(batch(scalars([float(one)], iters=[one])))
    found = await blocks.find(SCALARS)
    return sorted(found.blocks, key=lambda one: one.first)


def in_buckets(width: int) -> BucketQuery:
    return BucketQuery(BucketAxis.ITER, lambda count, first, last: width)


def curve(block: Block) -> list[Wanted]:
    return [(block, (CURVE,))]


async def test_each_part_comes_with_its_columns_in_order(
    loader: Loader, blocks: WatchedBlocks, parts: list[Block]
) -> None:
    found = [(part, loaded) async for part, loaded in loader.load_ahead(parts, curve)]
    assert [part for part, _ in found] == parts
    expected = await blocks.fetch([(block, (CURVE,)) for block in parts])
    assert [loaded for _, loaded in found] == [
        {block.id: columns} for block, columns in zip(parts, expected, strict=True)
    ]


async def test_the_next_parts_are_loaded_while_one_is_used(
    loader: Loader, blocks: WatchedBlocks, parts: list[Block]
) -> None:
    async with aclosing(loader.load_ahead(parts, curve)) as ahead:
        async for part, _ in ahead:
            reached = min(parts.index(part) + 1 + AHEAD, PARTS)
            for _ in range(TURNS):
                await asyncio.sleep(0)
            assert len(blocks.fetches) == reached


async def test_what_nobody_waits_for_is_given_up(loader: Loader, blocks: WatchedBlocks, parts: list[Block]) -> None:
    begun, given_up = asyncio.Event(), asyncio.Event()

    async def for_ever() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            given_up.set()

    async with aclosing(loader.load_ahead(parts, curve)) as ahead:
        await anext(ahead)
        blocks.before_fetch = for_ever
        next_one = asyncio.create_task(ahead.__anext__())
        await begun.wait()
        await next_one
    assert given_up.is_set()


async def test_a_part_that_is_gone_ends_the_reading(loader: Loader, blocks: WatchedBlocks, parts: list[Block]) -> None:
    await blocks.remove(OWNER, [parts[2]])
    ahead = loader.load_ahead(parts, curve)
    assert [(await anext(ahead))[0] for _ in range(2)] == parts[:2]
    with pytest.raises(Gone):
        await anext(ahead)


async def test_a_bundle_is_decoded_once_for_all_its_series(loader: Loader, blocks: WatchedBlocks) -> None:
    await ColumnarScalars(blocks).add(
        batch(*(scalars([number, number + 0.5], metric=name, iters=[3, 7]) for number, name in enumerate("abc")))
    )
    found = stretches(await blocks.find(SCALARS))
    each = [stretch for some in found.values() for stretch in some]
    loaded, workers = await loader.whole(each), Workers()
    with patch.object(chunks, "decode_points", wraps=chunks.decode_points) as decode:
        points = [points_in(one, loaded, EVERYWHERE, workers) for one in each]
    with patch.object(chunks, "decode_curves", wraps=chunks.decode_curves) as decode_curves:
        curves = [curve_in(one, loaded, Range(4, 9)) for one in each]
    assert decode.call_count == decode_curves.call_count == 1
    assert [one.values.tolist() for one in points] == [[0, 0.5], [1, 1.5], [2, 2.5]]
    assert [one.values.tolist() for one in curves] == [[0.5], [1.5], [2.5]]


@pytest.mark.parametrize("is_compacted", [False, True])
async def test_many_points_are_decoded_in_threads(blocks: WatchedBlocks, is_compacted: bool) -> None:
    """So that the event loop goes on."""
    engine = ColumnarScalars(blocks, cache=0)
    for number in range(3):
        await engine.add(
            batch(scalars([random() for _ in range(2000)], iters=range(number * 2000, (number + 1) * 2000)))
        )
    if is_compacted:
        await engine.compact(OWNER, fewest=1)
    threads = set[threading.Thread]()

    def noting(decode: Any) -> Any:
        def noted(*arguments: Any, **named: Any) -> Any:
            threads.add(threading.current_thread())
            return decode(*arguments, **named)

        return noted

    for read in (
        lambda: engine.scalar_buckets(SCALARS, in_buckets(1)),
        lambda: engine.scalar_points(SCALARS, PageQuery(5000)),
        lambda: engine.earliest_points(SCALARS, 5000),
        lambda: engine.compact(OWNER, fewest=1),
    ):
        with ExitStack() as patches:
            for name in ("decode_curves", "decode_points"):
                patches.enter_context(patch.object(chunks, name, noting(getattr(chunks, name))))
            await read()
    assert threads
    assert threading.main_thread() not in threads


async def test_the_server_that_made_chunks_needs_not_fetch_them_for_charts_and_summaries(blocks: WatchedBlocks) -> None:
    engine = ColumnarScalars(blocks)
    for start in range(0, 600, 300):
        await engine.add(batch(scalars([0.5] * 300, iters=range(start, start + 300))))
    await engine.compact(OWNER, fewest=FEW)
    blocks.forget()
    for width in (1, 600):
        [found] = await engine.scalar_buckets(SCALARS, in_buckets(width))
        assert len(found.x) == 600 // width
    [stats] = await engine.scalar_stats(SCALARS)
    assert stats.count == 600
    assert not blocks.fetches


async def test_chunks_that_were_replaced_leave_the_room_of_the_cache_to_others(blocks: WatchedBlocks) -> None:
    engine = ColumnarScalars(blocks, cache=20_000)
    await engine.add(batch(scalars([random() for _ in range(1000)])))
    await engine.compact(OWNER, fewest=1)
    for number in range(10):
        await engine.add(
            batch(scalars([random() for _ in range(50)], iters=range(number * 50, number * 50 + 50), owner=OTHER))
        )
        await engine.compact(OTHER, fewest=1)
    blocks.forget()
    assert await engine.scalar_buckets(SCALARS, in_buckets(1))
    assert not blocks.fetches


async def test_a_fragment_is_fetched_once_and_again_when_it_was_put_again(blocks: WatchedBlocks) -> None:
    store, loader = ColumnarScalars(blocks), Loader(blocks, 10**6)
    for fetches in (1, 2):
        await store.add(batch(scalars([1.0, 2.0])))
        (fragment,) = (await blocks.find(SCALARS)).blocks
        for _ in range(2):
            await loader.load([(fragment, ("curve", "details"))])
        assert len(blocks.fetches) == fetches
