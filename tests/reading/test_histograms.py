"""Histograms of stored series against brute force.

`EVENTS_EXAMPLES=1000 pytest tests/reading/test_histograms.py` looks longer.
"""

from __future__ import annotations

import asyncio
import math
import tempfile
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.events.model import (
    SINGLE_VALUE_ITERATION,
    EventBatch,
    EventType,
    MetricSelection,
    ScalarColumns,
    Scalars,
)
from apiserver.events.queries import Range, SeriesQuery
from apiserver.reading.histogram import HistogramQuery, Key, histogram, interval
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.chance import examples
from tests.reading.any_events import looked_at
from tests.reading.events import NOW, SCALARS, TASK, scalars
from tests.stores.events.embedded.sizes import SMALL

pytestmark = pytest.mark.anyio


async def test_few_points_are_answered_as_they_are(store: EmbeddedEventStore) -> None:
    await store.add(scalars([(3, 1.5), (1, 2.5), (7, math.nan)]))
    (series,) = (await histogram(store, SCALARS, HistogramQuery(6000)))["m"].values()
    assert series["name"] == "v"
    assert series["x"].tolist() == [1, 3, 7]
    assert series["y"].tolist()[:2] == [2.5, 1.5]
    assert math.isnan(series["y"][2])


async def test_each_series_has_its_own_interval(store: EmbeddedEventStore) -> None:
    await store.add(scalars([(n, float(n)) for n in range(1000)], variant="long"))
    await store.add(scalars([(n, float(n)) for n in range(9)], variant="short"))
    answer = (await histogram(store, SCALARS, HistogramQuery(10)))["m"]
    assert answer["short"]["x"].tolist() == list(range(9))
    assert answer["long"]["x"].tolist() == list(range(0, 1000, 100))
    assert answer["long"]["y"].tolist() == [n + 49.5 for n in range(0, 1000, 100)]


async def test_the_envelope_shows_what_the_mean_hides(store: EmbeddedEventStore) -> None:
    await store.add(scalars([(n, 1000.0 if n == 555 else 1.0) for n in range(1000)]))
    series = (await histogram(store, SCALARS, HistogramQuery(10, envelope=True)))["m"]["v"]
    assert series["max"][5] == 1000.0
    assert series["min"][5] == 1.0
    assert series["count"].tolist() == [100] * 10


async def test_single_values_are_left_out(store: EmbeddedEventStore) -> None:
    await store.add(scalars([(SINGLE_VALUE_ITERATION, 5.0)], metric="Summary", variant="best"))
    await store.add(scalars([(SINGLE_VALUE_ITERATION, 5.0), (10, 1.0), (20, 2.0)], metric="both"))
    answer = await histogram(store, SCALARS, HistogramQuery(100))
    assert "Summary" not in answer
    assert answer["both"]["v"]["x"].tolist() == [10, 20]


async def test_time_axes(store: EmbeddedEventStore) -> None:
    await store.add(scalars([(0, 1.0), (1000, 2.0)]))
    by_time = (await histogram(store, SCALARS, HistogramQuery(10, Key.TIMESTAMP)))["m"]["v"]
    assert by_time["x"].tolist() == [NOW, NOW + 1000]
    by_text = (await histogram(store, SCALARS, HistogramQuery(10, Key.ISO_TIME)))["m"]["v"]
    assert by_text["x"] == ["2023-11-14T22:13:20.000Z", "2023-11-14T22:13:21.000Z"]


async def test_a_selection_narrows_the_answer(store: EmbeddedEventStore) -> None:
    for metric, variant in (("a", "x"), ("a", "y"), ("b", "x")):
        await store.add(scalars([(1, 1.0)], metric=metric, variant=variant))
    answer = await histogram(
        store,
        SeriesQuery(TASK, EventType.SCALAR, [MetricSelection("a", ("y",)), MetricSelection("b")]),
        HistogramQuery(0),
    )
    assert {metric: list(variants) for metric, variants in answer.items()} == {"a": ["y"], "b": ["x"]}


async def test_a_range_is_bucketed_anew(store: EmbeddedEventStore) -> None:
    await store.add(scalars([(n, float(n)) for n in range(10_000)], variant="long"))
    await store.add(scalars([(n, float(n)) for n in range(50)], variant="short"))
    zoomed = (await histogram(store, SCALARS, HistogramQuery(10, range=Range.of(500, 599))))["m"]
    assert zoomed["long"]["x"].tolist() == list(range(500, 600, 10))
    assert zoomed["long"]["y"].tolist() == [n + 4.5 for n in range(500, 600, 10)]
    assert zoomed["short"]["x"].tolist() == []
    by_time = (await histogram(store, SCALARS, HistogramQuery(10, Key.TIMESTAMP, range=Range.of(NOW + 9996, None))))[
        "m"
    ]["long"]
    assert by_time["x"].tolist() == [NOW + n for n in range(9996, 10_000)]
    least = (await histogram(store, SCALARS, HistogramQuery(0, range=Range.of(None, 2))))["m"]
    assert [least[variant]["y"].tolist() for variant in ("long", "short")] == [[0, 1, 2]] * 2


@pytest.mark.test
@looked_at
@given(
    st.lists(st.tuples(st.integers(-5000, 5000), st.floats(-1e6, 1e6)), min_size=1, max_size=300),
    st.integers(1, 50),
)
async def test_buckets_equal_brute_force(
    store: EmbeddedEventStore, points: list[tuple[int, float]], samples: int
) -> None:
    await store.delete([TASK])
    await store.add(scalars(points))
    latest = dict(points)
    width = interval(len(latest), min(latest), max(latest), samples)
    expected = defaultdict(list)
    for iter in sorted(latest):
        expected[iter // width * width].append(latest[iter])
    series = (await histogram(store, SCALARS, HistogramQuery(samples, envelope=True)))["m"]["v"]
    assert series["x"].tolist() == sorted(expected)
    for bucket, values in enumerate(expected[x] for x in sorted(expected)):
        assert series["count"][bucket] == len(values)
        assert series["y"][bucket] == pytest.approx(sum(values) / len(values), abs=1e-6)
        assert (series["min"][bucket], series["max"][bucket]) == (min(values), max(values))
        assert (series["first"][bucket], series["last"][bucket]) == (values[0], values[-1])
    assert all(left < right for left, right in pairwise(series["x"].tolist()))


Point = tuple[int, int, float]
"""(iteration, timestamp, value)"""
POINTS = st.lists(
    st.tuples(
        st.one_of(st.integers(-20, 60), st.integers(-20, 60), st.sampled_from([SINGLE_VALUE_ITERATION, 2**40])),
        st.integers(-20, 60),
        st.one_of(st.integers(-9, 9).map(float), st.sampled_from([math.nan, math.inf, 1e300])),
    ),
    min_size=1,
    max_size=60,
)
BOUND = st.none() | st.integers(-25, 65)


@pytest.mark.test
@pytest.mark.parametrize("bounds", [SMALL])
@looked_at
@given(
    batches=st.lists(POINTS, min_size=1, max_size=3),
    samples=st.integers(0, 12),
    key=st.sampled_from([Key.ITER, Key.TIMESTAMP]),
    ends=st.tuples(BOUND, BOUND),
    merged=st.booleans(),
)
async def test_buckets_hold_each_point_once(
    store: EmbeddedEventStore,
    batches: list[list[Point]],
    samples: int,
    key: Key,
    ends: tuple[int | None, int | None],
    merged: bool,
) -> None:
    await store.delete([TASK])
    latest: dict[int, Point] = {}
    for points in batches:
        iters, times, column = (np.array(column) for column in zip(*points, strict=True))
        group = ScalarColumns(TASK, "m", "v", "w", iters, times, column.astype(np.float64))
        await store.add(EventBatch(NOW, Scalars.of([group])))
        if merged:
            await store.merge()
        latest |= {point[0]: point for point in points}
    start, stop = ends
    answer = await histogram(store, SCALARS, HistogramQuery(samples, key, envelope=True, range=Range.of(start, stop)))
    latest.pop(SINGLE_VALUE_ITERATION, None)
    if not latest:
        assert answer == {}
        return
    series = {name: list(column) for name, column in answer["m"]["v"].items()}
    at = 0 if key is Key.ITER else 1
    low, high = -math.inf if start is None else start, math.inf if stop is None else stop
    inside = sorted(point for point in latest.values() if low <= point[at] <= high)
    inside.sort(key=lambda point: point[at])
    starts = series["x"]
    assert starts == sorted(set(starts))
    assert sum(series["count"]) == len(inside)
    assert samples == 0 or len(starts) <= samples + 1
    for n, (low, high) in enumerate(zip(starts, [*starts[1:], math.inf], strict=False)):
        values = [value for *x, value in inside if low <= x[at] < high]
        finite = [value for value in values if math.isfinite(value)]
        assert series["count"][n] == len(values) > 0
        assert same(series["first"][n], values[0])
        assert same(series["last"][n], values[-1])
        if finite:
            assert (series["min"][n], series["max"][n]) == (min(finite), max(finite))
            assert series["y"][n] == pytest.approx(math.fsum(value / len(finite) for value in finite))
            slack = 1e-9 * max(map(abs, finite))
            assert series["min"][n] - slack <= series["y"][n] <= series["max"][n] + slack
        else:
            assert all(math.isnan(series[name][n]) for name in ("y", "min", "max"))


def same(one: float, other: float) -> bool:
    """Whether two values are equal, or both none."""
    return one == other or (math.isnan(one) and math.isnan(other))


extreme = st.sampled_from([-(2**63), -(2**63) + 5, -(2**62), 0, 2**62, 2**63 - 6, 2**63 - 1])


@pytest.mark.test
@examples(20)
@given(st.dictionaries(extreme, extreme, min_size=1), st.integers(1, 9), st.sampled_from(Key), st.booleans())
def test_any_x_is_answered(
    tmp_path: Path, times_by_iteration: dict[int, int], samples: int, key: Key, merged: bool
) -> None:
    async def answer() -> tuple[list[Any], list[int]]:
        with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
            store = EmbeddedEventStore(Path(folder))
            await store.open()
            iters, times = (np.array(list(x), np.int64) for x in (times_by_iteration, times_by_iteration.values()))
            group = ScalarColumns(TASK, "m", "v", "worker", iters, times, np.ones(len(iters)))
            await store.add(EventBatch(received=NOW, scalars=Scalars.of([group])))
            if merged:
                await store.merge()
            series = (await histogram(store, SCALARS, HistogramQuery(samples, key, envelope=True)))["m"]["v"]
            await store.close()
            return list(series["x"]), series["count"].tolist()

    starts, counts = asyncio.run(answer())
    assert sum(counts) == len(times_by_iteration)
    assert len(starts) == len(counts)
    if key is Key.ISO_TIME:
        assert "NaTZ" not in starts
    else:
        assert starts == sorted(set(starts))
        xs = list(times_by_iteration if key is Key.ITER else times_by_iteration.values())
        if key is Key.DURATION:
            xs = [min(x - min(xs), 2**63 - 1) for x in xs]
        assert min(xs) - (2**63 - 1) < starts[0] <= min(xs)
