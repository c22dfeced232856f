"""Stats of sets of points combine to the stats of their union."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.stores.events.embedded import stats
from apiserver.stores.events.embedded.stats import StatsArray


@pytest.fixture(scope="module", params=[2, 256], autouse=True)
def _long(request: pytest.FixtureRequest) -> Iterator[None]:
    """From how many points on a group is looked at by itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stats, "LONG", request.param)
        yield


Rows = list[tuple[int, float]]

values = st.sampled_from([0.0, 1.0, -1.0, 2.0, math.nan, math.inf, -math.inf])
rows = st.lists(st.tuples(st.integers(-3, 3), values), min_size=1, max_size=12)


def of(points: Rows, first: int = 0) -> StatsArray:
    """Stats of points (timestamp, value) at iterations from `first` on."""
    times, numbers = zip(*points, strict=True)
    iters = np.array(range(first, first + len(points)))
    return stats.of_groups(iters, np.array(numbers), np.array(times), np.zeros(1, np.intp))


def comparable(row: StatsArray) -> tuple[object, ...]:
    return tuple(repr(item) for item in row[0].item())


@given(rows, rows)
def test_combined_stats_are_those_of_the_union(left: Rows, right: Rows) -> None:
    union = of(left + right)
    pieces = [of(left), of(right, len(left))]
    assert comparable(stats.combine(*pieces)) == comparable(union)
    assert comparable(stats.combine(*pieces[::-1])) == comparable(union)


@given(st.lists(rows, min_size=1, max_size=9))
def test_folded_stats_are_those_of_the_union(parts: list[Rows]) -> None:
    firsts = np.cumsum([0, *map(len, parts)]).tolist()
    folded = stats.fold(np.concatenate([of(part, first) for part, first in zip(parts, firsts, strict=False)]))
    assert comparable(folded) == comparable(of([point for part in parts for point in part]))


@given(rows)
def test_the_empty_set_changes_nothing(points: Rows) -> None:
    assert comparable(stats.combine(stats.EMPTY, of(points))) == comparable(of(points))
    assert comparable(stats.combine(of(points), stats.EMPTY)) == comparable(of(points))
    assert comparable(stats.fold(np.empty(0, stats.STATS))) == comparable(stats.EMPTY)


@given(st.lists(rows, min_size=1, max_size=5))
def test_groups_are_apart(groups: list[Rows]) -> None:
    points = [point for group in groups for point in group]
    times, numbers = zip(*points, strict=True)
    iters = np.concatenate([np.arange(len(group)) for group in groups])
    starts = np.cumsum([0, *(len(group) for group in groups[:-1])])
    found = stats.of_groups(iters, np.array(numbers), np.array(times), starts)
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
