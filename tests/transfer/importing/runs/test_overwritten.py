"""Points of one step are counted, in whichever order the steps come."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from apiserver.transfer.importing.runs.overwritten import Repeated, Steps

ENDS = st.sampled_from([-(2**63), -1, 0, 2**62, 2**63 - 1])
STEPS = st.lists(st.one_of(st.integers(0, 30), ENDS), max_size=12)
RANGES = st.builds(lambda first, count, step: list(range(first, first + count * step, step)), *[st.integers(1, 9)] * 3)


@given(st.lists(st.one_of(STEPS, RANGES), max_size=8))
def test_all_but_one_point_of_a_step_are_overwritten(pieces: list[list[int]]) -> None:
    steps, before = Steps(), list[int]()
    for piece in pieces:
        missing = len(before + piece) - len({*before, *piece}) - (len(before) - len(set(before)))
        assert steps.add(np.array(piece, np.int64)) == missing
        before += piece


VALUES = st.sampled_from([0.0, 1.0, float("nan"), float("inf")])


@given(st.lists(st.lists(st.tuples(st.integers(0, 2), VALUES), max_size=5), max_size=5))
def test_points_that_say_the_same_as_the_one_before_are_counted(pieces: list[list[tuple[int, float]]]) -> None:
    repeated, count = Repeated(), 0
    for piece in pieces:
        count += repeated.add(
            np.array([step for step, _ in piece], np.int64), np.array([value for _, value in piece], np.float64)
        )
    points = [repr(point) for piece in pieces for point in piece]
    assert count == sum(one == other for one, other in pairwise(points))
