"""Names of fragments in chunks: they are kept, cut by time, and put together."""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.stores.events.blocks.log_batches import BATCH_ID, Batches, joined

TIMES = st.integers(-5, 5) | st.sampled_from([-(2**63), 2**63 - 1])
Row = tuple[int, bytes, int, int]


def row(number: int, ends: tuple[int, int]) -> Row:
    """A fragment, whose id follows from its place."""
    return 7 * number, bytes([number]) * BATCH_ID, min(ends), max(ends)


ROWS = st.lists(st.builds(row, st.integers(0, 5), st.tuples(TIMES, TIMES)), max_size=6)


def rows(batches: Batches) -> list[Row]:
    columns = (batches.places, batches.ids, batches.firsts, batches.lasts)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.test
@given(ROWS)
def test_they_are_kept(some: list[Row]) -> None:
    assert rows(Batches.decode(Batches.of(some).encode())) == some


@given(ROWS, TIMES, TIMES)
def test_those_between_two_times_are_cut_there(some: list[Row], one: int, other: int) -> None:
    first, last = min(one, other), max(one, other)
    expected = [(place, id, max(a, first), min(b, last)) for place, id, a, b in some if a <= last and b >= first]
    assert rows(Batches.of(some).between(first, last)) == expected


@given(st.lists(ROWS, min_size=1, max_size=3))
def test_each_is_there_once_with_all_its_times(some: list[list[Row]]) -> None:
    expected: dict[bytes, Row] = {}
    for place, id, first, last in chain.from_iterable(some):
        _, _, a, b = expected.get(id, (place, id, first, last))
        expected[id] = place, id, min(first, a), max(last, b)
    assert rows(joined([Batches.of(one) for one in some])) == sorted(expected.values())
