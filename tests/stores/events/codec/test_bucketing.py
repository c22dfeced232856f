"""Where buckets begin: as dividing each x says, whatever way is faster."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.stores.events.codec.bucketing import bucket_starts
from tests.chance import examples

#: Many points at few places, of which some are the last that there are.
_PLACES = st.sampled_from([-(2**63), -1, 0, 1, 7, 2**63 - 3, 2**63 - 2, 2**63 - 1])


def begins(x: list[int], interval: int) -> list[int]:
    return [n for n, one in enumerate(x) if n == 0 or one // interval != x[n - 1] // interval]


def test_buckets_of_one_at_the_greatest_x_are_apart() -> None:
    x = [2**63 - 3] + [2**63 - 1] * 40
    assert bucket_starts(np.array(x, np.int64), 1).tolist() == [0, 1]


@pytest.mark.test
@examples(100)
@given(st.lists(_PLACES, min_size=1, max_size=4), st.integers(1, 40), st.sampled_from([1, 2, 5, 2**62, 2**63 - 1]))
def test_buckets_begin_where_dividing_says(places: list[int], times: int, interval: int) -> None:
    x = sorted(places * times)
    assert bucket_starts(np.array(x, np.int64), interval).tolist() == begins(x, interval)
