"""What every event store does with the same series of many owners, by its protocol alone."""

from __future__ import annotations

import math

import numpy as np
import pytest

from apiserver.events.model import SINGLE_VALUE_ITERATION, BucketAxis, Owner
from apiserver.events.queries import CommonBuckets, CurvesQuery
from apiserver.stores.events.elasticsearch.bounds import ElasticsearchBounds
from apiserver.stores.events.elasticsearch.store import ElasticsearchEventStore
from apiserver.stores.events.embedded.bounds import EmbeddedBounds
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.contract.event_stores import Case, batch, case, same, scalars

__all__ = ["case"]

pytestmark = pytest.mark.anyio

NAN, INF = math.nan, math.inf

TASK, OTHER, MODEL = Owner("company", "task"), Owner("company", "other"), Owner("company", "task", is_model=True)
STRANGER, UNKNOWN = Owner("another company", "task"), Owner("company", "unknown")
ALL = (UNKNOWN, OTHER, TASK, STRANGER, MODEL)


def loss(*owners: Owner, axis: BucketAxis = BucketAxis.ITER) -> CurvesQuery:
    return CurvesQuery(owners, "loss", "train", axis)


async def rows(case: Case, asked: CurvesQuery, buckets: CommonBuckets) -> list[list[float]]:
    found = await case.store.curve_buckets(asked, buckets)
    assert found.means.dtype == np.float64
    return [list(row) for row in found.means]


async def extremes(case: Case, asked: CurvesQuery, buckets: CommonBuckets) -> list[list[float]]:
    found = await case.store.curve_buckets(asked, buckets)
    assert found.least.dtype == found.greatest.dtype == np.float64
    return [list(found.least), list(found.greatest)]


def assert_rows(got: list[list[float]], *expected: list[float]) -> None:
    assert len(got) == len(expected)
    assert all(map(same, got, expected)), got


async def test_each_owner_has_a_row_of_its_own_means(case: Case) -> None:
    await case.store.add(
        batch(
            scalars([1, 3, 5, 7, 9], owner=TASK),
            scalars([10], iters=[3], owner=OTHER),
            scalars([20], iters=[2], owner=MODEL),
            scalars([30], iters=[1], owner=STRANGER),
            scalars([99], iters=[0], metric="accuracy", owner=OTHER),
            scalars([99], iters=[0], variant="test", owner=OTHER),
        )
    )
    await case.settle()
    assert await case.store.curve_ends(loss(*ALL)) == (0, 4)
    assert await case.store.curve_ends(loss(OTHER, MODEL)) == (2, 3)
    assert_rows(
        await rows(case, loss(*ALL), CommonBuckets.over(0, 4, 4)),
        [NAN, NAN, NAN],
        [NAN, 10, NAN],
        [2, 6, 9],
        [30, NAN, NAN],
        [NAN, 20, NAN],
    )


async def test_points_outside_the_buckets_and_single_values_are_left_out(case: Case) -> None:
    await case.store.add(batch(scalars([1, 2, 3, 4], iters=[SINGLE_VALUE_ITERATION, -5, 0, 8], owner=TASK)))
    await case.store.add(batch(scalars([1], iters=[SINGLE_VALUE_ITERATION], owner=OTHER)))
    await case.settle()
    for axis in BucketAxis:
        assert await case.store.curve_ends(loss(OTHER, axis=axis)) is None
    assert await case.store.curve_ends(loss(TASK, OTHER)) == (-5, 8)
    assert await case.store.curve_ends(loss(TASK, axis=BucketAxis.TIMESTAMP)) == (-5, 8)
    assert await case.store.curve_ends(loss(TASK, axis=BucketAxis.DURATION)) == (0, 13)
    assert_rows(await rows(case, loss(TASK, OTHER), CommonBuckets(-1, 2, 4)), [NAN, 3], [NAN, NAN])


async def test_only_finite_values_count(case: Case) -> None:
    await case.store.add(batch(scalars([NAN, 1, INF, 3, NAN, -INF, 7], owner=TASK)))
    await case.settle()
    assert await case.store.curve_ends(loss(TASK)) == (0, 6)
    assert_rows(await rows(case, loss(TASK), CommonBuckets(0, 4, 2)), [1, 3, NAN, 7])


async def test_the_extremes_are_those_of_all_points(case: Case) -> None:
    await case.store.add(
        batch(
            scalars([1, NAN, 9, 1, -INF, 2], owner=TASK),
            scalars([3, 3, 3, -7, INF, NAN], owner=OTHER),
            scalars([99, 4], iters=[-1, 4], owner=MODEL),
            scalars([50, 50], iters=[8, 20], owner=STRANGER),
        )
    )
    await case.settle()
    asked, buckets = loss(*ALL), CommonBuckets(0, 4, 2)
    assert_rows(await extremes(case, asked, buckets), [1, -7, 2, NAN], [3, 9, 4, NAN])
    await case.store.add(batch(scalars([0, 5], iters=[0, 2], owner=TASK)))
    await case.settle()
    assert_rows(await extremes(case, asked, buckets), [0, -7, 2, NAN], [3, 5, 4, NAN])
    assert_rows(await extremes(case, loss(UNKNOWN), buckets), [NAN] * 4, [NAN] * 4)


async def test_a_single_point_of_long_curves_is_seen(case: Case) -> None:
    random, length = np.random.default_rng(0), 3000
    values = random.normal(size=(4, length))
    values[1, 1234], values[2, 2345] = 100, -100
    owners = [Owner("company", f"task {n}") for n in range(len(values))]
    starts = (0, 0, 0, 1)  # the last one has other iterations
    await case.store.add(
        batch(
            *(
                scalars(row.tolist(), iters=range(start, start + length), owner=owner)
                for owner, row, start in zip(owners, values, starts, strict=True)
            )
        )
    )
    await case.settle()
    for axis in BucketAxis:
        for most in (6, 100, 1000):
            buckets = CommonBuckets.over(0, length, most)
            inside: list[list[float]] = [[] for _ in range(buckets.count)]
            for row, start in zip(values, starts, strict=True):
                first = 0 if axis is BucketAxis.DURATION else start
                for at, value in enumerate(row.tolist(), first):
                    inside[at // buckets.width].append(value)
            found = await extremes(case, loss(*owners, axis=axis), buckets)
            assert_rows(found, *([of(some, default=NAN) for some in inside] for of in (min, max)))


async def test_neighbours_are_the_nearest_buckets_outside_with_a_finite_value(case: Case) -> None:
    await case.store.add(
        batch(
            scalars([1, 2, 4, NAN, 9, 5, NAN, 7, 9], iters=[-9, 2, 3, 4, 8, 13, 14, 20, 21], owner=TASK),
            scalars([NAN, 3], iters=[0, 9], owner=OTHER),
            scalars([6, 8], iters=[SINGLE_VALUE_ITERATION, 12], owner=MODEL),
        )
    )
    await case.settle()
    for axis in (BucketAxis.ITER, BucketAxis.TIMESTAMP):
        buckets = CommonBuckets(4, 2, 2)  # from 8 to 11
        before = await case.store.curve_neighbours(loss(*ALL, axis=axis), buckets, before=True)
        assert_rows([before.numbers.tolist(), before.means.tolist()], [NAN, NAN, -3, NAN, NAN], [NAN, NAN, 3, NAN, NAN])
        behind = await case.store.curve_neighbours(loss(*ALL, axis=axis), buckets, before=False)
        assert_rows([behind.numbers.tolist(), behind.means.tolist()], [NAN, NAN, 2, NAN, 2], [NAN, NAN, 5, NAN, 8])
    since = await case.store.curve_neighbours(
        loss(TASK, axis=BucketAxis.DURATION), CommonBuckets(9, 2, 2), before=False
    )
    assert (since.numbers.tolist(), since.means.tolist()) == ([2], [5])


async def test_neighbours_far_away_are_found(case: Case) -> None:
    values = np.full(20_000, NAN)
    values[[5, 19_995]] = 3, 4
    await case.store.add(batch(scalars(values.tolist(), owner=TASK)))
    await case.settle()
    buckets = CommonBuckets(10_000, 8, 1)
    before, behind = [await case.store.curve_neighbours(loss(TASK), buckets, before=one) for one in (True, False)]
    assert (before.numbers.tolist(), before.means.tolist()) == ([-9995], [3])
    assert (behind.numbers.tolist(), behind.means.tolist()) == ([9995], [4])


async def test_later_values_replace_earlier_ones(case: Case) -> None:
    await case.store.add(batch(scalars([1, 1, 1, 1], timestamps=[0, 10, 20, 30], owner=TASK)))
    await case.settle()
    await case.store.add(batch(scalars([5, 7], iters=[3, 0], timestamps=[12, 3], owner=TASK)))
    await case.settle()
    assert_rows(await rows(case, loss(TASK), CommonBuckets(0, 2, 2)), [4, 3])
    by_time, since = (loss(TASK, axis=axis) for axis in (BucketAxis.TIMESTAMP, BucketAxis.DURATION))
    assert await case.store.curve_ends(by_time) == (3, 20)
    assert await case.store.curve_ends(since) == (0, 17)
    assert_rows(await rows(case, by_time, CommonBuckets(0, 3, 8)), [7, 3, 1])
    assert_rows(await rows(case, since, CommonBuckets(0, 3, 8)), [4, 5, 1])


async def test_durations_begin_with_each_owners_first_point(case: Case) -> None:
    await case.store.add(
        batch(
            scalars([1, 2, 3], timestamps=[1000, 1004, 1010], owner=TASK),
            scalars([4, 5, 6], iters=[2, 1, 0], timestamps=[-7, -3, -2], owner=OTHER),
        )
    )
    await case.settle()
    asked = loss(TASK, OTHER, axis=BucketAxis.DURATION)
    assert await case.store.curve_ends(asked) == (0, 10)
    assert_rows(await rows(case, asked, CommonBuckets.over(0, 10, 4)), [1, 2, 3], [4, 5.5, NAN])


async def test_a_long_curve_has_the_means_of_all_its_points(case: Case) -> None:
    values = np.random.default_rng(0).normal(size=20_000)
    some = scalars(values.tolist(), timestamps=range(10**6, 10**6 + 40_000, 2), owner=TASK)
    await case.store.add(batch(some, scalars([1.0], owner=OTHER)))
    await case.settle()
    for axis, least, greatest in (
        (BucketAxis.ITER, 0, 19_999),
        (BucketAxis.TIMESTAMP, 10**6, 10**6 + 39_998),
        (BucketAxis.DURATION, 0, 39_998),
    ):
        asked = loss(TASK, axis=axis)
        assert await case.store.curve_ends(asked) == (least, greatest)
        for most in (20, 200, 2000):
            buckets = CommonBuckets.over(least, greatest, most)
            x = np.arange(20_000) if axis is BucketAxis.ITER else np.arange(20_000) * 2 + least
            numbers = x // buckets.width - buckets.first
            expected = np.bincount(numbers, values, buckets.count) / np.bincount(numbers, minlength=buckets.count)
            assert np.allclose(await rows(case, asked, buckets), [expected], rtol=1e-9, atol=1e-9)


async def test_many_owners_are_read_at_once(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 62  # engines ask for 30 or 50 at a time
    store = case.store
    if isinstance(store, EmbeddedEventStore):
        monkeypatch.setattr(store, "bounds", EmbeddedBounds(owners_a_query=50))
    elif isinstance(store, ElasticsearchEventStore):
        monkeypatch.setattr(store._cluster, "bounds", ElasticsearchBounds(searches_at_once=30))
    owners = [Owner("company", f"task {n}") for n in range(count)]
    await case.store.add(batch(*(scalars([float(n)], iters=[n], owner=owner) for n, owner in enumerate(owners))))
    await case.settle()
    assert await case.store.curve_ends(loss(*owners)) == (0, count - 1)
    asked, buckets = loss(*reversed(owners)), CommonBuckets(0, 1, 1024)
    assert await rows(case, asked, buckets) == [[float(n)] for n in reversed(range(count))]
    assert await extremes(case, asked, buckets) == [[0], [count - 1]]


async def test_iterations_may_be_anywhere(case: Case) -> None:
    await case.store.add(batch(scalars([1, 2], iters=[-(2**63), 2**63 - 1], timestamps=[0, 0], owner=TASK)))
    await case.settle()
    ends = await case.store.curve_ends(loss(TASK))
    assert ends == (-(2**63), 2**63 - 1)
    buckets = CommonBuckets.over(*ends, 4)
    assert buckets.starts.tolist() == [-(2**63), -(2**62), 0, 2**62]
    assert_rows(await rows(case, loss(TASK), buckets), [1, NAN, NAN, 2])
