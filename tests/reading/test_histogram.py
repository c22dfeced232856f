"""The rule that decides how wide a series' buckets are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.reading.histogram import interval


@pytest.mark.parametrize(
    ("count", "least", "greatest", "samples", "expected"),
    [
        (99, 0, 1000, 100, 1),
        (100, 0, 99, 100, 1),
        (100, 0, 999, 100, 10),
        (101, 0, 1000, 100, 11),
        (20_000, 0, 19_999, 6000, 4),
        (5, -1000, 1000, 0, 1),
        (1, 7, 7, 1, 1),
        (10, 5, 5, 1, 1),
        (2, -(2**63), 2**63 - 1, 1, 2**63 - 1),
        (2, -(2**63), 2**63 - 1, 2, 2**63 - 1),
        (4, -(2**63), 2**63 - 1, 4, 2**62),
    ],
)
def test_interval(count: int, least: int, greatest: int, samples: int, expected: int) -> None:
    assert interval(count, least, greatest, samples) == expected


@given(st.integers(1, 10**9), st.integers(-(2**62), 2**62), st.integers(0, 2**62), st.integers(1, 6000))
def test_a_series_never_needs_more_than_samples_and_one_buckets(
    count: int, least: int, span: int, samples: int
) -> None:
    width = interval(count, least, least + span, samples)
    if count >= samples:
        assert (least + span) // width - least // width + 1 <= samples + 1
    else:
        assert width == 1
