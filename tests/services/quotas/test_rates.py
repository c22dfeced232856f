"""Token buckets: what they let through."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.services.quotas.rates import BURST, Bucket


def test_the_example_of_the_module() -> None:
    bucket = Bucket(20)
    assert bucket.wait(150, 0) == 0
    assert not bucket.take(150, 0)
    assert bucket.wait(100, 1) == 1.5
    assert bucket.wait(100, 2.5) == 0
    assert bucket.take(100, 2.5)
    assert bucket.wait(1, 2.5) == pytest.approx(1 / 20)
    assert bucket.wait(200, 12.5) == 0
    assert bucket.wait(5000, 12.5) == 0  # more than a bucket holds: when it is full


@pytest.mark.test
@given(
    rate=st.integers(1, 1000),
    sent=st.lists(st.tuples(st.floats(0, 30), st.integers(1, 20_000)), max_size=50),
)
def test_no_more_is_let_through_than_a_bucket_full_or_a_batch_and_the_rate(
    rate: int, sent: list[tuple[float, int]]
) -> None:
    bucket, now = Bucket(rate), 0.0
    taken: list[tuple[float, int]] = []
    for pause, count in sent:
        now += pause
        wait = bucket.wait(count, now)
        if wait == 0:
            bucket.take(count, now)
            taken.append((now, count))
        else:  # whoever waits as long as that is let through
            assert bucket.wait(count, now + wait + 1e-6) == 0
    for first in range(len(taken)):
        for last in range(first, len(taken)):
            seconds, some = taken[last][0] - taken[first][0], [count for _, count in taken[first : last + 1]]
            assert sum(some) <= rate * seconds + max(BURST * rate, *some) + 1e-3


@pytest.mark.test
@given(sent=st.lists(st.tuples(st.floats(0, 5), st.integers(1, 50)), min_size=1, max_size=50))
def test_what_is_below_the_rate_is_always_let_through(sent: list[tuple[float, int]]) -> None:
    bucket, now = Bucket(50), 0.0
    for pause, count in sent:
        now += max(pause, count / 50)
        assert bucket.wait(count, now) == 0
        bucket.take(count, now)
