"""One curve of many runs: how much is read for it, and what is answered while blocks are compacted."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from apiserver.events.model import SINGLE_VALUE_ITERATION, BucketAxis, Owner
from apiserver.events.queries import CommonBuckets, CurvesQuery
from apiserver.events.smoothing import Kind, Smoothing
from apiserver.stores.events.blocks import encoding
from apiserver.stores.events.blocks.bounds import ColumnarBounds
from apiserver.stores.events.blocks.scalars import ColumnarScalars
from tests.contract.event_stores import OWNER, batch, scalars
from tests.contract.plain_event_store import PlainEventStore
from tests.stores.events.blocks.watched_blocks import WatchedBlocks
from tests.stores.events.comparison import UNKNOWN, assert_same_curves

pytestmark = pytest.mark.anyio

OWNERS = [Owner("company", f"task {n}") for n in range(40)]
NAN = math.nan
SMALL_CHUNKS = ColumnarBounds(block_points=100)


def loss(*owners: Owner, axis: BucketAxis = BucketAxis.ITER, smoothing: Smoothing | None = None) -> CurvesQuery:
    return CurvesQuery(owners, "loss", "train", axis, smoothing)


@pytest.mark.test
@pytest.mark.parametrize(("at_a_time", "long"), [(300, 16), (2**18, 1024)])
async def test_curves_of_many_owners_are_those_of_the_plain_store(at_a_time: int, long: int) -> None:
    blocks, plain = WatchedBlocks(), PlainEventStore()
    engine = ColumnarScalars(blocks, bounds=replace(SMALL_CHUNKS, points_at_a_time=at_a_time, long_block=long))
    owners = OWNERS[:8]
    for number, owner in enumerate(owners):
        for first in (0, 150 + number):
            values = [NAN if n % 7 == 0 else math.sin(n + number) for n in range(170)]
            added = batch(scalars(values, iters=range(first, first + 170), worker=f"worker {first}", owner=owner))
            await engine.add(added)
            await plain.add(added)
        if number % 3:
            await engine.compact(owner, fewest=1)
        added = batch(scalars([9.0, 7.0, NAN], iters=[SINGLE_VALUE_ITERATION, 200, 400 + number], owner=owner))
        if number % 2:
            await engine.add(added)
            await plain.add(added)
    for axis in BucketAxis:
        await assert_same_curves(engine, plain, loss(*owners, UNKNOWN, axis=axis))


async def test_many_owners_are_read_by_two_requests() -> None:
    blocks = WatchedBlocks()
    engine = ColumnarScalars(blocks)
    for owner in OWNERS:
        await engine.add(batch(scalars([1.0, 2.0, 3.0], owner=owner)))
    common = CommonBuckets(0, 2, 2)
    smoothing = Smoothing(Kind.MEAN, points=3)
    for asked in (loss(*OWNERS), loss(*OWNERS, axis=BucketAxis.TIMESTAMP), loss(*OWNERS, smoothing=smoothing)):
        for read in (engine.curve_buckets, partial(engine.curve_neighbours, before=False)):
            await read(asked, common)
            assert blocks.searches == 1
            assert len(blocks.fetches) <= 1
            blocks.forget()


async def test_sums_of_many_curves_are_fetched_together() -> None:
    blocks, bounds = WatchedBlocks(), replace(SMALL_CHUNKS, points_at_a_time=300)
    engine = ColumnarScalars(blocks, bounds=bounds)
    for owner in OWNERS:
        await engine.add(batch(scalars(range(100), owner=owner)))
        await engine.compact(owner, fewest=1)
    engine = ColumnarScalars(blocks, bounds=bounds)  # the server that made the chunks has their columns
    blocks.forget()
    found = await engine.curve_buckets(loss(*OWNERS), CommonBuckets(0, 1, 256))
    assert found.means.tolist() == [[49.5]] * len(OWNERS)
    assert [len(some) for some in blocks.fetches] == [len(OWNERS)]
    assert blocks.columns == {encoding.SUMS}


async def test_ends_over_iterations_need_no_columns() -> None:
    blocks = WatchedBlocks()
    engine = ColumnarScalars(blocks, bounds=SMALL_CHUNKS)
    await engine.add(batch(*(scalars(range(300), owner=owner) for owner in OWNERS)))
    assert await engine.curve_ends(loss(*OWNERS)) == (0, 299)
    assert blocks.fetches == []


async def test_ends_over_times_need_no_points_of_chunks() -> None:
    blocks = WatchedBlocks()
    engine = ColumnarScalars(blocks, bounds=SMALL_CHUNKS)
    for owner in OWNERS:
        await engine.add(batch(scalars(range(300), timestamps=range(1000, 700, -1), owner=owner)))
        await engine.compact(owner, fewest=1)
    blocks.forget()
    for axis, ends in ((BucketAxis.TIMESTAMP, (701, 1000)), (BucketAxis.DURATION, (0, 299))):
        assert await engine.curve_ends(loss(*OWNERS, axis=axis)) == ends
    assert blocks.columns == {encoding.SPANS}


async def test_only_the_nearest_blocks_are_read_for_neighbours() -> None:
    blocks = WatchedBlocks()
    engine = ColumnarScalars(blocks, bounds=SMALL_CHUNKS)
    values = np.arange(1000.0)
    values[395:] = NAN
    await engine.add(batch(scalars(values.tolist(), owner=OWNER)))
    found = await engine.curve_neighbours(loss(OWNER), CommonBuckets(50, 2, 10), before=True)  # of 500 to 519
    assert (found.numbers.tolist(), found.means.tolist()) == ([-11], [392])
    assert [[block.first for block, _ in some] for some in blocks.fetches] == [[400], [300, 200]]


async def test_a_bucket_of_several_blocks_is_a_neighbour_as_a_whole() -> None:
    engine = ColumnarScalars(WatchedBlocks(), bounds=SMALL_CHUNKS)
    await engine.add(batch(scalars(range(1000), owner=OWNER)))
    for before, numbers, mean in ((True, [-1], 255.5), (False, [1], (768 + 999) / 2)):
        common = CommonBuckets(1, 1, 512) if before else CommonBuckets(2, 1, 256)
        found = await engine.curve_neighbours(loss(OWNER), common, before=before)
        assert (found.numbers.tolist(), found.means.tolist()) == (numbers, [mean])


async def test_curves_are_whole_if_blocks_are_compacted_meanwhile() -> None:
    blocks = WatchedBlocks()
    engine = ColumnarScalars(blocks)
    for n in range(3):
        await engine.add(batch(scalars([n, n], iters=[2 * n, 2 * n + 1])))
    other = ColumnarScalars(blocks)
    blocks.before_fetch = partial(other.compact, OWNER, fewest=1)
    found = await engine.curve_buckets(loss(OWNER), CommonBuckets(0, 3, 2))
    assert found.means.tolist() == [[0, 1, 2]]
    assert blocks.searches == 3  # one of them is that of the compaction
