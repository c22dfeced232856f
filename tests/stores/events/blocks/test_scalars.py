"""The scalars of block stores, by the contract of event stores and beside the plain one, in fragments and in chunks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.events.aggregates import ALL, Aggregate
from apiserver.events.model import (
    SINGLE_VALUE_ITERATION,
    BucketAxis,
    EventType,
    MetricSelection,
    ScalarColumns,
    ScalarPoints,
    ScalarPosition,
)
from apiserver.events.queries import BucketQuery, CurvesQuery, PageQuery, Range, SeriesQuery, Width
from apiserver.events.smoothing import Kind, Smoothing
from apiserver.stores.events.base import EventStore
from apiserver.stores.events.blocks.blocks import BlockStore, NewBlock, Refused
from apiserver.stores.events.blocks.bounds import BOUNDS, ColumnarBounds
from apiserver.stores.events.blocks.scalars import ColumnarScalars
from tests.chance import examples
from tests.contract import (
    test_event_store_buckets,
    test_event_store_curves,
    test_event_store_points,
    test_event_store_scalars,
    test_event_store_thinning,
)
from tests.contract.event_stores import OWNER, SCALARS, Case, batch, scalars
from tests.contract.plain_event_store import PlainEventStore
from tests.stores.events import random_events
from tests.stores.events.blocks import block_stores
from tests.stores.events.blocks.plain_blocks import PlainBlocks
from tests.stores.events.comparison import (
    UNKNOWN,
    assert_same_by_worker,
    assert_same_curves,
    assert_same_stats,
    assert_same_times,
)
from tests.stores.events.random_events import OWNERS
from tests.stores.events.whole import checksums_of

pytestmark = pytest.mark.anyio
blocks = block_stores.blocks

#: It counts events of all types, which the engine does not have.
NOT_HERE = "test_adding_a_batch_again_changes_nothing"
CONTRACT = (
    test_event_store_buckets,
    test_event_store_curves,
    test_event_store_points,
    test_event_store_scalars,
    test_event_store_thinning,
)
TESTS = {name: test for module in CONTRACT for name, test in vars(module).items()}
globals().update({name: test for name, test in TESTS.items() if name.startswith("test_") and name != NOT_HERE})

#: Powers of two are not widened, so that buckets are the same as those of the plain store.
WIDTHS = (1, 2, 16, 2**10, 2**62)
RANGES = (Range(), Range(3), Range(-2, 12), Range(100, 1_520), Range(50, 60))


@pytest.fixture(params=["fragments", "chunks", "both"])
async def case(request: pytest.FixtureRequest) -> Case:
    """The engine as an event store, which compacts whenever it may, once, or never."""
    engine = ColumnarScalars(blocks := PlainBlocks())
    times = {"fragments": 0, "chunks": 10**6, "both": 1}[request.param]

    async def settle() -> None:
        nonlocal times
        if times:
            times -= 1
            for owner in [*blocks.owners]:
                await engine.compact(owner, fewest=1)

    return Case(cast(EventStore, engine), settle)


class Both:
    """The engine and the plain store, with the same events."""

    def __init__(self, blocks: BlockStore, bounds: ColumnarBounds = BOUNDS) -> None:
        self.engine, self.plain = ColumnarScalars(blocks, bounds=bounds), PlainEventStore()

    async def add(self, *groups: ScalarColumns, received: int = 7) -> None:
        added = batch(*groups, received=received)
        await self.engine.add(added)
        await self.plain.add(added)

    async def delete(self) -> None:
        await self.engine.delete([OWNER])
        await self.plain.delete([OWNER])

    async def assert_same(self, series: SeriesQuery = SCALARS, limits: Sequence[int] = (1000,)) -> None:
        assert await self.engine.series(series.owner) == await self.plain.series(series.owner, [EventType.SCALAR])
        await assert_same_stats(self.engine, self.plain, series)
        assert await self.engine.count(series) == sum([one.count for one in await self.plain.scalar_stats(series)])
        for axis, width, range in product(BucketAxis, WIDTHS, RANGES):
            await self.assert_same_buckets(series, BucketQuery(axis, _constant(width), range, ALL))
        smoothing = Smoothing(next(iter(Kind)), weight=0.7, points=4)
        await self.assert_same_buckets(series, BucketQuery(BucketAxis.ITER, _quarter, smoothing=smoothing))
        for limit, descending, whole in product(limits, (False, True), (False, True)):
            await self.assert_same_walk(series, PageQuery(limit, None, descending, whole))
        for limit in limits:
            await assert_same_times(self.engine, self.plain, series, limit)
        await assert_same_by_worker(self.engine, self.plain, series)
        names = await self.plain.series(series.owner, [EventType.SCALAR])
        for (_, metric, variant), axis in product(names[-1:], BucketAxis):
            asked = CurvesQuery([*OWNERS, UNKNOWN], metric, variant, axis)
            await assert_same_curves(self.engine, self.plain, asked)

    async def assert_same_buckets(self, series: SeriesQuery, wanted: BucketQuery) -> None:
        got = await self.engine.scalar_buckets(series, wanted)
        expected = await self.plain.scalar_buckets(series, wanted)
        assert [(one.metric, one.variant) for one in got] == [(one.metric, one.variant) for one in expected]
        for one, other in zip(got, expected, strict=True):
            assert one.x.tolist() == other.x.tolist(), wanted
            for name, column in one.values.items():
                near = 1e-9 if name is Aggregate.MEAN or wanted.smoothing else 0
                assert np.allclose(column, other.values[name], rtol=near, atol=near, equal_nan=True), (name, wanted)

    async def assert_same_walk(self, series: SeriesQuery, page: PageQuery[ScalarPosition]) -> None:
        while True:
            got = _rows(await self.engine.scalar_points(series, page))
            assert got == _rows(await self.plain.scalar_points(series, page)), page
            if not got:
                return
            page = PageQuery(page.limit, ScalarPosition(*got[-1][:3]), page.descending, page.whole)


def _constant(width: int) -> Width:
    return lambda *_: width


def _quarter(count: int, least: int, greatest: int) -> int:
    return max(1, (greatest - least) // 4)


def _rows(points: ScalarPoints) -> list[tuple[Any, ...]]:
    columns = (points.timestamps.tolist(), map(repr, points.values.tolist()), points.workers, points.received.tolist())
    names = [points.names[number] for number in points.series.tolist()]
    return [(iter, *name, *rest) for iter, name, *rest in zip(points.iters.tolist(), names, *columns, strict=True)]


def run(first: int, count: int, value: float = 0.0, **more: Any) -> ScalarColumns:
    """Points with different values at neighbouring iterations."""
    return scalars([value + math.sin(n) for n in range(count)], iters=range(first, first + count), **more)


@pytest.mark.test
async def test_it_is_the_same_on_each_block_store(blocks: BlockStore) -> None:
    both = Both(blocks, ColumnarBounds(block_points=128, sealed_points=64, long_block=16))
    await both.add(run(0, 400), run(0, 50, variant="test"), scalars([5.0], iters=[SINGLE_VALUE_ITERATION]))
    for number in range(20):
        await both.add(run(400 + number * 10, 10, worker=f"worker {number}"))
    await both.add(run(30, 10, 2.0, variant="test", worker="late"), received=8)
    await both.assert_same(limits=(330,))
    await both.engine.compact(OWNER)
    await both.assert_same(limits=(330,))
    await both.add(run(390, 100, 3.0))
    await both.assert_same(limits=(330,))
    await both.engine.compact(OWNER, fewest=1)
    await both.assert_same(limits=(330,))
    await both.delete()
    await both.assert_same()
    await both.add(run(20, 10))
    await both.assert_same(limits=(3,))
    await both.engine.compact(OWNER, fewest=1)
    await both.assert_same(limits=(3,))


async def test_few_blocks_are_left(blocks: BlockStore) -> None:
    engine = ColumnarScalars(blocks)
    for number in range(40):
        await engine.add(batch(run(number * 10, 10)))
        await engine.compact(OWNER, fewest=4)
    found = (await blocks.find(SCALARS)).blocks
    assert len(found) < 4 + 6
    assert sum(block.count for block in found) == 400
    await engine.delete([OWNER])
    await engine.compact(OWNER)
    await blocks.ended(OWNER)
    assert (await blocks.find(SCALARS)).blocks == []


class PickyBlocks(PlainBlocks):
    """It refuses the series `bad`, and bundles with it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[list[str]] = []
        """The metrics in each block of each request."""

    async def put(self, blocks: Sequence[NewBlock]) -> None:
        self.asked.append(["+".join(metric for metric, _ in block.names) for block in blocks])
        refused = [(block, "it is bad") for block in blocks if ("bad", "train") in block.names]
        await super().put([block for block in blocks if all(block is not one for one, _ in refused)])
        if refused:
            raise Refused(refused)


async def test_a_series_that_is_refused_costs_no_other() -> None:
    blocks = PickyBlocks()
    engine = ColumnarScalars(blocks, bounds=ColumnarBounds(bundle_points=3))
    metrics = ("a", "b", "c", "bad", "d", "e")
    with pytest.raises(Refused) as refusal:
        await engine.add(batch(*(scalars([1.0], metric=metric) for metric in metrics)))
    assert refusal.value.events == {"it is bad": 1}
    assert [name.metric for name in await engine.series(OWNER)] == [name for name in metrics if name != "bad"]
    assert blocks.asked == [["a+b+c", "bad+d+e"], ["bad", "d", "e"]]


async def test_a_batch_that_is_sent_again_changes_nothing(blocks: BlockStore) -> None:
    both = Both(blocks)
    await both.add(run(0, 100), run(0, 10, variant="test"))
    await both.engine.add(batch(run(0, 100), run(0, 10, variant="test"), received=9))
    assert len((await blocks.find(SCALARS)).blocks) == 2


async def test_a_batch_that_is_sent_again_after_a_deletion_is_there(blocks: BlockStore) -> None:
    both = Both(blocks)
    await both.add(run(0, 10))
    await both.delete()
    await both.add(run(0, 10))
    await both.assert_same()


#: What happens to both stores: points come, all are deleted, series are thinned to so many points, or the engine
#: compacts with this number of blocks.
STEP = (
    st.lists(random_events.scalars(), min_size=1, max_size=3)
    | st.just("delete")
    | st.tuples(random_events.scalar_series, st.integers(12, 20))
    | st.integers(1, 4)
)


@pytest.mark.test
@examples(20)
@given(st.lists(STEP, max_size=8))
async def test_random_events_are_read_as_from_the_plain_store(steps: Sequence[Any]) -> None:
    both = Both(PlainBlocks())
    for step in steps:
        if step == "delete":
            await both.engine.delete(OWNERS)
            await both.plain.delete(OWNERS)
        elif isinstance(step, tuple):
            series, points = step
            read = await checksums_of(both.engine.whole_points(series))
            gone = await both.engine.thin_scalars(series, points, read)
            assert gone == await both.plain.thin_scalars(series, points)
        elif isinstance(step, int):
            for owner in OWNERS:
                await both.engine.compact(owner, fewest=step)
        else:
            await both.add(*step)
    for owner, selection in product(OWNERS, ((), [MetricSelection("b", ("x", "z"))])):
        await both.assert_same(SeriesQuery(owner, EventType.SCALAR, selection), limits=(1, 4, 1000))
