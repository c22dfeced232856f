"""Ranges of numbers: as many as asked, in order, equally full, and each number in the one that its name says."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.data.bins import ranges_of


def test_ranges_are_in_order_and_equally_full() -> None:
    rates = [f"{10**-n:g}" for n in range(6)]
    assert ranges_of([*rates, "auto", "", "nan", "inf"], 3) == {
        **dict.fromkeys(("1e-05", "0.0001"), "1e-05 … 0.0001"),
        **dict.fromkeys(("0.001", "0.01"), "0.001 … 0.01"),
        **dict.fromkeys(("0.1", "1"), "0.1 … 1"),
    }
    assert list(ranges_of(["3", "1", "2"], 5).items()) == [("1", "1"), ("2", "2"), ("3", "3")]
    assert ranges_of(["0.1", "1e-1", "0.1", "7"], 2) == {"0.1": "0.1", "1e-1": "0.1", "7": "7"}
    assert ranges_of([], 5) == {}


def test_ranges_whose_numbers_look_alike_have_names_of_their_own() -> None:
    assert set(ranges_of(["1.00001", "1.00002"], 2).values()) == {"1.0000100000000001", "1.0000199999999999"}


@pytest.mark.test
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=50), st.integers(2, 10))
def test_ranges_do_not_overlap(numbers: list[float], count: int) -> None:
    names = ranges_of(map(repr, numbers), count)
    assert set(names) == {repr(number) for number in numbers}
    ordered = [names[repr(number)] for number in sorted(numbers)]
    assert len(set(ordered)) <= count
    assert sum(one != other for one, other in pairwise(ordered)) == max(len(set(ordered)) - 1, 0)
