"""What every event store does when it thins scalars, by its protocol alone."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from apiserver.events.aggregates import Aggregate
from apiserver.events.model import SINGLE_VALUE_ITERATION, BucketAxis, MetricSelection, ScalarColumns
from apiserver.events.queries import BucketQuery, PageQuery
from apiserver.events.smoothing import Kind, Smoothing
from apiserver.stores.events.base import EventStore
from tests.contract.event_stores import SCALARS, Case, batch, case, scalars, select
from tests.contract.plain_event_store import PlainEventStore
from tests.stores.events.whole import checksums_of, points_of

__all__ = ["case"]

pytestmark = pytest.mark.anyio

NAN, INF = math.nan, math.inf
LOSS = ("loss", "train")


def noisy(count: int, **how: Any) -> ScalarColumns:
    """Points that go up and down. A few are not finite."""
    values = np.random.default_rng(count).normal(size=count).round(2)
    values[[7, 8, count // 2]] = NAN, INF, -INF
    return scalars(values.tolist(), **how)


async def both(case: Case, *groups: ScalarColumns) -> PlainEventStore:
    """Add points to the store that is tested, and to a plain one."""
    plain = PlainEventStore()
    for group in groups:
        for store in (case.store, plain):
            await store.add(batch(group))
        await case.settle()
    return plain


async def iters(store: EventStore, name: tuple[str, str] = LOSS) -> list[int]:
    return [row[0] for row in (await points_of(store, SCALARS)).get(name, [])]


async def test_of_each_bucket_four_points_stay(case: Case) -> None:
    """Two buckets; of equal values the first stays, and of those that are not finite the first one of all."""
    values = [5, 4, 9, 4, 6, 9, 5, 6, 5, 4, 4, 2, 8, NAN, 2, 3, INF, 3]
    await both(case, scalars(values[:5]), scalars(values[5:], iters=range(5, len(values))))
    assert await case.store.thin_scalars(SCALARS, 12) == 9
    await case.settle()
    assert await iters(case.store) == [0, 1, 2, 8, 9, 11, 12, 13, 17]


async def test_what_stays_is_as_it_was_and_nothing_else_is_there(case: Case) -> None:
    """With the worker, the time and the receipt of each point; other series stay as they are."""
    plain = await both(
        case,
        noisy(700, worker="one"),
        noisy(300, iters=range(500, 800), worker="two"),
        noisy(900, variant="valid", timestamps=range(900, 0, -1)),
        noisy(20, metric="short"),
        noisy(900, metric="other"),
    )
    wanted = select(SCALARS, MetricSelection("loss"), MetricSelection("short"))
    before = await points_of(plain, SCALARS)
    assert await case.store.thin_scalars(wanted, 100) == await plain.thin_scalars(wanted, 100) > 1000
    await case.settle()
    after = await points_of(case.store, SCALARS)
    assert after == await points_of(plain, SCALARS)
    assert all(set(after[name]) <= set(before[name]) for name in before)
    for name in (("short", "train"), ("other", "train")):
        assert after[name] == before[name]
    for spread in (False, True):
        got, expected = [await one.scalar_stats(SCALARS, spread=spread) for one in (case.store, plain)]
        assert [(one.count, one.max_value, one.last_value) for one in got] == [
            (one.count, one.max_value, one.last_value) for one in expected
        ]


async def test_to_thin_twice_changes_nothing_more(case: Case) -> None:
    await both(case, noisy(3000))
    assert await case.store.thin_scalars(SCALARS, 200) >= 2800
    await case.settle()
    before = await points_of(case.store, SCALARS)
    assert await case.store.thin_scalars(SCALARS, 200) == 0
    assert await case.store.thin_scalars(SCALARS, len(before[LOSS])) == 0
    assert await points_of(case.store, SCALARS) == before


async def test_a_series_with_no_more_points_stays_as_it_is(case: Case) -> None:
    await both(case, noisy(50))
    assert await case.store.thin_scalars(SCALARS, 50) == 0
    assert await iters(case.store) == [*range(50)]
    assert await case.store.thin_scalars(select(SCALARS, MetricSelection("unknown")), 12) == 0


async def test_only_series_that_are_still_as_they_were_read_are_thinned(case: Case) -> None:
    """Not those that have a point more or another value by now, nor those that were not read."""
    metrics = ("same", "longer", "replaced", "unread")
    plain = await both(case, *(noisy(100, metric=metric) for metric in metrics))
    before = await points_of(plain, SCALARS)
    read = await checksums_of(case.store.whole_points(SCALARS))
    del read["unread", "train"]
    for store in (case.store, plain):
        await store.add(batch(scalars([0.5], iters=[140], metric="longer")))
        await store.add(batch(scalars([0.123], iters=[60], metric="replaced")))
    gone = await case.store.thin_scalars(SCALARS, 12, read)
    await case.settle()
    after = await points_of(case.store, SCALARS)
    assert gone == 100 - len(after["same", "train"]) >= 88
    assert await plain.thin_scalars(SCALARS, 12, read) == gone
    assert after == await points_of(plain, SCALARS)
    assert [len(after[metric, "train"]) for metric in metrics[1:]] == [101, 100, 100]
    assert after["unread", "train"] == before["unread", "train"]
    read = await checksums_of(case.store.whole_points(SCALARS))
    assert await case.store.thin_scalars(SCALARS, 12, read) == await plain.thin_scalars(SCALARS, 12, read) >= 3 * 88
    await case.settle()
    assert await points_of(case.store, SCALARS) == await points_of(plain, SCALARS)


async def test_last_values_and_extremes_stay(case: Case) -> None:
    """The first and the last by time lie somewhere among the iterations."""
    times = [*range(10, 1000), *range(1, 10), 5000, *range(2000, 2500)]
    await both(case, scalars(np.sin(np.arange(1500) / 70).tolist(), timestamps=times))
    (before,) = await case.store.scalar_stats(SCALARS)
    assert (before.first_iter, before.last_iter) == (990, 999)
    await case.store.thin_scalars(SCALARS, 16)
    await case.settle()
    (after,) = await case.store.scalar_stats(SCALARS)
    assert after.count <= 16
    for name in ("min_iter", "max_iter", "first_iter", "last_iter", "last_value", "min_value_iter", "max_value_iter"):
        assert getattr(after, name) == getattr(before, name), name
    last = (await case.store.last_values(SCALARS, 1))[LOSS]
    assert last == [math.sin(1499 / 70)]


async def test_a_single_value_stays_and_makes_no_bucket_wider(case: Case) -> None:
    values = [float(n % 7) for n in range(400)]
    plain = await both(case, scalars(values), scalars([99.0], iters=[SINGLE_VALUE_ITERATION]))
    assert await case.store.thin_scalars(SCALARS, 40) == await plain.thin_scalars(SCALARS, 40)
    await case.settle()
    found = await iters(case.store)
    assert found == await iters(plain)
    assert found[0] == SINGLE_VALUE_ITERATION
    assert len(found) > 30


async def test_iterations_may_be_as_far_apart_as_they_can_be(case: Case) -> None:
    far = [-(2**63), -(2**63) + 1, *range(-50, 50), 2**63 - 2, 2**63 - 1]
    plain = await both(case, scalars([float(n % 5) for n in range(len(far))], iters=far, timestamps=range(len(far))))
    assert await case.store.thin_scalars(SCALARS, 12) == await plain.thin_scalars(SCALARS, 12)
    await case.settle()
    found = await iters(case.store)
    assert found == await iters(plain)
    assert (found[0], found[-1], len(found) <= 12) == (far[0], far[-1], True)


async def test_points_that_come_later_replace_those_that_stayed(case: Case) -> None:
    plain = await both(case, noisy(1000))
    for store in (case.store, plain):
        await store.thin_scalars(SCALARS, 100)
        await store.add(batch(scalars([7.0, 8.0, 9.0], iters=[0, 1, 1000])))
    await case.settle()
    assert await points_of(case.store, SCALARS) == await points_of(plain, SCALARS)
    assert await case.store.thin_scalars(SCALARS, 100) == await plain.thin_scalars(SCALARS, 100)
    await case.settle()
    assert await points_of(case.store, SCALARS) == await points_of(plain, SCALARS)


async def test_charts_that_were_looked_at_before_show_what_stayed(case: Case) -> None:
    """Nothing is answered of what a store remembers of the points that are gone."""
    plain = await both(case, *(noisy(2000, iters=range(n, n + 2000)) for n in range(0, 12_000, 2000)))
    aggregates = frozenset({Aggregate.COUNT, Aggregate.MIN, Aggregate.MAX})
    asked = BucketQuery(BucketAxis.ITER, lambda *_: 2**7, aggregates=aggregates)
    smoothed = replace(asked, smoothing=Smoothing(next(iter(Kind)), weight=0.5, points=4))
    for _ in range(3):
        for query in (asked, smoothed):
            await case.store.scalar_buckets(SCALARS, query)
    for store in (case.store, plain):
        await store.thin_scalars(SCALARS, 8000)
    for _ in range(2):
        for query in (asked, smoothed):
            (got,), (expected,) = [await one.scalar_buckets(SCALARS, query) for one in (case.store, plain)]
            for name, column in expected.values.items():
                assert got.values[name] == pytest.approx(column)
        await case.settle()
    page = await case.store.scalar_points(SCALARS, PageQuery(10**6))
    assert page.iters.tolist() == await iters(plain)
