"""Which numbers are times, and what a point has whose own time cannot be believed."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.transfer.importing.runs import times
from apiserver.transfer.importing.runs.times import UNKNOWN

MOMENTS = st.integers(946_684_800_000, 4_102_444_800_000)


@given(MOMENTS, st.sampled_from([1e-3, 1.0, 1e3, 1e6]))
def test_a_time_is_found_in_each_unit(moment: int, unit: float) -> None:
    assert times.believed(np.array([moment * unit])).tolist() == [moment]


@given(st.one_of(st.floats(-1e8, 9.4e8), st.floats(4.2e9, 9.4e11), st.sampled_from([np.nan, np.inf, -np.inf, 1e300])))
def test_other_numbers_are_no_times(number: float) -> None:
    assert times.believed(np.array([number])).tolist() == [UNKNOWN]


def test_the_example() -> None:
    found = times.believed(np.array([1_772_352_000, 1_772_352_060_000, 61.5, np.nan]))
    found[3] = times.of_text("2026-03-01 08:03")
    first = 1_772_352_000_000
    assert times.nearest(found).tolist() == [first, first + 60_000, first + 60_000, first + 180_000]


@given(st.lists(st.one_of(st.just(UNKNOWN), MOMENTS)), st.one_of(st.just(UNKNOWN), MOMENTS))
def test_a_row_without_a_time_has_that_of_the_nearest_one(moments: list[int], before: int) -> None:
    known = [(row, moment) for row, moment in enumerate([before, *moments], -1) if moment != UNKNOWN]
    expected = [
        min(known, key=lambda one: (abs(one[0] - row), one[0]), default=(0, UNKNOWN))[1] for row in range(len(moments))
    ]
    assert times.nearest(np.array(moments, np.int64), before).tolist() == expected


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("00:18", 18.0),
        ("1:02:03.5", 3723.5),
        ("1 day, 0:00:18", 86_418.0),
        ("0 days 00:00:18", 18.0),
        ("18", None),
        ("2026-03-01 08:03", None),
        ("a:b", None),
        ("1:2", None),
        ("9" * 1000 + ":00", None),
    ],
)
def test_durations(text: str, seconds: float | None) -> None:
    assert times.seconds_of(text) == seconds


def test_dates_as_texts_are_believed() -> None:
    assert times.of_text("1970-01-01T00:00:01Z") == 1000
    assert times.of_text("2026-03-01T09:00:00+01:00") == 1_772_352_000_000
    assert times.of_text("soon") == UNKNOWN


def test_the_time_of_a_file(tmp_path: Path) -> None:
    os.utime(tmp_path, (1_700_000_000, 1_700_000_000))
    assert times.of_file(tmp_path) == 1_700_000_000_000
    os.utime(tmp_path, (0, 0))
    assert times.of_file(tmp_path) > 1_700_000_000_000


@given(st.one_of(st.floats(), st.integers(), st.sampled_from([10**400, 1_700_000_000, 1_700_000_000_000_000_000])))
def test_one_number_is_the_time_that_it_is_among_others(number: float) -> None:
    among = int(times.believed(np.array([number if abs(number) < 2**63 else np.inf], np.float64))[0])
    assert times.of_number(number) == (None if among == UNKNOWN else among)
