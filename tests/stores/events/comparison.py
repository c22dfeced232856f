"""Comparing a store with the plain one: every read method, with every kind of argument, must answer the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest

from apiserver.events.aggregates import ALL, Aggregate, Buckets
from apiserver.events.log_filter import LineFilter
from apiserver.events.model import (
    SAMPLE_TYPES,
    BucketAxis,
    EventType,
    LogLine,
    LogPosition,
    MetricSelection,
    Owner,
    SamplePosition,
    ScalarPoints,
    ScalarPosition,
    ScalarStats,
    Selection,
    WorkerSpan,
)
from apiserver.events.queries import BucketQuery, CommonBuckets, CurvesQuery, Grid, PageQuery, Range, SeriesQuery, Width
from apiserver.events.smoothing import Kind, Smoothing
from apiserver.stores.events.base import EventStore
from apiserver.stores.events.blocks.scalars import ColumnarScalars
from tests.contract.plain_event_store import PlainEventStore
from tests.stores.events.whole import lines_of, points_of

MEAN = Aggregate.MEAN

#: A store, or only its scalars.
ScalarStore = EventStore | ColumnarScalars

SELECTIONS: Sequence[Selection] = ((), (MetricSelection("a"),), (MetricSelection("b", ("x", "z")), MetricSelection("")))
WIDTHS: Sequence[Width] = (
    *(lambda count, least, greatest, width=width: width for width in (1, 2, 5, 16, 100, 2**63 - 1)),
    lambda count, least, greatest: min(max(1, (greatest - least) // 4), 2**63 - 1),
    lambda count, least, greatest: 1 if count < 6 else 7,
)
SMOOTHINGS = tuple(Smoothing(kind, weight=0.7, points=4) for kind in Kind)
BOUNDS = ((None, None), (None, 7), (3, None), (-2, 12))
NAMES = (("a", "x"), ("b", "y"), ("nothing", ""))
UNKNOWN = Owner("company", "unknown")
_LARGEST_SHIFT = 42


class Questions(NamedTuple):
    """Which buckets are asked for, and of which iterations."""

    widths: Sequence[Width]
    ranges: Sequence[tuple[int | None, int | None]]


EVERYTHING = Questions(WIDTHS, BOUNDS)
#: For stores that take longer to answer.
FEW = Questions(WIDTHS[2::2], BOUNDS[::3])


async def assert_same(
    store: EventStore, plain: PlainEventStore, owners: Sequence[Owner], asked: Questions = EVERYTHING
) -> None:
    """Compare all that can be read of the owners."""
    for owner in owners:
        await _assert_same_scalars(store, plain, owner, asked)
        await assert_same_logs(store, plain, owner)
        await _assert_same_samples(store, plain, owner, asked)
        assert await lines_of(store, owner) == await lines_of(plain, owner)
        assert await store.series(owner) == await plain.series(owner)
        for types in (None, *([type] for type in EventType)):
            assert await store.events_count(owner, types) == await plain.events_count(owner, types)
    for (metric, variant), axis in product(NAMES, BucketAxis):
        await assert_same_curves(store, plain, CurvesQuery([*owners, UNKNOWN], metric, variant, axis))
    await assert_same_to_restate(store, plain)


async def assert_same_to_restate(store: EventStore, plain: PlainEventStore) -> None:
    """Have both tell whose documents may be out of date."""
    assert [one async for one in store.owners_to_restate()] == [one async for one in plain.owners_to_restate()]


async def _assert_same_scalars(store: EventStore, plain: PlainEventStore, owner: Owner, questions: Questions) -> None:
    for selection in SELECTIONS:
        series = SeriesQuery(owner, EventType.SCALAR, selection)
        await assert_same_stats(store, plain, series)
        for limit in (1, 4, 1000):
            await assert_same_times(store, plain, series, limit)
        await assert_same_by_worker(store, plain, series)
        assert await points_of(store, series) == await points_of(plain, series)
        for axis, width, bounds in product(BucketAxis, questions.widths, questions.ranges):
            await _assert_same_buckets(store, plain, series, BucketQuery(axis, width, Range.of(*bounds)))
    for axis, smoothing in product(BucketAxis, SMOOTHINGS):
        asked = BucketQuery(axis, lambda *_: 1, Range.of(-2, 12), smoothing=smoothing)
        await _assert_same_smoothed(store, plain, SeriesQuery(owner, EventType.SCALAR), asked)
    for descending, limit, whole in product((False, True), (1, 4, 1000), (False, True)):
        await _assert_same_walk(store, plain, owner, PageQuery(limit, None, descending, whole))


async def assert_same_stats(store: ScalarStore, plain: PlainEventStore, series: SeriesQuery) -> None:
    """Compare stats and last values."""
    got, expected = await store.scalar_stats(series), await plain.scalar_stats(series)
    assert [_comparable(asdict(one)) for one in got] == [_comparable(asdict(one)) for one in expected]
    got, expected = [await one.scalar_stats(series, spread=True) for one in (store, plain)]
    assert list(map(_spread, got)) == list(map(_spread, expected))
    for n in (1, 3, 100):
        values = await store.last_values(series, n)
        assert _comparable(values) == _comparable(await plain.last_values(series, n))


async def assert_same_curves(store: ScalarStore, plain: PlainEventStore, asked: CurvesQuery) -> None:
    """Compare the curves' ends, their buckets, and the nearest ones outside."""
    ends = await plain.curve_ends(asked)
    assert await store.curve_ends(asked) == ends
    for least, greatest, most in (*([(*ends, 4), (*ends, 30)] if ends else []), (-2, 12, 4), (3, 3, 4)):
        buckets = CommonBuckets.over(least, greatest, most)
        got, expected = [await one.curve_buckets(asked, buckets) for one in (store, plain)]
        assert np.allclose(got.means, expected.means, rtol=1e-9, atol=1e-9, equal_nan=True), (asked, buckets)
        assert np.array_equal(got.least, expected.least, equal_nan=True), (asked, buckets)
        assert np.array_equal(got.greatest, expected.greatest, equal_nan=True), (asked, buckets)
        await _assert_same_neighbours(store, plain, asked, buckets)
    if ends and asked.axis is BucketAxis.DURATION:
        for smoothing in SMOOTHINGS:
            smooth, buckets = replace(asked, smoothing=smoothing), CommonBuckets.over(-2, 12, 30)
            got, expected = [await one.curve_buckets(smooth, buckets) for one in (store, plain)]
            for column in ("means", "least", "greatest"):
                one, other = getattr(got, column), getattr(expected, column)
                assert np.allclose(one, other, rtol=1e-9, atol=1e-9, equal_nan=True), (column, smooth, buckets)
            await _assert_same_neighbours(store, plain, smooth, CommonBuckets.over(3, 5, 4))


async def _assert_same_neighbours(
    store: ScalarStore, plain: PlainEventStore, asked: CurvesQuery, buckets: CommonBuckets
) -> None:
    for before in (False, True):
        got, expected = [await one.curve_neighbours(asked, buckets, before=before) for one in (store, plain)]
        assert np.array_equal(got.numbers, expected.numbers, equal_nan=True), (asked, buckets, before)
        assert np.allclose(got.means, expected.means, rtol=1e-9, atol=1e-9, equal_nan=True), (asked, buckets, before)


async def _assert_same_smoothed(
    store: EventStore, plain: PlainEventStore, series: SeriesQuery, asked: BucketQuery
) -> None:
    got, expected = await store.scalar_buckets(series, asked), await plain.scalar_buckets(series, asked)
    assert [(one.metric, one.variant, one.x.tolist()) for one in got] == [
        (one.metric, one.variant, one.x.tolist()) for one in expected
    ]
    for one, other in zip(got, expected, strict=True):
        expected_means = pytest.approx(other.values[MEAN].tolist(), rel=1e-9, abs=1e-9, nan_ok=True)
        assert one.values[MEAN].tolist() == expected_means


async def _assert_same_walk(
    store: EventStore, plain: PlainEventStore, owner: Owner, page: PageQuery[ScalarPosition]
) -> None:
    series = SeriesQuery(owner, EventType.SCALAR)
    while True:
        got = _rows(await store.scalar_points(series, page))
        assert got == _rows(await plain.scalar_points(series, page))
        if not got:
            return
        page = replace(page, after=ScalarPosition(*got[-1][:3]))


async def assert_same_times(store: ScalarStore, plain: PlainEventStore, series: SeriesQuery, limit: int) -> None:
    """Compare all points in the order of their timestamps."""
    after: int | None = None
    while True:
        got = await store.earliest_points(series, limit, after)
        assert _rows(got) == _rows(await plain.earliest_points(series, limit, after))
        if not len(got.iters):
            return
        after = int(got.timestamps[-1])


async def assert_same_by_worker(store: ScalarStore, plain: PlainEventStore, series: SeriesQuery) -> None:
    """Compare what each worker reported."""
    got, expected = await store.worker_spans(series), await plain.worker_spans(series)
    assert list(map(_rounded_span, got)) == list(map(_rounded_span, expected))
    for steps in ((-(2**52), 2**52, 2**20), (0, 20, 1), (3, 20, 4), (-2, 12, 10**30), (7, 7, 3)):
        means = await store.worker_means(series, Grid(*steps))
        for one, other in zip(means, await plain.worker_means(series, Grid(*steps)), strict=True):
            assert (one.metric, one.variant, one.worker) == (other.metric, other.variant, other.worker)
            assert (one.steps.tolist(), one.counts.tolist()) == (other.steps.tolist(), other.counts.tolist())
            assert np.allclose(one.means, other.means, rtol=1e-9, atol=1e-9)


def _rounded_span(span: WorkerSpan) -> tuple[Any, ...]:
    return (*span[:4], float(span.first), float(span.last))


def _rows(points: ScalarPoints) -> list[tuple[Any, ...]]:
    names = [points.names[n] for n in points.series.tolist()]
    columns = (points.timestamps.tolist(), map(repr, points.values.tolist()), points.workers, points.received.tolist())
    return [(iter, *name, *rest) for iter, name, *rest in zip(points.iters.tolist(), names, *columns, strict=True)]


async def _assert_same_buckets(
    store: EventStore, plain: PlainEventStore, series: SeriesQuery, asked: BucketQuery
) -> None:
    """Intervals may be rounded up to a multiple of a power of two, on the iteration axis."""
    got = await store.scalar_buckets(series, replace(asked, aggregates=ALL))
    means = await store.scalar_buckets(series, asked)
    for one, mean in zip(got, means, strict=True):
        assert one.x.tolist() == mean.x.tolist()
        assert mean.values.keys() == {MEAN}
        assert np.array_equal(one.values[MEAN], mean.values[MEAN], equal_nan=True)
    missing = got
    for shift in range(_LARGEST_SHIFT if asked.axis is BucketAxis.ITER else 1):
        rounded = replace(asked, width=_rounded(asked.width, shift), aggregates=ALL)
        expected = {(one.metric, one.variant): one for one in await plain.scalar_buckets(series, rounded)}
        assert [(one.metric, one.variant) for one in got] == list(expected)
        missing = [one for one in missing if not _same_buckets(one, expected[one.metric, one.variant])]
        if not missing:
            return
    pytest.fail(f"{series} {asked} gives {missing[0]}")


def _rounded(width: Width, shift: int) -> Width:
    def rounded(count: int, least: int, greatest: int) -> int:
        interval = width(count, least, greatest)
        return interval if interval == 1 else min(-(-interval >> shift) << shift, 2**63 - 1)

    return rounded


def _same_buckets(got: Buckets, expected: Buckets) -> bool:
    if got.x.tolist() != expected.x.tolist():
        return False
    others = [one for one in Aggregate if one is not MEAN]
    exact = all(np.array_equal(got.values[one], expected.values[one], equal_nan=True) for one in others)
    return exact and np.allclose(got.values[MEAN], expected.values[MEAN], rtol=1e-9, atol=1e-9, equal_nan=True)


async def assert_same_logs(store: EventStore, plain: PlainEventStore, owner: Owner) -> None:
    """Compare all that can be read of the owner's log."""
    sizes, expected_sizes = await store.log_sizes(owner), await plain.log_sizes(owner)
    assert {worker: (float(size.first), size.bytes) for worker, size in sizes.items()} == {
        worker: (float(size.first), size.bytes) for worker, size in expected_sizes.items()
    }
    await _assert_same_numbers(store, plain, owner)
    for selection in SELECTIONS:
        series = SeriesQuery(owner, EventType.LOG, selection)
        assert await store.log_count(series) == await plain.log_count(series)
        ways = product((False, True), (2, 1000), (False, True), (None, (), ("one", "")))
        for descending, limit, whole, workers in ways:
            first: PageQuery[LogPosition] = PageQuery(limit, None, descending, whole)
            page = await store.log_lines(series, first, workers)
            expected = await plain.log_lines(series, first, workers)
            if workers is None:
                assert await store.log_page(series, first) == (page, await plain.log_count(series))
            while page or expected:
                assert list(map(_without_sequence, page)) == list(map(_without_sequence, expected))
                # Stores may number lines differently, but order them alike.
                page = await store.log_lines(series, replace(first, after=page[-1].position), workers)
                expected = await plain.log_lines(series, replace(first, after=expected[-1].position), workers)


async def _assert_same_numbers(store: EventStore, plain: PlainEventStore, owner: Owner) -> None:
    everything, count = await plain.log_numbered(owner, range(10**4))
    for numbers in (range(10**4), range(3, 7), range(count - 2, count + 2), [*range(0, count, 3)], [count], []):
        numbers = [number for number in numbers if number >= 0]
        lines, total = await store.log_numbered(owner, numbers)
        assert total == count
        expected = [everything[number] for number in numbers if number < count]
        assert list(map(_without_sequence, lines)) == list(map(_without_sequence, expected))
        for number, line in zip(numbers, lines, strict=False):
            assert await store.log_number(owner, line.position) == number
    await _assert_same_hits(store, everything, owner)
    for time in {time + more for line in everything for more in (0, 1) if (time := line.position.timestamp) < 2**62}:
        earlier = LogPosition(time, -1)
        assert await store.log_number(owner, earlier) == await plain.log_number(owner, earlier)


async def _assert_same_hits(store: EventStore, lines: Sequence[LogLine], owner: Owner) -> None:
    """Search for what some of the lines have."""
    for wanted in (LineFilter(), LineFilter(frozenset({"info"}), message=lambda message: len(message) % 2 == 0)):
        found: list[int] = []
        searched, after, ended = 0, None, False
        while not ended:
            places, count, after, ended = await store.log_hits(owner, wanted, after)
            found += [searched + place for place in places]
            searched += count
        assert (found, searched) == (wanted.places([*lines]), len(lines))


def _without_sequence(line: LogLine) -> tuple[Any, ...]:
    return (line.position.timestamp, *line[1:])


async def _assert_same_samples(store: EventStore, plain: PlainEventStore, owner: Owner, questions: Questions) -> None:
    for type, selection in product(SAMPLE_TYPES, SELECTIONS):
        series = SeriesQuery(owner, type, selection)
        assert await store.sample_series(series) == await plain.sample_series(series)
        for n in (1, 2):
            assert await store.latest_samples(series, n) == await plain.latest_samples(series, n)
        for descending, beyond in product((False, True), (None, 2)):
            walk = PageQuery(3, beyond, descending)
            assert await store.sample_iterations(series, walk) == await plain.sample_iterations(series, walk)
    for type, descending, bounds in product(SAMPLE_TYPES, (False, True), questions.ranges):
        series, iterations = SeriesQuery(owner, type), Range.of(*bounds)
        page: PageQuery[SamplePosition] = PageQuery(3, None, descending)
        while True:
            samples = await store.samples(series, page, iterations)
            assert samples == await plain.samples(series, page, iterations)
            if not samples:
                break
            page = replace(page, after=samples[-1].position)


def _spread(stats: ScalarStats) -> tuple[Any, ...]:
    """What only `spread` tells. The squares of huge values' roundings are infinite, or not, as it happens."""
    huge = max(abs(stats.min_value or 0), abs(stats.max_value or 0)) > 1e100
    deviations = None if huge else pytest.approx(stats.deviations, rel=1e-9, abs=1e-6)
    return stats.metric, stats.variant, stats.first_not_finite_iter, deviations


def _comparable(value: Any) -> Any:
    """The same with floats that compare: NaN to NaN, and sums whatever the order of their terms."""
    if isinstance(value, dict):
        return {key: _comparable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_comparable(item) for item in value]
    return pytest.approx(value, nan_ok=True, rel=1e-9, abs=1e-9) if isinstance(value, float) else value
