"""One curve of many runs: what it shows, and that it is what plain Python makes of the same points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.events.model import Float64Array, Owner
from apiserver.events.queries import EVERYWHERE, CommonBuckets, Range
from apiserver.events.smoothing import Kind, Smoothing
from apiserver.reading.groups import Fill, GroupCurves, GroupsQuery, fill, group_curves, summed_up
from apiserver.reading.histogram import Key
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.chance import examples
from tests.contract.event_stores import batch, scalars
from tests.reading.plain_groups import curve, extremes, filled

pytestmark = pytest.mark.anyio

NAN, INF = math.nan, math.inf
A, B, C = (Owner("company", name) for name in "abc")
LOSS = [("loss", "train")]

numbers = st.one_of(st.just(NAN), st.just(INF), st.integers(-5, 5).map(float), st.floats(-1e6, 1e6))
matrices = st.integers(1, 12).flatmap(
    lambda width: st.lists(st.lists(numbers, min_size=width, max_size=width), min_size=1, max_size=12)
)


async def read(
    store: EmbeddedEventStore, groups: dict[str, Sequence[Owner]], asked: GroupsQuery, series: Any = LOSS
) -> GroupCurves:
    return await group_curves(store, groups, series, asked)


async def one(store: EmbeddedEventStore, owners: Sequence[Owner], asked: GroupsQuery) -> dict[str, list[Any]]:
    found = (await read(store, {"group": owners}, asked))["loss"]["train"]["group"]
    return {name: [*map(_listed, column)] for name, column in found.items()}


def _listed(value: Any) -> Any:
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


# --- what it shows ---------------------------------------------------------------------------------


async def test_the_example_in_the_description(store: EmbeddedEventStore) -> None:
    await store.add(batch(scalars([2, 4, 9], iters=[0, 2, 8], owner=A)))
    await store.add(batch(scalars([1, NAN, 5], iters=[4, 8, 12], owner=B)))
    found = await one(store, [A, B], GroupsQuery(4))
    assert (found["x"], found["runs"], found["mean"]) == ([0, 4, 8, 12], [1, 2, 2, 1], [3, 3.5, 6, 5])
    assert (found["min"], found["max"], found["std"]) == ([2, 1, 3, 5], [4, 6, 9, 5], [0, 2.5, 3, 0])
    last = await one(store, [A, B], GroupsQuery(4, fill=Fill.LAST))
    assert (last["mean"], last["min"], last["max"]) == ([3, 2, 5, 5], [2, 1, 1, 5], [4, 3, 9, 5])


async def test_a_spike_of_one_point_is_as_high_as_it_was(store: EmbeddedEventStore) -> None:
    values = [1.0] * 1000
    await store.add(batch(scalars(values, owner=A), scalars([*values[:777], 50, *values[778:]], owner=B)))
    found = await one(store, [A, B], GroupsQuery(10, quantiles=(1,)))
    assert found["x"][6] == 768
    assert found["max"] == [*[1] * 6, 50, 1]
    assert found["min"] == [1] * 8
    assert found["quantiles"][0][6] == found["mean"][6] * 2 - 1 == 1 + 49 / 128


async def test_quantiles_are_answered_as_asked_for(store: EmbeddedEventStore) -> None:
    owners = [Owner("company", str(n)) for n in range(5)]
    await store.add(batch(*(scalars([n * 10.0], owner=owner) for n, owner in enumerate(owners))))
    found = await one(store, owners, GroupsQuery(10, quantiles=(0.5, 0, 1, 0.1, 0.5)))
    assert found["quantiles"] == [[20], [0], [40], [4], [20]]
    assert "quantiles" not in await one(store, owners, GroupsQuery(10))


async def test_runs_of_different_lengths_and_steps(store: EmbeddedEventStore) -> None:
    await store.add(batch(scalars([0, 4, 8], iters=[0, 4, 8], owner=A), scalars([5] * 5, iters=range(3, 8), owner=B)))
    found = await one(store, [A, B, C], GroupsQuery(10))
    assert found["x"] == list(range(9))
    assert found["runs"] == [1, 1, 1, 2, 2, 2, 2, 2, 1]
    assert found["mean"] == [0, 1, 2, 4, 4.5, 5, 5.5, 6, 8]


async def test_where_nobody_takes_part_there_is_no_bucket(store: EmbeddedEventStore) -> None:
    await store.add(batch(scalars([1, 2], owner=A), scalars([3], iters=[9], owner=B), scalars([NAN, INF], owner=C)))
    found = await one(store, [A, B], GroupsQuery(10))
    assert (found["x"], found["runs"], found["mean"]) == ([0, 1, 9], [1, 1, 1], [1, 2, 3])
    assert await read(store, {"nothing finite": [C]}, GroupsQuery(10)) == {}
    assert await read(store, {"unknown": [Owner("company", "unknown")]}, GroupsQuery(10)) == {}


async def test_groups_and_series_side_by_side(store: EmbeddedEventStore) -> None:
    await store.add(batch(scalars([1, 3], owner=A), scalars([5], iters=[100], owner=B), scalars([7], owner=C)))
    await store.add(batch(scalars([9], metric="accuracy", variant="test", owner=B)))
    found = await read(
        store, {"ab": [A, B], "c": [C], "b": [B]}, GroupsQuery(10), [*LOSS, ("accuracy", "test"), ("no", "")]
    )
    assert list(found) == ["loss", "accuracy"]
    loss = found["loss"]["train"]
    assert {name: group["x"].tolist() for name, group in loss.items()} == {"ab": [0, 96], "c": [0], "b": [96]}
    assert {name: group["mean"].tolist() for name, group in loss.items()} == {"ab": [2, 5], "c": [7], "b": [5]}
    assert {name: list(group["mean"]) for name, group in found["accuracy"]["test"].items()} == {"ab": [9], "b": [9]}


async def test_every_axis(store: EmbeddedEventStore) -> None:
    await store.add(batch(scalars([1, 2], timestamps=[5000, 5064], owner=A)))
    await store.add(batch(scalars([3, 4], timestamps=[9000, 9064], owner=B)))
    since = await one(store, [A, B], GroupsQuery(10, Key.DURATION))
    assert (since["x"], since["mean"]) == ([0, 8, 16, 24, 32, 40, 48, 56, 64], [2 + n / 8 for n in range(9)])
    at = await one(store, [A, B], GroupsQuery(10, Key.TIMESTAMP, Fill.LAST))
    assert (at["x"], at["mean"]) == ([4608, 8704], [1.5, 3.5])
    text = await one(store, [A, B], GroupsQuery(10, Key.ISO_TIME))
    assert text["x"] == ["1970-01-01T00:00:04.608Z", "1970-01-01T00:00:08.704Z"]


async def test_numbers_beyond_a_float64_are_not_made_up(store: EmbeddedEventStore) -> None:
    largest = 1.7e308
    await store.add(batch(scalars([-largest, largest], iters=[0, 2], owner=A), scalars([largest] * 3, owner=B)))
    found = await one(store, [A, B], GroupsQuery(10, quantiles=(0.5,)))
    assert (found["min"], found["max"]) == ([-largest, 0, largest], [largest] * 3)
    assert (found["mean"], found["std"][2]) == ([0, largest / 2, INF], INF)


async def test_each_run_is_smoothed_before(store: EmbeddedEventStore) -> None:
    await store.add(batch(scalars([1, 2, 6], owner=A), scalars([10, 20], iters=[1, 2], owner=B)))
    found = await one(store, [A, B], GroupsQuery(10, smoothing=Smoothing(Kind.MEAN, points=3)))
    assert (found["runs"], found["mean"]) == ([1, 2, 2], [1.5, 9, 9.5])


async def test_a_range_shows_what_the_whole_shows_there(store: EmbeddedEventStore) -> None:
    await store.add(batch(scalars([0, 1000], iters=[0, 1000], owner=A), scalars([1.0] * 1000, owner=B)))
    found = await one(store, [A, B], GroupsQuery(10, range=Range(500, 503)))
    assert (found["x"], found["runs"], found["mean"]) == ([500, 501, 502, 503], [2] * 4, [250.5, 251, 251.5, 252])
    assert (found["min"], found["max"]) == ([1] * 4, [500, 501, 502, 503])
    held = await one(store, [A, B], GroupsQuery(10, fill=Fill.LAST, range=Range(500, 503)))
    assert held["mean"] == [0.5] * 4
    assert (await one(store, [A, B], GroupsQuery(10, range=Range(1000))))["x"] == [1000]
    assert await read(store, {"group": [A, B]}, GroupsQuery(10, range=Range(1001))) == {}


async def test_many_runs_are_read_some_at_a_time(store: EmbeddedEventStore) -> None:
    owners = [Owner("company", str(n)) for n in range(10)]
    await store.add(batch(*(scalars([float(n)], iters=[n], owner=owner) for n, owner in enumerate(owners))))
    found = await one(store, owners, GroupsQuery(10, runs_a_read=3))
    assert (found["x"], found["mean"]) == (list(range(10)), list(range(10)))


# --- buckets ---------------------------------------------------------------------------------------


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1), st.integers(4, 10_000))
def test_buckets_are_as_narrow_as_possible(one: int, other: int, most: int) -> None:
    least, greatest = sorted((one, other))
    buckets = CommonBuckets.over(least, greatest, most)
    assert buckets.count <= most
    width, starts = buckets.width, buckets.starts.tolist()
    assert width & (width - 1) == 0
    assert len(starts) == buckets.count
    assert starts[0] <= least < starts[0] + width
    assert starts[-1] <= greatest < starts[-1] + width
    assert width == 1 or greatest // (width // 2) - least // (width // 2) + 1 > most
    assert buckets.numbers(np.array([starts[0], starts[-1]])).tolist() == [0, buckets.count - 1]


# --- against plain Python --------------------------------------------------------------------------


def matrix(rows: Sequence[Sequence[float | None]]) -> Float64Array:
    return np.array([[NAN if value is None else value for value in row] for row in rows], np.float64)


@pytest.mark.test
@pytest.mark.parametrize("at_once", [1, 7, 2**17])
@given(rows=matrices, how=st.sampled_from(Fill), quantiles=st.lists(st.floats(0, 1), max_size=3))
def test_plain_python_makes_the_same_of_the_same_values(
    at_once: int, rows: list[list[float]], how: Fill, quantiles: list[float]
) -> None:
    values = np.array(rows)
    parts = fill(values, how, at_once=at_once)
    new = [pair for places, some in parts for pair in zip(places.tolist(), some.tolist(), strict=True)]
    expected = [filled(row, how) for row in rows]
    assert np.allclose(values, matrix(expected), rtol=1e-12, atol=1e-9, equal_nan=True)
    table = summed_up(values, quantiles, at_once)
    assert sorted(new) == sorted(
        (place, values[number, place])
        for number, row in enumerate(rows)
        for place, value in enumerate(row)
        if not math.isfinite(value) and expected[number][place] is not None
    )
    got = [(place, *column) for place, column in enumerate(table.T.tolist()) if column[0]]
    wanted = curve(expected, quantiles)
    assert len(got) == len(wanted)
    assert not got or np.allclose(got, wanted, rtol=1e-9, atol=1e-6)


points = st.lists(st.tuples(st.integers(-20, 60), st.integers(0, 90), numbers), max_size=15)


@pytest.mark.test
@given(
    runs=st.lists(points, min_size=1, max_size=6),
    samples=st.integers(4, 20),
    key=st.sampled_from([Key.ITER, Key.TIMESTAMP, Key.DURATION]),
    how=st.sampled_from(Fill),
    zoom=st.one_of(st.none(), st.tuples(st.integers(-30, 90), st.integers(0, 60))),
)
@examples(120)
async def test_plain_python_makes_the_same_of_the_same_points(
    store: EmbeddedEventStore,
    runs: list[list[tuple[int, int, float]]],
    samples: int,
    key: Key,
    how: Fill,
    zoom: tuple[int, int] | None,
) -> None:
    owners = [Owner("company", str(n)) for n in range(len(runs))]
    await store.delete(owners)
    for owner, run in zip(owners, runs, strict=True):
        if run:
            iters, timestamps, values = zip(*run, strict=True)
            await store.add(batch(scalars(values, iters=iters, timestamps=timestamps, owner=owner)))
    curves = [_curve_of(run, key) for run in runs]
    places = [x for of_run in curves for x, _ in of_run]
    asked = EVERYWHERE if zoom is None else Range(zoom[0], sum(zoom))
    found = (await read(store, {"all": owners}, GroupsQuery(samples, key, how, (0.25,), range=asked))).get("loss", {})
    ends = (min(places, default=0), max(places, default=0))
    shown = max(ends[0], asked.least), min(ends[1], asked.greatest)
    if shown[0] > shown[1]:
        assert found == {}
        return
    buckets = CommonBuckets.over(*shown, samples)
    first, last = (x // buckets.width for x in ends)
    whole = CommonBuckets(first, last - first + 1, buckets.width)
    cut = slice(buckets.first - first, buckets.first - first + buckets.count)
    points = [[_inside(of_run, whole, number) for number in range(whole.count)] for of_run in curves]
    rows = [filled([_mean(inside) for inside in of_run], how)[cut] for of_run in points]
    points = [of_run[cut] for of_run in points]
    starts = buckets.starts.tolist()
    expected = [(starts[int(place)], *rest) for place, *rest in curve(rows, [0.25])]
    if not expected:
        assert found == {}
        return
    group = found["train"]["all"]
    columns = [group["x"], *(group[name] for name in ("runs", "mean", "std")), *group["quantiles"]]
    assert np.allclose(np.array(columns).T, np.array(expected), rtol=1e-9, atol=1e-6)
    of_all = np.array([group["min"], group["max"]]).T
    assert np.allclose(of_all, np.array(extremes(points, rows)), rtol=1e-9, atol=1e-9)


def _curve_of(run: list[tuple[int, int, float]], key: Key) -> list[tuple[int, float]]:
    """The x and the value of each point; a later one replaces an earlier one of the same iteration."""
    kept = {iter: (timestamp, value) for iter, timestamp, value in run}
    if key is Key.ITER:
        return [(iter, value) for iter, (_, value) in kept.items()]
    begin = min((timestamp for timestamp, _ in kept.values()), default=0) if key is Key.DURATION else 0
    return [(timestamp - begin, value) for timestamp, value in kept.values()]


def _inside(points: list[tuple[int, float]], buckets: CommonBuckets, number: int) -> list[float]:
    return [value for x, value in points if x // buckets.width - buckets.first == number and math.isfinite(value)]


def _mean(finite: list[float]) -> float:
    return math.fsum(finite) / len(finite) if finite else NAN
