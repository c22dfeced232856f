"""Spans of reports, against counting the reports."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.services.history.spans import GAP, Span, counts, joined
from apiserver.services.history.steps import Steps

TIMES = st.lists(st.integers(0, 3600), min_size=1, max_size=30).map(lambda found: [1000 * at for at in found])


def spans_of(times: list[int]) -> list[Span]:
    going: Span | None = None
    ended: list[Span] = []
    for at in times:
        going, over = joined(going, at)
        ended += [over] if over else []
    return [*ended, going] if going else ended


def is_there(times: list[int], begin: int, end: int) -> bool:
    """Whether one of the sorted times is in [begin, end), or two that are close enough are around it."""
    around = any(a < begin and b >= end and b - a <= GAP for a, b in pairwise(times))
    return around or any(begin <= at < end for at in times)


@pytest.mark.test
@given(st.dictionaries(st.sampled_from("abcd"), TIMES), st.integers(0, 3000), st.integers(40, 400))
def test_workers_are_counted_in_each_step(times: dict[str, list[int]], begin: int, interval: int) -> None:
    steps = Steps.whole({"from_date": begin, "to_date": begin + 1000, "interval": interval})
    spans = [(name, span) for name, of in times.items() for span in spans_of(sorted(of))]
    expected = [
        sum(is_there(sorted(of), date, date + interval * 1000) for of in times.values())
        for date in steps.dates.tolist()
    ]
    assert counts(steps, spans).tolist() == expected


@given(TIMES)
def test_reports_that_come_late_lose_nothing(times: list[int]) -> None:
    spans = spans_of(times)
    assert all(any(first <= at <= last for first, last in spans) for at in times)
    assert {at for span in spans for at in span} <= set(times)


def test_a_steady_worker_has_one_span() -> None:
    assert spans_of(list(range(0, 86_400_000, 30_000))) == [[0, 86_370_000]]
    assert spans_of([0, GAP, 2 * GAP + 1]) == [[0, GAP], [2 * GAP + 1, 2 * GAP + 1]]
