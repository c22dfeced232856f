"""Stats of sets of points combine to the stats of their union."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.events.queries import GREATEST
from apiserver.stores.events.codec import stats
from apiserver.stores.events.codec.stats import StatsArray

#: From how many points on a group is looked at by itself: few, and more than there are.
LONG = (2, 256)
Rows = list[tuple[int, float]]

values = st.sampled_from([0.0, 1.0, -1.0, 2.0, math.nan, math.inf, -math.inf])
rows = st.lists(st.tuples(st.integers(-3, 3), values), min_size=1, max_size=12)


def of(points: Rows, first: int = 0) -> StatsArray:
    """Stats of points (timestamp, value) at iterations from `first` on, which are the same either way."""
    times, numbers = zip(*points, strict=True)
    columns = np.array(range(first, first + len(points))), np.array(numbers), np.array(times)
    one, other = (stats.of_groups(*columns, np.zeros(1, np.intp), long) for long in LONG)
    assert repr(one.tolist()) == repr(other.tolist())
    return one


def comparable(row: StatsArray) -> tuple[object, ...]:
    """The row, without the last digits of what depends on the order of the points."""
    *exact, deviations, first_odd_iter = row[0].item()
    return *map(repr, exact), f"{deviations:.9g}", first_odd_iter


@pytest.mark.test
@given(rows, rows)
def test_combined_stats_are_those_of_the_union(left: Rows, right: Rows) -> None:
    union = of(left + right)
    pieces = [of(left), of(right, len(left))]
    assert comparable(stats.combine(*pieces)) == comparable(union)
    assert comparable(stats.combine(*pieces[::-1])) == comparable(union)


@pytest.mark.test
@given(st.lists(rows, min_size=1, max_size=9))
def test_folded_stats_are_those_of_the_union(parts: list[Rows]) -> None:
    firsts = np.cumsum([0, *map(len, parts)]).tolist()
    folded = stats.fold(np.concatenate([of(part, first) for part, first in zip(parts, firsts, strict=False)]))
    assert comparable(folded) == comparable(of([point for part in parts for point in part]))


@pytest.mark.test
@given(st.lists(st.lists(rows, min_size=1, max_size=6), min_size=1, max_size=6))
def test_folded_groups_are_those_that_are_folded_alone(groups: list[list[Rows]]) -> None:
    of_each = [np.concatenate([of(part, 12 * n) for n, part in enumerate(group)]) for group in groups]
    found = stats.fold_each(np.concatenate(of_each), np.array([len(group) for group in groups]))
    assert found.tobytes() == b"".join([stats.fold(some).tobytes() for some in of_each])


@pytest.mark.test
@given(rows)
def test_deviations_and_values_that_are_not_finite_are_those_of_the_library(points: Rows) -> None:
    row = of(points)[0]
    finite = [value for _, value in points if math.isfinite(value)]
    assert row["deviations"] == pytest.approx(statistics.pvariance(finite) * len(finite) if finite else 0)
    odd = [n for n, (_, value) in enumerate(points) if not math.isfinite(value)]
    assert row["first_odd_iter"] == (odd[0] if odd else GREATEST)


def test_deviations_keep_their_digits_where_values_differ_little() -> None:
    values = [1e9 + n / 1024 for n in range(8)]
    halves = [of([(n, value) for n, value in enumerate(half)]) for half in (values[:3], values[3:])]
    assert stats.combine(*halves)["deviations"][0] == pytest.approx(statistics.pvariance(values) * 8, rel=1e-6)


def test_deviations_may_overflow() -> None:
    row = stats.combine(of([(0, 1e200), (1, -1e200)]), of([(0, 1e308), (1, -1e308)]))
    assert math.isinf(row["deviations"][0])


@pytest.mark.test
@given(rows, rows)
def test_rows_that_were_stored_are_read_as_they_were(left: Rows, right: Rows) -> None:
    made = np.concatenate([of(left), of(right, len(left))])
    assert stats.stored([row.tobytes() for row in made]).tobytes() == made.tobytes()


@pytest.mark.test
@given(rows)
def test_the_empty_set_changes_nothing(points: Rows) -> None:
    assert comparable(stats.combine(stats.EMPTY, of(points))) == comparable(of(points))
    assert comparable(stats.combine(of(points), stats.EMPTY)) == comparable(of(points))
    assert comparable(stats.fold(np.empty(0, stats.STATS))) == comparable(stats.EMPTY)


@pytest.mark.test
@given(st.lists(rows, min_size=1, max_size=5))
def test_groups_are_apart(groups: list[Rows]) -> None:
    points = [point for group in groups for point in group]
    times, numbers = zip(*points, strict=True)
    iters = np.concatenate([np.arange(len(group)) for group in groups])
    starts = np.cumsum([0, *(len(group) for group in groups[:-1])])
    for long in LONG:
        found = stats.of_groups(iters, np.array(numbers), np.array(times), starts, long)
        assert [comparable(found[n : n + 1]) for n in range(len(groups))] == [comparable(of(group)) for group in groups]


def test_of_equal_extremes_the_one_at_the_lowest_iteration_counts() -> None:
    found = stats.combine(of([(0, 5.0), (0, 1.0)], first=10), of([(0, 1.0), (0, 5.0)]))[0]
    assert (found["min_value_iter"], found["max_value_iter"]) == (0, 1)


def test_sums_may_overflow() -> None:
    (found,) = of([(0, 1e308), (1, 1e308), (2, -1e308)]).tolist()
    assert found[4] == pytest.approx(1e308) or math.isinf(found[4])


@pytest.mark.parametrize("end", [-(2**63), 2**63 - 1])
def test_a_point_at_the_end_of_the_numbers_is_not_taken_for_none(end: int) -> None:
    point = of([(end, 5.0)], first=end)
    for found in (stats.combine(stats.EMPTY, point), stats.combine(point, stats.EMPTY)):
        assert comparable(found) == comparable(point)
