"""What every event store says of series of scalars: stats, and what each worker reported."""

from __future__ import annotations

import math

import pytest

from apiserver.events.model import EventType, MetricSelection, WorkerSpan
from apiserver.events.queries import Grid, PageQuery, SeriesQuery
from tests.contract.event_stores import INF, NAN, OWNER, SCALARS, Case, batch, case, scalars, select

__all__ = ["case"]

pytestmark = pytest.mark.anyio


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
