"""Running medians against medians of each window."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.events.medians import medians
from apiserver.events.smoothing import MOST_OF_MEDIAN
from tests.chance import examples

VALUES = st.one_of(st.integers(-5, 5).map(float), st.floats(-1e300, 1e300), st.sampled_from([math.nan, math.inf]))


@pytest.mark.test
@examples(300)
@given(st.integers(1, MOST_OF_MEDIAN), st.lists(VALUES, max_size=60))
def test_medians_are_those_of_each_window(width: int, more: list[float]) -> None:
    values = [1.0, math.nan, 3.0, 2.0, -math.inf, 2.5] * 5 + [0.0] * (width - 30) + more
    expected = []
    for start in range(len(values) - width + 1):
        window = [value for value in values[start : start + width] if math.isfinite(value)]
        expected.append(median(window) if window else math.nan)
    assert medians(np.array(values), width).tolist() == pytest.approx(expected, rel=1e-15, abs=1e-320, nan_ok=True)


@pytest.mark.test
@pytest.mark.parametrize("width", range(1, MOST_OF_MEDIAN + 1))
def test_medians_of_random_numbers_at_each_width(width: int) -> None:
    values = np.random.default_rng(width).standard_normal(500)
    windows = np.lib.stride_tricks.sliding_window_view(values, width)
    found = medians(values, width)
    assert found.tolist() == pytest.approx(np.median(windows, axis=1).tolist(), rel=1e-15, abs=1e-15)


@pytest.mark.test
@pytest.mark.parametrize("width", [1, 2, 11, 30, 31])
def test_medians_of_long_columns_of_several_lengths(width: int) -> None:
    random = np.random.default_rng(width)
    for length in (200_000, 40, 131_072 + width - 1, 3000):
        values = random.standard_normal(length)
        windows = np.lib.stride_tricks.sliding_window_view(values, width)
        assert np.allclose(medians(values, width), np.median(windows, axis=1), rtol=1e-15, atol=1e-15)


@pytest.mark.test
def test_threads_find_medians_at_once() -> None:
    curves = [np.random.default_rng(number).standard_normal(20_000) for number in range(8)]
    alone = [medians(values, 31).tolist() for values in curves]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda values: medians(values, 31).tolist(), curves * 4))
    assert together == alone * 4
