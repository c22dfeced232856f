"""What every event store does with scalars, by its protocol alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest

from apiserver.events.aggregates import ALL, Aggregate, Buckets
from apiserver.events.model import (
    SINGLE_VALUE_ITERATION,
    BucketAxis,
    EventType,
    MetricSelection,
    ScalarPoints,
    ScalarPosition,
    WorkerSpan,
)
from apiserver.events.queries import BucketQuery, Grid, PageQuery, Range, SeriesQuery
from apiserver.events.smoothing import Kind, Smoothing
from tests.contract.event_stores import OWNER, RECEIVED, SCALARS, Case, batch, case, same, scalars, select
from tests.events.plain_smoothing import smoothed

COUNT, MEAN, MIN = Aggregate.COUNT, Aggregate.MEAN, Aggregate.MIN
MAX, FIRST, LAST = Aggregate.MAX, Aggregate.FIRST, Aggregate.LAST

__all__ = ["case"]

pytestmark = pytest.mark.anyio

NAN, INF = math.nan, math.inf


async def buckets(
    case: Case,
    interval: int,
    start: int | None = None,
    stop: int | None = None,
    *,
    axis: BucketAxis = BucketAxis.ITER,
    finer: bool = False,
) -> Buckets:
    asked = BucketQuery(axis, lambda *_: interval, Range.of(start, stop), ALL, may_be_finer=finer)
    (found,) = await case.store.scalar_buckets(SCALARS, asked)
    return found


def rows(points: ScalarPoints) -> list[tuple[int, str, str]]:
    return [
        (iter, *points.names[series])
        for iter, series in zip(points.iters.tolist(), points.series.tolist(), strict=True)
    ]


# --- stats -----------------------------------------------------------------------------------------


async def test_stats_say_everything_of_a_series(case: Case) -> None:
    await case.store.add(batch(scalars([3.0, -1.0, 7.0, 2.0], iters=[10, 5, 30, 20], timestamps=[4, 3, 2, 1])))
    await case.settle()
    (stats,) = await case.store.scalar_stats(SCALARS)
    assert (stats.owner, stats.metric, stats.variant) == (OWNER, "loss", "train")
    assert (stats.count, stats.finite_count, stats.sum) == (4, 4, 11.0)
    assert (stats.min_iter, stats.max_iter, stats.min_timestamp, stats.max_timestamp) == (5, 30, 1, 4)
    assert (stats.first_value, stats.first_iter, stats.last_value, stats.last_iter) == (2.0, 20, 3.0, 10)
    assert (stats.min_value, stats.min_value_iter, stats.max_value, stats.max_value_iter) == (-1.0, 5, 7.0, 30)


async def test_stats_of_several_owners_are_those_of_each(case: Case) -> None:
    other = OWNER._replace(id="other task")
    for values in ([1.0, 2.0], [3.0]):  # partly merged, on the embedded store
        for owner, metric in ((OWNER, "loss"), (OWNER, "lr"), (other, "loss")):
            await case.store.add(batch(scalars(values, metric=metric, owner=owner)))
        await case.settle()
    unknown = SeriesQuery(OWNER._replace(id="unknown"), EventType.SCALAR)
    queries = [select(SCALARS, MetricSelection("lr")), unknown, SeriesQuery(other, EventType.SCALAR), SCALARS]
    found = await case.store.scalar_stats_of_each(queries)
    assert [len(stats) for stats in found] == [1, 0, 1, 2]
    assert found == [await case.store.scalar_stats(query) for query in queries]


async def test_stats_look_at_finite_values_only(case: Case) -> None:
    await case.store.add(batch(scalars([NAN, INF, 1.0, -INF, NAN])))
    await case.settle()
    (stats,) = await case.store.scalar_stats(SCALARS)
    assert (stats.count, stats.finite_count, stats.sum) == (5, 1, 1.0)
    assert (stats.min_value, stats.min_value_iter, stats.max_value, stats.max_value_iter) == (1.0, 2, 1.0, 2)
    assert math.isnan(stats.first_value)
    assert math.isnan(stats.last_value)


async def test_stats_say_how_much_values_differ_if_that_is_asked_for(case: Case) -> None:
    values = {"a": [NAN, 1.0, 2.0, INF, 6.0], "b": [5.0], "c": [NAN], "d": [1e6 + n / 8 for n in range(100)]}
    sent = [scalars(column, variant=variant, iters=range(7, 7 + len(column))) for variant, column in values.items()]
    await case.store.add(batch(*sent))
    await case.settle()
    found = await case.store.scalar_stats(SCALARS, spread=True)
    assert [one.first_not_finite_iter for one in found] == [7, None, 7, None]
    assert [one.deviations for one in found] == pytest.approx([14.0, 0.0, 0.0, 83325 / 64], rel=1e-3)
    plain = await case.store.scalar_stats(SCALARS)
    assert {(one.deviations, one.first_not_finite_iter) for one in plain} == {(None, None)}
    await case.store.add(batch(scalars([3.0], variant="a", iters=[7]), scalars([NAN], variant="b", iters=[-5])))
    await case.settle()
    found = await case.store.scalar_stats(SCALARS, spread=True)
    assert [one.first_not_finite_iter for one in found] == [10, -5, 7, None]
    assert found[0].deviations == pytest.approx(14.0)


async def test_the_first_of_equal_extremes_counts_also_where_zeros_have_signs(case: Case) -> None:
    await case.store.add(batch(scalars([0.0, -0.0, 0.0], variant="a"), scalars([-0.0, 0.0, -0.0], variant="b")))
    await case.settle()
    found = await case.store.scalar_stats(SCALARS)
    assert [(one.variant, one.min_value, one.min_value_iter, one.max_value, one.max_value_iter) for one in found] == [
        ("a", 0.0, 0, 0.0, 0),
        ("b", 0.0, 0, 0.0, 0),
    ]


async def test_a_series_without_a_finite_value_has_no_extremes(case: Case) -> None:
    await case.store.add(batch(scalars([NAN, INF])))
    await case.settle()
    (stats,) = await case.store.scalar_stats(SCALARS)
    assert (stats.count, stats.finite_count, stats.sum) == (2, 0, 0.0)
    assert (stats.min_value, stats.min_value_iter, stats.max_value, stats.max_value_iter) == (None,) * 4


async def test_the_later_value_of_an_iteration_counts(case: Case) -> None:
    await case.store.add(batch(scalars([1.0, 100.0, 3.0])))
    await case.settle()
    await case.store.add(batch(scalars([2.0], iters=[1])))
    await case.settle()
    (stats,) = await case.store.scalar_stats(SCALARS)
    assert (stats.count, stats.sum, stats.max_value, stats.max_value_iter) == (3, 6.0, 3.0, 2)
    points = await case.store.scalar_points(SCALARS, PageQuery(10))
    assert points.values.tolist() == [1.0, 2.0, 3.0]


async def test_the_later_of_two_equal_iterations_in_one_batch_counts(case: Case) -> None:
    await case.store.add(batch(scalars([1.0, 2.0], iters=[0, 0]), scalars([3.0, 4.0], iters=[1, 1], worker="other")))
    await case.settle()
    points = await case.store.scalar_points(SCALARS, PageQuery(10))
    assert (points.iters.tolist(), points.values.tolist()) == ([0, 1], [2.0, 4.0])
    assert points.workers == ["worker", "other"]


async def test_adding_a_batch_again_changes_nothing(case: Case) -> None:
    sent = batch(scalars([1.0, 2.0, 3.0]), scalars([5.0], variant="valid"))
    await case.store.add(sent)
    before = await case.store.scalar_stats(SCALARS)
    await case.settle()
    await case.store.add(sent)
    await case.settle()
    assert await case.store.scalar_stats(SCALARS) == before
    assert await case.store.events_count(OWNER) == 4


async def test_early_iterations_may_arrive_late(case: Case) -> None:
    for start in (20, 0, 10):
        numbers = range(start, start + 10)
        await case.store.add(batch(scalars([float(n) for n in numbers], iters=numbers)))
        await case.settle()
    (stats,) = await case.store.scalar_stats(SCALARS)
    assert (stats.count, stats.min_iter, stats.max_iter, stats.sum) == (30, 0, 29, 435.0)
    assert (await case.store.scalar_points(SCALARS, PageQuery(100))).values.tolist() == [float(n) for n in range(30)]


async def test_stats_are_sorted_and_selected(case: Case) -> None:
    other = OWNER._replace(id="other")
    for owner in (OWNER, other):
        await case.store.add(batch(*(scalars([1.0], metric=m, variant=v, owner=owner) for m in "ba" for v in "yx")))
        await case.settle()
    for owner in (OWNER, other):
        everything = await case.store.scalar_stats(SeriesQuery(owner, EventType.SCALAR))
        assert [(one.owner, one.metric, one.variant) for one in everything] == [
            (owner, m, v) for m in "ab" for v in "xy"
        ]
    chosen = await case.store.scalar_stats(select(SCALARS, MetricSelection("b"), MetricSelection("a", ("y", "z"))))
    assert [(one.metric, one.variant) for one in chosen] == [("a", "y"), ("b", "x"), ("b", "y")]
    assert await case.store.scalar_stats(SeriesQuery(OWNER._replace(id="unknown"), EventType.SCALAR)) == []


async def test_a_name_may_be_any_text(case: Case) -> None:
    names = ["", "\0", "a\0b", "a", "ÿ", "\uffff", "\U0001f600", "x" * 1000, "%", "' \" \\", ":monitor:gpu"]
    await case.store.add(batch(*(scalars([1.0], metric=name, variant=name) for name in names)))
    await case.settle()
    assert [one.metric for one in await case.store.scalar_stats(SCALARS)] == sorted(names)
    assert [name.variant for name in await case.store.series(OWNER)] == sorted(names)
    for name in names:
        (found,) = await case.store.scalar_stats(select(SCALARS, MetricSelection(name, (name,))))
        assert (found.metric, found.variant, found.count) == (name, name, 1)


async def test_no_series_is_left_out(case: Case) -> None:
    await case.store.add(batch(*(scalars([float(n)], variant=f"{n:04}") for n in range(3000))))
    await case.settle()
    assert [one.sum for one in await case.store.scalar_stats(SCALARS)] == list(range(3000))
    assert [one.variant for one in await case.store.series(OWNER)] == [f"{n:04}" for n in range(3000)]


# --- buckets ---------------------------------------------------------------------------------------


async def test_aggregates_are_the_same_alone_and_beside_others(case: Case) -> None:
    await case.store.add(batch(scalars([3.0, NAN, -1.0, 7.0, INF], iters=[0, 1, 5, 10, 21])))
    await case.settle()
    for axis in BucketAxis:
        whole = await buckets(case, 10, axis=axis)
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
    found = await buckets(case, 1)
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
    found = await buckets(case, 3)
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
    found = await buckets(case, 4)
    assert (found.x.tolist(), found.values[MEAN].tolist()) == ([-8, -4, 0], [1.0, 2.5, 4.0])


async def test_bounds_narrow_before_bucketing(case: Case) -> None:
    await case.store.add(batch(scalars([float(n) for n in range(20)])))
    await case.settle()
    found = await buckets(case, 5, 3, 11)
    assert (found.x.tolist(), found.values[COUNT].tolist(), found.values[FIRST].tolist()) == (
        [0, 5, 10],
        [2, 5, 2],
        [3.0, 5.0, 10.0],
    )
    assert (await buckets(case, 5, None, 3)).values[COUNT].tolist() == [4]
    assert (await buckets(case, 5, 18)).values[LAST].tolist() == [19.0]
    assert (await buckets(case, 5, 100, 200)).x.tolist() == []


async def test_single_values_are_in_no_bucket(case: Case) -> None:
    await case.store.add(batch(scalars([9.0, 1.0], iters=[SINGLE_VALUE_ITERATION, 0])))
    await case.settle()
    for axis in BucketAxis:
        found = await buckets(case, 1, axis=axis)
        assert (found.x.tolist(), found.values[MEAN].tolist()) == ([0], [1.0])
    assert (await case.store.scalar_stats(SCALARS))[0].count == 2


async def test_buckets_over_time_are_in_time_order(case: Case) -> None:
    await case.store.add(batch(scalars([1.0, 2.0, 3.0, 4.0], timestamps=[1300, 1000, 1200, 2500])))
    await case.settle()
    found = await buckets(case, 500, axis=BucketAxis.TIMESTAMP)
    assert (found.x.tolist(), found.values[COUNT].tolist()) == ([1000, 2500], [3, 1])
    assert (
        found.values[FIRST].tolist(),
        found.values[LAST].tolist(),
        found.values[MEAN].tolist(),
    ) == ([2.0, 4.0], [1.0, 4.0], [2.0, 4.0])
    found = await buckets(case, 500, 1100, 1250, axis=BucketAxis.TIMESTAMP)
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
    for begin in (0, 20_000):  # partly merged, on the embedded store
        iters = list(range(begin, begin + 10_000))
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
            assert [one.values[COUNT].sum() for one in buckets] == [20_000] * len(alone)
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
                assert found.values[MEAN].tolist() == pytest.approx(expected[inside], abs=1e-9, nan_ok=True)
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


@pytest.mark.parametrize("overwrite", [None, 0, 9_999, 4_321])
async def test_long_series_add_up_whatever_the_interval(case: Case, overwrite: int | None) -> None:
    length = 10_000
    values = [float(n % 1000) for n in range(length)]
    await case.store.add(batch(scalars(values)))
    await case.settle()
    if overwrite is not None:
        values[overwrite] = -1.0
        await case.store.add(batch(scalars([-1.0], iters=[overwrite])))
        await case.settle()
    for interval, finer in product((1, 63, 700, 2048, 100_000), (False, True)):
        found = await buckets(case, interval, finer=finer)
        starts = found.x.tolist()
        widths = {b - a for a, b in pairwise(starts)}
        assert len(widths) == (1 if interval < length else 0)
        assert all(interval * (0.5 if finer else 1) <= width <= interval * 1.1 for width in widths)
        assert found.values[COUNT].sum() == length
        for n, x in enumerate(starts):
            stop = starts[n + 1] if n + 1 < len(starts) else length
            inside = values[x:stop]
            assert found.values[COUNT][n] == len(inside)
            assert found.values[MEAN][n] == pytest.approx(sum(inside) / len(inside))
            assert (found.values[MIN][n], found.values[MAX][n]) == (min(inside), max(inside))
            assert (found.values[FIRST][n], found.values[LAST][n]) == (inside[0], inside[-1])


@pytest.mark.parametrize("late", [[-7], [4_000, 4_001], [5_001, 12_345, 19_999, 20_003], range(0, 20_000, 17)])
async def test_late_points_are_in_the_buckets_at_once(case: Case, late: Sequence[int]) -> None:
    values = {iter: float(iter % 1000) for iter in range(0, 20_000, 2)}
    await case.store.add(batch(scalars(list(values.values()), iters=list(values))))
    await case.settle()
    values |= dict.fromkeys(late, -1.0)
    await case.store.add(batch(scalars([-1.0] * len(late), iters=late)))
    for interval in (1, 50, 1300, 5000, 10**6):
        found = await buckets(case, interval)
        widened = (-(-interval >> shift) << shift for shift in range(10))
        width = next(wide for wide in widened if not (found.x % wide).any())
        expected: dict[int, list[float]] = {}
        for iter in sorted(values):
            expected.setdefault(iter // width * width, []).append(values[iter])
        assert found.x.tolist() == list(expected)
        assert found.values[COUNT].tolist() == [len(inside) for inside in expected.values()]
        assert found.values[MEAN].tolist() == pytest.approx([sum(inside) / len(inside) for inside in expected.values()])
        assert found.values[MIN].tolist() == [min(inside) for inside in expected.values()]
        assert found.values[LAST].tolist() == [inside[-1] for inside in expected.values()]


# --- points ----------------------------------------------------------------------------------------


async def test_a_page_may_end_at_an_iteration(case: Case) -> None:
    await case.store.add(batch(scalars([1.0, 2.0, 3.0], variant="a", iters=[-5, 0, 5])))
    await case.settle()
    await case.store.add(batch(scalars([4.0], variant="b", iters=[3]), scalars([5.0], variant="a", iters=[-7])))
    for until, inside in ((-8, []), (-7, [5.0]), (-5, [5.0, 1.0]), (3, [5.0, 1.0, 2.0, 4.0])):
        found = await case.store.scalar_points(SCALARS, PageQuery(10, until=until))
        assert found.values[found.iters <= until].tolist() == inside


async def test_points_have_everything(case: Case) -> None:
    await case.store.add(batch(scalars([1.5, NAN], timestamps=[7, 3], worker="w1"), received=RECEIVED))
    await case.settle()
    await case.store.add(batch(scalars([-INF], iters=[5], worker="w2"), received=RECEIVED + 1))
    points = await case.store.scalar_points(SCALARS, PageQuery(10))
    assert [points.names[n] for n in points.series] == [("loss", "train")] * 3
    assert (points.iters.tolist(), points.timestamps.tolist()) == ([0, 1, 5], [7, 3, 5])
    assert same(points.values, [1.5, NAN, -INF])
    assert points.workers == ["w1", "w1", "w2"]
    assert points.received.tolist() == [RECEIVED, RECEIVED, RECEIVED + 1]


async def test_pages_neither_skip_nor_repeat(case: Case) -> None:
    await case.store.add(batch(scalars([0.0] * 5, variant="b"), scalars([0.0] * 4, iters=[2, 4, 6, 8], variant="a")))
    await case.settle()
    await case.store.add(batch(scalars([0.0] * 3, iters=[1, 2, 9], variant="c")))
    await case.settle()
    expected = sorted(
        [(n, "loss", "b") for n in range(5)]
        + [(n, "loss", "a") for n in (2, 4, 6, 8)]
        + [(n, "loss", "c") for n in (1, 2, 9)]
    )
    for descending, limit in product((False, True), (1, 2, 7, 100)):
        walked: list[tuple[int, str, str]] = []
        found = rows(await case.store.scalar_points(SCALARS, PageQuery(limit, descending=descending)))
        while found:
            assert len(found) <= limit
            walked += found
            after = ScalarPosition(*walked[-1])
            found = rows(await case.store.scalar_points(SCALARS, PageQuery(limit, after, descending=descending)))
        assert walked == (expected[::-1] if descending else expected)


async def test_a_page_of_whole_iterations_does_not_end_inside_one(case: Case) -> None:
    await case.store.add(batch(*(scalars([0.0] * 3, variant=variant) for variant in "abcd")))
    await case.settle()
    expected = [(n, "loss", variant) for n in range(3) for variant in "abcd"]
    middle = ScalarPosition(1, "loss", "b")
    for descending, beyond in ((False, [(1, "loss", "c"), (1, "loss", "d")]), (True, [(1, "loss", "a")])):
        found = await case.store.scalar_points(SCALARS, PageQuery(5, descending=descending, whole=True))
        assert rows(found) == (expected[::-1] if descending else expected)[:8]
        found = await case.store.scalar_points(SCALARS, PageQuery(1, middle, descending=descending, whole=True))
        assert rows(found) == beyond


async def test_pages_of_points_are_selected(case: Case) -> None:
    await case.store.add(batch(*(scalars([0.0], metric=m, variant=v) for m in "ab" for v in "xy")))
    await case.settle()
    found = await case.store.scalar_points(
        select(SCALARS, MetricSelection("a", ("y",)), MetricSelection("b")), PageQuery(10)
    )
    assert rows(found) == [(0, "a", "y"), (0, "b", "x"), (0, "b", "y")]


async def test_pages_of_a_long_series(case: Case) -> None:
    await case.store.add(batch(scalars([float(n) for n in range(20_000)])))
    await case.settle()
    for after, descending in ((None, False), (None, True), (8000, False), (8000, True), (19_999, False), (0, True)):
        position = None if after is None else ScalarPosition(after, "loss", "train")
        found = await case.store.scalar_points(SCALARS, PageQuery(5000, position, descending=descending))
        if descending:
            expected = list(range(20_000 if after is None else after))[::-1][:5000]
        else:
            expected = list(range(0 if after is None else after + 1, 20_000))[:5000]
        assert found.iters.tolist() == expected
        assert found.values.tolist() == expected


@pytest.mark.parametrize("descending", [False, True])
async def test_shorter_pages_of_a_long_series_have_every_point_once(case: Case, descending: bool) -> None:
    await case.store.add(batch(scalars([float(n) for n in range(20_000)])))
    await case.settle()
    await case.store.add(batch(scalars([0.5] * 100, iters=range(19_000, 22_000, 30))))
    expected = [*range(20_000), *range(20_020, 22_000, 30)]
    walked: list[int] = []
    after = None
    while True:
        asked: PageQuery[ScalarPosition] = PageQuery(7000, after, descending=descending, may_be_shorter=True)
        found = (await case.store.scalar_points(SCALARS, asked)).iters.tolist()
        if not found:
            break
        assert len(found) <= 7000
        walked += found
        after = ScalarPosition(walked[-1], "loss", "train")
    assert walked == (expected[::-1] if descending else expected)


async def test_iterations_may_be_as_large_as_64_bits_hold(case: Case) -> None:
    extremes = [-(2**63), -1, 2**63 - 1]
    await case.store.add(batch(scalars([1.0, 2.0, 3.0], iters=extremes, timestamps=[0, 1, 2])))
    await case.settle()
    (stats,) = await case.store.scalar_stats(SCALARS)
    assert (stats.min_iter, stats.max_iter) == (extremes[0], extremes[-1])
    for descending in (False, True):
        found = await case.store.scalar_points(SCALARS, PageQuery(10, descending=descending))
        assert found.iters.tolist() == (extremes[::-1] if descending else extremes)
    beyond = await case.store.scalar_points(SCALARS, PageQuery(10, ScalarPosition(extremes[-1], "loss", "train")))
    assert beyond.iters.tolist() == []
    assert (await buckets(case, 1)).x.tolist() == extremes


async def test_a_walk_ends_with_the_greatest_iteration(case: Case) -> None:
    iters = [*range(600), 2**63 - 4, 2**63 - 1]
    await case.store.add(batch(scalars([0.0] * len(iters), iters=iters, timestamps=iters)))
    await case.settle()
    await case.store.add(batch(scalars([1.0], iters=[2**63 - 4], timestamps=[0])))
    found = await case.store.scalar_points(SCALARS, PageQuery(10, ScalarPosition(599, "loss", "train")))
    assert (found.iters.tolist(), found.values.tolist()) == (iters[-2:], [1.0, 0.0])


async def test_points_come_by_time(case: Case) -> None:
    later = [SINGLE_VALUE_ITERATION, *range(3)]
    await case.store.add(
        batch(
            scalars([0.0] * 4, variant="b", iters=range(4), timestamps=[5, 1, 9, 5]),
            scalars([1.0] * 4, variant="a", iters=later, timestamps=[0, 5, 7, -3]),
        )
    )
    await case.settle()

    async def page(after: int | None, limit: int) -> list[tuple[int, int, str]]:
        found = await case.store.earliest_points(SCALARS, limit, after)
        assert [found.names[n][0] for n in found.series] == ["loss"] * len(found.iters)
        return [(time, *row[::2]) for time, row in zip(found.timestamps.tolist(), rows(found), strict=True)]

    assert await page(None, 3) == [(-3, 2, "a"), (0, SINGLE_VALUE_ITERATION, "a"), (1, 1, "b")]
    assert await page(1, 1) == [(5, 0, "a"), (5, 0, "b"), (5, 3, "b")]
    assert await page(-3, 1) == [(0, SINGLE_VALUE_ITERATION, "a")]
    assert await page(5, 100) == [(7, 1, "a"), (9, 2, "b")]
    assert await page(9, 1) == []
    found = await case.store.earliest_points(select(SCALARS, MetricSelection("loss", ("b",))), 1)
    assert rows(found) == [(1, "loss", "b")]


async def test_points_of_a_long_series_come_by_time(case: Case) -> None:
    length = 12_000
    times = [(n * 7919) % 100 + n // 2 for n in range(length)]  # in about the order of iterations
    await case.store.add(batch(scalars([float(n) for n in range(length)], timestamps=times)))
    await case.settle()
    expected = sorted((time, n) for n, time in enumerate(times))
    walked: list[tuple[int, int]] = []
    while len(walked) < length:
        after = walked[-1][0] if walked else None
        found = await case.store.earliest_points(SCALARS, 5000, after)
        walked += zip(found.timestamps.tolist(), found.values.astype(int).tolist(), strict=True)
        assert len(found.iters) >= min(5000, length - len(walked) + len(found.iters))
    assert walked == expected


async def test_last_values_are_the_last_by_iteration(case: Case) -> None:
    await case.store.add(batch(scalars([1.0, 2.0, 3.0], iters=[5, 1, 9]), scalars([4.0], variant="valid")))
    await case.settle()
    await case.store.add(batch(scalars([8.0], iters=[7])))
    found = await case.store.last_values(SCALARS, 3)
    assert found == {("loss", "train"): [1.0, 8.0, 3.0], ("loss", "valid"): [4.0]}
    assert await case.store.last_values(select(SCALARS, MetricSelection("loss", ("train",))), 1) == {
        ("loss", "train"): [3.0]
    }


# --- by worker -------------------------------------------------------------------------------------


async def test_spans_say_what_each_worker_reported_and_when(case: Case) -> None:
    await case.store.add(
        batch(
            scalars([1.0, 2.0, NAN], timestamps=[30, 10, 20], worker="a"),
            scalars([4.0], iters=[7], timestamps=[5], worker="b"),
            scalars([5.0], timestamps=[1], variant="other", worker=""),
        )
    )
    await case.settle()
    await case.store.add(batch(scalars([6.0, 7.0], iters=[1, 9], timestamps=[40, 50], worker="b")))
    await case.settle()
    assert await case.store.worker_spans(SCALARS) == [
        WorkerSpan("loss", "other", "", 1, 1, 1),
        WorkerSpan("loss", "train", "a", 2, 20, 30),
        WorkerSpan("loss", "train", "b", 3, 5, 50),
    ]
    assert await case.store.worker_spans(select(SCALARS, MetricSelection("loss", ("train",)))) == [
        WorkerSpan("loss", "train", "a", 2, 20, 30),
        WorkerSpan("loss", "train", "b", 3, 5, 50),
    ]
    assert await case.store.worker_spans(SeriesQuery(OWNER._replace(id="other"), EventType.SCALAR)) == []


async def test_means_are_by_worker_and_step_of_time(case: Case) -> None:
    await case.store.add(
        batch(
            scalars([1.0, 2.0, 4.0, NAN, 8.0], timestamps=[100, 109, 119, 121, 130], worker="a"),
            scalars([10.0, 20.0], iters=[10, 11], timestamps=[115, 112], worker="b"),
            scalars([INF], timestamps=[110], variant="none"),
        )
    )
    await case.settle()
    found = await case.store.worker_means(SCALARS, Grid(100, 129, 10))
    assert [(one.variant, one.worker, one.steps.tolist(), one.means.tolist()) for one in found] == [
        ("train", "a", [0, 1], [1.5, 4.0]),
        ("train", "b", [1], [15.0]),
    ]
    for start, stop, expected in ((101, 119, [2.0, 4.0]), (119, 119, [4.0]), (120, 129, None), (131, 140, None)):
        means = await case.store.worker_means(SCALARS, Grid(start, stop, 10))
        assert [one.means.tolist() for one in means if one.worker == "a"] == ([expected] if expected else [])


async def test_there_may_be_any_number_of_workers_and_steps(case: Case) -> None:
    count = 3000
    groups = [
        scalars([float(n), float(n + 1)], iters=[n, n + count], timestamps=[n * 7, n * 7 + 1], worker=f"worker {n:04}")
        for n in range(count)
    ]
    await case.store.add(batch(*groups))
    await case.settle()
    long = range(10 * count)
    await case.store.add(batch(scalars([float(n) for n in long], iters=long, timestamps=long, variant="long")))
    await case.settle()
    spans = await case.store.worker_spans(SCALARS)
    assert spans[0] == WorkerSpan("loss", "long", "worker", 10 * count, 0, 10 * count - 1)
    assert spans[1:] == [WorkerSpan("loss", "train", f"worker {n:04}", 2, n * 7, n * 7 + 1) for n in range(count)]
    every, *each = await case.store.worker_means(SCALARS, Grid(0, 10 * count, 1))
    assert every.steps.tolist() == list(long)
    assert every.means.tolist() == [float(n) for n in long]
    assert [one.steps.tolist() for one in each] == [[n * 7, n * 7 + 1] for n in range(count)]
