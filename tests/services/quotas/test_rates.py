"""Token buckets: what they let through, and what they remember."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.services.quotas.rates import BURST, Rates
from apiserver.services.quotas.subjects import Subject

SUBJECT = Subject("user", "c", "u")


def test_the_example_of_the_module() -> None:
    rates = Rates()
    assert rates.wait(SUBJECT, 20, 150, 0) == 0
    assert rates.take({SUBJECT: (20, 150)}, 0) == []
    assert rates.wait(SUBJECT, 20, 100, 1) == 1.5
    assert rates.wait(SUBJECT, 20, 100, 2.5) == 0
    assert rates.take({SUBJECT: (20, 100)}, 2.5) == [SUBJECT]
    assert rates.wait(SUBJECT, 20, 1, 2.5) == pytest.approx(1 / 20)
    assert rates.wait(SUBJECT, 20, 200, 12.5) == 0
    assert rates.wait(SUBJECT, 20, 5000, 12.5) == 0  # more than a bucket holds: when it is full


@given(
    rate=st.integers(1, 1000),
    sent=st.lists(st.tuples(st.floats(0, 30), st.integers(1, 20_000)), max_size=50),
)
def test_no_more_is_let_through_than_a_bucket_full_or_a_batch_and_the_rate(
    rate: int, sent: list[tuple[float, int]]
) -> None:
    rates, now = Rates(), 0.0
    taken: list[tuple[float, int]] = []
    for pause, count in sent:
        now += pause
        wait = rates.wait(SUBJECT, rate, count, now)
        if wait == 0:
            rates.take({SUBJECT: (rate, count)}, now)
            taken.append((now, count))
        else:  # whoever waits as long as that is let through
            assert rates.wait(SUBJECT, rate, count, now + wait + 1e-6) == 0
    for first in range(len(taken)):
        for last in range(first, len(taken)):
            seconds, some = taken[last][0] - taken[first][0], [count for _, count in taken[first : last + 1]]
            assert sum(some) <= rate * seconds + max(BURST * rate, *some) + 1e-3


@given(sent=st.lists(st.tuples(st.floats(0, 5), st.integers(1, 50)), min_size=1, max_size=50))
def test_what_is_below_the_rate_is_always_let_through(sent: list[tuple[float, int]]) -> None:
    rates, now = Rates(), 0.0
    for pause, count in sent:
        now += max(pause, count / 50)
        assert rates.wait(SUBJECT, 50, count, now) == 0
        rates.take({SUBJECT: (50, count)}, now)


def test_a_million_subjects_take_a_bounded_room_and_those_that_sent_most_are_remembered() -> None:
    rates = Rates(most=1000)
    rates.take({SUBJECT: (10, 100)}, 0)
    for number in range(20_000):
        rates.take({Subject("task", "c", str(number)): (10, 1)}, 0)
        assert len(rates) <= 1000
    assert rates.wait(SUBJECT, 10, 1, 0) > 0
    rates.take({Subject("task", "c", f"later {number}"): (10, 1) for number in range(1001)}, 1000)
    assert rates.wait(SUBJECT, 10, 100, 1000) == 0
