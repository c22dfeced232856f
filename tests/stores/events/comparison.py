"""Comparing a store with the plain one: every read method, with every kind of argument, must answer the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import product
from typing import Any

import numpy as np
import pytest

from apiserver.events.model import (
    SAMPLE_TYPES,
    BucketAxis,
    Buckets,
    EventType,
    LogLine,
    MetricSelection,
    Owner,
    SamplePosition,
    ScalarPoints,
    ScalarPosition,
    Selection,
    WorkerSpan,
)
from apiserver.stores.events.base import EventStore, Width
from tests.contract.plain_event_store import PlainEventStore

SELECTIONS: Sequence[Selection] = ((), (MetricSelection("a"),), (MetricSelection("b", ("x", "z")), MetricSelection("")))
WIDTHS: Sequence[Width] = (
    *(lambda count, least, greatest, width=width: width for width in (1, 2, 5, 16, 100, 2**63 - 1)),
    lambda count, least, greatest: min(max(1, (greatest - least) // 4), 2**63 - 1),
    lambda count, least, greatest: 1 if count < 6 else 7,
)
BOUNDS = ((None, None), (None, 7), (3, None), (-2, 12))
_LARGEST_SHIFT = 42


async def assert_same(store: EventStore, plain: PlainEventStore, owners: Sequence[Owner]) -> None:
    """Compare all that can be read of the owners."""
    for owner in owners:
        await _assert_same_scalars(store, plain, owner)
        await _assert_same_logs(store, plain, owner)
        await _assert_same_samples(store, plain, owner)
        assert await store.series(owner) == await plain.series(owner)
        for types in (None, *([type] for type in EventType)):
            assert await store.events_count(owner, types) == await plain.events_count(owner, types)
    await assert_same_to_restate(store, plain)


async def assert_same_to_restate(store: EventStore, plain: PlainEventStore) -> None:
    """Have both tell whose documents may be out of date."""
    assert [one async for one in store.owners_to_restate()] == [one async for one in plain.owners_to_restate()]


async def _assert_same_scalars(store: EventStore, plain: PlainEventStore, owner: Owner) -> None:
    for selection in SELECTIONS:
        got, expected = await store.scalar_stats([owner], selection), await plain.scalar_stats([owner], selection)
        assert [_comparable(asdict(one)) for one in got] == [_comparable(asdict(one)) for one in expected]
        for limit in (1, 4, 1000):
            await _assert_same_times(store, plain, owner, selection, limit)
        await _assert_same_by_worker(store, plain, owner, selection)
        for n in (1, 3, 100):
            values = await store.last_values(owner, selection, n)
            assert _comparable(values) == _comparable(await plain.last_values(owner, selection, n))
        for axis, width, (start, stop) in product(BucketAxis, WIDTHS, BOUNDS):
            asked: dict[str, Any] = {"axis": axis, "width": width, "selection": selection, "start": start, "stop": stop}
            await _assert_same_buckets(store, plain, owner, asked)
    for descending, limit, whole in product((False, True), (1, 4, 1000), (False, True)):
        await _assert_same_walk(store, plain, owner, descending=descending, limit=limit, whole_iterations=whole)


async def _assert_same_walk(store: EventStore, plain: PlainEventStore, owner: Owner, **how: Any) -> None:
    after: ScalarPosition | None = None
    while True:
        got = _rows(await store.scalar_points(owner, after=after, **how))
        assert got == _rows(await plain.scalar_points(owner, after=after, **how))
        if not got:
            return
        after = ScalarPosition(*got[-1][:3])


async def _assert_same_times(
    store: EventStore, plain: PlainEventStore, owner: Owner, selection: Selection, limit: int
) -> None:
    after: int | None = None
    while True:
        got = await store.earliest_points(owner, selection, after=after, limit=limit)
        assert _rows(got) == _rows(await plain.earliest_points(owner, selection, after=after, limit=limit))
        if not len(got.iters):
            return
        after = int(got.timestamps[-1])


async def _assert_same_by_worker(store: EventStore, plain: PlainEventStore, owner: Owner, selection: Selection) -> None:
    got, expected = await store.worker_spans(owner, selection), await plain.worker_spans(owner, selection)
    assert list(map(_rounded_span, got)) == list(map(_rounded_span, expected))
    for start, stop, step in ((-(2**52), 2**52, 2**20), (0, 20, 1), (3, 20, 4), (-2, 12, 10**30), (7, 7, 3)):
        asked: dict[str, Any] = {"selection": selection, "start": start, "stop": stop, "step": step}
        means, expected_means = await store.worker_means(owner, **asked), await plain.worker_means(owner, **asked)
        for one, other in zip(means, expected_means, strict=True):
            assert (one.metric, one.variant, one.worker) == (other.metric, other.variant, other.worker)
            assert (one.steps.tolist(), one.counts.tolist()) == (other.steps.tolist(), other.counts.tolist())
            assert np.allclose(one.means, other.means, rtol=1e-9, atol=1e-9)


def _rounded_span(span: WorkerSpan) -> tuple[Any, ...]:
    return (*span[:4], float(span.first), float(span.last))


def _rows(points: ScalarPoints) -> list[tuple[Any, ...]]:
    names = [points.names[n] for n in points.series.tolist()]
    columns = (points.timestamps.tolist(), map(repr, points.values.tolist()), points.workers, points.received.tolist())
    return [(iter, *name, *rest) for iter, name, *rest in zip(points.iters.tolist(), names, *columns, strict=True)]


async def _assert_same_buckets(store: EventStore, plain: PlainEventStore, owner: Owner, asked: dict[str, Any]) -> None:
    """Intervals may be rounded up to a multiple of a power of two, on the iteration axis."""
    got = await store.scalar_buckets(owner, **asked, envelope=True)
    means = await store.scalar_buckets(owner, **asked)
    for one, mean in zip(got, means, strict=True):
        assert (one.x.tolist(), one.count.tolist()) == (mean.x.tolist(), mean.count.tolist())
        assert np.array_equal(one.mean, mean.mean, equal_nan=True)
    missing = got
    for shift in range(_LARGEST_SHIFT if asked["axis"] is BucketAxis.ITER else 1):
        rounded = {**asked, "width": _rounded(asked["width"], shift)}
        expected = {(one.metric, one.variant): one for one in await plain.scalar_buckets(owner, **rounded)}
        assert [(one.metric, one.variant) for one in got] == list(expected)
        missing = [one for one in missing if not _same_buckets(one, expected[one.metric, one.variant])]
        if not missing:
            return
    pytest.fail(f"{asked} gives {missing[0]}")


def _rounded(width: Width, shift: int) -> Width:
    def rounded(count: int, least: int, greatest: int) -> int:
        interval = width(count, least, greatest)
        return interval if interval == 1 else min(-(-interval >> shift) << shift, 2**63 - 1)

    return rounded


def _same_buckets(got: Buckets, expected: Buckets) -> bool:
    if got.x.tolist() != expected.x.tolist() or got.count.tolist() != expected.count.tolist():
        return False
    exact = all(
        np.array_equal(getattr(got, column), getattr(expected, column), equal_nan=True)
        for column in ("min", "max", "first", "last")
    )
    return exact and np.allclose(got.mean, expected.mean, rtol=1e-9, atol=1e-9, equal_nan=True)


async def _assert_same_logs(store: EventStore, plain: PlainEventStore, owner: Owner) -> None:
    sizes, expected_sizes = await store.log_sizes(owner), await plain.log_sizes(owner)
    assert {worker: (float(size.first), size.bytes) for worker, size in sizes.items()} == {
        worker: (float(size.first), size.bytes) for worker, size in expected_sizes.items()
    }
    for selection in SELECTIONS:
        assert await store.log_count(owner, selection) == await plain.log_count(owner, selection)
        ways = product((False, True), (2, 1000), (False, True), (None, (), ("one", "")))
        for descending, limit, whole, workers in ways:
            how: dict[str, Any] = {"descending": descending, "limit": limit, "whole_timestamps": whole}
            how["workers"] = workers
            page = await store.log_lines(owner, selection, **how)
            expected = await plain.log_lines(owner, selection, **how)
            while page or expected:
                assert list(map(_without_sequence, page)) == list(map(_without_sequence, expected))
                # Stores may number lines differently, but order them alike.
                page = await store.log_lines(owner, selection, after=page[-1].position, **how)
                expected = await plain.log_lines(owner, selection, after=expected[-1].position, **how)


def _without_sequence(line: LogLine) -> tuple[Any, ...]:
    return (line.position.timestamp, *line[1:])


async def _assert_same_samples(store: EventStore, plain: PlainEventStore, owner: Owner) -> None:
    for type, selection in product(SAMPLE_TYPES, SELECTIONS):
        asked = (owner, type, selection)
        assert await store.sample_series(*asked) == await plain.sample_series(*asked)
        for n in (1, 2):
            latest = await store.latest_samples(*asked, iterations=n)
            assert latest == await plain.latest_samples(*asked, iterations=n)
        for descending, beyond in product((False, True), (None, 2)):
            walk: dict[str, Any] = {"beyond": beyond, "descending": descending, "limit": 3}
            assert await store.sample_iterations(*asked, **walk) == await plain.sample_iterations(*asked, **walk)
    for type, descending, (low, high) in product(SAMPLE_TYPES, (False, True), BOUNDS):
        how: dict[str, Any] = {"descending": descending, "limit": 3, "min_iter": low, "max_iter": high}
        after: SamplePosition | None = None
        while True:
            samples = await store.samples(owner, type, after=after, **how)
            assert samples == await plain.samples(owner, type, after=after, **how)
            if not samples:
                break
            last = samples[-1]
            after = SamplePosition(last.iter, last.metric, last.variant, last.key)


def _comparable(value: Any) -> Any:
    """The same with floats that compare: NaN to NaN, and sums whatever the order of their terms."""
    if isinstance(value, dict):
        return {key: _comparable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_comparable(item) for item in value]
    return pytest.approx(value, nan_ok=True, rel=1e-9, abs=1e-9) if isinstance(value, float) else value
