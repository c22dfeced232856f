"""Steps of time, and curves over them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.common.errors import Refusal, Why
from apiserver.events.aggregates import Aggregate, Buckets
from apiserver.services.history.steps import LEAST_INTERVAL, MOST_STEPS, ChartCurve, Steps, combined


def request(begin: float, end: float, interval: int) -> dict[str, float]:
    return {"from_date": begin, "to_date": end, "interval": interval}


@given(st.floats(0, 1e6), st.floats(0.01, 1e5), st.integers(1, 10_000))
def test_whole_steps_are_those_that_ended(begin: float, length: float, interval: int) -> None:
    steps = Steps.whole(request(begin, begin + length, interval))
    width = max(interval, LEAST_INTERVAL) * 1000
    ends = range(0, int((begin + length) * 1000) + width, width)
    assert steps.dates.tolist() == [
        end - width for end in ends if end <= int((begin + length) * 1000) and end > int(begin * 1000)
    ]
    assert all(steps.number(int(date)) == n for n, date in enumerate(steps.dates))


@given(st.integers(0, 10**6), st.integers(1, 10**5), st.integers(1, 100))
def test_touched_steps_hold_both_dates(begin: int, length: int, interval: int) -> None:
    steps = Steps.touched(request(begin, begin + length, interval * length // 50 + 1))
    assert steps.number(begin * 1000) == 0
    assert steps.number((begin + length) * 1000) == steps.count - 1
    assert steps.stop == (begin + length) * 1000
    earlier = steps.before(1500)
    assert earlier.dates.tolist()[-steps.count :] == steps.dates.tolist()
    assert steps.start - earlier.start >= 1500


@pytest.mark.parametrize(
    ("begin", "end", "why"),
    [(5, 5, Why.INVALID_VALUE), (6, 5, Why.INVALID_VALUE), (0, 41 * (MOST_STEPS + 2), Why.INVALID)],
)
def test_impossible_steps_are_refused(begin: int, end: int, why: Why) -> None:
    with pytest.raises(Refusal) as refused:
        Steps.whole(request(begin, end, 40))
    assert refused.value.why is why


def buckets(x: list[int], *of_each: list[float]) -> Buckets:
    made_by: dict[Aggregate, Callable[[list[float]], Any]] = {
        Aggregate.COUNT: len,
        Aggregate.MEAN: np.mean,
        Aggregate.MIN: np.min,
        Aggregate.MAX: np.max,
    }
    values = {aggregate: np.array([make(one) for one in of_each]) for aggregate, make in made_by.items()}
    return Buckets("m", "v", np.array(x, np.int64), values)


def test_a_curve_has_the_values_of_all_series_and_weeks() -> None:
    steps = Steps.whole(request(80, 200, 40))
    first, second = ChartCurve.over(steps), ChartCurve.over(steps)
    first.add(steps, buckets([80_000, 160_000], [1, 2], [4]))
    first.add(steps, buckets([160_000], [10]))  # of the week after
    second.add(steps, buckets([40_000, 80_000, 200_000], [99], [6], [99]))
    both = combined(steps, [first, second])

    assert both.values("avg").tolist() == pytest.approx([3, np.nan, 7], nan_ok=True)
    assert both.values("min").tolist() == pytest.approx([1, np.nan, 4], nan_ok=True)
    assert both.values("max").tolist() == pytest.approx([6, np.nan, 10], nan_ok=True)
    assert both.count.tolist() == [3, 0, 2]
    assert not both.empty
    assert ChartCurve.over(steps).empty
