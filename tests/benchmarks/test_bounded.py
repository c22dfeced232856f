"""How sure the benchmark is of a median."""

from __future__ import annotations

import random

from benchmarks.bounded import median_range


def test_the_median_is_in_its_range_nearly_always() -> None:
    draw = random.Random(0)
    ranges = [median_range([draw.gauss(1, 0.1) for _ in range(100)]) for _ in range(2000)]
    held = sum(low <= 1 <= high for low, high in ranges)
    assert 0.93 < held / len(ranges) < 0.98
    assert all(high - low < 0.1 for low, high in ranges)


def test_few_values_have_a_range_too() -> None:
    assert median_range([2.0]) == (2.0, 2.0)
    assert median_range([3.0, 1.0, 2.0]) == (1.0, 3.0)
