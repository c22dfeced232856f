"""The buckets that every event store makes of scalars."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from apiserver.events.aggregates import ALL, Aggregate, Buckets
from apiserver.events.model import (
    SINGLE_VALUE_ITERATION,
    BucketAxis,
    EventType,
    Float64Array,
    Int64Array,
    MetricSelection,
)
from apiserver.events.queries import BucketQuery, Range, SeriesQuery
from apiserver.events.smoothing import Kind, Smoothing
from tests.contract.event_stores import INF, NAN, OWNER, SCALARS, Case, batch, buckets_of, case, same, scalars, select
from tests.events.plain_smoothing import smoothed

__all__ = ["case"]

pytestmark = pytest.mark.anyio


COUNT, MEAN, MIN = Aggregate.COUNT, Aggregate.MEAN, Aggregate.MIN
MAX, FIRST, LAST = Aggregate.MAX, Aggregate.FIRST, Aggregate.LAST


async def test_aggregates_are_the_same_alone_and_beside_others(case: Case) -> None:
    await case.store.add(batch(scalars([3.0, NAN, -1.0, 7.0, INF], iters=[0, 1, 5, 10, 21])))
    await case.settle()
    for axis in BucketAxis:
        whole = await buckets_of(case, 10, axis=axis)
        assert (whole.x.tolist(), whole.values[COUNT].tolist()) == ([0, 10, 20], [3, 1, 1])
        for wanted in (*(frozenset({one}) for one in Aggregate), *(ALL - {one} for one in Aggregate)):
            (found,) = await case.store.scalar_buckets(SCALARS, BucketQuery(axis, lambda *_: 10, aggregates=wanted))
            assert found.x.tolist() == whole.x.tolist()
            assert found.values.keys() == wanted
            for one, column in found.values.items():
                np.testing.assert_array_equal(column, whole.values[one])


async def test_interval_one_gives_every_point(case: Case) -> None:
    await case.store.add(batch(scalars([1.0, NAN, 3.0], iters=[-5, 0, 7])))
    await case.settle()
    found = await buckets_of(case, 1)
    assert (found.metric, found.variant) == ("loss", "train")
    assert (found.x.tolist(), found.values[COUNT].tolist()) == ([-5, 0, 7], [1, 1, 1])
    for column in (
        found.values[MEAN],
        found.values[MIN],
        found.values[MAX],
        found.values[FIRST],
        found.values[LAST],
    ):
        assert same(column, [1.0, NAN, 3.0])


async def test_a_bucket_sums_up_its_points(case: Case) -> None:
    await case.store.add(batch(scalars([4.0, NAN, 8.0, INF, 5.0, NAN], iters=[0, 1, 2, 3, 6, 9])))
    await case.settle()
    found = await buckets_of(case, 3)
    assert (found.x.tolist(), found.values[COUNT].tolist()) == ([0, 3, 6, 9], [3, 1, 1, 1])
    assert same(found.values[MEAN], [6.0, NAN, 5.0, NAN])
    assert same(found.values[MIN], [4.0, NAN, 5.0, NAN])
    assert same(found.values[MAX], [8.0, NAN, 5.0, NAN])
    assert same(found.values[FIRST], [4.0, INF, 5.0, NAN])
    assert same(found.values[LAST], [8.0, INF, 5.0, NAN])
    assert found.values[Aggregate.NOT_FINITE].tolist() == [1, 1, 0, 1]


async def test_buckets_of_negative_iterations_begin_at_multiples_of_the_interval(case: Case) -> None:
    await case.store.add(batch(scalars([1.0, 2.0, 3.0, 4.0], iters=[-5, -4, -1, 0])))
    await case.settle()
    found = await buckets_of(case, 4)
    assert (found.x.tolist(), found.values[MEAN].tolist()) == ([-8, -4, 0], [1.0, 2.5, 4.0])


async def test_bounds_narrow_before_bucketing(case: Case) -> None:
    await case.store.add(batch(scalars([float(n) for n in range(20)])))
    await case.settle()
    found = await buckets_of(case, 5, 3, 11)
    assert (found.x.tolist(), found.values[COUNT].tolist(), found.values[FIRST].tolist()) == (
        [0, 5, 10],
        [2, 5, 2],
        [3.0, 5.0, 10.0],
    )
    assert (await buckets_of(case, 5, None, 3)).values[COUNT].tolist() == [4]
    assert (await buckets_of(case, 5, 18)).values[LAST].tolist() == [19.0]
    assert (await buckets_of(case, 5, 100, 200)).x.tolist() == []


async def test_single_values_are_in_no_bucket(case: Case) -> None:
    await case.store.add(batch(scalars([9.0, 1.0], iters=[SINGLE_VALUE_ITERATION, 0])))
    await case.settle()
    for axis in BucketAxis:
        found = await buckets_of(case, 1, axis=axis)
        assert (found.x.tolist(), found.values[MEAN].tolist()) == ([0], [1.0])
    assert (await case.store.scalar_stats(SCALARS))[0].count == 2


async def test_buckets_over_time_are_in_time_order(case: Case) -> None:
    await case.store.add(batch(scalars([1.0, 2.0, 3.0, 4.0], timestamps=[1300, 1000, 1200, 2500])))
    await case.settle()
    found = await buckets_of(case, 500, axis=BucketAxis.TIMESTAMP)
    assert (found.x.tolist(), found.values[COUNT].tolist()) == ([1000, 2500], [3, 1])
    assert (
        found.values[FIRST].tolist(),
        found.values[LAST].tolist(),
        found.values[MEAN].tolist(),
    ) == ([2.0, 4.0], [1.0, 4.0], [2.0, 4.0])
    found = await buckets_of(case, 500, 1100, 1250, axis=BucketAxis.TIMESTAMP)
    assert (found.x.tolist(), found.values[MEAN].tolist()) == ([1000], [3.0])


async def test_each_series_has_buckets_of_its_own_width(case: Case) -> None:
    series = {"c": range(5, 9), "b": [SINGLE_VALUE_ITERATION], "a": [SINGLE_VALUE_ITERATION, 3, 7], "d": [1]}
    sent = [scalars([1.0] * len(iters), variant=variant, iters=iters) for variant, iters in series.items()]
    await case.store.add(batch(*sent))
    await case.settle()
    asked = []

    def width(count: int, least: int, greatest: int) -> int:
        asked.append((count, least, greatest))
        return count

    found = await case.store.scalar_buckets(
        select(SCALARS, MetricSelection("loss", ("c", "b", "a"))),
        BucketQuery(BucketAxis.ITER, width, aggregates=ALL),
    )
    assert [(one.variant, one.values[COUNT].tolist()) for one in found] == [("a", [1, 1]), ("c", [3, 1])]
    assert asked == [(2, 3, 7), (4, 5, 8)]


async def test_buckets_of_several_owners_are_those_of_each(case: Case) -> None:
    second, single = OWNER._replace(id="second"), OWNER._replace(id="single value")
    await case.store.add(batch(scalars([1.0], iters=[SINGLE_VALUE_ITERATION], owner=single)))
    for begin in (0, 10_000):  # partly merged, on the embedded store
        iters = list(range(begin, begin + 5_000))
        for factor, owner, metric in ((1.0, OWNER, "loss"), (2.0, OWNER, "lr"), (3.0, second, "loss")):
            await case.store.add(
                batch(scalars([n % 7 * factor for n in iters], iters=iters, metric=metric, owner=owner))
            )
        if not begin:
            await case.settle()
    unknown = SeriesQuery(OWNER._replace(id="unknown"), EventType.SCALAR)
    queries = [
        select(SCALARS, MetricSelection("lr")),
        unknown,
        *(replace(SCALARS, owner=one) for one in (single, second)),
    ]
    for axis, smoothing in product(BucketAxis, (None, Smoothing(Kind.EXPONENTIAL, weight=0.5))):
        asked = BucketQuery(axis, lambda count, *_: count // 20, aggregates=ALL, smoothing=smoothing)
        found = await case.store.scalar_buckets_of_each([*queries, SCALARS], asked)
        names = [[one.metric for one in of_owner] for of_owner in found]
        assert names == [["lr"], [], [], ["loss"], ["loss", "lr"]]
        for query, buckets in zip([*queries, SCALARS], found, strict=True):
            alone = await case.store.scalar_buckets(query, asked)
            assert [one.values[COUNT].sum() for one in buckets] == [10_000] * len(alone)
            if case.settles_by_itself:
                continue  # a merge between the two reads may have made the buckets wider
            assert [one.x.tolist() for one in buckets] == [one.x.tolist() for one in alone]
            for one, other in zip(buckets, alone, strict=True):
                for name in ALL:
                    assert one.values[name].tolist() == pytest.approx(other.values[name].tolist(), rel=1e-12)


async def test_single_values_make_no_bucket_wider_though_there_are_lesser_iterations(case: Case) -> None:
    series = {"a": [-(2**40), SINGLE_VALUE_ITERATION, 5], "b": [-(2**40), SINGLE_VALUE_ITERATION], "c": [-(2**40), 5]}
    await case.store.add(batch(*(scalars([1.0] * len(its), iters=its, variant=name) for name, its in series.items())))
    await case.settle()
    asked = []

    def width(count: int, least: int, greatest: int) -> int:
        asked.append((count, least, greatest))
        return 1

    await case.store.scalar_buckets(SCALARS, BucketQuery(BucketAxis.ITER, width))
    assert asked == [(2, -(2**40), 5), (1, -(2**40), -(2**40)), (2, -(2**40), 5)]


async def test_series_without_a_point_inside_have_no_buckets(case: Case) -> None:
    await case.store.add(batch(scalars([1.0] * 3, variant="a"), scalars([1.0] * 9, variant="b")))
    await case.settle()
    for axis in BucketAxis:
        found = await case.store.scalar_buckets(SCALARS, BucketQuery(axis, lambda *_: 2, Range.of(5, 8), ALL))
        assert [(one.variant, one.x.tolist()) for one in found] == [("a", []), ("b", [4, 6, 8])]


async def test_a_smoothed_curve_looks_the_same_at_each_zoom(case: Case) -> None:
    values = [math.sin(n / 100) + n % 7 for n in range(10_000)]
    iters = [n * 3 for n in range(10_000)]
    await case.store.add(batch(scalars(values, iters=iters), scalars([1.0], iters=[SINGLE_VALUE_ITERATION])))
    await case.settle()
    values[5000] = NAN
    await case.store.add(batch(scalars([NAN], iters=[iters[5000]])))
    for kind in Kind:
        smoothing = Smoothing(kind, weight=0.95, points=9)
        expected = smoothed(smoothing, iters, values)
        for axis in BucketAxis:
            for start, stop in ((0, 29_999), (15_000, 15_030), (29_970, 29_999)):
                asked = BucketQuery(axis, lambda *_: 1, Range.of(start, stop), smoothing=smoothing)
                (found,) = await case.store.scalar_buckets(SCALARS, asked)
                inside = slice(-(-start // 3), stop // 3 + 1)
                assert found.x.tolist() == iters[inside]
                np.testing.assert_allclose(found.values[MEAN], expected[inside], rtol=1e-9, atol=1e-9)
            asked = BucketQuery(axis, lambda *_: 3000, smoothing=smoothing)
            (found,) = await case.store.scalar_buckets(SCALARS, asked)
            assert found.x.tolist() == list(range(0, 30_000, 3000))
            finite = [value for value in expected[1000:2000] if math.isfinite(value)]
            assert found.values[MEAN][1] == pytest.approx(math.fsum(finite) / len(finite))


@pytest.mark.parametrize("iteration", [4, 4_999, 9_999])
async def test_overwriting_adds_no_point(case: Case, iteration: int) -> None:
    await case.store.add(batch(scalars([1.0] * 10_000)))
    await case.settle()
    await case.store.add(batch(scalars([2.0] * 3, iters=[iteration, iteration + 1, iteration + 2])))
    width = {10_000: 10, 10_002: 20}
    found = await case.store.scalar_buckets(
        SCALARS, BucketQuery(BucketAxis.ITER, lambda count, *_: width.get(count, 1), aggregates=ALL)
    )
    assert found[0].values[COUNT].tolist()[0] == (20 if iteration == 9_999 else 10)
    assert found[0].values[COUNT].sum() == (10_002 if iteration == 9_999 else 10_000)


def assert_sums(found: Buckets, values: Float64Array, begin: Int64Array) -> None:
    """Each bucket sums up the values, which are in the order of iterations, from where it begins up to the next one."""
    counts = np.diff(begin, append=len(values))
    assert found.values[COUNT].tolist() == counts.tolist()
    np.testing.assert_allclose(found.values[MEAN], np.add.reduceat(values, begin) / counts, rtol=1e-9)
    assert found.values[MIN].tolist() == np.minimum.reduceat(values, begin).tolist()
    assert found.values[MAX].tolist() == np.maximum.reduceat(values, begin).tolist()
    assert found.values[FIRST].tolist() == values[begin].tolist()
    assert found.values[LAST].tolist() == values[begin + counts - 1].tolist()


@pytest.mark.parametrize("overwrite", [None, 0, 9_999, 4_321])
async def test_long_series_add_up_whatever_the_interval(case: Case, overwrite: int | None) -> None:
    length = 10_000
    values = np.array([n % 1000 for n in range(length)], np.float64)
    await case.store.add(batch(scalars(values.tolist())))
    await case.settle()
    if overwrite is not None:
        values[overwrite] = -1.0
        await case.store.add(batch(scalars([-1.0], iters=[overwrite])))
        await case.settle()
    for interval, finer in product((1, 63, 700, 2048, 100_000), (False, True)):
        found = await buckets_of(case, interval, finer=finer)
        widths = {*np.diff(found.x).tolist()}
        assert len(widths) == (1 if interval < length else 0)
        assert all(interval * (0.5 if finer else 1) <= width <= interval * 1.1 for width in widths)
        assert found.x[0] == 0
        assert_sums(found, values, found.x)


@pytest.mark.parametrize("late", [[-7], [4_000, 4_001], [5_001, 12_345, 19_999, 20_003], range(0, 20_000, 17)])
async def test_late_points_are_in_the_buckets_at_once(case: Case, late: Sequence[int]) -> None:
    values = {iter: float(iter % 1000) for iter in range(0, 20_000, 2)}
    await case.store.add(batch(scalars(list(values.values()), iters=list(values))))
    await case.settle()
    values |= dict.fromkeys(late, -1.0)
    await case.store.add(batch(scalars([-1.0] * len(late), iters=late)))
    iters = np.array(sorted(values))
    for interval in (1, 50, 1300, 5000, 10**6):
        found = await buckets_of(case, interval)
        widened = (-(-interval >> shift) << shift for shift in range(10))
        width = next(wide for wide in widened if not (found.x % wide).any())
        expected, begin = np.unique(iters // width * width, return_index=True)
        assert found.x.tolist() == expected.tolist()
        assert_sums(found, np.array([values[iter] for iter in iters.tolist()]), begin)
