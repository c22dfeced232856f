"""Smoothing, in parts and at once, against plain Python."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.events.smoothing import MOST_OF_MEDIAN, Kind, Smoothing
from tests.chance import examples
from tests.events.plain_smoothing import smoothed

SMOOTHINGS = st.one_of(
    st.builds(
        Smoothing,
        st.sampled_from([Kind.EXPONENTIAL, Kind.EXPONENTIAL_BY_X]),
        weight=st.one_of(st.floats(0, 0.999999), st.sampled_from([0.0, 1e-300, 1e-6, 0.999999])),
    ),
    st.builds(Smoothing, st.just(Kind.MEAN), points=st.integers(1, 200)),
    st.builds(Smoothing, st.just(Kind.MEDIAN), points=st.integers(1, MOST_OF_MEDIAN)),
    st.just(Smoothing(Kind.DERIVATIVE)),
)
VALUES = st.one_of(st.floats(-1e6, 1e6), st.sampled_from([math.nan, math.inf, -math.inf, 0.0]))
CURVES = st.lists(st.tuples(st.integers(1, 1000), VALUES), min_size=1, max_size=300)


def in_parts(smoothing: Smoothing, x: list[int], values: list[float], cuts: list[int]) -> tuple[list[int], list[float]]:
    """The curve smoothed, cut at these indices."""
    smoother = smoothing.begin(x[0], x[-1])
    edges = [0, *sorted(cut % (len(x) + 1) for cut in cuts), len(x)]
    parts = [smoother.feed(np.array(x[a:b], np.int64), np.array(values[a:b], np.float64)) for a, b in pairwise(edges)]
    parts.append(smoother.rest())
    return [n for part in parts for n in part[0].tolist()], [y for part in parts for y in part[1].tolist()]


@pytest.mark.test
@examples(150)
@given(SMOOTHINGS, CURVES, st.lists(st.integers(0, 300), max_size=4), st.booleans())
def test_a_curve_is_smoothed_whatever_its_parts(
    smoothing: Smoothing, curve: list[tuple[int, float]], cuts: list[int], even: bool
) -> None:
    x = np.cumsum([10 if even else step for step, _ in curve]).tolist()
    values = [value for _, value in curve]
    places, found = in_parts(smoothing, x, values, cuts)
    assert places == x
    finite = [abs(value) for value in values if math.isfinite(value)]
    assert found == pytest.approx(smoothed(smoothing, x, values), abs=1e-9 * max(finite, default=0), nan_ok=True)


@pytest.mark.test
@pytest.mark.parametrize(
    "smoothing",
    [
        *(Smoothing(kind, 0.99, 25) for kind in Kind),
        *(Smoothing(Kind.EXPONENTIAL_BY_X, weight) for weight in (1e-300, 1e-9, 0.001)),
        Smoothing(Kind.EXPONENTIAL, 0.999999),
        Smoothing(Kind.MEAN, points=1000),
    ],
)
def test_long_curves_are_smoothed_as_in_plain_python(smoothing: Smoothing) -> None:
    chance = np.random.default_rng(3)
    values = np.cumsum(chance.standard_normal(20_000))
    values[chance.integers(0, len(values), 20)] = np.nan
    x = np.cumsum(chance.integers(1, 50, len(values))).tolist()
    places, found = in_parts(smoothing, x, values.tolist(), [4096, 8192, 12_000])
    assert places == x
    assert found == pytest.approx(smoothed(smoothing, x, values.tolist()), abs=1e-9, nan_ok=True)


def test_the_first_points_of_an_average_are_not_drawn_to_zero() -> None:
    _, found = Smoothing(Kind.EXPONENTIAL, 0.9).whole(np.arange(3), np.array([10.0, 10.0, 20.0]))
    assert found.tolist() == pytest.approx([10, 10, (10 * 0.81 + 10 * 0.9 + 20) / (0.81 + 0.9 + 1)])


def test_a_large_value_makes_no_other_window_inexact() -> None:
    values = np.array([1e300, *[0.1] * 50])
    _, found = Smoothing(Kind.MEAN, points=5).whole(np.arange(51), values)
    assert found[3:].tolist() == pytest.approx([0.1] * 48, rel=1e-15)


def test_the_largest_numbers_do_not_hide_others() -> None:
    values = np.array([1e308, 1e308, -1e308, 1.0, 1.0, 1.0])
    assert Smoothing(Kind.MEDIAN, points=2).whole(np.arange(6), values)[1].tolist() == [1e308, 0, -5e307, 1, 1, 1]
    assert Smoothing(Kind.MEAN, points=2).whole(np.arange(6), values)[1].tolist() == [math.inf, 0, -5e307, 1, 1, 1]
    assert Smoothing(Kind.EXPONENTIAL_BY_X).whole(np.arange(6), values)[1][0] == 1e308


def test_a_gap_on_the_axis_ends_an_average_by_x() -> None:
    x = np.array([*range(100), *range(10**9, 10**9 + 100)])
    _, found = Smoothing(Kind.EXPONENTIAL_BY_X, 0.6).whole(x, np.repeat([1.0, 5.0], 100))
    assert found.tolist() == pytest.approx([1.0] * 100 + [5.0] * 100)


def test_a_median_leaves_out_a_spike() -> None:
    _, found = Smoothing(Kind.MEDIAN, points=3).whole(np.arange(5), np.array([1.0, 1.0, 9.0, 1.0, np.nan]))
    assert found.tolist() == [1, 1, 1, 5, 1]


def test_an_empty_curve_stays_empty() -> None:
    for kind in Kind:
        x, values = Smoothing(kind).whole(np.empty(0, np.int64), np.empty(0))
        assert (len(x), len(values)) == (0, 0)
